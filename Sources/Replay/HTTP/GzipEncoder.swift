// Compresses the bodies of requests to an app's own API. In Swift: no library for it is among those that an app links on
// all systems (Spec/decisions/0072-bulk-and-gzip.md). RFC 1951 and RFC 1952.

/// An encoder of gzip: one block of fixed Huffman codes, with matches in a window of 32 KiB.
///
/// The same bytes give the same result, in every release: a retry of a request sends the bytes of its first attempt.
struct GzipEncoder {
    /// Compresses bytes. O(bytes).
    static func compress(_ bytes: [UInt8]) -> [UInt8] {
        var encoder = GzipEncoder()
        encoder.encode(bytes)
        // Compression method 8, no flags, no time, no level, an unknown system.
        var result: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
        result += encoder.output
        for word in [checksum(of: bytes), UInt32(truncatingIfNeeded: bytes.count)] {
            for shift in stride(from: 0, to: 32, by: 8) {
                result.append(UInt8(truncatingIfNeeded: word >> UInt32(shift)))
            }
        }
        return result
    }

    private static let windowBytes = 32_768
    private static let matchMax = 258
    private static let matchMin = 3
    private static let hashBits: UInt32 = 15

    private var output: [UInt8] = []
    /// Bits that fill no byte yet, the first one lowest.
    private var bits: UInt32 = 0
    private var bitCount: UInt32 = 0

    private mutating func encode(_ bytes: [UInt8]) {
        // The last block, with fixed codes.
        append(0b011, 3)
        /// The last position of each hash of three bytes; -1 for none.
        var positions = [Int](repeating: -1, count: 1 << Int(Self.hashBits))
        var next = 0
        while next < bytes.count {
            guard next + Self.matchMin <= bytes.count else {
                appendSymbol(Int(bytes[next]))
                next += 1
                continue
            }
            let slot = Self.hash(bytes, next)
            let candidate = positions[slot]
            positions[slot] = next
            let length = Self.matchLength(bytes, candidate, next)
            guard length >= Self.matchMin else {
                appendSymbol(Int(bytes[next]))
                next += 1
                continue
            }
            appendMatch(length: length, distance: next - candidate)
            for position in next + 1..<next + length where position + Self.matchMin <= bytes.count {
                positions[Self.hash(bytes, position)] = position
            }
            next += length
        }
        appendSymbol(256)
        if bitCount > 0 { output.append(UInt8(truncatingIfNeeded: bits)) }
    }

    private static func hash(_ bytes: [UInt8], _ index: Int) -> Int {
        let word =
            UInt32(bytes[index]) | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2]) << 16
        return Int((word &* 0x9E37_79B1) >> (32 - hashBits))
    }

    private static func matchLength(_ bytes: [UInt8], _ earlier: Int, _ index: Int) -> Int {
        guard earlier >= 0, index - earlier <= windowBytes else { return 0 }
        let longest = min(matchMax, bytes.count - index)
        var length = 0
        while length < longest, bytes[earlier + length] == bytes[index + length] { length += 1 }
        return length
    }

    // MARK: Codes

    /// Appends a literal, the end of the block (256) or the symbol of a length.
    private mutating func appendSymbol(_ symbol: Int) {
        switch symbol {
        case ..<144: appendCode(UInt32(0x30 + symbol), 8)
        case ..<256: appendCode(UInt32(0x190 + symbol - 144), 9)
        case ..<280: appendCode(UInt32(symbol - 256), 7)
        default: appendCode(UInt32(0xC0 + symbol - 280), 8)
        }
    }

    private mutating func appendMatch(length: Int, distance: Int) {
        if length == Self.matchMax {
            appendSymbol(285)
        } else {
            // Four symbols for each number of extra bits, eight for none.
            let value = UInt32(length - Self.matchMin)
            let extra = value < 8 ? 0 : 29 - UInt32(value.leadingZeroBitCount)
            appendSymbol(257 + Int(4 * extra + value >> extra))
            append(value & (1 << extra - 1), extra)
        }
        // Two codes for each number of extra bits, four for none.
        let value = UInt32(distance - 1)
        let extra = value < 4 ? 0 : 30 - UInt32(value.leadingZeroBitCount)
        appendCode(2 * extra + value >> extra, 5)
        append(value & (1 << extra - 1), extra)
    }

    /// Appends a Huffman code, whose highest bit comes first.
    private mutating func appendCode(_ code: UInt32, _ count: UInt32) {
        var (code, reversed) = (code, UInt32(0))
        for _ in 0..<count {
            reversed = reversed << 1 | code & 1
            code >>= 1
        }
        append(reversed, count)
    }

    /// Appends at most 13 bits, the lowest first.
    private mutating func append(_ value: UInt32, _ count: UInt32) {
        bits |= value << bitCount
        bitCount += count
        while bitCount >= 8 {
            output.append(UInt8(truncatingIfNeeded: bits))
            bits >>= 8
            bitCount -= 8
        }
    }

    // MARK: Checksum

    private static let checksums: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in
            value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1
        }
    }

    /// CRC-32 of the bytes.
    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { $0 >> 8 ^ checksums[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
    }
}
