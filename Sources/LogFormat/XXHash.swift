// XXH32 and XXH64 as of https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
// LZ4 frames use XXH32 for headers and blocks; XXH64 is the digest in a segment's footer.

/// 32-bit xxHash.
public enum XXH32 {
    private static let prime1: UInt32 = 2_654_435_761
    private static let prime2: UInt32 = 2_246_822_519
    private static let prime3: UInt32 = 3_266_489_917
    private static let prime4: UInt32 = 668_265_263
    private static let prime5: UInt32 = 374_761_393

    /// The hash of all bytes. O(n).
    public static func hash(_ bytes: RawSpan, seed: UInt32 = 0) -> UInt32 {
        let count = bytes.byteCount
        var offset = 0
        var hash: UInt32
        if count >= 16 {
            var a = seed &+ prime1 &+ prime2
            var b = seed &+ prime2
            var c = seed
            var d = seed &- prime1
            while offset <= count - 16 {
                a = round(a, bytes.integer(at: offset))
                b = round(b, bytes.integer(at: offset + 4))
                c = round(c, bytes.integer(at: offset + 8))
                d = round(d, bytes.integer(at: offset + 12))
                offset += 16
            }
            hash = rotl(a, 1) &+ rotl(b, 7) &+ rotl(c, 12) &+ rotl(d, 18)
        } else {
            hash = seed &+ prime5
        }
        hash = hash &+ UInt32(truncatingIfNeeded: count)
        while offset <= count - 4 {
            let word: UInt32 = bytes.integer(at: offset)
            hash = rotl(hash &+ word &* prime3, 17) &* prime4
            offset += 4
        }
        while offset < count {
            hash = rotl(hash &+ UInt32(bytes.byte(at: offset)) &* prime5, 11) &* prime1
            offset += 1
        }
        hash = (hash ^ (hash >> 15)) &* prime2
        hash = (hash ^ (hash >> 13)) &* prime3
        return hash ^ (hash >> 16)
    }

    @inline(__always)
    private static func round(_ lane: UInt32, _ input: UInt32) -> UInt32 {
        rotl(lane &+ input &* prime2, 13) &* prime1
    }
    @inline(__always)
    private static func rotl(_ value: UInt32, _ bits: UInt32) -> UInt32 {
        (value << bits) | (value >> (32 - bits))
    }
}

/// 64-bit xxHash, computed incrementally.
public struct XXH64: Sendable {
    private static let prime1: UInt64 = 11_400_714_785_074_694_791
    private static let prime2: UInt64 = 14_029_467_366_897_019_727
    private static let prime3: UInt64 = 1_609_587_929_392_839_161
    private static let prime4: UInt64 = 9_650_029_242_287_828_579
    private static let prime5: UInt64 = 2_870_177_450_012_600_261

    private let seed: UInt64
    private var lanes: (UInt64, UInt64, UInt64, UInt64)
    private var pending: [UInt8] = []
    private var total: UInt64 = 0

    /// Creates the hash of no bytes.
    public init(seed: UInt64 = 0) {
        self.seed = seed
        lanes = (
            seed &+ Self.prime1 &+ Self.prime2, seed &+ Self.prime2, seed, seed &- Self.prime1
        )
        pending.reserveCapacity(32)
    }

    /// The hash of all bytes, with seed 0. O(n).
    public static func hash(_ bytes: RawSpan) -> UInt64 {
        var hash = XXH64()
        hash.update(bytes)
        return hash.value()
    }

    /// Continues the hash with `bytes`. O(n).
    public mutating func update(_ bytes: RawSpan) {
        total &+= UInt64(bytes.byteCount)
        var offset = 0
        if !pending.isEmpty {
            let missing = min(32 - pending.count, bytes.byteCount)
            pending.append(contentsOf: bytes.extracting(0..<missing))
            offset = missing
            guard pending.count == 32 else { return }
            let full = pending
            stripe(full.span.bytes, at: 0)
            pending.removeAll(keepingCapacity: true)
        }
        while offset <= bytes.byteCount - 32 {
            stripe(bytes, at: offset)
            offset += 32
        }
        pending.append(contentsOf: bytes.extracting(offset..<bytes.byteCount))
    }

    /// The hash of all bytes so far. More may follow.
    public func value() -> UInt64 {
        var hash: UInt64
        if total >= 32 {
            hash =
                Self.rotl(lanes.0, 1) &+ Self.rotl(lanes.1, 7) &+ Self.rotl(lanes.2, 12)
                &+ Self.rotl(lanes.3, 18)
            for lane in [lanes.0, lanes.1, lanes.2, lanes.3] {
                hash = (hash ^ Self.round(0, lane)) &* Self.prime1 &+ Self.prime4
            }
        } else {
            hash = seed &+ Self.prime5
        }
        hash = hash &+ total
        let tail = pending.span.bytes
        var offset = 0
        while offset <= tail.byteCount - 8 {
            hash = Self.rotl(hash ^ Self.round(0, tail.integer(at: offset)), 27)
            hash = hash &* Self.prime1 &+ Self.prime4
            offset += 8
        }
        if offset <= tail.byteCount - 4 {
            let word: UInt32 = tail.integer(at: offset)
            hash = Self.rotl(hash ^ (UInt64(word) &* Self.prime1), 23)
            hash = hash &* Self.prime2 &+ Self.prime3
            offset += 4
        }
        while offset < tail.byteCount {
            hash = Self.rotl(hash ^ (UInt64(tail.byte(at: offset)) &* Self.prime5), 11)
            hash = hash &* Self.prime1
            offset += 1
        }
        hash = (hash ^ (hash >> 33)) &* Self.prime2
        hash = (hash ^ (hash >> 29)) &* Self.prime3
        return hash ^ (hash >> 32)
    }

    @inline(__always)
    private mutating func stripe(_ bytes: RawSpan, at offset: Int) {
        lanes.0 = Self.round(lanes.0, bytes.integer(at: offset))
        lanes.1 = Self.round(lanes.1, bytes.integer(at: offset + 8))
        lanes.2 = Self.round(lanes.2, bytes.integer(at: offset + 16))
        lanes.3 = Self.round(lanes.3, bytes.integer(at: offset + 24))
    }
    @inline(__always)
    private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        rotl(lane &+ input &* prime2, 31) &* prime1
    }
    @inline(__always)
    private static func rotl(_ value: UInt64, _ bits: UInt64) -> UInt64 {
        (value << bits) | (value >> (64 - bits))
    }
}
