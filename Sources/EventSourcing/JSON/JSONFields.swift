// The members of one JSON object, looked up by name.

import LogFormat

/// The members of a JSON object.
public struct JSONFields {
    /// The object's text.
    public let text: [UInt8]
    /// The text, followed by the unescaped forms of the names with escapes: every name is a range of these
    /// bytes.
    private let nameText: [UInt8]
    /// The path of the object, for errors.
    public let path: String
    private let members: [Member]
    /// True if the text contains an escape.
    private let hasEscapes: Bool
    /// True if a member that is `null` is treated as missing.
    private let nullIsMissing: Bool

    /// A member, as ranges of the text.
    private struct Member {
        /// The unescaped name, in `nameText`.
        var name: Range<Int>
        /// The name as it is written, in `text`.
        let writtenName: Range<Int>
        let value: Range<Int>
    }

    /// Reads an object.
    ///
    /// - Parameters:
    ///   - text: the object.
    ///   - path: the path of the object, for errors.
    ///   - nullIsMissing: true to treat a member that is `null` as missing, also in nested objects. False
    ///     for events.
    /// - Throws: `EventError` (`invalidData`) for anything but one object, and for two members with the
    ///   same name, byte for byte.
    public init(
        _ text: [UInt8], path: String = "data", nullIsMissing: Bool = false
    ) throws(EventError) {
        self.path = path
        self.nullIsMissing = nullIsMissing
        var parsedMembers: [Member] = []
        parsedMembers.reserveCapacity(8)
        do {
            let span = text.span.bytes
            var scanner = JSONScanner()
            try scanner.members(span) { (scanner, name) throws(JSONError) in
                parsedMembers.append(
                    Member(
                        name: name, writtenName: name, value: try scanner.value(span, depth: 1)))
            }
            try scanner.expectEnd(span)
            hasEscapes = scanner.hasEscapes
        } catch {
            throw EventError(.invalidData, "\(path) is not a JSON object: \(error.detail)")
        }
        guard !Self.hasDuplicateNames(parsedMembers, in: text) else {
            throw EventError(.invalidData, "\(path) has two members with the same name")
        }
        var nameText = text
        if hasEscapes { Self.resolveNames(of: &parsedMembers, in: &nameText) }
        self.text = text
        self.nameText = nameText
        members = parsedMembers
    }

    /// Appends the unescaped forms of names with escapes to the text. If the object already has a member with
    /// the unescaped name, the escaped one keeps its written name: readers of released events use the other
    /// member.
    private static func resolveNames(of members: inout [Member], in text: inout [UInt8]) {
        let backslash = UInt8(ascii: "\\")
        guard members.contains(where: { text[$0.name].contains(backslash) }) else { return }
        var usedNames = Set(members.map { text[$0.name] })
        for index in members.indices where text[members[index].name].contains(backslash) {
            let name = Array(JSONText.string(text.span.bytes, members[index].name).utf8)
            guard usedNames.insert(name[...]).inserted else { continue }
            members[index].name = text.count..<text.count + name.count
            text += name
        }
    }

    /// True if two names are equal, byte by byte. Most objects are small, so names are compared pairwise
    /// up to 16 members.
    private static func hasDuplicateNames(_ members: [Member], in text: [UInt8]) -> Bool {
        guard members.count <= 16 else {
            return Set(members.map { text[$0.name] }).count < members.count
        }
        let span = text.span.bytes
        for index in members.indices {
            let name = members[index].name
            for other in members[..<index] where other.name.count == name.count {
                let isEqual = span.extracting(other.name).withUnsafeBytes {
                    span.matches($0, at: name.lowerBound)
                }
                if isEqual { return true }
            }
        }
        return false
    }

    /// The names of all members.
    public var names: [String] { members.map { name(of: $0) } }

    private func name(of member: Member) -> String {
        JSONText.string(text.span.bytes, member.writtenName)
    }

    private func range(_ name: StaticString) -> Range<Int>? {
        guard let value = members.first(where: { isNamed($0.name, name) })?.value else {
            return nil
        }
        return nullIsMissing && text[value].elementsEqual("null".utf8) ? nil : value
    }

    /// True if the object has a member of a name. O(members).
    public func has(_ name: StaticString) -> Bool { range(name) != nil }

    /// The number of members.
    var count: Int { members.count }

    private func isNamed(_ range: Range<Int>, _ name: StaticString) -> Bool {
        range.count == name.utf8CodeUnitCount
            && nameText.span.bytes.matches(name, at: range.lowerBound)
    }

