// Writes a JSON object, member by member.

import LogFormat

/// Writes one JSON object: members in the order in which they are appended, without white space. Equal
/// members give equal bytes, as a payload's `json()` must. O(bytes).
public struct JSONObjectWriter {
    private var bytes: [UInt8] = []
    /// Enough for the data of most events: growing in steps took a third of the time.
    private static let bytesReserved = 240

    /// Begins an object.
    public init() {
        bytes.reserveCapacity(Self.bytesReserved)
        bytes.append(UInt8(ascii: "{"))
    }

    private mutating func name(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        JSONText.append(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Appends a string.
    public mutating func appendMember(_ name: String, _ value: String) {
        self.name(name)
        JSONText.append(value, to: &bytes)
    }

    /// Appends an integer.
    public mutating func appendMember(_ name: String, _ value: Int) {
        appendMember(name, raw: Array("\(value)".utf8))
    }

    /// Appends a boolean.
    public mutating func appendMember(_ name: String, _ value: Bool) {
        appendMember(name, raw: Array("\(value)".utf8))
    }

    /// Appends a number, as the shortest text that reads back as the same value. Infinity and NaN become
    /// `null`: JSON cannot express them.
    public mutating func appendMember(_ name: String, _ value: Double) {
        appendMember(name, raw: Array(Self.text(value).utf8))
    }

    private static func text(_ value: Double) -> String { value.isFinite ? "\(value)" : "null" }

    /// Appends a value that is JSON text.
    public mutating func appendMember(_ name: String, raw: [UInt8]) {
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

    /// Appends a string. The name must need no escapes.
    public mutating func appendMember(literal name: StaticString, _ value: String) {
        begin(name)
        JSONText.append(value, to: &bytes)
    }

    /// Appends an integer. The name must need no escapes.
    public mutating func appendMember(literal name: StaticString, _ value: Int) {
        begin(name)
        bytes.append(contentsOf: "\(value)".utf8)
    }

    /// Appends a boolean. The name must need no escapes.
    public mutating func appendMember(literal name: StaticString, _ value: Bool) {
        begin(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// Appends a number, as the shortest text that reads back as the same value, or `null` for infinity and
    /// NaN. The name must need no escapes.
    public mutating func appendMember(literal name: StaticString, _ value: Double) {
        begin(name)
        bytes.append(contentsOf: Self.text(value).utf8)
    }

    /// Appends a value that is JSON text. The name must need no escapes.
    public mutating func appendMember(literal name: StaticString, raw: [UInt8]) {
        begin(name)
        bytes.append(contentsOf: raw)
    }

    /// Appends the members of an object that is JSON text.
    public mutating func appendMembers(of object: [UInt8]) {
        guard object.count > 2 else { return }
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(contentsOf: object.dropFirst().dropLast())
    }

    /// The object's text.
    public func finished() -> [UInt8] {
        var object: [UInt8] = []
        object.reserveCapacity(bytes.count + 1)
        object.append(contentsOf: bytes)
        object.append(UInt8(ascii: "}"))
        return object
    }

    /// An object with one member, a string.
    public static func object(_ name: String, _ value: String) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember(name, value)
        return writer.finished()
    }

    /// A JSON array of values that are JSON text.
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
