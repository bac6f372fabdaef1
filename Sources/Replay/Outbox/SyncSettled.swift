// The record of a server's reply in the log: one relaxed event for each reply. Spec/protocol/sync-records.md.

import EventSourcing
import Foundation
import LogFormat

/// The record of one reply: the settled events, and those that were charged, parked or in conflict.
public struct SyncSettled: EventPayload, Hashable {
    public static let type = "daybook.sync.settled"

    /// The incarnation that wrote the record. Positions are valid in one log only: if this differs from the
    /// line's source, the record came from another log and has no effect here.
    public var by: UUID
    /// Ranges of positions whose shipped events the server has applied.
    public var applied: [ClosedRange<UInt64>] = []
    /// Ranges of positions whose shipped events the server already had.
    public var duplicate: [ClosedRange<UInt64>] = []
    /// The events that the reply did not settle, and what it did to them.
    public var entries: [Entry] = []
    /// The offset of the server's clock, server time − device time, in milliseconds; nil leaves the recorded
    /// one as it is.
    public var clockOffset: Int64?
    /// An offset more than a day from the one in use, which one answer has shown and none has confirmed
    /// (CLOCK-3). Nil leaves the recorded one as it is, unless the record has a `clockOffset`, which removes it.
    public var clockCandidate: Int64?
    /// The position up to which a folded record replaces all records of this log. Nil for the record of one
    /// reply.
    public var replaces: Position?

    /// The outcome of one event that the reply did not settle.
    public struct Entry: Hashable, Sendable {
        /// The event's position.
        public var position: UInt64
        /// The event's id.
        public var id: UUID
        /// The event's new state.
        public var outcome: Outcome
        /// The number of `retry` verdicts so far.
        public var retryCount: Int
        /// The server's code, or one of `FailureCode`.
        public var code: String?
        /// The server's message.
        public var detail: String?
        /// True for a decision of the user or the app to send the event again; false for a server's answer.
        var isDecision: Bool { outcome == .retry && retryCount == 0 }

        /// The time of the answer. Nil: the time of the record.
        public var at: Timestamp?
        /// The id of the server's event, for a conflict, if the server sent it.
        public var current: UUID?
        /// True for an event that was rejected after its retries had been used up. If false, a parked event
        /// with five retries is exhausted and is sent again later (PRK-4).
        public var isFinal: Bool
        /// How often requests with this event alone failed; not 0 for an event that is set aside (PRK-5).
        public var failuresAlone: Int

        /// Creates an entry.
        public init(
            position: UInt64, id: UUID, outcome: Outcome, retryCount: Int, code: String? = nil,
            detail: String? = nil, at: Timestamp? = nil, current: UUID? = nil,
            isFinal: Bool = false, failuresAlone: Int = 0
        ) {
            self.position = position
            self.id = id
            self.outcome = outcome
            self.retryCount = retryCount
            self.code = code
            self.detail = detail
            self.at = at
            self.current = current
            self.isFinal = isFinal
            self.failuresAlone = failuresAlone
        }
    }

    /// The state of an event that the reply did not settle.
    public enum Outcome: String, Sendable {
        /// It is to be sent again; the attempt was counted.
        case retry
        /// It is parked: until the user or the app decides, or for up to an hour (PRK-4).
        case parked
        /// Its lane is held until the conflict is resolved.
        case conflict
    }

    /// Creates an empty record.
    public init(by incarnation: UUID) { by = incarnation }

    /// Whether there is nothing to record.
    public var isEmpty: Bool {
        applied.isEmpty && duplicate.isEmpty && entries.isEmpty && clockOffset == nil
            && clockCandidate == nil
    }

    public init(json: [UInt8]) throws {
        guard case .object(let members) = try JSONValue(json.span.bytes) else {
            throw EventError(.invalidData, "data is not a JSON object")
        }
        guard let by = members["by"]?.stringValue.flatMap(UUID.init(text:)) else {
            throw EventError(.invalidData, "data.by is not a UUID")
        }
        self.by = by
        applied = try Self.ranges(members["applied"])
        duplicate = try Self.ranges(members["duplicate"])
        if let replaces = members["replaces"] {
            guard case .number(let number) = replaces, let position = number.integerValue,
                position > 0
            else { throw EventError(.invalidData, "data.replaces is not a position") }
            self.replaces = Position(UInt64(position))
        }
        clockOffset = Self.offset(members["clock"])
        clockCandidate = Self.offset(members["clockCandidate"])
        guard let list = members["entries"] else { return }
        guard case .array(let entries) = list else {
            throw EventError(.invalidData, "data.entries is not an array")
        }
        self.entries = try entries.map { entry in
            guard case .object(let entry) = entry,
                case .number(let position)? = entry["position"],
                let position = position.integerValue, position > 0,
                case .string(let id)? = entry["id"], let id = UUID(text: id),
                case .string(let outcome)? = entry["outcome"],
                let outcome = Outcome(rawValue: outcome)
            else { throw EventError(.invalidData, "data.entries has a malformed entry") }
            func count(_ name: String, max limit: Int) -> Int {
                guard case .number(let number)? = entry[name] else { return 0 }
                return min(Swift.max(0, number.integerValue ?? 0), limit)
            }
            return Entry(
                position: UInt64(position), id: id, outcome: outcome,
                retryCount: count("retryCount", max: Retries.max),
                code: entry["code"]?.stringValue.map { Self.truncated($0, Self.codeBytesMax) },
                detail: entry["detail"]?.stringValue.map {
                    Self.truncated($0, Self.detailBytesMax)
                },
                at: entry["at"]?.stringValue.flatMap(Timestamp.init),
                current: entry["current"]?.stringValue.flatMap(UUID.init(text:)),
                isFinal: entry["final"] == .bool(true),
                failuresAlone: count("failuresAlone", max: Retries.failuresAloneMax))
        }
    }

