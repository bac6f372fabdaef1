// Decodes a Codable state from the bytes of StateEncoder. The bytes are untrusted: every length is checked
// against the remaining bytes before it is used. Spec/model/views.md, VIEW-29.

import Foundation

/// Decodes one value with its nested values.
final class StateDecoder: Decoder {
    var reader: StateReader
    /// The start of the value that is being decoded.
    private var start: Int
    private let end: Int
    private var depth: Int

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ reader: StateReader, _ value: Range<Int>, depth: Int) {
        self.reader = reader
        self.reader.offset = value.lowerBound
        (start, end) = (value.lowerBound, value.upperBound)
        self.depth = depth
    }

    /// Decodes a complete state.
    static func state<State: Decodable>(_ type: State.Type, _ bytes: [UInt8]) throws -> State {
        let decoder = StateDecoder(StateReader(bytes), 0..<bytes.count, depth: 0)
        let state = try decoder.decode(type)
        try decoder.reader.finish()
        return state
    }

    // MARK: Values

    /// Decodes the next value.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let stored = type as? any StoredDirectly.Type,
            let value = try stored.read(from: self) as? T
        {
            return value
        }
        depth += 1
        let outer = start
        // A type may try several forms, so an error must restore the decoder's state.
        defer { (start, depth) = (outer, depth - 1) }
        guard depth <= StateTag.depthMax else { throw reader.fault("values are nested too deeply") }
        start = reader.offset
        let end = try skippedValue()
        let value = try T(from: self)
        reader.offset = end
        return value
    }

    func tag() throws(EventError) -> StateTag {
        guard let tag = StateTag(rawValue: try reader.byte()) else {
            throw reader.fault("a value has an unknown tag")
        }
        return tag
    }

    func expect(_ expected: StateTag) throws(EventError) {
        guard try tag() == expected else {
            throw reader.fault("a value is not of the kind \(expected)")
        }
    }

    func number<Number: FixedWidthInteger>(_ type: Number.Type) throws(EventError) -> Number {
        let tag = try tag()
        let bits = try reader.integer()
        let number: Number? =
            switch tag {
            case .natural: Number(exactly: bits)
            case .negative: Int64(exactly: bits).flatMap { Number(exactly: ~$0) }
            default: nil
            }
        guard let number else { throw reader.fault("a value is not of the type \(type)") }
        return number
    }

    func bool() throws(EventError) -> Bool {
        switch try tag() {
        case .no: false
        case .yes: true
        default: throw reader.fault("a value is not a boolean")
        }
    }

    func string() throws(EventError) -> String {
        try expect(.string)
        return try reader.string()
    }

    func double() throws(EventError) -> Double {
        try expect(.double)
        return try reader.double()
    }

    /// Reads the elements of an unordered collection, whose keys must ascend.
    func readElements<Key: Decodable>(
        _ tag: StateTag, of type: Key.Type, _ element: (Key) throws -> Void
    ) throws {
        let end = try contents(tag)
        var last: Range<Int>?
        for _ in 0..<(try reader.count()) {
            let keyStart = reader.offset
            let key = try decode(type)
            let range = keyStart..<reader.offset
            if let last, !reader.precedes(last, range) {
                throw reader.fault("the keys are not in ascending order")
            }
            last = range
            try element(key)
        }
        guard reader.offset == end else { throw reader.fault("a collection has another length") }
    }

    /// Skips the entries of a dictionary, whose keys must ascend; calls `entry` with the start of each.
    func skipElements(_ entry: (Int) -> Void) throws {
        let end = try contents(.dictionary)
        var last: Range<Int>?
        for _ in 0..<(try reader.count()) {
            let key = reader.offset..<(try skippedValue())
            if let last, !reader.precedes(last, key) {
                throw reader.fault("the keys are not in ascending order")
            }
            last = key
            entry(key.lowerBound)
            reader.offset = key.upperBound
            reader.offset = try skippedValue()
        }
        guard reader.offset == end else { throw reader.fault("a collection has another length") }
    }

    /// Reads the tag and the length of a container.
    ///
    /// - Returns: the end of the container.
    private func contents(_ expected: StateTag) throws(EventError) -> Int {
        try expect(expected)
        return try reader.length()
    }

    /// The end of the next value. Does not move the reader.
    fileprivate func skippedValue() throws(EventError) -> Int {
        let begin = reader.offset
        defer { reader.offset = begin }
        switch try tag() {
        case .none, .no, .yes: break
        case .natural, .negative: _ = try reader.integer()
        case .double: try reader.skip(8)
        case .float: try reader.skip(4)
        case .uuid: try reader.skip(16)
        case .string, .data: try reader.skip(try reader.count())
        case .object, .array, .dictionary, .set: return try reader.length()
        }
        return reader.offset
    }

    // MARK: Containers

    private func container(_ tag: StateTag) throws -> Range<Int> {
        reader.offset = start
        let end = try contents(tag)
        return reader.offset..<end
    }

    func container<Key: CodingKey>(keyedBy: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(StateObjectDecoder(self, try container(.object)))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        StateArrayDecoder(self, try container(.array))
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        reader.offset = start
        return StateValueDecoder(decoder: self, start: start)
    }

    /// A separate decoder for the next value.
    fileprivate func decoderOfNext() throws -> StateDecoder {
        guard depth < StateTag.depthMax else { throw reader.fault("values are nested too deeply") }
        return StateDecoder(reader, reader.offset..<(try skippedValue()), depth: depth + 1)
    }
}

