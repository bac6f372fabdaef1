// A server of a few lines at a free port of this machine: a thread for each connection, every request
// answered by a closure until the client ends. What a HostileProxy, or a client, is tried with.

import Dispatch
import Foundation

/// Answers requests for as long as somebody holds it.
package final class LoopbackServer: Sendable {
    /// What threads share; they keep it alive, not the server itself.
    private final class Core: Sendable {
        let stop: StopSignal
        let listener: TCPListener
        let threads = DispatchGroup()
        let answer: @Sendable (_ body: [UInt8]) -> (headers: String, body: [UInt8])
        let ended: @Sendable () -> Void

        init(
            _ answer: @escaping @Sendable ([UInt8]) -> (headers: String, body: [UInt8]),
            ended: @escaping @Sendable () -> Void
        ) throws {
            stop = try StopSignal()
            listener = try TCPListener(stop: stop)
            self.answer = answer
            self.ended = ended
        }

        func run(_ body: @escaping @Sendable (Core) -> Void) {
            threads.enter()
            Thread.detachNewThread { [self] in
                body(self)
                threads.leave()
            }
        }

        func acceptAll() {
            while let socket = listener.accept() { run { $0.serve(socket) } }
        }

        /// Serves a connection until it ends.
        func serve(_ socket: TCPSocket) {
            var reader = HTTPReader(socket)
            do {
                while true {
                    let (headers, body) = answer(try reader.request().body)
                    let head =
                        "HTTP/1.1 200 OK\r\n\(headers)Content-Length: \(body.count)\r\n\r\n"
                    try socket.send(Array(head.utf8) + body)
                }
            } catch { ended() }
        }
    }

    private let core: Core

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - ended: called when a connection has ended.
    ///   - answer: gives what answers the body of a request: header lines, each with its line end,
    ///     and a body. Called on the connection's thread.
    package init(
        ended: @escaping @Sendable () -> Void = {},
        _ answer: @escaping @Sendable ([UInt8]) -> (headers: String, body: [UInt8])
    ) throws {
        core = try Core(answer, ended: ended)
        core.run { $0.acceptAll() }
    }

    deinit { stop() }

    /// The port that the system gave.
    package var port: UInt16 { core.listener.port }

    /// Ends all connections, and waits for their threads.
    package func stop() {
        core.stop.raise()
        core.threads.wait()
    }
}
