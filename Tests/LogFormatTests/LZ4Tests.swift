// The block codec in Swift: its blocks follow the rules of the format, and it and liblz4 read each other's
// blocks.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite struct LZ4Tests {
    private typealias Encode = (UnsafeRawBufferPointer, Int, UnsafeMutableRawBufferPointer) -> Int
    private typealias Decode =
        @Sendable (
            UnsafeRawBufferPointer, UnsafeMutableRawBufferPointer, Int, Int
        ) -> Int?

    private static let decoders: [Decode] = {
        var all: [Decode] = [{ LZ4Block.decode($0, into: $1, at: $2, capacity: $3) }]
        #if LIBLZ4
            all.append { LibLZ4Block.decode($0, into: $1, at: $2, capacity: $3) }
        #endif
        return all
    }()

    /// Compresses the plaintext of a frame, one block up to each of `ends`.
    private static func compress(
        _ plaintext: [UInt8], _ ends: [Int], by encode: Encode
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

    private static func decompress(
        _ blocks: [[UInt8]], count: Int, by decode: Decode
    ) throws -> [UInt8] {
        var (plaintext, start) = ([UInt8](repeating: 0, count: count), 0)
        for block in blocks {
            let made = block.withUnsafeBytes { source in
                plaintext.withUnsafeMutableBytes { decode(source, $0, start, count - start) }
            }
            start += try #require(made)
        }
        try #require(start == count)
        return plaintext
    }

    /// Text like a log's, noise, runs of one byte, and repetitions near and far.
    private static func plaintext(_ choices: inout Choices) -> (bytes: [UInt8], ends: [Int]) {
        var (bytes, ends): ([UInt8], [Int]) = ([], [])
        for _ in 0..<choices.int(in: 1...8) {
            let count = choices.int(in: 1...(choices.bool(oneIn: 4) ? 65_536 : 700))
            switch choices.int(in: 0...3) {
            case 0:
                let line = TestLines.line(UInt64(choices.int(in: 1...1_000)), id: 42)
                bytes += (0..<count).map { line[$0 % line.count] }
            case 1: bytes += choices.bytes(count: count)
            case 2: bytes += [UInt8](repeating: UInt8(choices.int(in: 0...255)), count: count)
            default:
                let from = choices.int(in: 0...bytes.count)
                bytes += bytes[from...].prefix(count) + [UInt8(choices.int(in: 0...255))]
            }
            ends.append(bytes.count)
        }
        return (bytes, ends)
    }

    @Test(.verifies("BLK-3", "BLK-4"))
    func `every decoder reads the blocks of every encoder`() throws {
        try Property.check("codecs agree", runs: 100) { choices in
            let (bytes, ends) = Self.plaintext(&choices)
            choices.note("blocks up to \(ends)")
            var encoder = LZ4Encoder()
            var encoded = [
                Self.compress(bytes, ends) { encoder.compress($0, from: $1, into: $2) }
            ]
            #if LIBLZ4
                var other = LibLZ4Encoder()
                encoded.append(
                    Self.compress(bytes, ends) { other.compress($0, from: $1, into: $2) })
            #endif
            for blocks in encoded {
                for decode in Self.decoders {
                    let plain = try Self.decompress(blocks, count: bytes.count, by: decode)
                    try #require(plain == bytes)
                }
            }
        }
    }

    @Test(.verifies("BLK-4"))
    func `an encoder resumes a frame that another began`() throws {
        try Property.check("a loaded frame", runs: 40) { choices in
            let (bytes, ends) = Self.plaintext(&choices)
            let blocks = Self.compress(bytes, ends) { plaintext, start, output in
                var encoder = LZ4Encoder()
                encoder.load(UnsafeRawBufferPointer(rebasing: plaintext[..<start]))
                return encoder.compress(plaintext, from: start, into: output)
            }
            for decode in Self.decoders {
                let plain = try Self.decompress(blocks, count: bytes.count, by: decode)
                try #require(plain == bytes)
            }
        }
    }

    @Test(.verifies("BLK-3"))
    func `a block ends as the format demands`() throws {
        try Property.check("ends of blocks", runs: 60) { choices in
            let (bytes, ends) = Self.plaintext(&choices)
            var encoder = LZ4Encoder()
            let blocks = Self.compress(bytes, ends) { encoder.compress($0, from: $1, into: $2) }
            for (block, (start, end)) in zip(blocks, zip([0] + ends, ends)) {
                let sequences = Self.sequences(of: block)
                let last = try #require(sequences.last)
                try #require(last.matched == 0)
                var position = start
                for sequence in sequences.dropLast() {
                    position += sequence.literals
                    try #require(position <= end - 12, "a match begins at \(position) of \(end)")
                    try #require(1...min(position, 65_535) ~= sequence.offset)
                    position += sequence.matched
                }
                try #require(sequences.count == 1 || last.literals >= 5)
                try #require(position + last.literals == end)
            }
        }
    }

    /// The sequences of an intact block: the literals, the offset of the match, and its length.
    private static func sequences(
        of block: [UInt8]
    ) -> [(literals: Int, offset: Int, matched: Int)] {
        var (read, all): (Int, [(Int, Int, Int)]) = (0, [])
        func length(_ nibble: Int) -> Int {
            var length = nibble
            while nibble == 15 {
                length += Int(block[read])
                read += 1
                if block[read - 1] < 255 { break }
            }
            return length
        }
        while read < block.count {
            let token = Int(block[read])
            read += 1
            let literals = length(token >> 4)
            read += literals
            guard read < block.count else { return all + [(literals, 0, 0)] }
            let offset = Int(block[read]) | Int(block[read + 1]) << 8
            read += 2
            all.append((literals, offset, length(token & 15) + 4))
        }
        return all
    }

    @Test(
        .verifies("BLK-3"),
        arguments: [
            ("empty", [UInt8]()),
            ("a literal is missing", [0x20, 0x61]),
            ("ends inside a length", [0xF0, 0xFF]),
            ("ends inside an offset", [0x10, 0x61, 0x01]),
            ("ends after a match", [0x10, 0x61, 0x01, 0x00]),
            ("an offset of 0", [0x10, 0x61, 0x00, 0x00, 0x50, 0x61, 0x61, 0x61, 0x61, 0x61]),
            (
                "an offset before the frame",
                [0x10, 0x61, 0x02, 0x00, 0x50, 0x61, 0x61, 0x61, 0x61, 0x61]
            ),
            (
                "more than the capacity",
                [0x1F, 0x61, 0x01, 0x00, 0x60, 0x50, 0x61, 0x61, 0x61, 0x61, 0x61]
            ),
        ])
    func `a malformed block is refused`(what: String, block: [UInt8]) {
        for decode in Self.decoders {
            var target = [UInt8](repeating: 0, count: 100)
            let count = block.withUnsafeBytes { source in
                target.withUnsafeMutableBytes { decode(source, $0, 0, 100) }
            }
            #expect(count == nil)
        }
    }

    @Test(.verifies("BLK-3"))
    func `an offset of 0 after other matches is refused, and zero bytes as such are not`() {
        let zeros: [UInt8] = [0x13, 0x00, 0x01, 0x00, 0x50, 0x61, 0x61, 0x61, 0x61, 0x61]
        let later: [UInt8] =
            [0x13, 0x61, 0x01, 0x00, 0x13, 0x62, 0x00, 0x00] + [0x50, 0x61, 0x61, 0x61, 0x61, 0x61]
        for decode in Self.decoders {
            var target = [UInt8](repeating: 7, count: 100)
            let counts = [zeros, later].map { block in
                block.withUnsafeBytes { source in
                    target.withUnsafeMutableBytes { decode(source, $0, 0, 100) }
                }
            }
            #expect(counts == [13, nil])
        }
    }
}
