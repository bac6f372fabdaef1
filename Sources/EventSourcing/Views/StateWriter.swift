// Writes a view's state as bytes. Equal states give equal bytes: each value has one encoding, and keyed
// collections are sorted by the bytes of their keys. StateReader reads them. Spec/model/views.md, VIEW-10.

import Foundation

/// Writes the parts of a state in order.
public struct StateWriter {
    /// The bytes written so far.
    public private(set) var bytes: [UInt8] = []

    /// Creates an empty state.
    public init() {}

    /// Reserves memory for about `bytes` bytes in total: a large state that grows in steps is copied at each of them.
    package mutating func reserve(bytes: Int) { self.bytes.reserveCapacity(bytes) }

    /// The bytes written so far, in an array without spare capacity. O(bytes).
    public var trimmedBytes: [UInt8] { bytes.span.bytes.array }

    /// Writes an unsigned integer in groups of seven bits, lowest first: small numbers are short.
    public mutating func write(_ value: UInt64) {
        var remaining = value
        while remaining >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: remaining) | 0x80)
            remaining >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: remaining))
    }

    /// Writes a number of items, which must not be negative.
    public mutating func write(count: Int) { write(UInt64(count)) }

    /// Writes one byte.
    public mutating func write(byte: UInt8) { bytes.append(byte) }

    /// Writes a boolean.
    public mutating func write(_ value: Bool) { bytes.append(value ? 1 : 0) }

    /// Writes a double, bit by bit.
    public mutating func write(_ value: Double) { bytes.append(littleEndian: value.bitPattern) }

    /// Writes a float, bit by bit.
    mutating func write(_ value: Float) { bytes.append(littleEndian: value.bitPattern) }

    /// Writes an integer of 16 bytes.
    public mutating func write(_ value: UInt128) { bytes.append(littleEndian: value) }

    /// Writes a UUID.
    public mutating func write(_ value: UUID) { write(value.integer) }

    /// Writes a string: the number of its UTF-8 bytes, then the bytes.
    public mutating func write(_ value: String) {
        write(count: value.utf8.count)
        bytes.append(contentsOf: value.utf8)
    }

    /// Writes a time. Times before 1970 are as short as later ones.
    public mutating func write(_ value: Timestamp) {
        let milliseconds = value.milliseconds
        write(UInt64(bitPattern: (milliseconds << 1) ^ (milliseconds >> 63)))
    }

    /// Writes an LWW timestamp.
    public mutating func write(_ lwwTimestamp: LWWTimestamp) {
        write(lwwTimestamp.time)
        write(lwwTimestamp.source)
        write(lwwTimestamp.sequence)
    }

    /// Replaces four bytes that were written before.
    mutating func set(_ value: UInt32, at offset: Int) {
        for index in 0..<4 {
            bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index))
        }
    }

    /// Inserts bytes at `offset`. O(bytes from `offset` on).
    mutating func insert(_ inserted: [UInt8], at offset: Int) {
        bytes.insert(contentsOf: inserted, at: offset)
    }

    // MARK: Keyed entries

    /// The offsets of a collection's entries and their keys, so that `end` can sort them.
    public struct Entries {
        fileprivate var starts: [Int] = []
        fileprivate var keys: [Range<Int>] = []

        fileprivate mutating func append(at start: Int, key: Range<Int>) {
            starts.append(start)
            keys.append(key)
        }
    }

    /// Begins a collection with its number of entries. Then for each entry, in any order, call `begin` and
    /// write its value; call `end` after the last one.
    public mutating func entries(count: Int) -> Entries {
        write(count: count)
        return Entries()
    }

    /// Begins an entry with its key.
    public mutating func begin(_ key: EntityID, of entries: inout Entries) {
        let start = bytes.count
        write(key.string)
        entries.append(at: start, key: bytes.count - key.string.utf8.count..<bytes.count)
    }

    /// Writes an already encoded entry, with its key.
    public mutating func write(entry: [UInt8], to entries: inout Entries) {
        let start = bytes.count
        bytes.append(contentsOf: entry)
        entries.append(at: start, key: keyOfEntry(at: start))
    }

    /// Begins an entry whose key is already written, at `key`.
    mutating func begin(encodedKey key: Range<Int>, of entries: inout Entries) {
        entries.append(at: key.lowerBound, key: key)
    }

    /// Writes already encoded bytes.
    public mutating func write(written: some Collection<UInt8>) {
        bytes.append(contentsOf: written)
    }

    /// Sorts the entries by the bytes of their keys. O(n log n).
    public mutating func end(_ entries: Entries) {
        guard let first = entries.starts.first, entries.starts.count > 1 else { return }
        let sorted = sorted(entries)
        bytes.replaceSubrange(first..., with: sorted)
    }

    private func sorted(_ entries: Entries) -> [UInt8] {
        let span = bytes.span
        let ends = entries.starts.dropFirst() + [bytes.count]
        var order = zip(zip(entries.starts, ends), entries.keys).map {
            Entry(span, $0.0..<$0.1, $1)
        }
        order.sort { a, b in
            a.head != b.head
                ? a.head < b.head
                : bytes[a.key].lexicographicallyPrecedes(bytes[b.key])
        }
        var sorted: [UInt8] = []
        sorted.reserveCapacity(bytes.count - (entries.starts.first ?? 0))
        for entry in order { sorted.append(contentsOf: bytes[entry.range]) }
        return sorted
    }

    /// The range of the key of an entry that `begin` has written.
    private func keyOfEntry(at offset: Int) -> Range<Int> {
        var start = offset
        var length = Int(bytes[start] & 0x7F)
        var shift = 7
        while bytes[start] >= 0x80 {
            start += 1
            length |= Int(bytes[start] & 0x7F) << shift
            shift += 7
        }
        return start + 1..<start + 1 + length
    }

    /// An encoded entry.
    private struct Entry {
        var range: Range<Int>
        var key: Range<Int>
        /// The first eight bytes of the key, padded with zeros: comparing them mostly decides the order.
        var head: UInt64

        init(_ bytes: Span<UInt8>, _ range: Range<Int>, _ key: Range<Int>) {
            (self.range, self.key) = (range, key)
            head = 0
            for index in key.lowerBound..<key.lowerBound + 8 {
                head = head << 8 | UInt64(index < key.upperBound ? bytes[index] : 0)
            }
        }
    }
}