    /// The members with other names than these, as one object, each as it is written, but without line breaks
    /// between its tokens; nil if there are none.
    public func others(than names: [StaticString]) -> [UInt8]? {
        var object: [UInt8] = []
        for member in members where !names.contains(where: { isNamed(member.name, $0) }) {
            object.append(UInt8(ascii: object.isEmpty ? "{" : ","))
            object.append(UInt8(ascii: "\""))
            object.append(contentsOf: text[member.writtenName])
            object.append(contentsOf: [UInt8(ascii: "\""), UInt8(ascii: ":")])
            object.append(contentsOf: lineForm(of: member.value))
        }
        return object.isEmpty ? nil : object + [UInt8(ascii: "}")]
    }

    /// The text of the value of a member whose name is not a literal, without line breaks between its tokens.
    public func raw(named name: String) -> [UInt8]? {
        // Equal strings may have different bytes.
        members.first { nameText[$0.name].elementsEqual(name.utf8) }.map { lineForm(of: $0.value) }
    }

    /// The text of a member's value, without line breaks between its tokens.
    public func raw(_ name: StaticString) -> [UInt8]? { range(name).map { lineForm(of: $0) } }

    /// A value as a line stores it: indented JSON equals what was recorded of it.
    private func lineForm(of value: Range<Int>) -> [UInt8] {
        JSONText.withoutLineBreaks(text.span.bytes.extracting(value))
    }

    /// A member that must be a string that is not empty and has no U+0000.
    public func identifier(_ name: StaticString) throws(EventError) -> String {
        let value = try string(name)
        guard !value.isEmpty else { throw EventError(.invalidData, "\(path).\(name) is empty") }
        // Some databases end a text at U+0000, so two such ids would be equal there. In JSON it is always
        // escaped.
        guard !hasEscapes || !value.utf8.contains(0) else {
            throw EventError(.invalidData, "\(path).\(name) contains U+0000")
        }
        return value
    }

    /// A member that must be a string.
    public func string(_ name: StaticString) throws(EventError) -> String {
        guard let range = range(name) else {
            throw EventError(.invalidData, "\(path).\(name) is missing")
        }
        guard text[range.lowerBound] == UInt8(ascii: "\"") else {
            throw EventError(.invalidData, "\(path).\(name) is not a string")
        }
        let content = range.lowerBound + 1..<range.upperBound - 1
        return hasEscapes
            ? JSONText.string(text.span.bytes, content) : text.span.bytes.extracting(content).text
    }

