// A JSON object whose members are declared once. Reading, writing, the description in ObjectSchema, the
// rule in SQL, random values and the table in Spec are derived from the declaration.
// Spec/model/events.md, EVT-18.

/// A value that is one JSON object and declares the object's members.
///
/// ```swift
/// struct Trip: DeclaredObject {
///     var name = "-"
///     var nights = 1
///     var note: String?
///
///     static var example: Trip { Trip() }
///     mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
///         try members.required("name", &name, .identifier)
///         try members.required("nights", &nights, .count(1...365))
///         try members.optional("note", &note, .text)
///     }
/// }
/// ```
public protocol DeclaredObject: Sendable {
    /// The initial value for reading, whose declared members are then replaced. Must be cheap: short
    /// literals, empty lists.
    static var example: Self { get }

    /// Visits every member, in the order in which members are written. The calls must not depend on the
    /// values. An object must not contain objects of its own type.
    ///
    /// - Throws: what the visitor throws.
    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError)
}

extension DeclaredObject {
    /// Reads the declared members of an object. Ignores others.
    ///
    /// - Throws: `EventError` (`invalidData`) that names the member.
    @inlinable
    public init(members object: JSONFields) throws(EventError) {
        var value = Self.example
        var reader = MemberReader(object)
        try value.declareMembers(&reader)
        self = value
    }

    /// The object as JSON text. Equal values give equal bytes.
    ///
    /// - Throws: `EventError` (`invalidData`) for a value that no member of its kind can have, such as an
    ///   infinite number.
    @inlinable
    public func memberJSON() throws(EventError) -> [UInt8] {
        var copy = self
        var writer = MemberWriter(JSONObjectWriter())
        try copy.declareMembers(&writer)
        return writer.object.finished()
    }
}

extension JSONObjectWriter {
    /// Appends a list of objects; `null` if one has a value that JSON cannot express.
    public mutating func appendMember(_ name: String, objects: [some DeclaredObject]) {
        appendMember(name, raw: Self.array(objects: objects) ?? Array("null".utf8))
    }

    static func array(objects: [some DeclaredObject]) -> [UInt8]? {
        try? array(objects.map { try $0.memberJSON() })
    }
}

/// A visitor of declared members: reads, writes or describes them.
public protocol MemberVisitor {
    /// Visits a required member.
    mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind) throws(EventError)

    /// Visits an optional member. A missing one is read as nil, and nil is not written.
    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind) throws(EventError)

    /// Visits an optional member. A missing one is read as `missing`, and that value is not written.
    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) throws(EventError) where Kind.Value: Equatable

    /// Visits a constraint on several members. Only a reader checks it.
    mutating func constraint(
        _ constraint: MemberConstraint, isMet: @autoclosure () -> Bool) throws(EventError)
}

/// A constraint on several members of one object.
public enum MemberConstraint: Hashable, Sendable {
    /// The first number is at most the second.
    case atMost(String, String)
    /// At least one of these members is present and not an empty list.
    case atLeastOne([String])
    /// The last member is required if the first has this value.
    case requiredWhere(String, is: String, String)
}

/// Reads members from an object.
@frozen
public struct MemberReader: MemberVisitor {
    @usableFromInline let object: JSONFields
    /// The number of declared members that the object has.
    @usableFromInline var presentCount = 0

    /// Creates a reader of an object's members.
    @inlinable
    public init(_ object: JSONFields) { self.object = object }

    @inlinable
    mutating func find(_ name: StaticString) -> Bool {
        guard object.has(name) else { return false }
        presentCount += 1
        return true
    }

    @inlinable
    public mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind
    ) throws(EventError) {
        value = try kind.read(name, in: object)
        presentCount += 1
    }

    @inlinable
    public mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        value = find(name) ? try kind.read(name, in: object) : nil
    }

    @inlinable
    public mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) throws(EventError) where Kind.Value: Equatable {
        value = find(name) ? try kind.read(name, in: object) : missing
    }

    @inlinable
    public mutating func constraint(
        _ constraint: MemberConstraint, isMet: @autoclosure () -> Bool
    ) throws(EventError) {
        guard isMet() else { throw constraint.error(in: object.path) }
    }
}

/// Writes members to an object.
@frozen
public struct MemberWriter: MemberVisitor {
    /// The object with the members written so far.
    public var object: JSONObjectWriter

    /// Creates a writer that appends members to an object.
    @inlinable
    public init(_ object: JSONObjectWriter) { self.object = object }

    @inlinable
    public mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind
    ) throws(EventError) {
        try kind.write(value, name, to: &object)
    }

    @inlinable
    public mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) throws(EventError) {
        if let value { try kind.write(value, name, to: &object) }
    }

    @inlinable
    public mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) throws(EventError) where Kind.Value: Equatable {
        if value != missing { try kind.write(value, name, to: &object) }
    }

    @inlinable
    public mutating func constraint(
        _ constraint: MemberConstraint, isMet: @autoclosure () -> Bool
    ) throws(EventError) {}
}

extension MemberConstraint {
    @usableFromInline
    func error(in path: String) -> EventError {
        switch self {
        case .atMost(let smaller, let larger):
            EventError(.invalidData, "\(path).\(smaller) is more than \(path).\(larger)")
        case .atLeastOne(let names):
            EventError(
                .invalidData, "\(path) has none of \(names.joined(separator: ", "))")
        case .requiredWhere(_, _, let name):
            EventError(.invalidData, "\(path).\(name) is missing")
        }
    }
}
