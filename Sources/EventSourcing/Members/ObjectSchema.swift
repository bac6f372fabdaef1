// The description of a DeclaredObject as a value. SQL rules, random values and tables are generated from it.

/// The members of an object, and the constraints on several of them.
public struct ObjectSchema: Hashable, Sendable {
    /// The members, in the order in which they are written.
    public var members: [MemberSchema] = []
    /// The constraints on several members.
    public var constraints: [MemberConstraint] = []
    /// True if there must be at least one member, and no undeclared one.
    public var isChange = false

    /// The description of a type. O(members).
    public init<Object: DeclaredObject>(of type: Object.Type) {
        var visitor = SchemaVisitor()
        var value = Object.example
        // The visitor throws nothing.
        try? value.declareMembers(&visitor)
        members = visitor.members
        constraints = visitor.constraints
    }

    /// The names of a type's members. O(members): nested objects are not described.
    static func names<Object: DeclaredObject>(of type: Object.Type) -> [String] {
        var visitor = NameVisitor()
        var value = Object.example
        // The visitor throws nothing.
        try? value.declareMembers(&visitor)
        return visitor.names
    }
}

/// One member of an object.
public struct MemberSchema: Hashable, Sendable {
    /// The member's name.
    public var name: String
    /// True if the member must be present.
    public var isRequired: Bool
    /// The JSON form of its value.
    public var kind: Kind

    /// A kind of member. Spec/model/events.md, EVT-1.
    public indirect enum Kind: Hashable, Sendable {
        /// A string that is not empty and has no U+0000.
        case identifier
        /// A string.
        case text(isEmptyAllowed: Bool)
        /// A string with a meaning: its description, and valid samples.
        case meaningful(String, samples: [String])
        /// `true` or `false`.
        case flag
        /// A whole number of a range.
        case count(ClosedRange<Int>)
        /// A finite number of a range.
        case number(ClosedRange<Double>)
        /// One of these strings.
        case choice([String])
        /// An object; nil for any object.
        case object(ObjectSchema?)
        /// A list of elements. The range gives their number; the value of the member `uniqueBy` must be
        /// unique.
        case list(Kind, ClosedRange<Int>, uniqueBy: String?)
    }
}

/// Collects the members.
private struct SchemaVisitor: MemberVisitor {
    var members: [MemberSchema] = []
    var constraints: [MemberConstraint] = []

    mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind
    ) {
        appendMember(name, isRequired: true, kind)
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        appendMember(name, isRequired: false, kind)
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) where Kind.Value: Equatable {
        appendMember(name, isRequired: false, kind)
    }

    mutating func constraint(_ constraint: MemberConstraint, isMet: @autoclosure () -> Bool) {
        constraints.append(constraint)
    }

    private mutating func appendMember(
        _ name: StaticString, isRequired: Bool, _ kind: some MemberKind
    ) {
        members.append(
            MemberSchema(name: name.description, isRequired: isRequired, kind: kind.schema))
    }
}

/// Collects the members' names.
private struct NameVisitor: MemberVisitor {
    var names: [String] = []

    mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind
    ) {
        names.append(name.description)
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {
        names.append(name.description)
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) where Kind.Value: Equatable {
        names.append(name.description)
    }

    mutating func constraint(_ constraint: MemberConstraint, isMet: @autoclosure () -> Bool) {}
}

/// Sets every required string member to a placeholder.
struct PlaceholderVisitor: MemberVisitor {
    /// The first and the last character of a placeholder.
    static let mark: Character = "\u{1}"

    mutating func required<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind
    ) {
        if let text = kind.placeholder("\(Self.mark)\(name)\(Self.mark)") { value = text }
    }

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value?, _ kind: Kind
    ) {}

    mutating func optional<Kind: MemberKind>(
        _ name: StaticString, _ value: inout Kind.Value, _ kind: Kind, missing: Kind.Value
    ) where Kind.Value: Equatable {}

    mutating func constraint(_ constraint: MemberConstraint, isMet: @autoclosure () -> Bool) {}
}
