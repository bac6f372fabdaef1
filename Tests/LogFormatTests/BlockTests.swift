// Blocks and frames: compressed bytes decode to the original, with the frame's history, in a resumed frame,
// and for incompressible bytes.

import DaybookTestKit
import LogFormat
import TestSupport
import Testing

@Suite struct BlockTests {
    /// Decodes every block after the frame header.
    private func decode(_ blocks: [UInt8], _ header: FrameHeader) throws -> [UInt8] {
        var decompressor = BlockDecompressor()
        decompressor.begin(header)
        var offset = 0
        while offset < blocks.count {
            let word: UInt32 = blocks.span.bytes.integer(at: offset)
            guard let block = try BlockHeader.read(word) else { break }
            _ = try decompressor.append(block, at: offset, of: blocks.span.bytes)
            offset += block.blockBytes
        }
        return Array(decompressor.storage[..<decompressor.plaintextBytes])
    }

    /// Text like a log's, noise, or a repetition of earlier bytes.
    private func piece(_ choices: inout Choices, after: [UInt8]) -> [UInt8] {
        let count = choices.int(in: 1...WriterSizes().blockPlaintextBytes)
        switch choices.int(in: 0...2) {
        case 0:
            let line = TestLines.line(UInt64(choices.int(in: 1...1_000)), id: 42)
            return (0..<count).map { line[$0 % line.count] }
        case 1: return choices.bytes(count: count)
        default: return after.isEmpty ? choices.bytes(count: count) : Array(after.suffix(count))
        }
    }

    @Test(.verifies("BLK-3", "BLK-4"))
    func `linked blocks decode to their plaintext, also after a frame is resumed`() throws {
        try Property.check("blocks", runs: 60) { choices in
            var compressor = BlockCompressor()
            var plain: [UInt8] = []
            var blocks: [UInt8] = []
            for _ in 0..<choices.int(in: 1...12) {
                guard plain.count < WriterSizes().framePlaintextBytes else { break }
                if choices.bool(oneIn: 3) {
                    compressor = BlockCompressor()
                    compressor.load(framePlaintext: plain.span.bytes)
                }
                let piece = piece(&choices, after: plain)
                choices.note("a block of \(piece.count) bytes after \(plain.count)")
                compressor.append(block: piece.span.bytes, to: &blocks)
                plain += piece
                try #require(compressor.plaintextBytes == plain.count)
            }
            let decoded = try decode(blocks, FrameHeader(contentBytes: nil))
            try #require(decoded == plain)
        }
    }

    @Test(.verifies("BLK-4"))
    func `a reset compressor does not refer to the frame before`() throws {
        var compressor = BlockCompressor()
        var ignored: [UInt8] = []
        let line = TestLines.line(1, id: 42)
        compressor.append(block: line.span.bytes, to: &ignored)
        compressor.reset()
        var blocks: [UInt8] = []
        compressor.append(block: line.span.bytes, to: &blocks)
        #expect(try decode(blocks, FrameHeader(contentBytes: nil)) == line)
    }

    @Test(.verifies("BLK-4"))
    func `history makes the second of two similar lines small, also in a resumed frame`() throws {
        var random = SeededRandom(seed: 1)
        let first = TestLines.line(1, id: TestLines.id(&random))
        let second = TestLines.line(2, id: TestLines.id(&random))
        var blocks: [UInt8] = []
        var compressor = BlockCompressor()
        compressor.append(block: first.span.bytes, to: &blocks)
        let alone = blocks.count
        compressor.append(block: second.span.bytes, to: &blocks)
        let linked = blocks.count - alone
        #expect(linked * 2 < alone)
        var again: [UInt8] = []
        var loaded = BlockCompressor()
        loaded.load(framePlaintext: first.span.bytes)
        loaded.append(block: second.span.bytes, to: &again)
        #expect(again.count <= linked + 4)
    }

