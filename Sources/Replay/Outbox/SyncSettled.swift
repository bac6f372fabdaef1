// What the log remembers of the server's replies: one relaxed event a reply. Spec/protocol/sync-records.md.

import EventSourcing
import Foundation
import LogFormat

/// The record of one reply: what left the outbox, and what was charged, parked or in conflict.
public struct SyncSettled: EventPayload, Hashable {
    public static let type = "daybook.sync.settled"

    /// The incarnation that wrote the record. Positions mean something in one log only: where this is
    /// not the line's own source, the record came from another log and says nothing here.
    public var by: UUID
    /// Ranges of positions whose shipped events the server has applied.
    public var applied: [ClosedRange<UInt64>] = []
    /// Ranges of positions whose shipped events the server already had.
    public var duplicate: [ClosedRange<UInt64>] = []
    /// Everything else worth a record.
    public var entries: [Entry] = []
    /// What has to be added to the device's clock to get the server's, in milliseconds; nil where the
    /// record says nothing of it.
    public var clockOffset: Int64?
    /// The record stands for all records of this log up to here. Nil for the record of one reply.
    public var replaces: Position?

    /// What a reply did to one event that it did not settle.
    public struct Entry: Hashable, Sendable {
        /// The event's position.
        public var position: UInt64
        /// The event's id.
        public var id: UUID
        /// What it came to.
        public var outcome: Outcome
        /// How often `retry` was answered so far.
        public var retryCount: Int
        /// The server's code, or one that begins with `http_`.
        public var code: String?
        /// The server's words.
        public var detail: String?
        /// Whether it is not an answer but somebody's wish to try again.
        var isDecision: Bool { outcome == .retry && retryCount == 0 }

        /// When the answer came. Nil: when the record was made.
        public var at: Timestamp?
        /// The event that the server holds instead, for a conflict, if it said so.
        public var current: UUID?
        /// True for an event that was parked for good after its retries had been used up: without it,
        /// five retries mean that it is sent again by itself (PRK-4).
        public var isFinal: Bool

        /// Creates an entry.
        public init(
            position: UInt64, id: UUID, outcome: Outcome, retryCount: Int, code: String? = nil,
            detail: String? = nil, at: Timestamp? = nil, current: UUID? = nil,
            isFinal: Bool = false
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
        }
    }

    /// What became of an event that was not settled.
    public enum Outcome: String, Sendable {
        /// It stays in the outbox; the attempt was charged.
        case retry
        /// It is out of the queue: until someone decides, or for up to an hour (PRK-4).
        case parked
        /// Its lane waits for a resolution.
        case conflict
    }

    /// An empty record.
    public init(by incarnation: UUID) { by = incarnation }

    /// Whether there is anything to remember.
    public var isEmpty: Bool {
        applied.isEmpty && duplicate.isEmpty && entries.isEmpty && clockOffset == nil
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
        if case .number(let number)? = members["clock"], let offset = number.integerValue,
            offset.magnitude <= Self.clockOffsetMax.magnitude
        {
            clockOffset = Int64(offset)
        }
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
            var count = 0
            if case .number(let number)? = entry["retryCount"] { count = number.integerValue ?? 0 }
            return Entry(
                position: UInt64(position), id: id, outcome: outcome,
                retryCount: min(max(0, count), Retries.max),
                code: entry["code"]?.stringValue.map { Self.cut($0, Self.codeBytesMax) },
                detail: entry["detail"]?.stringValue.map { Self.cut($0, Self.detailBytesMax) },
                at: entry["at"]?.stringValue.flatMap(Timestamp.init),
                current: entry["current"]?.stringValue.flatMap(UUID.init(text:)),
                isFinal: entry["final"] == .bool(true))
        }
    }

    /// A clock is off by a century at most; more is nonsense.
    static let clockOffsetMax: Int64 = 100 * 366 * 86_400_000
    /// Bytes of a code at most.
    static let codeBytesMax = 64
    /// Bytes of the server's words at most.
    static let detailBytesMax = 512

    /// The beginning of a text, at most so many bytes as JSON, with an ellipsis if there is more.
    /// Cutting again changes nothing.
    static func cut(_ text: String, _ bytesMax: Int) -> String {
        var result = ""
        var bytes = 0
        for scalar in text.unicodeScalars {
            // A control character takes six bytes.
            bytes += scalar.value < 0x20 ? 6 : UTF8.width(scalar) + 1
            guard bytes <= bytesMax else { return result + "…" }
            result.unicodeScalars.append(scalar)
        }
        return result
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
        writer.add("by", by.text)
        if !applied.isEmpty { writer.add("applied", raw: pairs(applied)) }
        if !duplicate.isEmpty { writer.add("duplicate", raw: pairs(duplicate)) }
        if let replaces { writer.add("replaces", raw: Array("\(replaces)".utf8)) }
        if let clockOffset { writer.add("clock", raw: Array("\(clockOffset)".utf8)) }
        if !entries.isEmpty {
            let list = entries.map { entry in
                var writer = JSONObjectWriter()
                writer.add("position", raw: Array("\(entry.position)".utf8))
                writer.add("id", entry.id.text)
                writer.add("outcome", entry.outcome.rawValue)
                writer.add("retryCount", entry.retryCount)
                // The words are the server's: what it says must not make the record too large.
                if let code = entry.code { writer.add("code", Self.cut(code, Self.codeBytesMax)) }
                if let detail = entry.detail {
                    writer.add("detail", Self.cut(detail, Self.detailBytesMax))
                }
                if let at = entry.at { writer.add("at", at.description) }
                if let current = entry.current { writer.add("current", current.text) }
                if entry.isFinal { writer.add("final", true) }
                return writer.finished()
            }
            writer.add("entries", raw: JSONObjectWriter.array(list))
        }
        return writer.finished()
    }
}

extension JSONValue {
    /// The string, if it is one.
    package var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }
}
