// The entries of a StateDictionary as a checkpoint stores them: encoded, sorted by the bytes of their keys.
// Spec/model/views.md, VIEW-29.

import HashTreeCollections

/// Immutable encoded entries.
@usableFromInline
final class StoredEntries<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>:
    Sendable
{
    /// A reader of the complete state, whose bytes are shared, not copied.
    private let reader: StateReader
    /// The start of each entry, and the end of the last one.
    private let starts: [Int]

    /// The most entries that opening decodes, to check that the types can still decode them.
    private static var triedMax: Int { 16 }

    @usableFromInline init() {
        reader = StateReader([])
        starts = [0]
    }

    /// Reads the entries of a dictionary without decoding them.
    ///
    /// - Throws: for bytes that are not a dictionary, and if a sampled entry cannot be decoded.
    fileprivate init(_ decoder: StateDecoder) throws {
        var starts: [Int] = []
        try decoder.skipElements { starts.append($0) }
        starts.append(decoder.reader.offset)
        self.starts = starts
        reader = decoder.reader
        for index in stride(from: 0, to: count, by: count / Self.triedMax + 1) {
            _ = try decodedEntry(index)
        }
    }

    @usableFromInline var count: Int { starts.count - 1 }
    @usableFromInline var isEmpty: Bool { starts.count == 1 }

    // MARK: Reading

    private func decodedEntry(_ index: Int) throws -> (key: Key, value: Value) {
        let decoder = decoder(at: starts[index])
        return (try decoder.decode(Key.self), try decoder.decode(Value.self))
    }

    private func decoder(at offset: Int) -> StateDecoder {
        StateDecoder(reader, offset..<(starts.last ?? offset), depth: 1)
    }

    /// An entry; nil if it cannot be decoded.
    func entry(_ index: Int) -> (key: Key, value: Value)? { try? decodedEntry(index) }

    /// An entry's key; nil if it cannot be decoded.
    func key(_ index: Int) -> Key? { try? decoder(at: starts[index]).decode(Key.self) }

    /// The value of a key. O(log n) comparisons of bytes.
    @usableFromInline func value(of key: Key) -> Value? {
        guard let (index, keyBytes) = position(of: key) else { return nil }
        return try? decoder(at: starts[index] + keyBytes).decode(Value.self)
    }

    /// True if there is an entry with the key. O(log n) comparisons of bytes.
    @usableFromInline func contains(_ key: Key) -> Bool { position(of: key) != nil }

    private func position(of key: Key) -> (index: Int, keyBytes: Int)? {
        guard let encoded = try? StateEncoder.bytes(of: key) else { return nil }
        let index = firstIndex(notBefore: encoded[...], from: 0)
        guard index < count, reader.begins(with: encoded[...], at: starts[index]) else {
            return nil
        }
        return (index, encoded.count)
    }

    /// The index of the first entry whose key is not less than `key`. An encoded key is never a prefix of
    /// another one, so it is compared with the complete entry.
    private func firstIndex(notBefore key: ArraySlice<UInt8>, from first: Int) -> Int {
        var (low, high) = (first, count)
        while low < high {
            let middle = (low + high) / 2
            if reader.isLess(starts[middle]..<starts[middle + 1], than: key) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    // MARK: Writing

    /// Writes the entries with changes applied. The bytes between two changed keys are copied.
    fileprivate func write(
        with changes: TreeDictionary<Key, Value?>, count total: Int, to encoder: StateEncoder
    ) throws {
        let changed = try changes.map { (key: try StateEncoder.bytes(of: $0), value: $1) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        try encoder.writeDictionary(count: total) {
            var next = 0
            func copy(through end: Int) {
                encoder.writer.write(written: reader.bytes(in: starts[next]..<starts[end]))
                next = end
            }
            for (key, value) in changed {
                copy(through: firstIndex(notBefore: key[...], from: next))
                if next < count, reader.begins(with: key[...], at: starts[next]) { next += 1 }
                guard let value else { continue }
                encoder.writer.write(written: key)
                try encoder.encode(value)
            }
            copy(through: count)
        }
    }
}

extension StateDictionary: StoredDirectly {
    func write(to encoder: StateEncoder) throws {
        try stored.write(with: changes, count: count, to: encoder)
    }

    static func read(from decoder: StateDecoder) throws -> Self {
        Self(stored: try StoredEntries(decoder))
    }
}
