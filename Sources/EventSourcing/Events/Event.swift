// A CloudEvents 1.0 event, before it is recorded (EventDraft) and as the log stores it (Event).
// Spec/format/line.md.

import Foundation
import LogFormat

/// An event that has not been recorded yet: everything but its position and source.
public struct EventDraft: Hashable, Sendable {
    /// The most bytes of an event's line; for a shipped type, 256 KiB.
    public static let lineBytesMax = WriterSizes.lineBytesMax

    /// The event's identity, and the key under which it is recorded and shipped once: a UUID of RFC 9562, also one
    /// that the app derives. Events of types that begin with `daybook.` have random ones, version 4.
    public var id: UUID
    /// The event type, in reverse-DNS or dotted style: `com.example.trip.planned`.
    public var type: String
    /// The entity that the event is about.
    public var subject: String?
    /// The event's lane: events of one lane keep their order when shipped. If nil, the lane of the type's
    /// rule, else the subject.
    public var lane: String?
    /// The time at which it happened. If nil, the time of recording.
    public var time: Timestamp?
    /// Other attributes: a name, and the JSON text of a string, a number or a boolean.
    public var extensions: [Extension]
    /// The media type of the data if it is not JSON.
    public var dataContentType: String?
    /// The event's data.
    public var data: Payload

    /// An attribute without a property of its own.
    public struct Extension: Hashable, Sendable {
        /// `[a-z0-9]`, at most 20 characters.
        public var name: String
        /// The value as JSON text.
        public var json: [UInt8]

        /// Creates an attribute from JSON text.
        public init(name: String, json: [UInt8]) {
            self.name = name
            self.json = json
        }

        /// Creates an attribute that is a string.
        public init(name: String, string: String) {
            self.name = name
            json = []
            JSONText.append(string, to: &json)
        }
    }

    /// An event's data.
    public enum Payload: Hashable, Sendable {
        /// No data.
        case none
        /// JSON text without line breaks.
        case json([UInt8])
        /// Bytes, as a JSON string in base 64 with its quotation marks.
        case base64([UInt8])
    }

    /// Creates a draft.
    public init(
        id: UUID = UUID(), type: String, subject: String? = nil, lane: String? = nil,
        time: Timestamp? = nil, extensions: [Extension] = [], dataContentType: String? = nil,
        data: Payload = .none
    ) {
        self.id = id
        self.type = type
        self.subject = subject
        self.lane = lane
        self.time = time
        self.extensions = extensions
        self.dataContentType = dataContentType
        self.data = data
    }

    /// The draft in the form that a line stores: `bringIntoLineForm()`.
    package var inLineForm: EventDraft {
        var draft = self
        draft.bringIntoLineForm()
        return draft
    }

    /// Removes what a line does not store: line breaks between tokens, and the default media type.
    mutating func bringIntoLineForm() {
        if case .json(let json) = data, JSONText.hasLineBreaks(json.span.bytes) {
            data = .json(JSONText.withoutLineBreaks(json.span.bytes))
        }
        if dataContentType == "application/json" { dataContentType = nil }
    }

    /// The data if they are JSON.
    public var json: [UInt8]? {
        if case .json(let bytes) = data { bytes } else { nil }
    }

    /// The string value of an extension.
    public func string(_ name: String) -> String? {
        guard let json = extensions.first(where: { $0.name == name })?.json, json.count >= 2,
            json[0] == UInt8(ascii: "\"")
        else { return nil }
        return JSONText.string(json.span.bytes, 1..<json.count - 1)
    }

    /// The id of the event that set the value which this event changes, as its author saw it (`baseid`). A
    /// server may report a conflict if that event is no longer the newest. `noBase` if the author saw no value:
    /// then the server may report one if there is a value by now. Nil if the event says nothing of a base: it
    /// is never in conflict. Spec/protocol/conflicts.md.
    public var baseID: UUID? {
        get { string("baseid").flatMap { UUID(text: $0) } }
        set { setID(newValue, of: "baseid") }
    }

    /// The base of an event whose author saw no value yet, as of the first write of a form: the nil UUID of
    /// RFC 9562. An event with this id cannot be named as a base.
    ///
    /// ```swift
    /// try EventDraft(goal, basedOn: shown?.value.event ?? EventDraft.noBase)
    /// ```
    public static let noBase = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    /// The id of the event that caused this one, such as an event that it replaces (`causationid`).
    package var causeID: UUID? {
        get { string("causationid").flatMap { UUID(text: $0) } }
        set { setID(newValue, of: "causationid") }
    }

