// The types with a special encoding in a Codable state: shorter than their own `encode(to:)`, or in a
// fixed order. Spec/model/views.md, VIEW-29.

import Foundation
import HashTreeCollections

/// A type that the state encoder writes directly, not by its `encode(to:)`.
protocol StoredDirectly {
    func write(to encoder: StateEncoder) throws
    static func read(from decoder: StateDecoder) throws -> Self
}

extension StoredDirectly where Self: FixedWidthInteger {
    func write(to encoder: StateEncoder) { encoder.write(self) }
    static func read(from decoder: StateDecoder) throws -> Self { try decoder.number(Self.self) }
}

extension Int: StoredDirectly {}
extension Int8: StoredDirectly {}
extension Int16: StoredDirectly {}
extension Int32: StoredDirectly {}
extension Int64: StoredDirectly {}
extension UInt: StoredDirectly {}
extension UInt8: StoredDirectly {}
extension UInt16: StoredDirectly {}
extension UInt32: StoredDirectly {}
extension UInt64: StoredDirectly {}

extension Bool: StoredDirectly {
    func write(to encoder: StateEncoder) { encoder.write(self) }
    static func read(from decoder: StateDecoder) throws -> Self { try decoder.bool() }
}

extension String: StoredDirectly {
    func write(to encoder: StateEncoder) { encoder.write(self) }
    static func read(from decoder: StateDecoder) throws -> Self { try decoder.string() }
}

extension Double: StoredDirectly {
    func write(to encoder: StateEncoder) { encoder.write(self) }
    static func read(from decoder: StateDecoder) throws -> Self { try decoder.double() }
}

extension Float: StoredDirectly {
    func write(to encoder: StateEncoder) {
        encoder.write(.float)
        encoder.writer.write(self)
    }

    static func read(from decoder: StateDecoder) throws -> Self {
        try decoder.expect(.float)
        return Self(bitPattern: try decoder.reader.integer32())
    }
}

extension Date: StoredDirectly {
    func write(to encoder: StateEncoder) { encoder.write(timeIntervalSinceReferenceDate) }
    static func read(from decoder: StateDecoder) throws -> Self {
        Self(timeIntervalSinceReferenceDate: try decoder.double())
    }
}

extension UUID: StoredDirectly {
    func write(to encoder: StateEncoder) {
        encoder.write(.uuid)
        encoder.writer.write(self)
    }

    static func read(from decoder: StateDecoder) throws -> Self {
        try decoder.expect(.uuid)
        return try decoder.reader.uuid()
    }
}

extension Data: StoredDirectly {
    func write(to encoder: StateEncoder) {
        encoder.write(.data)
        encoder.writer.write(count: count)
        encoder.writer.write(written: self)
    }

    static func read(from decoder: StateDecoder) throws -> Self {
        try decoder.expect(.data)
        return Data(try decoder.reader.bytes(try decoder.reader.count()))
    }
}

/// A dictionary of any implementation.
protocol StoredAsDictionary: StoredDirectly, Collection, ExpressibleByDictionaryLiteral
where Key: Codable, Value: Codable, Element == (key: Key, value: Value) {
    subscript(key: Key) -> Value? { get set }
}

extension StoredAsDictionary {
    func write(to encoder: StateEncoder) throws {
        try encoder.writeElements(.dictionary, self, key: \.key) { try encoder.encode($0.value) }
    }

    static func read(from decoder: StateDecoder) throws -> Self {
        var read: Self = [:]
        try decoder.readElements(.dictionary, of: Key.self) {
            read[$0] = try decoder.decode(Value.self)
        }
        return read
    }
}

extension Dictionary: StoredDirectly, StoredAsDictionary where Key: Codable, Value: Codable {}
extension TreeDictionary: StoredDirectly, StoredAsDictionary where Key: Codable, Value: Codable {}

/// A set of any implementation.
protocol StoredAsSet: StoredDirectly, Collection, SetAlgebra where Element: Codable {}

extension StoredAsSet {
    func write(to encoder: StateEncoder) throws {
        try encoder.writeElements(.set, self, key: { $0 }, value: { _ in })
    }

    static func read(from decoder: StateDecoder) throws -> Self {
        var read = Self()
        try decoder.readElements(.set, of: Element.self) { read.insert($0) }
        return read
    }
}

extension Set: StoredDirectly, StoredAsSet where Element: Codable {}
extension TreeSet: StoredDirectly, StoredAsSet where Element: Codable {}
