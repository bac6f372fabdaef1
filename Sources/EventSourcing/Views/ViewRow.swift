// The rows of a view for people and tools: one flat object each.

import Foundation

/// One row of a view: names and JSON values, in order.
public struct ViewRow: Sendable, Hashable {
    /// The row's fields.
    public private(set) var fields: [Field] = []

    /// One field.
    public struct Field: Sendable, Hashable {
        /// The field's name.
        public var name: String
        /// The value as JSON text.
        public var json: [UInt8]
        /// The event that contains the value, if the view does not; `json` is `null` then.
        public var source: Source?

        /// Creates a field.
        public init(name: String, json: [UInt8], source: Source? = nil) {
            self.name = name
            self.json = json
            self.source = source
        }
    }

    /// The source of a value: an event's data, or a member of them.
    public struct Source: Sendable, Hashable {
        /// The event's id.
        public var event: UUID
        /// The member's name; nil for all of the data.
        public var member: String?
    }

    /// Creates an empty row.
    public init() {}

    /// Appends a value that is JSON text; nil is `null`.
    public mutating func appendField(_ name: String, raw: [UInt8]?) {
        fields.append(Field(name: name, json: raw ?? Array("null".utf8)))
    }

    /// Appends a value that is in the data of an event, or is all of them if `member` is nil, and not in the view.
    /// `filled(by:)` reads it.
    public mutating func appendField(_ name: String, member: String?, ofEvent event: UUID) {
        fields.append(
            Field(
                name: name, json: Array("null".utf8),
                source: Source(event: event, member: member)))
    }

    /// The row with the values that are in events.
    ///
    /// - Parameter data: returns the data of an event, or nil if there is no such event.
    public func filled(by data: (UUID) throws -> [UInt8]?) rethrows -> ViewRow {
        var row = self
        for (index, field) in fields.enumerated() {
            guard let source = field.source, let json = try data(source.event) else { continue }
            guard let member = source.member else {
                row.fields[index] = Field(name: field.name, json: json)
                continue
            }
            guard let value = (try? JSONFields(json))?.raw(named: member) else { continue }
            row.fields[index] = Field(name: field.name, json: value)
        }
        return row
    }

    /// Appends a string.
    public mutating func appendField(_ name: String, _ value: String?) {
        appendField(name, raw: value.map(JSONObjectWriter.string))
    }

    /// Appends an integer.
    public mutating func appendField(_ name: String, _ value: Int) {
        appendField(name, raw: Array("\(value)".utf8))
    }

    /// Appends a boolean.
    public mutating func appendField(_ name: String, _ value: Bool) {
        appendField(name, raw: Array("\(value)".utf8))
    }

    /// Appends a list of objects; `null` if one has a value that JSON cannot express.
    public mutating func appendField(_ name: String, objects: [some DeclaredObject]) {
        appendField(name, raw: JSONObjectWriter.array(objects: objects))
    }

    /// Creates a row from one JSON object.
    package init(line: RawSpan) { text = line.array }

    private var text: [UInt8]?

    /// The row as one JSON object.
    public var json: [UInt8] {
        if let text { return text }
        var writer = JSONObjectWriter()
        for field in fields { writer.appendMember(field.name, raw: field.json) }
        return writer.finished()
    }
}

/// A value of a row as databases store it.
package enum ScalarValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    /// A string; of an array or an object, the JSON text.
    case text(String)
}

extension ViewRow.Field {
    /// The value as databases store it: `true` is 1, a number that is no `Int64` is a `Double`.
    package var scalar: ScalarValue {
        switch json.first {
        case UInt8(ascii: "t"): return .integer(1)
        case UInt8(ascii: "f"): return .integer(0)
        case UInt8(ascii: "\""):
            return .text(JSONText.string(json.span.bytes, 1..<max(1, json.count - 1)))
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            return .text(String(decoding: json, as: UTF8.self))
        case UInt8(ascii: "n"), nil: return .null
        default:
            let text = String(decoding: json, as: UTF8.self)
            if let number = Int64(text) { return .integer(number) }
            return Double(text).map { .real($0) } ?? .null
        }
    }
}

/// A view that can be listed as rows.
public protocol ListableView: Projection {
    /// The names of the fields of the rows, in order. A row may lack some of them.
    static var columns: [String] { get }
    /// The view's rows, sorted by key. Of a large view only the keys are sorted; a row is created when it is
    /// read.
    func rows() -> ViewRows
}

extension ListableView {
    /// No names: the rows are not made into tables.
    public static var columns: [String] { [] }
}

/// A view whose rows have keys, so that a table can follow it row by row.
public protocol KeyedView: ListableView {
    /// The names of the key's parts: the first columns, whose values are strings that distinguish all rows.
    static var keyNames: [String] { get }
    /// The keys of all rows that an event changes or may change; nil if any row may change. Asked before the event
    /// is folded, or of a later state: the answer must be the same, or nil.
    func rowKeys(changedBy event: Event) -> [[String]]?
    /// The row with a key, as `rows()` lists it; nil if there is none.
    ///
    /// - Complexity: that of one row.
    func row(key: [String]) -> ViewRow?
    /// The row of each key, in the order of `keys`; nil where there is none. The default calls `row(key:)`.
    func rows(keys: [[String]]) -> [ViewRow?]
}

extension KeyedView {
    public func rows(keys: [[String]]) -> [ViewRow?] { keys.map { row(key: $0) } }
}
