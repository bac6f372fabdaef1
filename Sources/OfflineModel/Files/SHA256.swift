// SHA-256 as of FIPS 180-4: what names a file by its content. Written here so that an app links no
// library for cryptography; nothing secret depends on it. Spec/decisions/0032.

import LogFormat

/// SHA-256, fed piece by piece. O(bytes); 104 bytes of state.
struct SHA256 {
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4,
        0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe,
        0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f,
        0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da, 0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7,
        0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc,
        0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
        0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070, 0x19a4_c116,
        0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7,
        0xc671_78f2,
    ]

    private var state: [8 of UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab,
        0x5be0_cd19,
    ]
    private var rest: [UInt8] = []
    private var byteCount: UInt64 = 0

    /// Begins with no bytes.
    init() {}

    /// The hash of all bytes.
    static func hash(_ bytes: RawSpan) -> FileID {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finished()
    }

    /// Takes in more bytes.
    mutating func update(_ bytes: RawSpan) {
        byteCount += UInt64(bytes.byteCount)
        var offset = 0
        if !rest.isEmpty {
            offset = min(64 - rest.count, bytes.byteCount)
            rest += bytes.extracting(0..<offset).array
            guard rest.count == 64 else { return }
            let full = rest
            rest = []
            Self.block(full.span.bytes, 0, &state)
        }
        while offset + 64 <= bytes.byteCount {
            Self.block(bytes, offset, &state)
            offset += 64
        }
        rest += bytes.extracting(offset..<bytes.byteCount).array
    }

    /// The hash of what was taken in.
    func finished() -> FileID {
        var copy = self
        let zeros = (119 - rest.count % 64) % 64
        var padding: [UInt8] = [0x80] + [UInt8](repeating: 0, count: zeros)
        for shift in stride(from: 56, through: 0, by: -8) {
            padding.append(UInt8(truncatingIfNeeded: (byteCount * 8) >> UInt64(shift)))
        }
        copy.update(padding.span.bytes)
        let words = (0..<8).map { UInt128(copy.state[$0]) }
        return FileID(
            high: words[..<4].reduce(0) { $0 << 32 | $1 },
            low: words[4...].reduce(0) { $0 << 32 | $1 })
    }

    private static func block(_ bytes: RawSpan, _ offset: Int, _ state: inout [8 of UInt32]) {
        var words: [64 of UInt32] = [64 of UInt32](repeating: 0)
        for index in 0..<16 {
            let word: UInt32 = bytes.integer(at: offset + 4 * index)
            words[index] = word.byteSwapped
        }
        for index in 16..<64 {
            let (a, b) = (words[index - 15], words[index - 2])
            let first = turn(a, 7) ^ turn(a, 18) ^ (a >> 3)
            let second = turn(b, 17) ^ turn(b, 19) ^ (b >> 10)
            words[index] = words[index - 16] &+ first &+ words[index - 7] &+ second
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        constants.withUnsafeBufferPointer { constants in
            for index in 0..<64 {
                let first =
                    h &+ (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25))
                    &+ ((e & f) ^ (~e & g)) &+ constants[index] &+ words[index]
                let second =
                    (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22))
                    &+ ((a & b) ^ (a & c) ^ (b & c))
                (h, g, f, e) = (g, f, e, d &+ first)
                (d, c, b, a) = (c, b, a, first &+ second)
            }
        }
        for (index, value) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= value }
    }

    @inline(__always)
    private static func turn(_ value: UInt32, _ bits: UInt32) -> UInt32 {
        (value >> bits) | (value << (32 - bits))
    }
}