/// Decodes members by name. A type mostly reads them in the order in which it wrote them, so the search
/// begins at the cursor.
private final class StateObjectDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let decoder: StateDecoder
    private let members: Range<Int>
    /// The start of a member.
    private var cursor: Int

    var codingPath: [any CodingKey] { [] }

    init(_ decoder: StateDecoder, _ members: Range<Int>) {
        self.decoder = decoder
        self.members = members
        cursor = members.lowerBound
    }

    var allKeys: [Key] {
        var keys: [Key] = []
        decoder.reader.offset = members.lowerBound
        while decoder.reader.offset < members.upperBound, let name = try? decoder.reader.string(),
            let end = try? decoder.skippedValue()
        {
            if let key = Key(stringValue: name) { keys.append(key) }
            decoder.reader.offset = end
        }
        return keys
    }

    /// Moves the reader to the value of a member. Returns false if there is no such member.
    private func find(_ key: some CodingKey) -> Bool {
        let name = key.stringValue
        return find(name, in: cursor..<members.upperBound)
            || find(name, in: members.lowerBound..<cursor)
    }

    private func find(_ name: String, in range: Range<Int>) -> Bool {
        decoder.reader.offset = range.lowerBound
        while decoder.reader.offset < range.upperBound {
            let member = decoder.reader.offset
            guard let isNext = try? decoder.reader.matches(name) else { return false }
            if isNext {
                cursor = member
                return true
            }
            guard let end = try? decoder.skippedValue() else { return false }
            decoder.reader.offset = end
        }
        return false
    }

    private func value<T>(_ key: Key, _ read: (StateDecoder) throws -> T) throws -> T {
        guard find(key) else {
            throw decoder.reader.fault("there is no member \(key.stringValue)")
        }
        let value = try read(decoder)
        guard decoder.reader.offset <= members.upperBound else {
            throw decoder.reader.fault("a value extends beyond its object")
        }
        cursor = decoder.reader.offset
        return value
    }

    func contains(_ key: Key) -> Bool { find(key) }

    func decodeNil(forKey key: Key) throws -> Bool {
        guard find(key) else { return true }
        return try decoder.tag() == .none
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try value(key) { try $0.bool() }
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try value(key) { try $0.string() }
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try value(key) { try $0.double() }
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try value(key) { try $0.number(type) }
    }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try value(key) { try $0.decode(type) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try superDecoder(forKey: key).container(keyedBy: NestedKey.self)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try superDecoder(forKey: key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try superDecoder(for: StateKey.superKey) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try superDecoder(for: key) }
    private func superDecoder(for key: some CodingKey) throws -> any Decoder {
        guard find(key) else { throw decoder.reader.fault("there is no member \(key.stringValue)") }
        return try decoder.decoderOfNext()
    }
}

/// Decodes elements in order.
private struct StateArrayDecoder: UnkeyedDecodingContainer {
    private let decoder: StateDecoder
    private var elements: Range<Int>
    private(set) var currentIndex = 0

    var codingPath: [any CodingKey] { [] }
    /// Not stored: the encoded length gives the end of the array.
    var count: Int? { nil }
    var isAtEnd: Bool { elements.isEmpty }

    init(_ decoder: StateDecoder, _ elements: Range<Int>) {
        (self.decoder, self.elements) = (decoder, elements)
    }

    private mutating func next<T>(_ read: (StateDecoder) throws -> T) throws -> T {
        decoder.reader.offset = elements.lowerBound
        guard !isAtEnd else { throw decoder.reader.fault("an array has no more elements") }
        let value = try read(decoder)
        guard decoder.reader.offset <= elements.upperBound else {
            throw decoder.reader.fault("a value extends beyond its array")
        }
        elements = decoder.reader.offset..<elements.upperBound
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        decoder.reader.offset = elements.lowerBound
        guard !isAtEnd, try decoder.tag() == .none else { return false }
        elements = decoder.reader.offset..<elements.upperBound
        currentIndex += 1
        return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try next { try $0.decode(type) }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try superDecoder().container(keyedBy: NestedKey.self)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try superDecoder().unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder {
        try next { decoder in
            let next = try decoder.decoderOfNext()
            decoder.reader.offset = try decoder.skippedValue()
            return next
        }
    }
}

/// Decodes a single value, which is neither an object nor an array.
private struct StateValueDecoder: SingleValueDecodingContainer {
    let decoder: StateDecoder
    let start: Int
    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool {
        decoder.reader.offset = start
        return (try? decoder.tag()) == StateTag.none
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        decoder.reader.offset = start
        return try decoder.decode(type)
    }
}
