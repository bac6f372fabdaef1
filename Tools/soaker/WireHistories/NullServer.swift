// A server that takes everything and keeps nothing: what shipping is timed against. A thread for each
// connection; ids are found by their place in a line as a log writes it. Part of ShippingRace.

import DaybookTestKit
import Dispatch
import Foundation
import Synchronization

/// Says `applied` to every event.
final class NullServer: Sendable {
    /// What threads share; they keep it alive, not the server itself.
    private final class Core: Sendable {
        let stop: StopSignal
        let listener: TCPListener
        let threads = DispatchGroup()
        let bodies = Mutex<[[UInt8]]?>(nil)

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

        /// Serves a connection until it ends.
        func serve(_ socket: TCPSocket) {
            var reader = HTTPReader(socket)
            do {
                while true {
                    let request = try reader.request()
                    bodies.withLock { $0?.append(request.body) }
                    let body = NullServer.verdicts(on: request.body)
                    let head =
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                        + "Date: \(NullServer.date())\r\nContent-Length: \(body.count)\r\n\r\n"
                    try socket.send(Array(head.utf8) + body)
                }
            } catch {}
        }
    }

    private let core: Core

    init() throws {
        core = try Core()
        core.run { core in
            while let socket = core.listener.accept() { core.run { $0.serve(socket) } }
        }
    }

    deinit {
        core.stop.raise()
        core.threads.wait()
    }

    /// Where batches are posted.
    var endpoint: URL {
        get throws {
            guard let url = URL(string: "http://127.0.0.1:\(core.listener.port)/v1/events") else {
                throw WireFailure("no address")
            }
            return url
        }
    }

    /// Begins to keep what is posted.
    func keepBodies() { core.bodies.withLock { $0 = [] } }

    /// What was posted since; nothing is kept any more.
    func takeBodies() -> [[UInt8]] {
        core.bodies.withLock { bodies in
            defer { bodies = nil }
            return bodies ?? []
        }
    }

    private static let before = Array(#""specversion":"1.0","id":""#.utf8)
    private static let idBytes = 36
    private static let opening = Array(#"{"id":""#.utf8)
    private static let closing = Array(#"","status":"applied"}"#.utf8)

    /// The answer to a batch.
    static func verdicts(on batch: [UInt8]) -> [UInt8] {
        var reply = Array(#"{"verdicts":["#.utf8)
        reply.reserveCapacity(batch.count / 3)
        batch.withUnsafeBytes { batch in
            guard let base = batch.baseAddress else { return }
            var place = 0
            while let quote = memchr(base + place, 0x22, batch.count - place) {
                place = UnsafeRawPointer(quote) - base
                let start = place + before.count
                guard start + idBytes <= batch.count else { return }
                guard batch[place + 1] == before[1], memcmp(quote, before, before.count) == 0 else {
                    place += 1
                    continue
                }
                if reply.last != UInt8(ascii: "[") { reply.append(UInt8(ascii: ",")) }
                reply += opening
                reply += batch[start..<(start + idBytes)]
                reply += closing
                place = start + idBytes
            }
        }
        reply += Array("]}".utf8)
        return reply
    }

    private static func date() -> String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