    /// The id of the event that this one undoes or redoes (`undoes`): the change itself, or the last event that has
    /// undone or redone it. Nil for any other event.
    public internal(set) var undoneID: UUID? {
        get { string("undoes").flatMap { UUID(text: $0) } }
        set { setID(newValue, of: "undoes") }
    }

    private mutating func setID(_ id: UUID?, of name: String) {
        extensions.removeAll { $0.name == name }
        if let id { extensions.append(Extension(name: name, string: id.text)) }
    }
}

extension EventDraft: CustomStringConvertible {
    /// Time, type, subject, base and data, for debugging.
    public var description: String {
        let base = baseID.map { "(based on \($0 == Self.noBase ? "nothing" : $0.text))" }
        let text: String? =
            switch data {
            case .none: nil
            case .json(let json), .base64(let json): String(decoding: json, as: UTF8.self)
            }
        return [time?.description, type, subject, base, text].compactMap(\.self)
            .joined(separator: " ")
    }
}

/// A recorded event. Copies share their content: O(1).
public struct Event: Hashable, Sendable {
    /// The content that all copies share.
    @usableFromInline
    let record: EventRecord

    package init(
        _ prefix: LinePrefix, content: EventDraft, catalogue: EventCatalogue, lineBytes: Int
    ) {
        self.init(prefix, content, catalogue.known[content.type], nil, lineBytes)
    }

    /// Creates an event whose type has been looked up.
    ///
    /// - Parameters:
    ///   - type: the catalogue's entry for the content's type.
    ///   - decoded: the decoded data, if available.
    init(
        _ prefix: LinePrefix, _ content: EventDraft, _ type: CataloguedType,
        _ decoded: AnyDecoded?, _ lineBytes: Int
    ) {
        record = EventRecord(prefix, content, type, decoded, lineBytes)
    }

    /// The same event in a newer form.
    func with(_ content: EventDraft, by catalogue: EventCatalogue) -> Event {
        Event(
            prefix, content, catalogue.known[content.type].recorded(as: record.type), nil, lineBytes
        )
    }

    /// The incarnation of the log that recorded it.
    public var source: UUID { UUID(integer: prefix.source) }
    /// Its number under its source.
    public var sequence: UInt64 { prefix.sequence }
    /// Its position in this log.
    public var position: Position { prefix.position }
    /// The recorded content; lane and time are always set. For views and subscriptions, type and data are
    /// in their newest form, as far as the catalogue's upcasters lead.
    public var content: EventDraft { record.content }
    /// True if this log recorded it, false if it came from another log.
    public var isOwn: Bool { prefix.isOwn }
    /// The name of the action if the event is shipped to the server: from the rule of the recorded type, or of
    /// the type that has replaced it, or from the rule that the log has recorded.
    public var action: String? { record.type.action }
    /// True if the catalogue has such a rule.
    public var isKnownType: Bool { record.type.hasRule }
    /// True if the catalogue has none, and the log has recorded one: `action` is from it.
    package var hasRecordedRule: Bool { record.type.hasRecordedRule }
    /// The bytes of the event's line, without the newline.
    public var lineBytes: Int { record.lineBytes }

    /// True for a record of the store's own, such as a server's answer: an event whose type begins with
    /// `daybook.sync.`.
    public var isRecord: Bool { LogRecord.isType(type) }

    /// The prefix of its line.
    var prefix: LinePrefix { record.prefix }
    /// The catalogue's entry for its type.
    var catalogued: CataloguedType { record.type }

    /// The event's data, decoded as a type. Returns the data that the store has decoded, if it has; else
    /// decodes them, O(bytes).
    ///
    /// - Throws: `EventError` for an event of another type, and for data that the type cannot decode, naming
    ///   the event's type and position; other errors of the type.
    @inlinable
    public func payload<Payload: EventPayload>(as type: Payload.Type) throws -> Payload {
        if let decoded = record.decoded as? Decoded<Payload> { return decoded.payload }
        guard self.type == Payload.type else {
            throw isOfOtherType(than: "\(Payload.self)", Payload.type)
        }
        do {
            return try Payload(json: json ?? [])
        } catch let error as EventError {
            throw unreadable(as: "\(Payload.self)", error)
        }
    }

    /// The error for an event of another type than a payload's. Two types may have the same members.
    @usableFromInline
    func isOfOtherType(than payload: String, _ expected: String) -> EventError {
        EventError(
            .invalidData,
            "the event at position \(position) has the type \(type) and cannot be read as \(payload), "
                + "whose type is \(expected)")
    }

