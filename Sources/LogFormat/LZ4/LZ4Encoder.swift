// Compresses blocks in Swift where the package is built without LibLZ4, and on systems other than Linux and
// macOS. Greedy, with one table of the last position of each hash: the method of liblz4's fast mode, so that
// size and speed are similar. Below BlockCompressor.
// Spec/format/block-and-frame.md, BLK-3 and BLK-4.

/// A compressor of the blocks of one frame: a block may refer to any plaintext of its frame that is at
/// most 65,535 bytes back.
package struct LZ4Encoder: ~Copyable {
    private static let hashBits = 12
    private static let matchBytesMin = 4
    /// Bytes at the end of a block that are literals.
    private static let lastLiterals = 5
    /// A match begins at least this many bytes before the end of its block.
    private static let matchMargin = 12
    /// Positions without a match after which the search takes longer steps, as a power of two.
    private static let skipTrigger = 6

    /// The last position of each hash, plus one; 0 where there is none.
    private let table: UnsafeMutablePointer<UInt32>
    /// The end of the last block: no position in the table is at or after it.
    private var end = 0

    /// Creates an encoder without history.
    package init() {
        table = .allocate(capacity: 1 << Self.hashBits)
        table.initialize(repeating: 0, count: 1 << Self.hashBits)
    }

    deinit { table.deallocate() }

    /// Begins a new frame.
    package mutating func reset() {
        table.update(repeating: 0, count: 1 << Self.hashBits)
        end = 0
    }

    /// Resumes a frame with the plaintext so far as history. O(history).
    package mutating func load(_ plaintext: UnsafeRawBufferPointer) {
        reset()
        end = plaintext.count
        guard let base = plaintext.baseAddress, plaintext.count >= 8 else { return }
        let first = max(0, plaintext.count - LZ4Block.offsetMax)
        for position in stride(from: first, through: plaintext.count - 8, by: 3) {
            table[Self.hash(base, position)] = UInt32(truncatingIfNeeded: position + 1)
        }
    }

    /// The upper bound of the compressed size of `count` bytes of plaintext.
    package static func bound(_ count: Int) -> Int { count + count / 255 + 16 }

    /// Compresses the plaintext from `start` to the end of `plaintext`. O(n).
    ///
    /// - Parameters:
    ///   - plaintext: the frame's plaintext up to the end of the block; less than 4 GiB. The plaintext
    ///     before `start` must be unchanged since the previous call.
    ///   - start: the end of the previous block; 0 for the first of a frame.
    ///   - output: at least `bound(_:)` of the block's bytes.
    /// - Returns: the number of bytes written.
    package mutating func compress(
        _ plaintext: UnsafeRawBufferPointer, from start: Int,
        into output: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(start == end, "the block does not begin at the end of the previous one")
        end = plaintext.count
        precondition(
            start < end && end < Int(UInt32.max) && output.count >= Self.bound(end - start),
            "the block does not fit")
        guard let source = plaintext.baseAddress, let target = output.baseAddress else { return 0 }
        var written = 0
        // The plaintext before `anchor` has been written.
        var anchor = start
        let matchLimit = end - Self.lastLiterals
        // No match begins here or later. A block of 12 bytes or fewer has none.
        let searchEnd = end - start > Self.matchMargin ? end - Self.matchMargin + 1 : start
        var position = start
        search: while position < searchEnd {
            var match = 0
            var misses = 1 << Self.skipTrigger
            while true {
                match = replaceCandidate(source, position)
                if match >= 0, Self.word(source, match) == Self.word(source, position) { break }
                position &+= misses >> Self.skipTrigger
                misses &+= 1
                guard position < searchEnd else { break search }
            }
            while position > anchor, match > 0,
                Self.byte(source, position &- 1) == Self.byte(source, match &- 1)
            {
                position &-= 1
                match &-= 1
            }
            var literals = position &- anchor
            while true {
                let matched =
                    Self.matchBytesMin
                    &+ Self.common(
                        source, match &+ Self.matchBytesMin, position &+ Self.matchBytesMin,
                        limit: matchLimit)
                let extra = matched &- Self.matchBytesMin
                let token = UInt8(truncatingIfNeeded: min(literals, 15) << 4 | min(extra, 15))
                target.storeBytes(of: token, toByteOffset: written, as: UInt8.self)
                written &+= 1
                if literals >= 15 { Self.appendLength(literals &- 15, target, &written) }
                Self.copy(source, anchor, literals, end, target, &written)
                target.storeBytes(
                    of: UInt16(truncatingIfNeeded: position &- match).littleEndian,
                    toByteOffset: written, as: UInt16.self)
                written &+= 2
                if extra >= 15 { Self.appendLength(extra &- 15, target, &written) }
                position &+= matched
                anchor = position
                guard position < searchEnd else { break search }
                table[Self.hash(source, position &- 2)] = UInt32(
                    truncatingIfNeeded: position &- 1)
                // Where a match ends, the next often begins.
                match = replaceCandidate(source, position)
                guard match >= 0, Self.word(source, match) == Self.word(source, position) else {
                    break
                }
                literals = 0
            }
            position &+= 1
        }
        let literals = end &- anchor
        target.storeBytes(
            of: UInt8(truncatingIfNeeded: min(literals, 15) << 4), toByteOffset: written,
            as: UInt8.self)
        written &+= 1
        if literals >= 15 { Self.appendLength(literals &- 15, target, &written) }
        (target + written).copyMemory(from: source + anchor, byteCount: literals)
        return written &+ literals
    }

    /// Replaces the position stored for the hash at `position` by `position`.
    ///
    /// - Returns: the position stored before, if an offset can reach it; otherwise a negative number.
    @inline(__always)
    private func replaceCandidate(_ source: UnsafeRawPointer, _ position: Int) -> Int {
        let slot = Self.hash(source, position)
        let before = Int(table[slot]) &- 1
        table[slot] = UInt32(truncatingIfNeeded: position &+ 1)
        return position &- before <= LZ4Block.offsetMax ? before : -1
    }

    /// The hash of the five bytes at a position, of which eight can be read.
    @inline(__always)
    private static func hash(_ source: UnsafeRawPointer, _ position: Int) -> Int {
        let word = UInt64(
            littleEndian: source.loadUnaligned(fromByteOffset: position, as: UInt64.self))
        return Int(
            truncatingIfNeeded: ((word << 24) &* 889_523_592_379) >> UInt64(64 - hashBits))
    }

    @inline(__always)
    private static func word(_ source: UnsafeRawPointer, _ position: Int) -> UInt32 {
        source.loadUnaligned(fromByteOffset: position, as: UInt32.self)
    }

    @inline(__always)
    private static func byte(_ source: UnsafeRawPointer, _ position: Int) -> UInt8 {
        source.load(fromByteOffset: position, as: UInt8.self)
    }

    /// How many bytes at `first` and `second` are equal; `second` stays below `limit`.
    @inline(__always)
    private static func common(
        _ source: UnsafeRawPointer, _ first: Int, _ second: Int, limit: Int
    ) -> Int {
        var count = 0
        while second &+ count &+ 8 <= limit {
            let difference =
                source.loadUnaligned(fromByteOffset: first &+ count, as: UInt64.self)
                ^ source.loadUnaligned(fromByteOffset: second &+ count, as: UInt64.self)
            if difference != 0 {
                return count &+ UInt64(littleEndian: difference).trailingZeroBitCount >> 3
            }
            count &+= 8
        }
        while second &+ count < limit,
            byte(source, first &+ count) == byte(source, second &+ count)
        { count &+= 1 }
        return count
    }

    /// Writes the extension bytes of a length, given without the 15 of its token.
    @inline(__always)
    private static func appendLength(
        _ length: Int, _ target: UnsafeMutableRawPointer, _ written: inout Int
    ) {
        var remaining = length
        while remaining >= 255 {
            target.storeBytes(of: 255, toByteOffset: written, as: UInt8.self)
            written &+= 1
            remaining &-= 255
        }
        target.storeBytes(
            of: UInt8(truncatingIfNeeded: remaining), toByteOffset: written, as: UInt8.self)
        written &+= 1
    }

    /// Copies the literals before a match. Up to 16 are copied as 16 bytes where as many can be read; the
    /// surplus is overwritten later. At least 26 bytes of `bound(_:)` are left here, since 12 bytes of
    /// plaintext or more follow the literals.
    @inline(__always)
    private static func copy(
        _ source: UnsafeRawPointer, _ start: Int, _ count: Int, _ end: Int,
        _ target: UnsafeMutableRawPointer, _ written: inout Int
    ) {
        if count <= 16, start &+ 16 <= end {
            target.storeBytes(
                of: source.loadUnaligned(fromByteOffset: start, as: SIMD16<UInt8>.self),
                toByteOffset: written, as: SIMD16<UInt8>.self)
        } else {
            (target + written).copyMemory(from: source + start, byteCount: count)
        }
        written &+= count
    }
}
