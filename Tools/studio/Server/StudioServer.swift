// The server of Studio, for one browser on this machine. Spec/operations/studio.md, "Access".

import DaybookOffline
import FlyingFox
import Foundation

/// A server of a log's pages and JSON interface, at a port of the loopback interface.
package final class StudioServer: Sendable {
    private let server: HTTPServer
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
    ) throws {
        log = FollowedLog(directory, account: account)
        handler = StudioHandler(
            API(log, isWritable: open != nil), token: Self.newToken(), open: open)
        server = HTTPServer(
            address: try .inet(ip4: "127.0.0.1", port: port), timeout: Self.timeout,
            pool: UndelayedSocketPool(), logger: .disabled, handler: handler)
    }

    /// The seconds in which a request must be answered: a verification reads the whole log.
    private static let timeout = 300.0

    /// Serves until the task is cancelled.
    ///
    /// - Parameter ready: called with the address of the first page once the server listens.
    /// - Throws: `StudioError` if the port cannot be opened; `CancellationError`.
    package func run(ready: @escaping @Sendable (String) -> Void) async throws {
        log.start()
        defer { log.stop() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do { try await self.server.run() } catch {
                    try Task.checkCancellation()
                    throw StudioError(description: "the port cannot be opened: \(error)")
                }
            }
            group.addTask {
                try await self.server.waitUntilListening()
                guard case .ip4(_, let port)? = await self.server.listeningAddress else { return }
                self.handler.setPort(port)
                ready("http://127.0.0.1:\(port)/?token=\(self.handler.token)")
            }
            // The first error ends the other task.
            while try await group.next() != nil {}
        }
    }

    /// 128 random bits.
    private static func newToken() -> String {
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
