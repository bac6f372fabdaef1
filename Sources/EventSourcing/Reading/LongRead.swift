// Reads of a whole log with progress and cancellation. Between the file system and the readers:
// verification, statistics, stories, the read-only store.

import LogStorage
import Synchronization

/// A read of a whole log.
package enum LongRead {
    /// Runs work that reads a log, outside the cooperative pool, until the task is cancelled.
    ///
    /// - Parameters:
    ///   - verifying: true if the work also reads the digests of sealed segments.
    ///   - passes: how often the work reads the log.
    ///   - progress: called with the part of the log's bytes that has been read, from 0 to 1: at most a
    ///     hundred times, with 1 at the end. On another thread.
    ///   - body: the work; it must read through the file system passed to it.
    /// - Throws: what `body` throws; `CancellationError`, at the next read after the task was cancelled.
    package static func run<Result: Sendable>(
        of directory: String, _ fileSystem: any FileSystem, verifying: Bool = false,
        passes: Int = 1, progress: (@Sendable (_ part: Double) -> Void)?,
        _ body: @escaping @Sendable (any FileSystem) throws -> Result
    ) async throws -> Result {
        try Task.checkCancellation()
        let isCancelled = Atomic(false)
        let read = Atomic(0)
        do {
            return try await withTaskCancellationHandler {
                try await BlockingWork.run {
                    let total =
                        passes
                        * LogReader(directory, fileSystem: fileSystem)
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
                    // Bytes that a checkpoint covers and preallocated space are not read.
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
