// A server that accepts every event and stores none, for timing the client. It finds ids by their offset in a
// line as a log writes it.

import DaybookTestKit
import Foundation
import Synchronization

/// A server that replies `applied` to every event.
package final class NullServer: Sendable {
    /// The posted bodies; nil while they are not recorded.
    private final class Bodies: Sendable {
        let recorded = Mutex<[[UInt8]]?>(nil)
    }

    private let bodies = Bodies()
    private let server: LoopbackServer

    package init() throws {
        server = try LoopbackServer { [bodies] body in
            bodies.recorded.withLock { $0?.append(body) }
            return (
                [("Content-Type", "application/json"), ("Date", Self.date())],
                Self.verdicts(on: body)
            )
        }
    }

    /// The URL to which batches are posted.
    package var endpoint: URL {
        get throws {
            guard let url = URL(string: server.base + "/v1/events") else {
                throw WireFailure("\(server.base)/v1/events is not a valid URL")
            }
            return url
        }
    }

    /// Starts to record the posted bodies.
    func startRecording() { bodies.recorded.withLock { $0 = [] } }

    /// Stops recording.
    ///
    /// - Returns: the bodies that were posted since `startRecording()`.
    func stopRecording() -> [[UInt8]] {
        bodies.recorded.withLock { bodies in
            defer { bodies = nil }
            return bodies ?? []
        }
    }

    private static let idPrefix = Array(#""specversion":"1.0","id":""#.utf8)
    private static let idBytes = 36
    private static let opening = Array(#"{"id":""#.utf8)
    private static let closing = Array(#"","status":"applied"}"#.utf8)

    /// The reply to a batch.
    package static func verdicts(on batch: [UInt8]) -> [UInt8] {
        var reply = Array(#"{"verdicts":["#.utf8)
        reply.reserveCapacity(batch.count / 3)
        batch.withUnsafeBytes { batch in
            guard let base = batch.baseAddress else { return }
            var offset = 0
            while let quote = memchr(base + offset, 0x22, batch.count - offset) {
                offset = UnsafeRawPointer(quote) - base
                let start = offset + idPrefix.count
                guard start + idBytes <= batch.count else { return }
                guard batch[offset + 1] == idPrefix[1],
                    memcmp(quote, idPrefix, idPrefix.count) == 0
                else {
                    offset += 1
                    continue
                }
                if reply.last != UInt8(ascii: "[") { reply.append(UInt8(ascii: ",")) }
                reply += opening
                reply += batch[start..<(start + idBytes)]
                reply += closing
                offset = start + idBytes
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