    /// The error for data that cannot be decoded as a type. A view may ignore it: the store notes it.
    @usableFromInline
    func unreadable(as payload: String, _ error: EventError) -> EventError {
        let error = EventError(
            error.code,
            "the event at position \(position) has the type \(type) and cannot be read as "
                + "\(payload): \(json == nil ? "it has no JSON data" : error.detail)")
        UnreadableEvents.current?.note(error, ofType: type)
        return error
    }

    /// The data if they are JSON.
    @usableFromInline
    var json: [UInt8]? { record.content.json }

    /// The event's identity.
    public var id: UUID { record.content.id }
    /// What happened.
    public var type: String { record.content.type }
    /// What it happened to.
    public var subject: String? { record.content.subject }
    /// The event's lane.
    public var lane: String { record.content.lane ?? "" }
    /// The time at which it happened.
    public var time: Timestamp { record.content.time ?? Timestamp(milliseconds: 0) }

    /// The event's LWW timestamp: of two events that set one value, the one with the greater timestamp wins.
    public var lwwTimestamp: LWWTimestamp {
        LWWTimestamp(time: time, source: prefix.source, sequence: prefix.sequence)
    }

    /// True if position, source, content and catalogue entry are equal.
    public static func == (one: Event, other: Event) -> Bool {
        one.record === other.record
            || one.prefix == other.prefix && one.content == other.content
                && one.action == other.action && one.isKnownType == other.isKnownType
                && one.lineBytes == other.lineBytes
    }

    /// Hashes the position and the id.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(position)
        hasher.combine(id)
    }
}

extension Event: CustomStringConvertible {
    /// Position, time, type, subject, base and data, for debugging.
    public var description: String { "\(position) \(content)" }
}

/// The content of an event. A class, since events are passed on often and never change.
@usableFromInline
final class EventRecord: Sendable {
    let prefix: LinePrefix
    @usableFromInline
    let content: EventDraft
    let type: CataloguedType
    /// The decoded data, if available. Not compared: they are computed from the content.
    @usableFromInline
    let decoded: (any AnyObject & Sendable)?
    let lineBytes: Int

    init(
        _ prefix: LinePrefix, _ content: EventDraft, _ type: CataloguedType,
        _ decoded: AnyDecoded?, _ lineBytes: Int
    ) {
        self.prefix = prefix
        self.content = content
        self.type = type
        self.decoded = decoded
        self.lineBytes = lineBytes
    }
}

/// The order of events that set the same value: time, then source, then sequence. The greatest wins.
public struct LWWTimestamp: Hashable, Comparable, Sendable {
    /// When the event happened.
    public let time: Timestamp
    /// The incarnation of the log that wrote the event.
    public let source: UInt128
    /// The event's sequence number under `source`.
    public let sequence: UInt64

    /// Creates an LWW timestamp.
    public init(time: Timestamp, source: UInt128, sequence: UInt64) {
        self.time = time
        self.source = source
        self.sequence = sequence
    }

    /// Orders by time, source and sequence.
    public static func < (lhs: LWWTimestamp, rhs: LWWTimestamp) -> Bool {
        (lhs.time, lhs.source, lhs.sequence) < (rhs.time, rhs.source, rhs.sequence)
    }
}

extension LWWTimestamp: Codable {
    /// Reads what `encode(to:)` wrote.
    public init(from decoder: any Decoder) throws {
        var parts = try decoder.unkeyedContainer()
        time = Timestamp(milliseconds: try parts.decode(Int64.self))
        source = try parts.decode(UUID.self).integer
        sequence = try parts.decode(UInt64.self)
    }

    /// Writes milliseconds since 1970, the source and the sequence, so that a view's state can hold
    /// LWW timestamps.
    public func encode(to encoder: any Encoder) throws {
        var parts = encoder.unkeyedContainer()
        try parts.encode(time.milliseconds)
        try parts.encode(UUID(integer: source))
        try parts.encode(sequence)
    }
}

extension UUID {
    /// The UUID as a number, first byte most significant.
    package var integer: UInt128 {
        withUnsafeBytes(of: uuid) { bytes in
            bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        }
    }

    /// The UUID of a number.
    package init(integer: UInt128) {
        var bytes = integer.bigEndian
        self = withUnsafeBytes(of: &bytes) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// Parses a UUID of exactly 36 characters, upper or lower case. Foundation's parser reads a C string
    /// and ignores everything after U+0000.
    package init?(text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 36,
            let number = LineText.uuid(bytes.span.bytes, at: 0, acceptUppercase: true)
        else { return nil }
        self.init(integer: number)
    }

    /// The lower-case text, as lines store it.
    package var text: String { uuidString.lowercased() }
}
