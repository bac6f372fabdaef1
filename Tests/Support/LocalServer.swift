// A server for tests of the bytes on a connection. A closure makes the reply, byte for byte if needed; each
// connection has one request.

import DaybookTestKit
import Foundation
import Synchronization

/// A server on 127.0.0.1 that runs until it is released. Tests read `requests` at their end, which keeps it
/// alive.
package final class LocalServer: Sendable {
    package typealias Request = LoopbackServer.Request

    /// A reply.
    package enum Answer: Sendable {
        /// A reply with a length.
        case reply(Int, headers: [(String, String)] = [], body: [UInt8] = [])
        /// These bytes and nothing else.
        case raw([UInt8])
        /// No reply: the connection is closed.
        case hangUp
        /// A closure that uses the connection, which is closed when it returns.
        case script(@Sendable (Connection) -> Void)
    }

    /// A connection whose first request has been read.
    package struct Connection {
        fileprivate let connection: LoopbackServer.Connection
        fileprivate let record: Record

        /// Sends bytes.
        ///
        /// - Returns: false if the client has closed the connection.
        package func send(_ bytes: [UInt8]) -> Bool {
            (try? connection.socket.send(bytes)) != nil
        }

        /// Sends text.
        @discardableResult
        package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

        /// Reads the next request; nil if the client has closed the connection.
        package func nextRequest() -> Request? {
            guard let request = try? connection.nextRequest() else { return nil }
            record.seen.withLock { $0.append(request) }
            return request
        }

        /// Forwards bytes to a server on this machine and back until either side ends.
        package func tunnel(to port: UInt16) { try? connection.tunnel(to: port) }

        /// Waits until the client closes the connection.
        package func waitForEnd() { try? connection.waitForEnd() }

        /// Makes the connection end with a reset.
        package func resetAtEnd() { connection.socket.resetOnClose() }
    }

    fileprivate final class Record: Sendable {
        let seen = Mutex<[Request]>([])
        let connections = Mutex(0)
    }

    private let record = Record()
    private let server: LoopbackServer

    /// Starts a server.
    ///
    /// - Parameter answer: called for each request, on the connection's thread.
    package init(_ answer: @escaping @Sendable (Request) -> Answer) throws {
        server = try LoopbackServer { [record] connection in
            let open = Connection(connection: connection, record: record)
            guard let request = open.nextRequest() else { return }
            record.connections.withLock { $0 += 1 }
            switch answer(request) {
            case .reply(let status, let headers, let body):
                try connection.sendReply(
                    status, headers.map { (name: $0.0, value: $0.1) }, body, length: body.count,
                    isLast: true)
            case .raw(let bytes): _ = open.send(bytes)
            case .hangUp: break
            case .script(let script): script(open)
            }
        }
    }

    /// The port, chosen by the system.
    package var port: UInt16 { server.port }

    /// The base URL, without a slash at the end.
    package var base: String { server.base }

    /// The number of connections with a request so far.
    package var connectionCount: Int { record.connections.withLock { $0 } }

    /// The requests so far.
    package var requests: [Request] { record.seen.withLock { $0 } }
}
