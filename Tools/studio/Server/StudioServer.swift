// The server of Studio, for one browser on this machine. Spec/operations/studio.md, "Access".

import DaybookOffline
import Foundation

/// A server of a log's pages and JSON interface, at a port of the loopback interface.
package final class StudioServer: Sendable {
    private let port: UInt16
    private let handler: StudioHandler
    private let log: FollowedLog

    /// Creates a server. Opens nothing.
    ///
    /// - Parameters:
    ///   - directory: the log's folder.
    ///   - account: the account that the log must have; nil accepts any.
    ///   - port: the port; 0 for one that the system chooses.
    ///   - open: opens the log for writing, for a decision on the outbox; nil refuses decisions.
    package init(
        _ directory: String, account: String?, port: UInt16,
        open: (@Sendable () async throws -> EventStore)?
    ) {
        self.port = port
        log = FollowedLog(LogFolder(directory), account: account)
        handler = StudioHandler(
            API(log, isWritable: open != nil), key: Self.randomText(), open: open)
    }

    /// Serves until the task is cancelled.
    ///
    /// - Parameter ready: called when the server listens, with the address of the first page, which has the key,
    ///   and with the address without it.
    /// - Throws: `StudioError` if the port cannot be opened; `CancellationError`.
    package func run(
        ready: (_ address: String, _ origin: String) -> Void
    ) async throws {
        let listener = try StudioListener(port: port, handler)
        handler.setPort(listener.port)
        log.start()
        listener.start()
        defer {
            listener.stop()
            log.stop()
            handler.withdrawCode()
        }
        let origin = "http://127.0.0.1:\(listener.port)"
        ready("\(origin)/?token=\(handler.key)", origin)
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }

    /// Writes a file that leads a browser to the pages, with a code that can be exchanged for the key once. The
    /// file is removed when the code is used, after a minute, or when the server ends.
    ///
    /// The arguments of a command can be read by every user of this machine; so a browser gets the path of the
    /// file, and not the address with the key.
    ///
    /// - Parameter origin: the address of the running server, as `run` has given it.
    /// - Returns: the path.
    /// - Throws: `StudioError`.
    package func writeOpeningFile(for origin: String) throws -> String {
        let code = Self.randomText()
        let file = try OpeningFile(leadingTo: "\(origin)/?code=\(code)")
        handler.setCode(code) { file.remove() }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.codeSeconds) { [handler] in
            handler.withdrawCode()
        }
        return file.path
    }

    private static let codeSeconds = 60.0

    /// 128 random bits in hexadecimal.
    private static func randomText() -> String {
        (0..<16).map { _ in
            let byte = UInt8.random(in: 0...255)
            return String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
    }
}

/// Why the server does not run.
package struct StudioError: Error, CustomStringConvertible {
    package let description: String
}
