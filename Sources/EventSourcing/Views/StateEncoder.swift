// Encodes a Codable state as bytes. Equal states give equal bytes: each value has one encoding, and the
// elements of dictionaries and sets are sorted by their bytes. StateDecoder decodes them.
// Spec/model/views.md, VIEW-29.

import Foundation

/// The first byte of a value of a `Codable` state.
enum StateTag: UInt8 {
    case none, no, yes
    /// An integer of at least 0, and a negative one, stored as its distance from −1.
    case natural, negative
    case double, float, string, uuid, data
    /// Containers. Their length in bytes follows the tag, so that a reader can skip them.
    case object, array, dictionary, set

    /// The bytes of the length after a tag.
    static let lengthBytes = 4
    /// The most nested values. Deeper nesting could exhaust a reader's stack.
    static let depthMax = 128
}

/// Encodes one value with its nested values, and appends it to its bytes.
final class StateEncoder: Encoder {
    /// The container that is being encoded: its tag, if known, and its start.
    private struct Value {
        var tag: StateTag?
        var start: Int
    }

    /// A nested container or super encoder, which is filled later: its bytes are inserted at `offset`.
    private struct Deferred {
        var offset: Int
        var encoder: StateEncoder
    }

    var writer = StateWriter()
    private var value = Value(tag: nil, start: 0)
    private var deferred: [Deferred] = []
    private var depth = 0
    /// Stops the encoding of a large state between two values.
    private let stop = CancellationFlag.current
    /// The first error. A type that catches an error has written a partial value.
    private var failure: (any Error)?

    // Always empty: maintaining paths would cost more than encoding the values.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The bytes of a complete state.
    static func bytes(of state: some Encodable) throws -> [UInt8] {
        let encoder = StateEncoder()
        try encoder.encode(state)
        if let failure = encoder.failure { throw failure }
        return encoder.writer.trimmedBytes
    }

    // MARK: Values

    /// Encodes a value.
    func encode<T: Encodable>(_ value: T) throws {
        do {
            if let stop, stop.isSet { throw CancellationError() }
            if let stored = value as? any StoredDirectly { return try stored.write(to: self) }
            depth += 1
            guard depth <= StateTag.depthMax else { throw fault("values are nested too deeply") }
            let outer = self.value
            self.value = Value(tag: nil, start: writer.bytes.count)
            try value.encode(to: self)
            try endValue()
            self.value = outer
            depth -= 1
        } catch {
            failure = failure ?? error
            throw error
        }
    }

    func write(_ tag: StateTag) { writer.write(byte: tag.rawValue) }

    func write(_ value: some BinaryInteger) {
        write(value < 0 ? .negative : .natural)
        writer.write(
            value < 0 ? UInt64(truncatingIfNeeded: ~value) : UInt64(truncatingIfNeeded: value))
    }

    func write(_ value: String) {
        write(.string)
        writer.write(value)
    }

    func write(_ value: Bool) { write(value ? .yes : .no) }

    func write(_ value: Double) {
        write(.double)
        writer.write(value)
    }

    /// Writes the elements of an unordered collection, sorted by the bytes of their keys.
    func writeElements<Key: Encodable, Element>(
        _ tag: StateTag, _ elements: some Collection<Element>, key: (Element) -> Key,
        value: (Element) throws -> Void
    ) throws {
        let start = begin(tag)
        var entries = writer.entries(count: elements.count)
        for element in elements {
            let keyStart = writer.bytes.count
            try encode(key(element))
            writer.begin(encodedKey: keyStart..<writer.bytes.count, of: &entries)
            try value(element)
        }
        writer.end(entries)
        try end(at: start)
    }

    /// Writes a dictionary. `body` must write the entries, sorted by the bytes of their keys.
    func writeDictionary(count: Int, _ body: () throws -> Void) throws {
        let start = begin(.dictionary)
        writer.write(count: count)
        try body()
        try end(at: start)
    }

