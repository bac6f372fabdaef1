// The kinds of members with several values: lists and objects.

/// A list of identifiers.
@frozen
public struct IdentifiersKind: MemberKind {
    @inlinable init() {}

    @inlinable
    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [String] {
        try object.required(try object.identifiers(name), name)
    }

    @inlinable
    public func write(
        _ value: [String], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(
            literal: name, raw: JSONObjectWriter.array(value.map(JSONObjectWriter.string)))
    }

    public var schema: MemberSchema.Kind { .list(.identifier, 0...Int.max, uniqueBy: nil) }
}

extension MemberKind where Self == IdentifiersKind {
    /// A list of identifiers, possibly empty.
    @inlinable public static var identifiers: IdentifiersKind { IdentifiersKind() }
}

/// A list of strings from a fixed set; at least one.
@frozen
public struct ChoicesKind<Choice: RawRepresentable<String> & CaseIterable & Sendable>: MemberKind {
    @inlinable init() {}

    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [Choice] {
        var choices: [Choice] = []
        for text in try object.required(try object.identifiers(name), name) {
            guard let choice = Choice(rawValue: text) else {
                let all = Choice.allCases.map(\.rawValue).joined(separator: ", ")
                throw object.error(name, "has an element that is none of \(all): \(text)")
            }
            choices.append(choice)
        }
        guard !choices.isEmpty else { throw object.error(name, "is empty") }
        return choices
    }

    public func write(
        _ value: [Choice], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(
            literal: name,
            raw: JSONObjectWriter.array(value.map { JSONObjectWriter.string($0.rawValue) }))
    }

    public var schema: MemberSchema.Kind {
        .list(.choice(Choice.allCases.map(\.rawValue)), 1...Int.max, uniqueBy: nil)
    }
}

extension MemberKind {
    /// A list of cases of a type, by their raw values; at least one.
    @inlinable
    public static func choices<Choice>(_ type: Choice.Type) -> Self
    where Self == ChoicesKind<Choice> {
        ChoicesKind()
    }
}

/// An object whose text is kept as it is written.
@frozen
public struct WrittenObjectKind: MemberKind {
    @inlinable init() {}

    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [UInt8] {
        try object.required(try object.object(name), name).text
    }

    public func write(
        _ value: [UInt8], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, raw: value)
    }

    public var schema: MemberSchema.Kind { .object(nil) }
}

extension MemberKind where Self == WrittenObjectKind {
    /// Any object, kept as it is written.
    @inlinable public static var writtenObject: WrittenObjectKind { WrittenObjectKind() }
}

/// An object with declared members.
@frozen
public struct ObjectKind<Value: DeclaredObject>: MemberKind {
    @usableFromInline let isChange: Bool

    @inlinable
    init(isChange: Bool) { self.isChange = isChange }

    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Value {
        let members = try object.required(try object.object(name), name)
        var value = Value.example
        var reader = MemberReader(members)
        try value.declareMembers(&reader)
        if isChange { try checkIsChange(members, declared: reader.presentCount) }
        return value
    }

    /// Refuses an object without members, or with an undeclared one.
    private func checkIsChange(_ object: JSONFields, declared: Int) throws(EventError) {
        guard declared < object.count || declared == 0 else { return }
        guard !object.names.isEmpty else {
            throw EventError(.invalidData, "\(object.path) changes nothing")
        }
        let known = ObjectSchema.names(of: Value.self)
        if let name = object.names.first(where: { !known.contains($0) }) {
            throw EventError(
                .invalidData, "\(object.path) has an unknown member, \(name)")
        }
    }

    public func write(
        _ value: Value, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, raw: try value.memberJSON())
    }

    public var schema: MemberSchema.Kind {
        var schema = ObjectSchema(of: Value.self)
        schema.isChange = isChange
        return .object(schema)
    }
}

extension MemberKind {
    /// An object with declared members. Ignores others.
    @inlinable
    public static func object<Object>(_ type: Object.Type) -> Self
    where Self == ObjectKind<Object> {
        ObjectKind(isChange: false)
    }

    /// An object whose declared members are changes: at least one, in any order, and no other member.
    @inlinable
    public static func changes<Object>(_ type: Object.Type) -> Self
    where Self == ObjectKind<Object> {
        ObjectKind(isChange: true)
    }
}

/// A list of objects with declared members.
@frozen
public struct ObjectsKind<Element: DeclaredObject>: MemberKind {
    @usableFromInline let uniqueBy: StaticString?

    @inlinable
    init(uniqueBy: StaticString?) { self.uniqueBy = uniqueBy }

    public func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [Element] {
        let objects = try object.required(try object.objects(name), name)
        if let uniqueBy { try object.requireUnique(uniqueBy, in: objects, of: name) }
        var elements: [Element] = []
        elements.reserveCapacity(objects.count)
        for object in objects { elements.append(try Element(members: object)) }
        return elements
    }

    public func write(
        _ value: [Element], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        var elements: [[UInt8]] = []
        for element in value { elements.append(try element.memberJSON()) }
        object.appendMember(literal: name, raw: JSONObjectWriter.array(elements))
    }

    public var schema: MemberSchema.Kind {
        .list(
            .object(ObjectSchema(of: Element.self)), 0...Int.max,
            uniqueBy: uniqueBy?.description)
    }
}

extension MemberKind {
    /// A list of objects with declared members.
    ///
    /// - Parameters:
    ///   - type: the elements' type.
    ///   - uniqueBy: the name of a member, an identifier, whose value must be unique among the elements.
    @inlinable
    public static func objects<Element>(_ type: Element.Type, uniqueBy: StaticString? = nil) -> Self
    where Self == ObjectsKind<Element> {
        ObjectsKind(uniqueBy: uniqueBy)
    }
}
