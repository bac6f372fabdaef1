// A server that takes everything and keeps nothing: what shipping is timed against. Ids are found by
// their place in a line as a log writes it. Part of ShippingRace and the benchmark.

import DaybookTestKit
import Foundation
import Synchronization

/// Says `applied` to every event.
package final class NullServer: Sendable {
    /// What is posted, while it is kept.
    private final class Bodies: Sendable {
        let kept = Mutex<[[UInt8]]?>(nil)
    }

    private let bodies = Bodies()
    private let server: LoopbackServer

    package init() throws {
        server = try LoopbackServer { [bodies] body in
            bodies.kept.withLock { $0?.append(body) }
            return (
                [("Content-Type", "application/json"), ("Date", Self.date())],
                Self.verdicts(on: body)
            )
        }
    }

    /// Where batches are posted.
    package var endpoint: URL {
        get throws {
            guard let url = URL(string: server.base + "/v1/events") else {
                throw WireFailure("no address")
            }
            return url
        }
    }

    /// Begins to keep what is posted.
    func keepBodies() { bodies.kept.withLock { $0 = [] } }

    /// What was posted since; nothing is kept any more.
    func takeBodies() -> [[UInt8]] {
        bodies.kept.withLock { bodies in
            defer { bodies = nil }
            return bodies ?? []
        }
    }

    private static let before = Array(#""specversion":"1.0","id":""#.utf8)
    private static let idBytes = 36
    private static let opening = Array(#"{"id":""#.utf8)
    private static let closing = Array(#"","status":"applied"}"#.utf8)

    /// The answer to a batch.
    package static func verdicts(on batch: [UInt8]) -> [UInt8] {
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
