// An index from event ids to the frames of a sealed segment: sorted seeded hashes with Rice-coded gaps,
// about three and a half bytes per event. A hit is a candidate: the reader decodes the frame and
// compares the id. Spec/format/segment.md, SEG-6.

/// One decoded entry.
package struct IDIndexEntry: Equatable, Sendable {
    package var hash: UInt32
    /// 32 bits, because up to a million entries are in memory at a time.
    private var frameNumber: UInt32
    package var frame: Int { Int(frameNumber) }

    package init(hash: UInt32, frame: Int) {
        self.hash = hash
        frameNumber = UInt32(frame)
    }
}

/// An index from id hashes to frame numbers, read in place.
package struct IDIndex: Sendable {
    /// Entries between two fences.
    private static let fenceSpacing = 128
    /// Seed, count, Rice bits, frame bits, reserved.
    private static let prefixBytes = 12
    private static let fenceBytes = 8

    private let bytes: [UInt8]
    private let seed: UInt32
    private let riceBits: Int
    private let frameBits: Int
    private let fenceCount: Int
    /// Number of ids.
    package let count: Int

    /// The hash of an id with a seed: XXH32 of its sixteen bytes in network order.
    package static func hash(_ id: UInt128, seed: UInt32) -> UInt32 {
        withUnsafeBytes(of: id.bigEndian) { XXH32.hash(RawSpan(_unsafeBytes: $0), seed: seed) }
    }

    /// The seed of the hashes.
    package var hashSeed: UInt32 { seed }

    /// The hash of an id with this index's seed.
    package func hash(_ id: UInt128) -> UInt32 { Self.hash(id, seed: seed) }

    /// Encodes an index over `entries` in a segment of `frameCount` frames. O(n log n).
    package static func encode(
        _ entries: [IDIndexEntry], frameCount: Int, seed: UInt32
    ) -> [UInt8] {
        let sorted = entries.sorted { ($0.hash, $0.frame) < ($1.hash, $1.frame) }
        // The mean gap of n hashes is 2^32 / n; the best Rice parameter is close to its logarithm.
        let riceBits =
            sorted.isEmpty
            ? 0 : max(0, 31 - (sorted.count.bitWidth - sorted.count.leadingZeroBitCount - 1))
        let frameBits = frameCount <= 1 ? 0 : Int.bitWidth - (frameCount - 1).leadingZeroBitCount
        var fences: [UInt8] = []
        var bits = BitWriter()
        var previous: UInt32 = 0
        for (number, entry) in sorted.enumerated() {
            if number % fenceSpacing == 0 {
                fences.append(littleEndian: entry.hash)
                fences.append(littleEndian: UInt32(bits.bitCount))
                previous = entry.hash
            }
            let gap = entry.hash - previous
            bits.append(unary: Int(gap >> UInt32(riceBits)))
            bits.append(UInt64(gap), bits: riceBits)
            bits.append(UInt64(entry.frame), bits: frameBits)
            previous = entry.hash
        }
        var result: [UInt8] = []
        result.append(littleEndian: seed)
        result.append(littleEndian: UInt32(sorted.count))
        result.append(UInt8(riceBits))
        result.append(UInt8(frameBits))
        result.append(littleEndian: UInt16(0))
        return result + fences + bits.finished()
    }

    /// Reads an index; its entries stay encoded. O(1).
    ///
    /// - Throws: `FormatError` (`malformed`, `truncated`) for sizes that contradict each other.
    package init(_ bytes: [UInt8]) throws(FormatError) {
        let span = bytes.span.bytes
        guard span.byteCount >= Self.prefixBytes else {
            throw FormatError(.truncated, "the id index ends in its prefix")
        }
        let count = Int(span.integer(at: 4, as: UInt32.self))
        let fenceCount = (count + Self.fenceSpacing - 1) / Self.fenceSpacing
        riceBits = Int(span.byte(at: 8))
        frameBits = Int(span.byte(at: 9))
        guard riceBits <= 31, frameBits <= 24,
            span.byteCount >= Self.prefixBytes + fenceCount * Self.fenceBytes
        else { throw FormatError(.malformed, "the id index has impossible sizes") }
        // Checked before memory is allocated for the entries.
        let streamBits = (span.byteCount - Self.prefixBytes - fenceCount * Self.fenceBytes) * 8
        guard streamBits >= count * (1 + riceBits + frameBits) else {
            throw FormatError(.truncated, "the id index ends before its last entry")
        }
        seed = span.integer(at: 0)
        self.count = count
        self.fenceCount = fenceCount
        self.bytes = bytes
    }

    /// The frames that may hold an id with this hash, ascending. O(log n).
    ///
    /// - Throws: `FormatError` (`truncated`) where the bit stream ends early.
    package func frames(hash: UInt32) throws(FormatError) -> [Int] {
        // The first fence at or after the hash; equal hashes may begin before it.
        let low = (0..<fenceCount).partitioningIndex { fence($0).hash >= hash }
        var found: [Int] = []
        var number = max(0, low - 1) * Self.fenceSpacing
        guard number < count else { return [] }
        let start = Self.prefixBytes + fenceCount * Self.fenceBytes
        var reader = BitReader(offset: start * 8 + fence(number / Self.fenceSpacing).bit)
        var current = fence(number / Self.fenceSpacing).hash
        while number < count {
            if number % Self.fenceSpacing == 0 { current = fence(number / Self.fenceSpacing).hash }
            let entry = try readEntry(&reader)
            current = current &+ entry.gap
            if current > hash { break }
            if current == hash, found.last != entry.frame { found.append(entry.frame) }
            number += 1
        }
        return found
    }

    /// All entries, ascending. O(n).
    ///
    /// - Throws: `FormatError` (`truncated`, `malformed`) where the bit stream is damaged.
    package func entries() throws(FormatError) -> [IDIndexEntry] {
        var entries: [IDIndexEntry] = []
        try forEachEntry { entries.append($0) }
        return entries
    }

    /// Calls `body` with every entry, ascending. O(n), without memory for the entries.
    ///
    /// - Throws: as `entries()`, after the entries before the damage.
    package func forEachEntry(_ body: (IDIndexEntry) -> Void) throws(FormatError) {
        let start = Self.prefixBytes + fenceCount * Self.fenceBytes
        var reader = BitReader(offset: start * 8)
        var current: UInt32 = 0
        for number in 0..<count {
            if number % Self.fenceSpacing == 0 { current = fence(number / Self.fenceSpacing).hash }
            let entry = try readEntry(&reader)
            current = current &+ entry.gap
            body(IDIndexEntry(hash: current, frame: entry.frame))
        }
    }

    /// Reads an entry: the gap to the hash before, and the frame.
    private func readEntry(
        _ reader: inout BitReader
    ) throws(FormatError) -> (gap: UInt32, frame: Int) {
        let span = bytes.span.bytes
        // Nearly every entry fits into one read of the stream; three reads took twice as long.
        let (quotient, remainder, frame) =
            if let parts = reader.unary(then: riceBits, frameBits, in: span) {
                parts
            } else {
                (
                    try reader.unary(in: span), try reader.bits(riceBits, in: span),
                    try reader.bits(frameBits, in: span)
                )
            }
        guard quotient <= Int(UInt32.max >> UInt32(riceBits)) else {
            throw FormatError(.malformed, "the id index has an impossible gap")
        }
        return (UInt32(quotient) << UInt32(riceBits) &+ UInt32(remainder), Int(frame))
    }

    private func fence(_ number: Int) -> (hash: UInt32, bit: Int) {
        let span = bytes.span.bytes
        let offset = Self.prefixBytes + number * Self.fenceBytes
        return (
            span.integer(at: offset), Int(span.integer(at: offset + 4, as: UInt32.self))
        )
    }
}

