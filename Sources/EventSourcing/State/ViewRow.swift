// How a view shows itself to people and tools: one flat object a row.

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
    }

    /// Creates an empty row.
    public init() {}

    /// Adds a value that is JSON text already; nil is `null`.
    public mutating func add(_ name: String, raw: [UInt8]?) {
        fields.append(Field(name: name, json: raw ?? Array("null".utf8)))
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
