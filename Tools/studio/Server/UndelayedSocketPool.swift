// Sockets without Nagle's algorithm (RFC 9293, 3.7.4). FlyingFox writes the head and the body of a reply one after
// the other; the body would wait until the browser acknowledges the head, which takes it 40 ms.

import FlyingFox
import FlyingSocks
import Foundation

/// A pool whose sockets send each write at once.
struct UndelayedSocketPool: AsyncSocketPool {
    private let pool: any AsyncSocketPool = HTTPServer.defaultPool()

    func prepare() async throws { try await pool.prepare() }

    func run() async throws { try await pool.run() }

    func suspendSocket(_ socket: Socket, untilReadyFor events: Socket.Events) async throws {
        // The sockets of connections inherit the option from the one that listens. A socket without the
        // option is slower and otherwise correct.
        try? socket.setValue(
            true, for: BoolSocketOption(level: Int32(IPPROTO_TCP), name: TCP_NODELAY))
        try await pool.suspendSocket(socket, untilReadyFor: events)
    }
}
