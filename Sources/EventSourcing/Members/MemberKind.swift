// The kinds of members: their JSON form, and the values that a reader accepts. Spec/model/events.md, EVT-1.

/// The JSON form of a member's value.
///
/// The kinds of this library are written with a leading dot: `.identifier`, `.count(1...5)`. For its own type
/// that is a string in JSON, an app uses `MemberText` and `.of(_:)`.
public protocol MemberKind<Value>: Sendable {
    /// The type of the value in Swift.
    associatedtype Value: Sendable

    /// Reads the member.
    ///
    /// - Throws: `EventError` (`invalidData`) that names the member, if it is missing or of another kind.
    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Value

    /// Appends the member to an object.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that JSON cannot express.
    func write(
        _ value: Value, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError)

    /// The kind's description.
    var schema: MemberSchema.Kind { get }

    /// A placeholder for the member in a subject or a lane; nil if the value is not a string.
    func placeholder(_ text: String) -> Value?
}

extension MemberKind {
    /// Nil: the value is not a string.
    public func placeholder(_ text: String) -> Value? { nil }
}

/// A string that is not empty and has no U+0000.
@frozen
public struct IdentifierKind: MemberKind {
    @inlinable init() {}

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> String {
        try object.identifier(name)
    }

    @inlinable
    public func write(
        _ value: String, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value)
    }

    public var schema: MemberSchema.Kind { .identifier }

    public func placeholder(_ text: String) -> String? { text }
}

extension MemberKind where Self == IdentifierKind {
    /// A string that is not empty and has no U+0000.
    @inlinable public static var identifier: IdentifierKind { IdentifierKind() }
}

/// A string.
@frozen
public struct TextKind: MemberKind {
    @usableFromInline let isEmptyAllowed: Bool

    @inlinable
    init(isEmptyAllowed: Bool) { self.isEmptyAllowed = isEmptyAllowed }

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> String {
        let value = try object.string(name)
        guard isEmptyAllowed || !value.isEmpty else { throw object.error(name, "is empty") }
        return value
    }

    @inlinable
    public func write(
        _ value: String, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value)
    }

    public var schema: MemberSchema.Kind { .text(isEmptyAllowed: isEmptyAllowed) }

    public func placeholder(_ text: String) -> String? { text }
}

extension MemberKind where Self == TextKind {
    /// A string, possibly empty.
    @inlinable public static var text: TextKind { TextKind(isEmptyAllowed: true) }
    /// A string that is not empty.
    @inlinable public static var nonEmptyText: TextKind { TextKind(isEmptyAllowed: false) }
}

/// `true` or `false`.
@frozen
public struct FlagKind: MemberKind {
    @inlinable init() {}

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Bool {
        guard let value = try object.bool(name) else { throw object.error(name, "is missing") }
        return value
    }

    @inlinable
    public func write(
        _ value: Bool, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value)
    }

    public var schema: MemberSchema.Kind { .flag }
}

extension MemberKind where Self == FlagKind {
    /// `true` or `false`.
    @inlinable public static var flag: FlagKind { FlagKind() }
}

/// A whole number from 0 to 2⁶³ − 1, or of a smaller range.
@frozen
public struct CountKind: MemberKind {
    @usableFromInline let range: ClosedRange<Int>

    @inlinable
    init(_ range: ClosedRange<Int>) { self.range = range }

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Int {
        guard let value = try object.count(name) else { throw object.error(name, "is missing") }
        guard range.contains(value) else { throw object.error(name, outside: range, value) }
        return value
    }

    @inlinable
    public func write(
        _ value: Int, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value)
    }

    public var schema: MemberSchema.Kind { .count(range) }
}

extension MemberKind where Self == CountKind {
    /// A whole number from 0 to 2⁶³ − 1, in any notation.
    @inlinable public static var count: CountKind { CountKind(0...Int.max) }
    /// A whole number of a range. Its lower bound is not negative.
    @inlinable public static func count(_ range: ClosedRange<Int>) -> CountKind { CountKind(range) }
    /// A whole number from a bound to 2⁶³ − 1. The bound is not negative.
    @inlinable
    public static func count(_ range: PartialRangeFrom<Int>) -> CountKind {
        CountKind(range.lowerBound...Int.max)
    }
}

