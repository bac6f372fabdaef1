// Id and lane of an unreadable event, so that it still gets a verdict of its own and blocks its lane.
// Spec/protocol/sync-protocol.md, SYNC-8 and SYNC-29.

import EventSourcing
import Foundation
import LogFormat

/// The id and lane of an unreadable element.
struct EventOutline {
    let id: UUID
    let lane: String

    /// Reads the outline of an element, which must be valid JSON.
    ///
    /// - Returns: nil for anything but an object whose `id` is a UUID.
    init?(_ element: RawSpan) {
        var attributes: [String: String] = [:]
        var scanner = JSONScanner()
        do throws(JSONError) {
            try scanner.members(element) { (scanner, name) throws(JSONError) in
                let value = try scanner.value(element, depth: 1)
                let name = JSONText.string(element, name)
                guard ["id", "partitionkey", "subject", "type"].contains(name),
                    attributes[name] == nil,
                    element.byte(at: value.lowerBound) == UInt8(ascii: "\"")
                else { return }
                attributes[name] = JSONText.string(
                    element, value.lowerBound + 1..<value.upperBound - 1)
            }
        } catch { return nil }
        guard let text = attributes["id"], let id = UUID(text: text) else { return nil }
        self.id = id
        lane = attributes["partitionkey"] ?? attributes["subject"] ?? attributes["type"] ?? ""
    }
}
