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
    /// The versions that an answer has taught of entities with later changes in the outbox (READ-6).
    var taught: [Taught] = []

    /// The version of an entity's state, whose event is not recorded.
    struct Taught: Hashable, Sendable {
        var type: String
        var entity: String
        /// `StateMark.text`.
        var mark: String
    }

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
        guard case .array(let list)? = members["taught"] else { return }
        taught = list.compactMap { element in
            guard case .object(let element) = element, let type = element["type"]?.stringValue,
                let entity = element["entity"]?.stringValue,
                let mark = element["state"]?.stringValue
            else { return nil }
            return Taught(type: type, entity: entity, mark: mark)
        }
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        if let next { writer.appendMember("next", next) }
        peer.appendMembers(to: &writer)
        if !taught.isEmpty {
            let list = taught.map { taught in
                var writer = JSONObjectWriter()
                writer.appendMember("type", taught.type)
                writer.appendMember("entity", taught.entity)
                writer.appendMember("state", taught.mark)
                return writer.finished()
            }
            writer.appendMember("taught", raw: JSONObjectWriter.array(list))
        }
        return writer.finished()
    }
}
