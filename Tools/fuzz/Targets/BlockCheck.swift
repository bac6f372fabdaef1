// LZ4 blocks through the codec in Swift, compared with liblz4 in both directions if the package is built
// with it. Spec/format/block-and-frame.md, BLK-3.

import LogFormat

/// With bit 0 of the mode the input is a compressed block; the other bits are a third of the length of
/// the history before it. Otherwise it is the plaintext of a frame: bits 1 to 3 are the number of its
/// blocks less one; with bit 4 the encoder loads the history before each block, as when it continues a
/// frame.
struct BlockCheck {
    let mode: UInt8

    /// The most bytes that a block may decode to.
    private static let capacity = 1 << 12
    private static let fillByte: UInt8 = 0xA5

    func check(_ input: [UInt8]) throws {
        if mode & 1 != 0 { try decode(input) } else { try compress(input) }
    }

    // MARK: Decoding

    private func decode(_ block: [UInt8]) throws {
        let history = (0..<Int(mode >> 1) * 3).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let (count, plaintext) = decoded(block, after: history) {
            LZ4Block.decode($0, into: $1, at: $2, capacity: $3)
        }
        try expect(
            count.map { $0 <= Self.capacity } ?? true, "a block decodes to more than the capacity")
        try expect(plaintext.starts(with: history), "the plaintext before a block was changed")
        try expect(
            plaintext.suffix(16).allSatisfy { $0 == Self.fillByte },
            "bytes after the capacity were changed")
        #if LIBLZ4
            let (other, expected) = decoded(block, after: history) {
                LibLZ4Block.decode($0, into: $1, at: $2, capacity: $3)
            }
            // liblz4 refuses more endings than the format does, and accepts an offset of 0.
            guard let count, let other else { return }
            try expect(count == other, "the codecs decode to \(count) and \(other) bytes")
            let end = history.count + count
            try expect(
                plaintext[..<end] == expected[..<end], "the codecs decode to different bytes")
        #endif
    }

    private typealias Decoder = (
        UnsafeRawBufferPointer, UnsafeMutableRawBufferPointer, Int, Int
    ) -> Int?

    /// Decodes a block after its history; returns the count and the memory.
    private func decoded(
        _ block: [UInt8], after history: [UInt8], by decode: Decoder
    ) -> (count: Int?, memory: [UInt8]) {
        let tail = [UInt8](repeating: Self.fillByte, count: Self.capacity + 16)
        var memory = history + tail
        let count = block.withUnsafeBytes { source in
            memory.withUnsafeMutableBytes { decode(source, $0, history.count, Self.capacity) }
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
        let read = try plain(blocks, ends) { LZ4Block.decode($0, into: $1, at: $2, capacity: $3) }
        try expect(read == plaintext, "a round trip changes the plaintext")
        #if LIBLZ4
            let theirs = try plain(blocks, ends) {
                LibLZ4Block.decode($0, into: $1, at: $2, capacity: $3)
            }
            try expect(theirs == plaintext, "liblz4 reads other bytes")
            var other = LibLZ4Encoder()
            let otherBlocks = self.blocks(plaintext, ends) {
                other.compress($0, from: $1, into: $2)
            }
            let back = try plain(otherBlocks, ends) {
                LZ4Block.decode($0, into: $1, at: $2, capacity: $3)
            }
            try expect(back == plaintext, "the codec decodes liblz4's blocks differently")
        #endif
    }

    /// Compresses the blocks of a frame, one up to each of `ends`. The plaintext must not move in memory,
    /// since liblz4 finds history by its address.
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

    /// Decodes blocks that end at these offsets of the plaintext.
    private func plain(_ blocks: [[UInt8]], _ ends: [Int], by decode: Decoder) throws -> [UInt8] {
        var (plaintext, start) = ([UInt8](repeating: 0, count: ends.last ?? 0), 0)
        for (block, end) in zip(blocks, ends) {
            let count = block.withUnsafeBytes { source in
                plaintext.withUnsafeMutableBytes { decode(source, $0, start, end - start) }
            }
            try expect(
                count == end - start,
                "a block decodes to \(count ?? -1) bytes instead of \(end - start)"
            )
            start = end
        }
        return plaintext
    }
}
