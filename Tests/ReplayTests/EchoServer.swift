// A server that gives every body back, and a client that asks for it: what a HostileProxy is tried
// with.

import DaybookTestKit
import Dispatch
import Foundation
import Synchronization

/// Gives back what it gets.
final class EchoServer: Sendable {
    private struct State {
        var received: [String] = []
        var broken = 0
    }

    private final class Core: Sendable {
        let stop: StopSignal
        let listener: TCPListener
        let state = Mutex(State())
        let threads = DispatchGroup()

        init() throws {
            stop = try StopSignal()
            listener = try TCPListener(stop: stop)
        }

        func run(_ body: @escaping @Sendable (Core) -> Void) {
            threads.enter()
            Thread.detachNewThread { [self] in
                body(self)
                threads.leave()
            }
        }

        func serve(_ socket: TCPSocket) {
            var reader = HTTPReader(socket)
            while true {
                do {
                    let request = try reader.request()
                    let body = String(decoding: request.body, as: UTF8.self)
                    state.withLock { $0.received.append(body) }
                    let head = "HTTP/1.1 200 OK\r\nContent-Length: \(request.body.count)\r\n\r\n"
                    try socket.send(Array(head.utf8) + request.body)
                } catch {
                    return state.withLock { $0.broken += 1 }
                }
            }
        }
    }

    private let core: Core

    init() throws {
        core = try Core()
        core.run { core in
            while let socket = core.listener.accept() { core.run { $0.serve(socket) } }
        }
    }

    deinit { stop() }

    var port: UInt16 { core.listener.port }

    /// The bodies of all requests.
    var received: [String] { core.state.withLock { $0.received } }

    /// Connections that have ended.
    var broken: Int { core.state.withLock { $0.broken } }

    func stop() {
        core.stop.raise()
        core.threads.wait()
    }
}

/// One connection of a client.
struct EchoClient {
    private let socket: TCPSocket
    private var reader: HTTPReader
    /// Bytes that came of a reply that never was complete.
    var readBytes: Int { reader.waitingBytes }

    init(_ port: UInt16) throws {
        socket = try TCPSocket(to: port, stop: try StopSignal())
        reader = HTTPReader(socket)
    }

    func send(_ body: String) throws {
        let head = "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        try socket.send(Array((head + body).utf8))
    }

    mutating func exchange(_ body: String) throws -> String {
        try send(body)
        return String(decoding: try reader.reply().body, as: UTF8.self)
    }
}
