// Reads that go through a whole log, for an app that shows how far they are and lets its user cancel
// them. Between the file system and what reads: verification, statistics, stories, a store that only
// reads.

import LogStorage
import Synchronization

/// A read of a whole log.
package enum LongRead {
    /// Runs work that reads a log, off the cooperative pool, until the task is cancelled.
    ///
    /// - Parameters:
    ///   - verifying: whether the digests of sealed segments are read as well.
    ///   - progress: called with the part of the log's bytes that has been read, from 0 to 1: a hundred
    ///     times at most, with 1 at the end. On another thread.
    ///   - body: the work; it must read through the file system that it gets.
    /// - Throws: what `body` throws; `CancellationError`, at the next read after the task was cancelled.
    package static func run<Result: Sendable>(
        of directory: String, _ fileSystem: any FileSystem, verifying: Bool = false,
        progress: (@Sendable (_ part: Double) -> Void)?,
        _ body: @escaping @Sendable (any FileSystem) throws -> Result
    ) async throws -> Result {
        try Task.checkCancellation()
        let isCancelled = Atomic(false)
        let read = Atomic(0)
        do {
            return try await withTaskCancellationHandler {
                try await BlockingWork.run {
                    let total = LogReader(directory, fileSystem: fileSystem)
                        .bytesToRead(verifying: verifying)
                    let files = CountingFileSystem(fileSystem) { bytes throws(FileError) in
                        guard !isCancelled.load(ordering: .relaxed) else {
                            throw FileError(
                                .io, operation: "read", path: directory, reason: "cancelled")
                        }
                        let (before, after) = read.wrappingAdd(bytes, ordering: .relaxed)
                        guard let progress, before < total else { return }
                        let part = Double(min(after, total)) / Double(total)
                        if Int(part * 100) > before * 100 / total { progress(part) }
                    }
                    let result = try body(files)
                    // What a checkpoint covers and what is preallocated is not read.
                    if read.load(ordering: .relaxed) < total { progress?(1) }
                    return result
                }
            } onCancel: {
                isCancelled.store(true, ordering: .relaxed)
            }
        } catch {
            if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
            throw error
        }
    }
}
