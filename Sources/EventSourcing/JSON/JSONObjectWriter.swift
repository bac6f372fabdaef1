// Puts a flat JSON object together, member by member.

import LogFormat

/// Writes one JSON object: members in the order in which they are added, without white space. The same
/// members give the same bytes, which is what a payload's `json()` needs. O(bytes).
public struct JSONObjectWriter {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    /// Begins an object.
    public init() {}

    private mutating func name(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        JSONText.append(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Adds a string.
    public mutating func add(_ name: String, _ value: String) {
        self.name(name)
        JSONText.append(value, to: &bytes)
    }

    /// Adds a whole number.
    public mutating func add(_ name: String, _ value: Int) {
        add(name, raw: Array("\(value)".utf8))
    }

    /// Adds a truth value.
    public mutating func add(_ name: String, _ value: Bool) {
        add(name, raw: Array("\(value)".utf8))
    }

    /// Adds a number, in the shortest text that reads back as itself. An infinity and what is no number
    /// become `null`: JSON has no text for them.
    public mutating func add(_ name: String, _ value: Double) {
        add(name, raw: Array(Self.text(value).utf8))
    }

    private static func text(_ value: Double) -> String { value.isFinite ? "\(value)" : "null" }

    /// Adds a value that is JSON text already.
    public mutating func add(_ name: String, raw: [UInt8]) {
        self.name(name)
        bytes.append(contentsOf: raw)
    }

    /// Begins a member whose name needs no escapes.
    private mutating func begin(_ member: StaticString) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        member.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Adds a string. The name must need no escapes.
    public mutating func add(member name: StaticString, _ value: String) {
        begin(name)
        JSONText.append(value, to: &bytes)
    }

    /// Adds a whole number. The name must need no escapes.
    public mutating func add(member name: StaticString, _ value: Int) {
        begin(name)
        bytes.append(contentsOf: "\(value)".utf8)
    }

    /// Adds a truth value. The name must need no escapes.
    public mutating func add(member name: StaticString, _ value: Bool) {
        begin(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// Adds a number, in the shortest text that reads back as itself, or `null` for an infinity and for
    /// what is no number. The name must need no escapes.
    public mutating func add(member name: StaticString, _ value: Double) {
        begin(name)
        bytes.append(contentsOf: Self.text(value).utf8)
    }

    /// Adds a value that is JSON text already. The name must need no escapes.
    public mutating func add(member name: StaticString, raw: [UInt8]) {
        begin(name)
        bytes.append(contentsOf: raw)
    }

    /// Adds the members of an object that is JSON text already.
    public mutating func addMembers(of object: [UInt8]) {
        guard object.count > 2 else { return }
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(contentsOf: object.dropFirst().dropLast())
    }

    /// The object's text.
    public func finished() -> [UInt8] { bytes + [UInt8(ascii: "}")] }

    /// An object with one member, a string.
    public static func object(_ name: String, _ value: String) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add(name, value)
        return writer.finished()
    }

    /// A JSON array of values that are JSON text already.
    public static func array(_ elements: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "[")] + Array(elements.joined(separator: [UInt8(ascii: ",")]))
            + [UInt8(ascii: "]")]
    }

    /// A string as JSON text.
    public static func string(_ value: String) -> [UInt8] {
        var bytes: [UInt8] = []
        JSONText.append(value, to: &bytes)
        return bytes
    }
}