    @Test(.verifies("BLK-2"))
    func `noise is stored with eight bytes of overhead and still serves as history`() throws {
        var choices = Choices(seed: 3)
        let noise = choices.bytes(count: 10_000)
        var blocks: [UInt8] = []
        var compressor = BlockCompressor()
        compressor.append(block: noise.span.bytes, to: &blocks)
        #expect(blocks.count == noise.count + BlockHeader.overheadBytes)
        let header = try #require(try BlockHeader.read(blocks.span.bytes.integer(at: 0)))
        #expect(header.isStored)
        compressor.append(block: noise.span.bytes, to: &blocks)
        #expect(blocks.count < noise.count + 200)
        #expect(try decode(blocks, FrameHeader(contentBytes: nil)) == noise + noise)
    }

    @Test(
        .verifies("FRM-3"),
        arguments: [1, 61_440, 61_441, 65_536, 122_880, 1_000_000, 4 * 1024 * 1024])
    func `a big commit comes back and never takes more than its bound`(count: Int) throws {
        for seed: UInt64 in [0, 5] {
            var choices = Choices(replaying: [seed])
            let plain = choices.bytes(count: count)
            var bytes: [UInt8] = []
            BigCommit.append(plain.span.bytes, to: &bytes)
            #expect(bytes.count <= BigCommit.encodedBytesMax(plaintextBytes: count))
            let header = try FrameHeader(bytes.span.bytes, at: 0)
            #expect(header.contentBytes == count)
            #expect(try decode(Array(bytes[header.encodedBytes...]), header) == plain)
        }
    }

    @Test(.verifies("BLK-2", "FRM-3")) func `a frame cannot decode to more than it declared`()
        throws
    {
        var blocks: [UInt8] = []
        var compressor = BlockCompressor()
        compressor.append(block: [UInt8](repeating: 1, count: 100).span.bytes, to: &blocks)
        #expect(throws: FormatError.self) {
            _ = try decode(blocks, FrameHeader(contentBytes: 99))
        }
    }

    /// The checksum covers the data only, as in the LZ4 frame format. A flipped "stored" bit decodes the same
    /// data to other bytes, which do not begin with a line's prefix.
    @Test(.verifies("BLK-1"))
    func `no bit of a block can change unnoticed, and nothing traps`() throws {
        var blocks: [UInt8] = []
        var compressor = BlockCompressor()
        let line = TestLines.line(1, id: 42)
        compressor.append(block: line.span.bytes, to: &blocks)
        for bit in 0..<blocks.count * 8 {
            var bad = blocks
            bad[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: FormatError.self, "bit \(bit)") {
                let word: UInt32 = bad.span.bytes.integer(at: 0)
                let header = try #require(try BlockHeader.read(word))
                guard header.blockBytes <= bad.count else {
                    throw FormatError(.truncated, "as the scanner would say")
                }
                var decompressor = BlockDecompressor()
                decompressor.begin(FrameHeader(contentBytes: nil))
                let range = try decompressor.append(header, at: 0, of: bad.span.bytes)
                _ = try LinePrefix(decompressor.storage.span.bytes.extracting(range))
            }
        }
    }

    @Test(.verifies("BLK-2", "BLK-3"))
    func `random blocks with a valid checksum never trap`() throws {
        try Property.check("hostile blocks", runs: 2_000) { choices in
            let data = choices.bytes(count: choices.int(in: 1...200))
            var bytes: [UInt8] = []
            let header = BlockHeader(dataBytes: data.count, isStored: choices.bool())
            bytes.append(littleEndian: header.word)
            bytes += data
            bytes.append(littleEndian: XXH32.hash(data.span.bytes))
            var decompressor = BlockDecompressor()
            decompressor.begin(FrameHeader(contentBytes: nil))
            if let range = try? decompressor.append(header, at: 0, of: bytes.span.bytes) {
                try #require(range.count <= FormatLimit.blockBytesMax)
            }
        }
    }
}