    private func begin(_ tag: StateTag) -> Int {
        write(tag)
        let start = writer.bytes.count
        writer.write(written: repeatElement(0, count: StateTag.lengthBytes))
        return start
    }

    private func end(at start: Int) throws {
        let length = writer.bytes.count - start - StateTag.lengthBytes
        guard let length = UInt32(exactly: length) else { throw fault("a value is too large") }
        writer.set(length, at: start)
    }

    // MARK: Containers

    /// Makes the current value a container.
    fileprivate func beginContainer(_ tag: StateTag) {
        guard value.tag == nil else { return }
        value = Value(tag: tag, start: begin(tag))
    }

    /// Inserts the bytes of `encoder` at the current offset when this value ends.
    fileprivate func insertLater(_ encoder: StateEncoder) -> StateEncoder {
        deferred.append(Deferred(offset: writer.bytes.count, encoder: encoder))
        encoder.depth = depth + 1
        return encoder
    }

    private func endValue() throws {
        // A type that encodes nothing becomes an object without members.
        if writer.bytes.count == value.start { beginContainer(.object) }
        while let last = deferred.last, last.offset >= value.start {
            deferred.removeLast()
            if last.encoder.depth > StateTag.depthMax {
                throw fault("values are nested too deeply")
            }
            try last.encoder.endValue()
            failure = failure ?? last.encoder.failure
            writer.insert(last.encoder.writer.bytes, at: last.offset)
        }
        if value.tag != nil { try end(at: value.start) }
    }

    private func fault(_ detail: String) -> EventError {
        EventError(.invalidData, "\(detail): the state cannot be stored")
    }

    func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedEncodingContainer<Key> {
        beginContainer(.object)
        return KeyedEncodingContainer(StateObjectEncoder(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        beginContainer(.array)
        return StateArrayEncoder(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        StateValueEncoder(encoder: self)
    }
}

/// Encodes members: the name, then the value.
private struct StateObjectEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: StateEncoder
    var codingPath: [any CodingKey] { [] }

    private func name(_ key: some CodingKey) -> StateEncoder {
        encoder.writer.write(key.stringValue)
        return encoder
    }

    func encodeNil(forKey key: Key) { name(key).write(.none) }
    func encode(_ value: Bool, forKey key: Key) { name(key).write(value) }
    func encode(_ value: String, forKey key: Key) { name(key).write(value) }
    func encode(_ value: Double, forKey key: Key) { name(key).write(value) }
    func encode(_ value: Int, forKey key: Key) { name(key).write(value) }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try name(key).encode(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        superEncoder(forKey: key).container(keyedBy: NestedKey.self)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        superEncoder(forKey: key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { superEncoder(for: StateKey.superKey) }
    func superEncoder(forKey key: Key) -> any Encoder { superEncoder(for: key) }
    private func superEncoder(for key: some CodingKey) -> any Encoder {
        name(key).insertLater(StateEncoder())
    }
}

/// Encodes elements in order.
private struct StateArrayEncoder: UnkeyedEncodingContainer {
    let encoder: StateEncoder
    var count = 0
    var codingPath: [any CodingKey] { [] }

    mutating func encodeNil() {
        count += 1
        encoder.write(.none)
    }

    mutating func encode<T: Encodable>(_ value: T) throws {
        count += 1
        try encoder.encode(value)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        superEncoder().container(keyedBy: NestedKey.self)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        superEncoder().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        count += 1
        return encoder.insertLater(StateEncoder())
    }
}

/// Encodes a single value, which is neither an object nor an array.
private struct StateValueEncoder: SingleValueEncodingContainer {
    let encoder: StateEncoder
    var codingPath: [any CodingKey] { [] }

    func encodeNil() { encoder.write(.none) }
    func encode<T: Encodable>(_ value: T) throws { try encoder.encode(value) }
}

/// A coding key by name. `superKey` is the member in which a superclass is encoded.
struct StateKey: CodingKey {
    static let superKey = StateKey("super")
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}
