// The cursor up to which the account's events have been read. It is recorded in one commit with the events
// of the page before it, so that the log never has one without the other. Spec/protocol/sync-records.md,
// OUT-9.

import EventSourcing
import Foundation

/// The record of the cursor after the pages that were read.
public struct SyncPulled: EventPayload, Hashable {
    public static let type = "daybook.sync.pulled"

    /// The incarnation that wrote the record. A record from another log has no effect here.
    public var by: UUID
    /// The cursor of the next page.
    public var next: String

    /// The largest size of a cursor in bytes.
    package static let cursorBytesMax = 4_096

    /// Creates a record.
    public init(by incarnation: UUID, next: String) {
        by = incarnation
        self.next = next
    }

    public init(json: [UInt8]) throws {
        guard case .object(let members) = try JSONValue(json.span.bytes) else {
            throw EventError(.invalidData, "data is not a JSON object")
        }
        guard let by = members["by"]?.stringValue.flatMap(UUID.init(text:)) else {
            throw EventError(.invalidData, "data.by is not a UUID")
        }
        guard let next = members["next"]?.stringValue, !next.isEmpty,
            next.utf8.count <= Self.cursorBytesMax
        else { throw EventError(.invalidData, "data.next is not a cursor") }
        self.by = by
        self.next = next
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        writer.appendMember("next", next)
        return writer.finished()
    }
}
