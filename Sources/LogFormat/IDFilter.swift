// Bloom filters for the ids of neighbouring segments, bit-sliced: the filters' bits for one place are next to
// each other, so that three reads of memory ask up to 64 segments. They are blocked: the three places of an id
// are near each other, so that sorted hashes fill the filters from beginning to end. In memory only; made from
// id indexes that are searched often. Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
// filters" (2007); Bingmann et al., "COBS: a compact bit-sliced signature index" (2019). With this and
// the other changes of Spec/decisions/0055-id-filter.md an append to 5 million events takes 14.9 instead of 19.1 µs.

/// Filters for the ids of up to 64 indexes with one seed, with false positives and no false negatives.
package struct IDFilter: Sendable {
    /// The maximum number of indexes: the filters' bits for one place are in one word.
    package static let indexesMax = UInt64.bitWidth
    /// The lookups after which indexes without a filter get one. Making it costs as much as some hundred lookups,
    /// and usually one or two bytes of memory for each event, at most eight.
    package static let lookupsMax = 256

    private let seed: UInt32
    private let layout: Layout
    private let bits: [UInt64]

    /// Creates the filters of some indexes: 8 to 16 bits for each id of the largest index, and as many for each
    /// other index. O(ids).
    ///
    /// - Precondition: 1 to 64 indexes with equal seeds.
    /// - Throws: `FormatError` (`truncated`, `malformed`) if an index is damaged.
    package init(_ indexes: [IDIndex]) throws(FormatError) {
        precondition(1...Self.indexesMax ~= indexes.count, "a filter has 1 to 64 indexes")
        let seed = indexes[0].hashSeed
        let layout = Layout(
            indexes: indexes.count, ids: indexes.reduce(0) { max($0, $1.count) })
        var bits = [UInt64](repeating: 0, count: layout.words)
        // Through a pointer: an array checks at each of the many bits that it has one owner, and the whole took
        // twice as long.
        try bits.withUnsafeMutableBufferPointer { (bits) throws(FormatError) in
            let words = bits
            for (number, index) in indexes.enumerated() {
                precondition(index.hashSeed == seed, "the indexes of a filter have one seed")
                try index.forEachEntry { entry in
                    let (one, two, three) = layout.slices(of: entry.hash)
                    words[one >> 6] |= 1 &<< UInt64(one & 63 &+ number)
                    words[two >> 6] |= 1 &<< UInt64(two & 63 &+ number)
                    words[three >> 6] |= 1 &<< UInt64(three & 63 &+ number)
                }
            }
        }
        (self.seed, self.layout, self.bits) = (seed, layout, bits)
    }

    /// The indexes that may contain an id: bit i stands for the i-th. O(1).
    package func indexes(mayContain id: UInt128) -> UInt64 {
        let (one, two, three) = layout.slices(of: IDIndex.hash(id, seed: seed))
        let found = slice(one) & slice(two) & slice(three)
        return layout.sliceBits == 64 ? found : found & (1 << UInt64(layout.sliceBits) - 1)
    }

    private func slice(_ bit: Int) -> UInt64 { bits[bit >> 6] &>> UInt64(bit & 63) }
}

/// The places of the filters, and the bits for each.
private struct Layout: Sendable {
    /// The bits for one place, a slice: as many as indexes or more, a power of two.
    let sliceBits: Int
    /// The number of words of all slices.
    let words: Int
    /// There is a place for each value of a hash without its last `shift` bits.
    private let shift: UInt32
    /// The places of a block. The first bits of a hash decide its block.
    private let blockPlaces: UInt32

    init(indexes: Int, ids: Int) {
        var sliceBits = 1
        while sliceBits < indexes { sliceBits *= 2 }
        self.sliceBits = sliceBits
        let placeBits = min(32, max(6, Int.bitWidth - (8 * ids).leadingZeroBitCount))
        shift = UInt32(32 - placeBits)
        blockPlaces = UInt32(1) << UInt32(min(placeBits, 9))
        words = sliceBits << (placeBits - 6)
    }

    /// The first bits of the three slices for a hash.
    @inline(__always)
    func slices(of hash: UInt32) -> (Int, Int, Int) {
        let block = (hash >> shift) & ~(blockPlaces &- 1)
        func slice(_ factor: UInt32) -> Int {
            // Bits of the product on which the first bits of the hash, alike in a block, have little effect.
            let place = ((hash &* factor) >> 16) & (blockPlaces &- 1)
            return Int(block | place) &* sliceBits
        }
        return (slice(0x9E37_79B1), slice(0x85EB_CA77), slice(0xC2B2_AE3D))
    }
}
