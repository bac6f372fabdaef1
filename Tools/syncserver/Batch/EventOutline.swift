// Id and lane of an event that breaks the rules, so that it still gets a verdict of its own and
// holds its lane. Used by ReceivedEvent. Spec/protocol/sync-protocol.md, SYNC-8 and SYNC-29.

import EventSourcing
import Foundation
import LogFormat

/// Which event an unreadable element is.
struct EventOutline {
    let id: UUID
    let lane: String

    /// Reads the outline of checked JSON.
    ///
    /// - Returns: nil for anything but an object whose `id` is a UUID.
    init?(_ element: RawSpan) {
        var found: [String: String] = [:]
        var scanner = JSONScanner()
        do throws(JSONError) {
            try scanner.members(element) { (scanner, name) throws(JSONError) in
                let value = try scanner.value(element, depth: 1)
                let name = JSONText.string(element, name)
                guard ["id", "partitionkey", "subject", "type"].contains(name),
                    found[name] == nil,
                    element.byte(at: value.lowerBound) == UInt8(ascii: "\"")
                else { return }
                found[name] = JSONText.string(element, value.lowerBound + 1..<value.upperBound - 1)
            }
        } catch { return nil }
        guard let text = found["id"], let id = UUID(text: text) else { return nil }
        self.id = id
        lane = found["partitionkey"] ?? found["subject"] ?? found["type"] ?? ""
    }
}
