// The cursor up to which the account's events have been read. It is recorded in one commit with the events
// of the page before it, so that the log never has one without the other. Spec/protocol/sync-records.md,
// OUT-9, OUT-11.

import EventSourcing
import Foundation

/// The record of the cursor after the pages that were read, and of the server and the account that sent them.
public struct SyncPulled: EventPayload, Hashable {
    public static let type = "daybook.sync.pulled"

    /// The incarnation that wrote the record. A record from another log has no effect here.
    public var by: UUID
    /// The cursor of the next page; nil if none was read.
    public var next: String?
    /// The server and the account of the cursor.
    public var peer = SyncPeer()

    /// The largest size of a cursor in bytes.
    package static let cursorBytesMax = 4_096

    /// Creates a record.
    public init(by incarnation: UUID, next: String?, peer: SyncPeer = SyncPeer()) {
        by = incarnation
        self.next = next
        self.peer = peer
    }

    public init(json: [UInt8]) throws {
        guard case .object(let members) = try JSONValue(json.span.bytes) else {
            throw EventError(.invalidData, "data is not a JSON object")
        }
        guard let by = members["by"]?.stringValue.flatMap(UUID.init(text:)) else {
            throw EventError(.invalidData, "data.by is not a UUID")
        }
        if let next = members["next"] {
            guard let next = next.stringValue, !next.isEmpty,
                next.utf8.count <= Self.cursorBytesMax
            else { throw EventError(.invalidData, "data.next is not a cursor") }
            self.next = next
        }
        self.by = by
        peer = SyncPeer(members: members)
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        if let next { writer.appendMember("next", next) }
        peer.appendMembers(to: &writer)
        return writer.finished()
    }
}
