// Runs logtool as a process of its own, for one call of a tool.

import EventSourcing
import Foundation
import Synchronization

/// What a finished command has written.
struct ToolProcess {
    let status: Int32
    let output: String
    let messages: String
    let isCut: Bool

    /// The bytes of output that are kept: more fills a model's memory, and narrower questions answer better.
    static let outputBytesMax = 256 * 1_024

    /// Runs logtool to its end, or until the task is cancelled or it has written too much.
    ///
    /// - Throws: the error of a process that cannot be started.
    static func logtool(_ arguments: [String]) async throws -> ToolProcess {
        let process = Process()
        process.executableURL = Bundle.main.executableURL
        process.arguments = arguments
        let (output, messages) = (Pipe(), Pipe())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = messages
        try process.run()
        let running = Mutex<pid_t?>(process.processIdentifier)
        let stop: @Sendable () -> Void = {
            running.withLock { if let process = $0 { kill(process, SIGTERM) } }
        }
        return try await withTaskCancellationHandler {
            async let written = BlockingWork.run {
                read(output.fileHandleForReading, max: outputBytesMax, orElse: stop)
            }
            async let said = BlockingWork.run {
                read(messages.fileHandleForReading, max: 16 * 1_024) {}
            }
            let ((bytes, isCut), (text, _)) = try await (written, said)
            try await BlockingWork.run { process.waitUntilExit() }
            running.withLock { $0 = nil }
            return ToolProcess(
                status: process.terminationStatus, output: String(decoding: bytes, as: UTF8.self),
                messages: String(decoding: text, as: UTF8.self), isCut: isCut)
        } onCancel: {
            stop()
        }
    }

    /// Reads to the end, and keeps the whole lines of the first `max` bytes.
    ///
    /// - Parameter stop: called once there is more.
    private static func read(
        _ file: FileHandle, max: Int, orElse stop: () -> Void
    ) -> (bytes: [UInt8], isCut: Bool) {
        var (bytes, isCut): ([UInt8], Bool) = ([], false)
        while let chunk = try? file.read(upToCount: 64 * 1_024), !chunk.isEmpty {
            guard !isCut else { continue }
            bytes += chunk
            guard bytes.count > max else { continue }
            isCut = true
            stop()
            bytes.removeSubrange(max...)
            if let end = bytes.lastIndex(of: UInt8(ascii: "\n")) {
                bytes.removeSubrange((end + 1)...)
            }
        }
        return (bytes, isCut)
    }
}