/// Writes bits, most significant first.
private struct BitWriter {
    private var bytes: [UInt8] = []
    private var current: UInt64 = 0
    private var filled = 0
    var bitCount: Int { bytes.count * 8 + filled }

    mutating func append(_ value: UInt64, bits: Int) {
        guard bits > 0 else { return }
        current = current << UInt64(bits) | (value & (1 << UInt64(bits) - 1))
        filled += bits
        while filled >= 8 {
            filled -= 8
            bytes.append(UInt8(truncatingIfNeeded: current >> UInt64(filled)))
        }
    }

    /// Appends a number in unary: `value` ones and a zero.
    mutating func append(unary value: Int) {
        var remaining = value
        while remaining >= 16 {
            append(0xFFFF, bits: 16)
            remaining -= 16
        }
        append((1 << UInt64(remaining + 1)) - 2, bits: remaining + 1)
    }

    /// The bytes, the last one padded with zeros.
    func finished() -> [UInt8] {
        var copy = self
        if copy.filled > 0 { copy.append(0, bits: 8 - copy.filled) }
        return copy.bytes
    }
}

/// Reads bits, most significant first.
private struct BitReader {
    private var offset: Int

    init(offset: Int) { self.offset = offset }

    /// The next 57 bits or more, the first in the most significant place; zeros after the end.
    @inline(__always)
    private func window(_ bytes: RawSpan) -> UInt64 {
        let first = offset / 8
        var word: UInt64 = 0
        if first <= bytes.byteCount - 8 {
            word = UInt64(
                bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: first, as: UInt64.self))
        } else {
            for index in first..<max(first, bytes.byteCount) {
                word |= UInt64(bytes.byte(at: index)) << UInt64(56 - 8 * (index - first))
            }
        }
        return word << UInt64(offset % 8)
    }

    /// Reads `count` bits as a number.
    ///
    /// - Parameter count: at most 31.
    mutating func bits(_ count: Int, in bytes: RawSpan) throws(FormatError) -> UInt64 {
        guard count > 0 else { return 0 }
        guard offset + count <= bytes.byteCount * 8 else { throw Self.tooShort }
        defer { offset += count }
        return window(bytes) >> UInt64(64 - count)
    }

    /// Reads a number in unary and two of `first` and `second` bits, at most 31 each, if one window contains all
    /// three; otherwise reads nothing and returns nil.
    @inline(__always)
    mutating func unary(
        then first: Int, _ second: Int, in bytes: RawSpan
    ) -> (Int, UInt64, UInt64)? {
        let word = window(bytes)
        let ones = (~word).leadingZeroBitCount
        let count = ones + 1 + first + second
        guard count <= 57, offset + count <= bytes.byteCount * 8 else { return nil }
        offset += count
        let remaining = (word &<< UInt64(ones)) &<< 1
        // In two steps, since a masked shift by all 64 places, for a number of no bits, would do nothing.
        func leading(_ bits: Int, of word: UInt64) -> UInt64 { (word &>> 1) &>> UInt64(63 - bits) }
        return (
            ones, leading(first, of: remaining), leading(second, of: remaining &<< UInt64(first))
        )
    }

    /// Reads a number in unary.
    mutating func unary(in bytes: RawSpan) throws(FormatError) -> Int {
        var value = 0
        while true {
            let ones = min((~window(bytes)).leadingZeroBitCount, 56)
            guard offset + ones < bytes.byteCount * 8 else { throw Self.tooShort }
            offset += ones
            value += ones
            if ones < 56 {
                offset += 1
                return value
            }
        }
    }

    private static var tooShort: FormatError {
        FormatError(.truncated, "the id index ends in the middle of an entry")
    }
}
