// A server that returns every body, and its client, for tests of HostileProxy.

import DaybookTestKit
import Foundation
import Synchronization

/// A server that replies with the body of the request.
final class EchoServer: Sendable {
    private final class State: Sendable {
        let received = Mutex<[String]>([])
        let broken = Mutex(0)
    }

    private let state = State()
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { [state] connection in
            defer { state.broken.withLock { $0 += 1 } }
            while let body = try connection.nextRequest()?.body {
                state.received.withLock { $0.append(String(decoding: body, as: UTF8.self)) }
                try connection.sendReply(200, [], body, length: body.count, isLast: false)
            }
        }
    }

    var port: UInt16 { server.port }

    /// The bodies of all requests.
    var received: [String] { state.received.withLock { $0 } }

    /// The number of connections that have ended.
    var broken: Int { state.broken.withLock { $0 } }

    func stop() { server.stop() }
}

/// A client's connection.
struct EchoClient {
    private let socket: TCPSocket
    private var reader: HTTPReader
    /// The number of received bytes of an incomplete reply.
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
        return String(decoding: try reader.readReply().body, as: UTF8.self)
    }
}