    /// The largest clock offset, in milliseconds: a century. A larger one is ignored.
    static let clockOffsetMax: Int64 = 100 * 366 * 86_400_000
    /// The largest size of a code in bytes.
    static let codeBytesMax = 64
    /// The largest size of the server's message in bytes.
    static let detailBytesMax = 512

    /// The text, truncated to `bytesMax` bytes of JSON with an ellipsis after them. Truncating the result
    /// again does not change it.
    static func truncated(_ text: String, _ bytesMax: Int) -> String {
        var result = ""
        var bytes = 0
        for scalar in text.unicodeScalars {
            // JSON escapes a control character with six bytes.
            bytes += scalar.value < 0x20 ? 6 : UTF8.width(scalar) + 1
            guard bytes <= bytesMax else { return result + "…" }
            result.unicodeScalars.append(scalar)
        }
        return result
    }

    private static func offset(_ value: JSONValue?) -> Int64? {
        guard case .number(let number)? = value, let offset = number.integerValue,
            offset.magnitude <= clockOffsetMax.magnitude
        else { return nil }
        return Int64(offset)
    }

    private static func ranges(_ value: JSONValue?) throws -> [ClosedRange<UInt64>] {
        guard let value else { return [] }
        guard case .array(let pairs) = value else {
            throw EventError(.invalidData, "a list of ranges is not an array")
        }
        return try pairs.map { pair in
            guard case .array(let ends) = pair, ends.count == 2,
                case .number(let first) = ends[0], case .number(let last) = ends[1],
                let first = first.integerValue, let last = last.integerValue,
                first > 0, first <= last
            else { throw EventError(.invalidData, "a range is not a pair of positions") }
            return UInt64(first)...UInt64(last)
        }
    }

    public func json() -> [UInt8] {
        func pairs(_ ranges: [ClosedRange<UInt64>]) -> [UInt8] {
            JSONObjectWriter.array(
                ranges.map { Array("[\($0.lowerBound),\($0.upperBound)]".utf8) })
        }
        var writer = JSONObjectWriter()
        writer.appendMember("by", by.text)
        if !applied.isEmpty { writer.appendMember("applied", raw: pairs(applied)) }
        if !duplicate.isEmpty { writer.appendMember("duplicate", raw: pairs(duplicate)) }
        if let replaces { writer.appendMember("replaces", raw: Array("\(replaces)".utf8)) }
        if let clockOffset { writer.appendMember("clock", raw: Array("\(clockOffset)".utf8)) }
        if let clockCandidate {
            writer.appendMember("clockCandidate", raw: Array("\(clockCandidate)".utf8))
        }
        if !entries.isEmpty {
            let list = entries.map { entry in
                var writer = JSONObjectWriter()
                writer.appendMember("position", raw: Array("\(entry.position)".utf8))
                writer.appendMember("id", entry.id.text)
                writer.appendMember("outcome", entry.outcome.rawValue)
                writer.appendMember("retryCount", entry.retryCount)
                // Truncated, because a server may send any length and the record must fit into a line.
                if let code = entry.code {
                    writer.appendMember("code", Self.truncated(code, Self.codeBytesMax))
                }
                if let detail = entry.detail {
                    writer.appendMember("detail", Self.truncated(detail, Self.detailBytesMax))
                }
                if let at = entry.at { writer.appendMember("at", at.description) }
                if let current = entry.current { writer.appendMember("current", current.text) }
                if entry.isFinal { writer.appendMember("final", true) }
                if entry.failuresAlone > 0 {
                    writer.appendMember("failuresAlone", raw: Array("\(entry.failuresAlone)".utf8))
                }
                return writer.finished()
            }
            writer.appendMember("entries", raw: JSONObjectWriter.array(list))
        }
        return writer.finished()
    }
}
