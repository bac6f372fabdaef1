// The declared fields of a view's rows: a name, and the value in JSON. Spec/model/views.md, VIEW-31.

import Foundation

/// A value that a field of a row can have.
public protocol RowValue: Sendable {
    /// The value as JSON text; nil for `null`.
    var rowJSON: [UInt8]? { get }
}

/// A field of a view's rows.
public struct ViewField<Row>: Sendable {
    /// The field's name.
    public let name: String
    let append: @Sendable (Row, inout ViewRow) -> Void

    /// Creates a field with a value of the row.
    public init(_ name: String, _ value: @escaping @Sendable (Row) -> some RowValue) {
        self.name = name
        append = { row, fields in fields.appendField(name, raw: value(row).rowJSON) }
    }

    /// Creates a field with JSON text; nil is `null`.
    public init(_ name: String, raw value: @escaping @Sendable (Row) -> [UInt8]?) {
        self.name = name
        append = { row, fields in fields.appendField(name, raw: value(row)) }
    }
}

extension ViewRow {
    /// Creates a row with the fields of a value.
    public init<Row>(_ value: Row, _ fields: [ViewField<Row>]) {
        self.init()
        for field in fields { field.append(value, &self) }
    }
}

extension String: RowValue {
    public var rowJSON: [UInt8]? { JSONObjectWriter.string(self) }
}

extension Int: RowValue {
    public var rowJSON: [UInt8]? { Array("\(self)".utf8) }
}

extension Double: RowValue {
    public var rowJSON: [UInt8]? { Array("\(self)".utf8) }
}

extension Bool: RowValue {
    public var rowJSON: [UInt8]? { Array("\(self)".utf8) }
}

extension Timestamp: RowValue {
    public var rowJSON: [UInt8]? { description.rowJSON }
}

extension UUID: RowValue {
    /// The text in lower case.
    public var rowJSON: [UInt8]? { text.rowJSON }
}

extension RowValue where Self: RawRepresentable, RawValue: RowValue {
    public var rowJSON: [UInt8]? { rawValue.rowJSON }
}

extension Optional: RowValue where Wrapped: RowValue {
    public var rowJSON: [UInt8]? { self?.rowJSON }
}

extension Array: RowValue where Element == String {
    public var rowJSON: [UInt8]? { JSONObjectWriter.array(map(JSONObjectWriter.string)) }
}