/// A finite number, read as the nearest double.
@frozen
public struct NumberKind: MemberKind {
    @usableFromInline let range: ClosedRange<Double>

    @inlinable
    init(_ range: ClosedRange<Double>) { self.range = range }

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Double {
        let value = try object.finite(name)
        guard range.contains(value) else { throw object.error(name, outside: range, value) }
        return value
    }

    @inlinable
    public func write(
        _ value: Double, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        guard value.isFinite else {
            throw EventError(.invalidData, "\(name) is \(value), which JSON cannot express")
        }
        object.appendMember(literal: name, value)
    }

    public var schema: MemberSchema.Kind { .number(range) }
}

extension MemberKind where Self == NumberKind {
    /// A finite number.
    @inlinable
    public static var number: NumberKind {
        NumberKind(-Double.greatestFiniteMagnitude...Double.greatestFiniteMagnitude)
    }
    /// A number of a range.
    @inlinable
    public static func number(_ range: ClosedRange<Double>) -> NumberKind { NumberKind(range) }
    /// A finite number of at least a bound.
    @inlinable
    public static func number(_ range: PartialRangeFrom<Double>) -> NumberKind {
        NumberKind(range.lowerBound...Double.greatestFiniteMagnitude)
    }
}

/// One string of a fixed set.
@frozen
public struct ChoiceKind<Value: RawRepresentable<String> & CaseIterable & Sendable>: MemberKind {
    @inlinable init() {}

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Value {
        try object.oneOf(Value.self, name)
    }

    @inlinable
    public func write(
        _ value: Value, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value.rawValue)
    }

    public var schema: MemberSchema.Kind { .choice(Value.allCases.map(\.rawValue)) }
}

extension MemberKind {
    /// One of the cases of a type, by its raw value.
    @inlinable
    public static func choice<Choice>(_ type: Choice.Type) -> Self
    where Self == ChoiceKind<Choice> {
        ChoiceKind()
    }
}

/// A type that is a string in JSON: the string is `description`, and `init(_:)` reads it. If the type is
/// `Codable`, it is coded as that string, too.
public protocol MemberText: LosslessStringConvertible, Sendable {
    /// The description of the string for errors, with its article: `a time of RFC 3339`.
    static var memberDescription: String { get }
    /// Valid strings; at least one.
    static var memberSamples: [String] { get }
}

/// A value that is stored as its string.
extension MemberText where Self: Codable {
    /// Reads the string.
    ///
    /// - Throws: `DecodingError` for an invalid string.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = Self(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\(text) is not \(Self.memberDescription)")
        }
        self = value
    }

    /// Writes `description`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

// RFC 3339 in payloads and states, as in the lines of the log.
extension Timestamp: Codable, MemberText {
    public static var memberDescription: String { "a time of RFC 3339" }

    public static var memberSamples: [String] {
        [0, 1_771_756_214_425, -1].map { Timestamp(milliseconds: $0).description }
    }
}

/// A string with a meaning.
@frozen
public struct MeaningfulTextKind<Value: MemberText>: MemberKind {
    @inlinable init() {}

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Value {
        guard let value = Value(try object.string(name)) else {
            throw object.error(name, "is not \(Value.memberDescription)")
        }
        return value
    }

    @inlinable
    public func write(
        _ value: Value, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value.description)
    }

    public var schema: MemberSchema.Kind {
        .meaningful(Value.memberDescription, samples: Value.memberSamples)
    }
}

extension MemberKind {
    /// A string with a meaning, such as a time.
    @inlinable
    public static func of<Text>(_ type: Text.Type) -> Self where Self == MeaningfulTextKind<Text> {
        MeaningfulTextKind()
    }
}