    private func numberRange(_ name: StaticString) throws(EventError) -> Range<Int>? {
        guard let range = range(name) else { return nil }
        let first = text[range.lowerBound]
        guard first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") <= 9 else {
            throw EventError(.invalidData, "\(path).\(name) is not a number")
        }
        return range
    }

    /// A member that must be a number if it is present.
    public func number(_ name: StaticString) throws(EventError) -> JSONNumber? {
        try numberRange(name).map { JSONNumber(text.span.bytes, $0) }
    }

    /// A member that must be a number if it is present, as the nearest double; infinity if it is too large.
    public func double(_ name: StaticString) throws(EventError) -> Double? {
        try numberRange(name).map {
            PlainNumber(text.span.bytes.extracting($0))?.double
                ?? JSONNumber(text.span.bytes, $0).doubleValue
        }
    }

    /// A member that must be a number that is finite as a double.
    public func finite(_ name: StaticString) throws(EventError) -> Double {
        let value = try required(try double(name), name)
        guard value.isFinite else {
            throw EventError(.invalidData, "\(path).\(name) is too large a number")
        }
        return value
    }

    /// A member that must be a whole number, not negative, if it is present.
    public func count(_ name: StaticString) throws(EventError) -> Int? {
        guard let range = try numberRange(name) else { return nil }
        let plain = PlainNumber(text.span.bytes.extracting(range))?.whole
        guard let value = plain ?? JSONNumber(text.span.bytes, range).integerValue, value >= 0
        else {
            throw EventError(.invalidData, "\(path).\(name) is not a whole number of at least 0")
        }
        return value
    }

    /// A member that must be true or false if it is present.
    public func bool(_ name: StaticString) throws(EventError) -> Bool? {
        guard let range = range(name) else { return nil }
        switch text[range.lowerBound] {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw EventError(.invalidData, "\(path).\(name) is neither true nor false")
        }
    }

    /// A member that must be present.
    ///
    /// - Parameters:
    ///   - value: the value read; nil if the member is missing.
    ///   - name: the member's name, for the error.
    public func required<Value>(
        _ value: Value?, _ name: StaticString
    ) throws(EventError) -> Value {
        guard let value else { throw EventError(.invalidData, "\(path).\(name) is missing") }
        return value
    }

    /// A member that must be an object if it is present.
    public func object(_ name: StaticString) throws(EventError) -> JSONFields? {
        guard let raw = raw(name) else { return nil }
        return try JSONFields(raw, path: "\(path).\(name)", nullIsMissing: nullIsMissing)
    }

    /// A member that must be an array of objects if it is present.
    public func objects(_ name: StaticString) throws(EventError) -> [JSONFields]? {
        guard let elements = try elements(name) else { return nil }
        var objects: [JSONFields] = []
        for (index, element) in elements.enumerated() {
            objects.append(
                try JSONFields(
                    Array(text[element]), path: "\(path).\(name)[\(index)]",
                    nullIsMissing: nullIsMissing))
        }
        return objects
    }

    /// A member that must be an array of identifiers if it is present.
    public func identifiers(_ name: StaticString) throws(EventError) -> [String]? {
        guard let elements = try elements(name) else { return nil }
        var strings: [String] = []
        for (index, element) in elements.enumerated() {
            let inner = element.lowerBound + 1..<max(element.lowerBound + 1, element.upperBound - 1)
            let value = JSONText.string(text.span.bytes, inner)
            guard text[element.lowerBound] == UInt8(ascii: "\""), !value.isEmpty,
                !value.utf8.contains(0)
            else {
                throw EventError(.invalidData, "\(path).\(name)[\(index)] is not an identifier")
            }
            strings.append(value)
        }
        return strings
    }

    /// A member that must be an identifier if it is present.
    public func optionalIdentifier(_ name: StaticString) throws(EventError) -> String? {
        range(name) == nil ? nil : try identifier(name)
    }

    /// A member that must be one of the values of a type.
    public func oneOf<Value: RawRepresentable<String> & CaseIterable>(
        _ type: Value.Type, _ name: StaticString
    ) throws(EventError) -> Value {
        let text = try string(name)
        guard let value = Value(rawValue: text) else {
            let all = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw EventError(.invalidData, "\(path).\(name) is none of \(all): \(text)")
        }
        return value
    }

    /// A member that must be a string if it is present.
    public func optionalString(_ name: StaticString) throws(EventError) -> String? {
        range(name) == nil ? nil : try string(name)
    }

    /// All members, each of which must be an identifier, as must be their names.
    public func allIdentifiers() throws(EventError) -> [(name: String, value: String)] {
        var all: [(name: String, value: String)] = []
        for member in members {
            let name = name(of: member)
            let inner = JSONText.string(
                text.span.bytes,
                member.value.lowerBound
                    + 1..<max(member.value.lowerBound + 1, member.value.upperBound - 1))
            guard text[member.value.lowerBound] == UInt8(ascii: "\""), !name.isEmpty,
                !inner.isEmpty, !name.utf8.contains(0), !inner.utf8.contains(0)
            else { throw EventError(.invalidData, "\(path).\(name) is not an identifier") }
            all.append((name, inner))
        }
        return all
    }

    private func elements(_ name: StaticString) throws(EventError) -> [Range<Int>]? {
        guard let range = range(name) else { return nil }
        guard text[range.lowerBound] == UInt8(ascii: "[") else {
            throw EventError(.invalidData, "\(path).\(name) is not an array")
        }
        var elements: [Range<Int>] = []
        do {
            let span = text.span.bytes
            var scanner = JSONScanner(at: range.lowerBound)
            try scanner.elements(span) { (scanner) throws(JSONError) in
                elements.append(try scanner.value(span))
            }
        } catch {
            throw EventError(.invalidData, "\(path).\(name): \(error.detail)")
        }
        return elements
    }
}

// The errors of the kinds of members. Not inlined, to keep the inlined reads small.
extension JSONFields {
    /// The error of a member.
    @usableFromInline
    func error(_ name: StaticString, _ fault: String) -> EventError {
        EventError(.invalidData, "\(path).\(name) \(fault)")
    }

    @usableFromInline
    func error(_ name: StaticString, outside range: ClosedRange<Int>, _ value: Int) -> EventError {
        range.upperBound == .max
            ? error(name, "is \(value), less than \(range.lowerBound)")
            : error(name, "is \(value), not between \(range.lowerBound) and \(range.upperBound)")
    }

    @usableFromInline
    func error(
        _ name: StaticString, outside range: ClosedRange<Double>, _ value: Double
    ) -> EventError {
        range.upperBound == .greatestFiniteMagnitude
            ? error(name, "is \(value), less than \(range.lowerBound)")
            : error(name, "is \(value), not between \(range.lowerBound) and \(range.upperBound)")
    }

    /// Throws if two objects of a list have the same identifier in a member.
    func requireUnique(
        _ member: StaticString, in objects: [JSONFields], of name: StaticString
    ) throws(EventError) {
        var identifiers: Set<EntityID> = []
        for object in objects {
            let value = try object.identifier(member)
            guard identifiers.insert(EntityID(value)).inserted else {
                throw error(name, "has two elements with the \(member) \(value)")
            }
        }
    }
}
