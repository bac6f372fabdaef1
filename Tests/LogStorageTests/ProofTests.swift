// Torn or damaged: the proofs by later blocks, and lookups after sealing.

import DaybookTestKit
import LogFormat
import LogStorage
import TestSupport
import Testing

@Suite struct ProofTests {
    private static let segment = TestLog.path + "/00000000000000000001.lz4"

    /// A log of single commits whose writer was killed.
    private func killedLog(_ count: UInt64) throws -> InMemoryFileSystem {
        let files = InMemoryFileSystem()
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        for position in 1...count { try log.append(TestLog.line(position) + [0x0A]) }
        return files.snapshot()
    }

    private func expectCorrupt(_ files: InMemoryFileSystem) {
        let before = files.image
        #expect {
            _ = try Log(at: TestLog.path, environment: TestLog.environment(files))
        } throws: {
            ($0 as? LogError)?.code == .corrupt
        }
        #expect(files.image[Self.segment] == before[Self.segment])
    }

    @Test(.verifies("REC-3"))
    func `a block that was zeroed into an end mark is damage, not a torn tail`() throws {
        let files = try killedLog(40)
        var bytes = try #require(files[Self.segment])
        // The second block of the first frame.
        let size: UInt32 = bytes.span.bytes.integer(at: 519)
        let second = 519 + Int(size & 0x7FFF_FFFF) + 8
        for index in second..<second + 4 { bytes[index] = 0 }
        files[Self.segment] = bytes
        expectCorrupt(files)
    }

    @Test(.verifies("REC-3"))
    func `a zeroed sector with a frame's header is damage, not a torn tail`() throws {
        let files = try killedLog(40)
        var bytes = try #require(files[Self.segment])
        for index in 512..<1_024 { bytes[index] = 0 }
        files[Self.segment] = bytes
        expectCorrupt(files)
    }

    @Test func `a line appended to a frame after it was read is found once the segment is sealed`()
        throws
    {
        let files = InMemoryFileSystem()
        let log = try Log(at: TestLog.path, environment: TestLog.environment(files))
        try log.append(TestLog.line(1) + [0x0A])
        #expect(try log.line(id: TestLog.id(1))?.position == Position(1))
        try log.append(TestLog.line(2) + [0x0A])
        try log.roll()
        #expect(try log.line(id: TestLog.id(2))?.position == Position(2))
        #expect(try log.line(at: Position(2)) == TestLog.line(2))
        try log.close()
    }

    @Test func `the length of a block follows from its tokens`() throws {
        try Property.check("token walk", runs: 100) { choices in
            var compressor = BlockCompressor()
            compressor.reset()
            for _ in 0..<choices.int(in: 1...3) {
                let count = choices.int(in: 1...60_000)
                let bytes =
                    choices.bool()
                    ? choices.bytes(count: count) : [UInt8](repeating: 7, count: count)
                var block: [UInt8] = []
                compressor.append(block: bytes.span.bytes, to: &block)
                let word: UInt32 = block.span.bytes.integer(at: 0)
                guard word & 0x8000_0000 == 0 else { continue }
                let data = block.span.bytes.extracting(4..<block.count - 4)
                try #require(BlockDecompressor.plaintextBytes(ofCompressed: data) == count)
            }
        }
    }
}
