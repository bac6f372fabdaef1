// LZ4 blocks through the codec in Swift, held against liblz4 in both directions where the package is built
// with it. Spec/format/block-and-frame.md, BLK-3.

import LogFormat

/// Bit 0 of the mode: the input is a compressed block, and a third of the history before it is in the other
/// bits. Otherwise it is the plaintext of a frame: bits 1 to 3 are its blocks less one, bit 4 makes each
/// block by an encoder that goes on with the frame.
struct BlockCheck {
    let mode: UInt8

    /// The most bytes that a block of an input may give here.
    private static let room = 1 << 12
    private static let untouched: UInt8 = 0xA5

    func check(_ input: [UInt8]) throws {
        if mode & 1 != 0 { try decode(input) } else { try compress(input) }
    }

    // MARK: Decoding

    private func decode(_ block: [UInt8]) throws {
        let history = (0..<Int(mode >> 1) * 3).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let (count, plaintext) = decoded(block, after: history) {
            LZ4Block.decode($0, into: $1, at: $2, room: $3)
        }
        try expect(count.map { $0 <= Self.room } ?? true, "a block gives more than its room")
        try expect(plaintext.starts(with: history), "the plaintext before a block was changed")
        try expect(
            plaintext.suffix(16).allSatisfy { $0 == Self.untouched },
            "bytes after the room were changed")
        #if LIBLZ4
            let (other, expected) = decoded(block, after: history) {
                LibLZ4Block.decode($0, into: $1, at: $2, room: $3)
            }
            // liblz4 refuses more endings than the format does, and takes an offset of 0.
            guard let count, let other else { return }
            try expect(count == other, "the codecs give \(count) and \(other) bytes")
            let end = history.count + count
            try expect(plaintext[..<end] == expected[..<end], "the codecs give different bytes")
        #endif
    }

    private typealias Decoder = (
        UnsafeRawBufferPointer, UnsafeMutableRawBufferPointer, Int, Int
    ) -> Int?

    /// What a block gives, and the memory that it was decoded into.
    private func decoded(
        _ block: [UInt8], after history: [UInt8], by decode: Decoder
    ) -> (count: Int?, memory: [UInt8]) {
        let tail = [UInt8](repeating: Self.untouched, count: Self.room + 16)
        var memory = history + tail
        let count = block.withUnsafeBytes { source in
            memory.withUnsafeMutableBytes { decode(source, $0, history.count, Self.room) }
        }
        return (count, memory)
    }

    // MARK: Compressing

    private func compress(_ plaintext: [UInt8]) throws {
        guard !plaintext.isEmpty else { return }
        let size = plaintext.count / (Int(mode >> 1) % 8 + 1) + 1
        let ends = Array(stride(from: size, to: plaintext.count, by: size)) + [plaintext.count]
        var encoder = LZ4Encoder()
        let blocks = blocks(plaintext, ends) { plaintext, start, output in
            if mode & 16 != 0 {
                encoder.load(UnsafeRawBufferPointer(rebasing: plaintext[..<start]))
            }
            return encoder.compress(plaintext, from: start, into: output)
        }
        let read = try plain(blocks, ends) { LZ4Block.decode($0, into: $1, at: $2, room: $3) }
        try expect(read == plaintext, "what was compressed does not come back")
        #if LIBLZ4
            let theirs = try plain(blocks, ends) {
                LibLZ4Block.decode($0, into: $1, at: $2, room: $3)
            }
            try expect(theirs == plaintext, "liblz4 reads other bytes")
            var other = LibLZ4Encoder()
            let otherBlocks = self.blocks(plaintext, ends) {
                other.compress($0, from: $1, into: $2)
            }
            let back = try plain(otherBlocks, ends) {
                LZ4Block.decode($0, into: $1, at: $2, room: $3)
            }
            try expect(back == plaintext, "what liblz4 compressed does not come back")
        #endif
    }

    /// The blocks of a frame, one up to each of `ends`. The plaintext stays in one place, since liblz4
    /// finds history by its address.
    private func blocks(
        _ plaintext: [UInt8], _ ends: [Int],
        by encode: (UnsafeRawBufferPointer, Int, UnsafeMutableRawBufferPointer) -> Int
    ) -> [[UInt8]] {
        plaintext.withUnsafeBytes { all in
            zip([0] + ends, ends).map { start, end in
                var output = [UInt8](repeating: 0, count: LZ4Encoder.bound(end - start))
                let count = output.withUnsafeMutableBytes {
                    encode(UnsafeRawBufferPointer(rebasing: all[..<end]), start, $0)
                }
                return Array(output[..<count])
            }
        }
    }

    /// The plaintext of blocks that end at these positions.
    private func plain(_ blocks: [[UInt8]], _ ends: [Int], by decode: Decoder) throws -> [UInt8] {
        var (plaintext, start) = ([UInt8](repeating: 0, count: ends.last ?? 0), 0)
        for (block, end) in zip(blocks, ends) {
            let count = block.withUnsafeBytes { source in
                plaintext.withUnsafeMutableBytes { decode(source, $0, start, end - start) }
            }
            try expect(
                count == end - start, "a block gives \(count ?? -1) bytes instead of \(end - start)"
            )
            start = end
        }
        return plaintext
    }
}
