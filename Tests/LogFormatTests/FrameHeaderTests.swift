// The bytes of a frame header, as the LZ4 frame format fixes them.

import LogFormat
import TestSupport
import Testing

@Suite struct FrameHeaderTests {
    private func bytes(_ contentBytes: Int?) -> [UInt8] {
        var bytes: [UInt8] = []
        FrameHeader(contentBytes: contentBytes).append(to: &bytes)
        return bytes
    }

    @Test(.verifies("FRM-1")) func `a running frame begins with these seven bytes`() {
        // Magic; version 01, linked, block checksums; 64 KiB; second byte of XXH32 of the two.
        #expect(bytes(nil) == [0x04, 0x22, 0x4D, 0x18, 0x50, 0x40, 0xC0])
    }

    @Test(.verifies("FRM-1", "FRM-3")) func `a big commit declares its size in fifteen bytes`() {
        #expect(
            bytes(0x012345) == [
                0x04, 0x22, 0x4D, 0x18, 0x58, 0x40, 0x45, 0x23, 0x01, 0, 0, 0, 0, 0, 0x15,
            ])
    }

    @Test(
        .verifies("FRM-1"),
        arguments: [nil, 1, 61_441, FormatLimit.commitPlaintextBytesMax] as [Int?])
    func `a header round-trips, and every flipped bit is refused`(contentBytes: Int?) throws {
        let good = bytes(contentBytes)
        #expect(try FrameHeader(good.span.bytes, at: 0).contentBytes == contentBytes)
        for bit in 0..<good.count * 8 {
            var bad = good + [UInt8](repeating: 0, count: 16)
            bad[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: FormatError.self, "bit \(bit)") {
                try FrameHeader(bad.span.bytes, at: 0)
            }
        }
        for count in 0..<good.count {
            let error = #expect(throws: FormatError.self) {
                try FrameHeader(Array(good[..<count]).span.bytes, at: 0)
            }
            #expect(error?.code == .truncated)
        }
    }

    @Test(.verifies("FRM-3")) func `a content size of zero or above the largest commit is refused`()
    {
        for size in [0, FormatLimit.commitPlaintextBytesMax + 1, Int.max] {
            #expect(throws: FormatError.self) {
                try FrameHeader(bytes(size).span.bytes, at: 0)
            }
        }
    }

    @Test(.verifies("BLK-1")) func `block headers hold sizes from one to a full block`() throws {
        #expect(try BlockHeader.read(0) == nil)
        for size in [1, 2, 65_536] {
            for isStored in [false, true] {
                let header = BlockHeader(dataBytes: size, isStored: isStored)
                #expect(try BlockHeader.read(header.word) == header)
            }
        }
        #expect(throws: FormatError.self) { try BlockHeader.read(65_537) }
        #expect(throws: FormatError.self) { try BlockHeader.read(0x8000_0000) }
    }
}
