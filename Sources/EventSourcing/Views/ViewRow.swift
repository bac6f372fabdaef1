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

    /// The source of a value: a member of an event's data.
    public struct Source: Sendable, Hashable {
        /// The event's id.
        public var event: UUID
        /// The member's name.
        public var member: String
    }

    /// Creates an empty row.
    public init() {}

    /// Appends a value that is JSON text; nil is `null`.
    public mutating func appendField(_ name: String, raw: [UInt8]?) {
        fields.append(Field(name: name, json: raw ?? Array("null".utf8)))
    }

    /// Appends a value that is in the data of an event and not in the view. `filled(by:)` reads it.
    public mutating func appendField(_ name: String, member: String, ofEvent event: UUID) {
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
            guard let source = field.source, let json = try data(source.event),
                let value = (try? JSONFields(json))?.raw(named: source.member)
            else { continue }
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

/// A view that can be listed as rows.
public protocol ListableView: Projection {
    /// The view's rows, sorted by key. Of a large view only the keys are sorted; a row is created when it is
    /// read.
    func rows() -> ViewRows
}
