// Puts a view's state into bytes. Equal states give equal bytes: there is one way to write a value,
// and keyed collections are sorted by the bytes of their keys. Read back by StateReader.
// Spec/model/views.md, VIEW-10.

import Foundation

/// Writes the parts of a state one after the other.
public struct StateWriter {
    /// What was written so far.
    public private(set) var bytes: [UInt8] = []

    /// Creates an empty state.
    public init() {}

    /// The bytes written so far, in an array without room to grow. O(bytes).
    public var trimmedBytes: [UInt8] { bytes.span.bytes.array }

    /// Writes a whole number in groups of seven bits, the lowest first: small ones are short.
    public mutating func add(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// Writes a number of things. Never negative.
    public mutating func add(count: Int) { add(UInt64(count)) }

    /// Writes one byte.
    public mutating func add(byte: UInt8) { bytes.append(byte) }

    /// Writes a truth value.
    public mutating func add(_ value: Bool) { bytes.append(value ? 1 : 0) }

    /// Writes a number, all its bits.
    public mutating func add(_ value: Double) { bytes.append(littleEndian: value.bitPattern) }

    /// Writes a number, all its bits.
    mutating func add(_ value: Float) { bytes.append(littleEndian: value.bitPattern) }

    /// Writes 16 bytes.
    public mutating func add(_ value: UInt128) { bytes.append(littleEndian: value) }

    /// Writes an identity.
    public mutating func add(_ value: UUID) { add(value.integer) }

    /// Writes a string: the number of its UTF-8 bytes, and these.
    public mutating func add(_ value: String) {
        add(count: value.utf8.count)
        bytes.append(contentsOf: value.utf8)
    }

    /// Writes a time; years before 1970 are as short as later ones.
    public mutating func add(_ value: Timestamp) {
        let milliseconds = value.milliseconds
        add(UInt64(bitPattern: (milliseconds << 1) ^ (milliseconds >> 63)))
    }

    /// Writes a stamp.
    public mutating func add(_ stamp: Stamp) {
        add(stamp.time)
        add(stamp.source)
        add(stamp.sequence)
    }

    /// Replaces four bytes that were written before.
    mutating func set(_ value: UInt32, at offset: Int) {
        for index in 0..<4 {
            bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index))
        }
    }

    /// Inserts bytes before those from `offset` on. O(bytes from `offset` on).
    mutating func insert(_ inserted: [UInt8], at offset: Int) {
        bytes.insert(contentsOf: inserted, at: offset)
    }

    // MARK: Keyed entries

    /// Where the entries of a collection and their keys are, so that `end` can sort them.
    public struct Entries {
        fileprivate var starts: [Int] = []
        fileprivate var keys: [Range<Int>] = []

        fileprivate mutating func append(at start: Int, key: Range<Int>) {
            starts.append(start)
            keys.append(key)
        }
    }

    /// Writes how many entries there are. For each, in any order, `begin` and what follows its key must be
    /// written, then `end`.
    public mutating func entries(count: Int) -> Entries {
        add(count: count)
        return Entries()
    }

    /// Begins an entry with its key.
    public mutating func begin(_ key: EntityID, of entries: inout Entries) {
        let start = bytes.count
        add(key.string)
        entries.append(at: start, key: bytes.count - key.string.utf8.count..<bytes.count)
    }

    /// Writes an entry that was written before, its key included.
    public mutating func add(entry: [UInt8], to entries: inout Entries) {
        let start = bytes.count
        bytes.append(contentsOf: entry)
        entries.append(at: start, key: keyOfEntry(at: start))
    }

    /// Says that an entry begins with these bytes, which were written as its key.
    mutating func begin(encodedKey key: Range<Int>, of entries: inout Entries) {
        entries.append(at: key.lowerBound, key: key)
    }

    /// Writes what was written before.
    public mutating func add(written: some Collection<UInt8>) { bytes.append(contentsOf: written) }

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

    /// The key of an entry that `begin` has written.
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

    /// An entry that was written.
    private struct Entry {
        var range: Range<Int>
        var key: Range<Int>
        /// The first eight bytes of the key, missing ones as 0: they decide between nearly any two.
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
