// Visits what a value encodes, without writing it. Below PayloadCheck.

import Foundation

/// An encoder that looks for a value, under the names that the value's type gives its members.
struct ValueSearch: Encoder {
    /// The condition, and the path of the value that meets it.
    private final class Search {
        let condition: (Any.Type, Any?) -> Bool
        var path: [any CodingKey]?
        init(_ condition: @escaping (Any.Type, Any?) -> Bool) { self.condition = condition }
    }

    private let search: Search
    let codingPath: [any CodingKey]
    /// The number of values around the present one: a value may be written by another one without a key.
    private let depth: Int
    let userInfo: [CodingUserInfoKey: Any] = [:]

    private static let depthMax = 64
    /// The types that JSONEncoder writes itself. The code of the first ones calls the encoder again with the same
    /// value.
    private static let leaves: Set<ObjectIdentifier> = Set(
        ([
            Bool.self, String.self, Double.self, Float.self, Int.self, Int8.self, Int16.self,
            Int32.self, Int64.self, Int128.self, UInt.self, UInt8.self, UInt16.self, UInt32.self,
            UInt64.self, UInt128.self, Date.self, Data.self, URL.self, Decimal.self,
        ] as [Any.Type]).map { ObjectIdentifier($0) })

    private init(_ search: Search, _ path: [any CodingKey], depth: Int) {
        (self.search, codingPath, self.depth) = (search, path, depth)
    }

    /// The path of the first value that meets a condition, as in `stops[2].name`; "the data" for the whole value, nil
    /// for none.
    ///
    /// - Parameter condition: gets a type, and the value; nil for an optional one that is missing.
    /// - Complexity: O(members).
    static func path(
        in value: some Encodable, _ condition: @escaping (Any.Type, Any?) -> Bool
    ) -> String? {
        let search = Search(condition)
        ValueSearch(search, [], depth: 0).visit(value)
        return search.path.map { $0.isEmpty ? "the data" : PayloadCoding.path($0) }
    }

    fileprivate func visit<Value: Encodable>(_ value: Value?) {
        guard search.path == nil else { return }
        if search.condition(Value.self, value) {
            search.path = codingPath
        } else if let value, depth < Self.depthMax,
            !Self.leaves.contains(ObjectIdentifier(Value.self))
        {
            // An error of the type's own code is reported when the value is really encoded.
            try? value.encode(to: ValueSearch(search, codingPath, depth: depth + 1))
        }
    }

    fileprivate func at(_ key: any CodingKey) -> ValueSearch {
        ValueSearch(search, codingPath + [key], depth: depth)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Members(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Elements(encoder: self) }
    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension ValueSearch: SingleValueEncodingContainer {
    func encodeNil() {}
    func encode(_ value: some Encodable) { visit(value) }
}

/// The members of an object.
private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ValueSearch
    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) {}
    func encode(_ value: some Encodable, forKey key: Key) { encoder.at(key).visit(value) }
    func encodeIfPresent(_ value: (some Encodable)?, forKey key: Key) {
        encoder.at(key).visit(value)
    }
    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { encoder.at(key).container(keyedBy: type) }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.at(key).unkeyedContainer()
    }
    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { encoder.at(key) }
}

/// The elements of an array.
private struct Elements: UnkeyedEncodingContainer {
    /// The place of an element.
    private struct Index: CodingKey {
        let number: Int
        var intValue: Int? { number }
        var stringValue: String { "\(number)" }
        init(_ number: Int) { self.number = number }
        init?(intValue: Int) { number = intValue }
        init?(stringValue: String) { nil }
    }

    let encoder: ValueSearch
    private(set) var count = 0
    var codingPath: [any CodingKey] { encoder.codingPath }

    init(encoder: ValueSearch) { self.encoder = encoder }

    private mutating func next() -> ValueSearch {
        count += 1
        return encoder.at(Index(count - 1))
    }

    mutating func encodeNil() { count += 1 }
    mutating func encode(_ value: some Encodable) { next().visit(value) }
    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> { next().container(keyedBy: type) }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        next().unkeyedContainer()
    }
    mutating func superEncoder() -> any Encoder { next() }
}
