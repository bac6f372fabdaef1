// One thing that happened: a CloudEvents 1.0 event, as an app hands it in (EventDraft) and as the
// log holds it (Event). Spec/format/line.md.

import Foundation
import LogFormat

/// An event that has not been recorded yet: everything but its place.
public struct EventDraft: Hashable, Sendable {
    /// The most bytes of an event's line; 256 KiB for one of a shipped type.
    public static let lineBytesMax = WriterSizes.lineBytesMax

    /// The event's identity, and the key under which it is recorded and shipped once.
    public var id: UUID
    /// What happened, in reverse-DNS or dotted style: `com.example.trip.planned`.
    public var type: String
    /// What it happened to.
    public var subject: String?
    /// The events of one lane keep their order when shipped. Nil: as the type says, else the
    /// subject.
    public var lane: String?
    /// When it happened. Nil: when it is recorded.
    public var time: Timestamp?
    /// Other attributes: name and JSON text of a string, a number or a truth value.
    public var extensions: [Extension]
    /// The media type of the data if it is not JSON.
    public var dataContentType: String?
    /// The event's data.
    public var data: Payload

    /// An attribute that this version has no name for.
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

    /// The draft without what a line cannot or need not hold.
    package var inLineForm: EventDraft {
        var draft = self
        draft.bringIntoLineForm()
        return draft
    }

    /// Takes out what a line cannot or need not hold: line breaks between tokens, and the media type
    /// that is the default.
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

    /// The id of the event that this one changes the value of, as its author saw it (`baseid`): a server
    /// may report a conflict if that is no longer the newest. Nil for none. Spec/protocol/conflicts.md.
    public var baseID: UUID? {
        get { string("baseid").flatMap { UUID(text: $0) } }
        set { setID(newValue, of: "baseid") }
    }

    /// The id of the event that this one was made for, such as one that it replaces (`causationid`).
    package var causeID: UUID? {
        get { string("causationid").flatMap { UUID(text: $0) } }
        set { setID(newValue, of: "causationid") }
    }

    private mutating func setID(_ id: UUID?, of name: String) {
        extensions.removeAll { $0.name == name }
        if let id { extensions.append(Extension(name: name, string: id.text)) }
    }
}

/// A recorded event. A copy costs the same, however much the event holds. O(1).
public struct Event: Hashable, Sendable {
    /// What all copies share.
    @usableFromInline
    let record: EventRecord

    package init(
        _ prefix: LinePrefix, content: EventDraft, catalogue: EventCatalogue, lineBytes: Int
    ) {
        self.init(prefix, content, catalogue.known[content.type], nil, lineBytes)
    }

    /// - Parameters:
    ///   - type: what the catalogue knows of the content's type.
    ///   - decoded: the data, if they were read already.
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

    /// The log that made it.
    public var source: UUID { UUID(integer: prefix.source) }
    /// Its number under its source.
    public var sequence: UInt64 { prefix.sequence }
    /// Its place in this log.
    public var position: Position { prefix.position }
    /// What was recorded; lane and time are always set. In an event that a view or a subscription
    /// gets, type and data are those of the newest type that the catalogue knows a way to.
    public var content: EventDraft { record.content }
    /// Whether this log made it.
    public var isOwn: Bool { prefix.isOwn }
    /// The name of the action if the event is shipped to the server: as the rule of the recorded
    /// type says, or that of the type which has replaced it.
    public var action: String? { record.type.action }
    /// Whether the catalogue has such a rule.
    public var isKnownType: Bool { record.type.hasRule }
    /// Bytes of the event's line, newline not included.
    public var lineBytes: Int { record.lineBytes }

    /// True for a record of the store's own, such as what a server has answered: an event of a type that
    /// begins with `daybook.sync.`.
    public var isRecord: Bool { LogRecord.isType(type) }

