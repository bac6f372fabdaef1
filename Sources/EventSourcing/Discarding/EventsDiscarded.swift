// The records that retract and reinstate events. Spec/protocol/discarding.md.

import Foundation
import LogFormat

/// The record that retracts events of this log which no server has: the views are as if they had never been
/// recorded. The lines and their ids stay in the log.
public struct EventsDiscarded: EventPayload, Hashable {
    public static let type = "daybook.sync.discarded"

    /// The incarnation that wrote the record. Positions are valid in one log only: if this is not the
    /// line's source, the record came from another log and has no effect.
    public var by: UUID
    /// The retracted events.
    public var events: [EventTarget]
    /// The reason of the retraction.
    public var reason: Reason

    /// Why events were retracted.
    public enum Reason: String, Hashable, Sendable {
        /// The app or the user discarded them.
        case discarded
        /// A conflict was resolved: other events, or the server's values, replace them.
        case superseded
    }

    /// Creates a record.
    package init(by incarnation: UUID, events: [EventTarget], reason: Reason) {
        by = incarnation
        self.events = events
        self.reason = reason
    }

    public init(json: [UInt8]) throws {
        let members = try EventTarget.members(of: json)
        guard case .string(let reason)? = members["reason"], let reason = Reason(rawValue: reason)
        else { throw EventError(.invalidData, "data.reason is neither discarded nor superseded") }
        self.reason = reason
        by = try EventTarget.incarnation(in: members)
        events = try EventTarget.list(in: members)
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        writer.appendMember("reason", reason.rawValue)
        writer.appendMember("events", raw: EventTarget.json(events))
        return writer.finished()
    }
}

/// The record that reinstates retracted events: the server has them after all.
public struct EventsReinstated: EventPayload, Hashable {
    public static let type = "daybook.sync.reinstated"

    /// The incarnation that wrote the record, as in `EventsDiscarded`.
    public var by: UUID
    /// The reinstated events.
    public var events: [EventTarget]

    /// Creates a record.
    package init(by incarnation: UUID, events: [EventTarget]) {
        by = incarnation
        self.events = events
    }

    public init(json: [UInt8]) throws {
        let members = try EventTarget.members(of: json)
        by = try EventTarget.incarnation(in: members)
        events = try EventTarget.list(in: members)
    }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        writer.appendMember("events", raw: EventTarget.json(events))
        return writer.finished()
    }
}

/// One event that a record names.
public struct EventTarget: Hashable, Sendable {
    /// The event's position.
    public var position: Position
    /// The event's id.
    public var id: UUID

    /// Creates a reference to an event.
    public init(position: Position, id: UUID) {
        self.position = position
        self.id = id
    }

    fileprivate static func members(of json: [UInt8]) throws -> [String: JSONValue] {
        guard case .object(let members) = try JSONValue(json.span.bytes) else {
            throw EventError(.invalidData, "data is not a JSON object")
        }
        return members
    }

    fileprivate static func incarnation(in members: [String: JSONValue]) throws -> UUID {
        guard case .string(let by)? = members["by"], let by = UUID(text: by) else {
            throw EventError(.invalidData, "data.by is not a UUID")
        }
        return by
    }

    fileprivate static func list(in members: [String: JSONValue]) throws -> [EventTarget] {
        guard case .array(let list)? = members["events"] else {
            throw EventError(.invalidData, "data.events is not an array")
        }
        return try list.map { target in
            guard case .object(let target) = target,
                case .number(let position)? = target["position"],
                let position = position.integerValue, position > 0,
                case .string(let id)? = target["id"], let id = UUID(text: id)
            else { throw EventError(.invalidData, "data.events has a malformed element") }
            return EventTarget(position: Position(UInt64(position)), id: id)
        }
    }

    fileprivate static func json(_ targets: [EventTarget]) -> [UInt8] {
        JSONObjectWriter.array(
            targets.map { target in
                var writer = JSONObjectWriter()
                writer.appendMember("position", raw: Array("\(target.position)".utf8))
                writer.appendMember("id", target.id.text)
                return writer.finished()
            })
    }
}
