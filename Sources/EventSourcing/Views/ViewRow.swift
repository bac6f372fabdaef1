// How a view shows itself to people and tools: one flat object a row.

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
        /// The event that holds the value, where the view does not; `json` is `null` then.
        public var source: Source?

        /// Creates a field.
        public init(name: String, json: [UInt8], source: Source? = nil) {
            self.name = name
            self.json = json
            self.source = source
        }
    }

    /// A member of the data of an event.
    public struct Source: Sendable, Hashable {
        /// The event.
        public var event: UUID
        /// The member's name.
        public var member: String
    }

    /// Creates an empty row.
    public init() {}

    /// Adds a value that is JSON text already; nil is `null`.
    public mutating func add(_ name: String, raw: [UInt8]?) {
        fields.append(Field(name: name, json: raw ?? Array("null".utf8)))
    }

    /// Adds a value that stands in the data of an event and not in the view: whoever lists the rows
    /// looks it up (`filled(by:)`).
    public mutating func add(_ name: String, member: String, ofEvent event: UUID) {
        fields.append(
            Field(
                name: name, json: Array("null".utf8),
                source: Source(event: event, member: member)))
    }

    /// The row with the values that stand in events.
    ///
    /// - Parameter data: gives the data of an event, or nil where there is no such event.
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

    /// Adds a string.
    public mutating func add(_ name: String, _ value: String?) {
        add(name, raw: value.map(JSONObjectWriter.string))
    }

    /// Adds a whole number.
    public mutating func add(_ name: String, _ value: Int) {
        add(name, raw: Array("\(value)".utf8))
    }

    /// Adds a truth value.
    public mutating func add(_ name: String, _ value: Bool) {
        add(name, raw: Array("\(value)".utf8))
    }

    /// Adds a list of objects; null where one has a value that JSON cannot hold.
    public mutating func add(_ name: String, objects: [some DeclaredObject]) {
        add(name, raw: JSONObjectWriter.array(objects: objects))
    }

    /// A row that is one JSON object already.
    package init(line: RawSpan) { text = line.array }

    private var text: [UInt8]?

    /// The row as one JSON object.
    public var json: [UInt8] {
        if let text { return text }
        var writer = JSONObjectWriter()
        for field in fields { writer.add(field.name, raw: field.json) }
        return writer.finished()
    }
}

/// A view that can be listed.
public protocol ListableView: Projection {
    /// The view's rows, sorted by key.
    func rows() -> [ViewRow]
}