    /// What its line begins with.
    var prefix: LinePrefix { record.prefix }
    /// What the catalogue knows of its type.
    var catalogued: CataloguedType { record.type }

    /// The event's data as a type. What a store has read already is handed out; else the data are read
    /// now, O(bytes).
    ///
    /// The event's own type does not count: two types with the same members can be read as one. Check `type`
    /// first where that matters.
    ///
    /// - Throws: `EventError` for data that the type cannot read, naming the event's type and position;
    ///   what else the type throws.
    @inlinable
    public func payload<Payload: EventPayload>(as type: Payload.Type) throws -> Payload {
        if let decoded = record.decoded as? Decoded<Payload> { return decoded.payload }
        do {
            return try Payload(json: json ?? [])
        } catch let error as EventError {
            throw unreadable(as: "\(Payload.self)", Payload.type, error)
        }
    }

    /// What is said where the data cannot be read as a type.
    @usableFromInline
    func unreadable(as payload: String, _ expected: String, _ error: EventError) -> EventError {
        let other = expected == type ? "" : ", whose type is \(expected)"
        return EventError(
            error.code,
            "the event at position \(position) has the type \(type) and cannot be read as "
                + "\(payload)\(other): \(json == nil ? "it has no JSON data" : error.detail)")
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
    /// The lane whose order it keeps.
    public var lane: String { record.content.lane ?? "" }
    /// When it happened.
    public var time: Timestamp { record.content.time ?? Timestamp(milliseconds: 0) }

    /// What decides between two events that touch the same thing: the greater wins.
    public var stamp: Stamp {
        Stamp(time: time, source: prefix.source, sequence: prefix.sequence)
    }

    /// Equal if all that is known of them is.
    public static func == (one: Event, other: Event) -> Bool {
        one.record === other.record
            || one.prefix == other.prefix && one.content == other.content
                && one.action == other.action && one.isKnownType == other.isKnownType
                && one.lineBytes == other.lineBytes
    }

    /// Hashes place and identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(position)
        hasher.combine(id)
    }
}

/// What an event holds. An object, since events are handed on often and never change.
@usableFromInline
final class EventRecord: Sendable {
    let prefix: LinePrefix
    @usableFromInline
    let content: EventDraft
    let type: CataloguedType
    /// The data, if they were read already. It says nothing that the data do not say.
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

/// The order in which events of any logs count: time, then source, then sequence.
public struct Stamp: Hashable, Comparable, Sendable {
    /// When the event happened.
    public let time: Timestamp
    /// The incarnation of the log that wrote the event.
    public let source: UInt128
    /// The event's sequence number under `source`.
    public let sequence: UInt64

    /// Creates a stamp.
    public init(time: Timestamp, source: UInt128, sequence: UInt64) {
        self.time = time
        self.source = source
        self.sequence = sequence
    }

    /// Orders by time, source and sequence.
    public static func < (lhs: Stamp, rhs: Stamp) -> Bool {
        (lhs.time, lhs.source, lhs.sequence) < (rhs.time, rhs.source, rhs.sequence)
    }
}

extension Stamp: Codable {
    /// Reads what `encode(to:)` wrote.
    public init(from decoder: any Decoder) throws {
        var parts = try decoder.unkeyedContainer()
        time = Timestamp(milliseconds: try parts.decode(Int64.self))
        source = try parts.decode(UUID.self).integer
        sequence = try parts.decode(UInt64.self)
    }

    /// Writes milliseconds since 1970, the source and the sequence, so that a view's state can hold
    /// stamps.
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

    /// The UUID that a text of exactly 36 characters writes, in any case. Foundation's own reader
    /// takes the text as a C string, and ignores what follows U+0000.
    package init?(text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 36,
            let number = LineText.uuid(bytes.span.bytes, at: 0, acceptUppercase: true)
        else { return nil }
        self.init(integer: number)
    }

    /// The lower-case text, as lines hold it.
    package var text: String { uuidString.lowercased() }
}
