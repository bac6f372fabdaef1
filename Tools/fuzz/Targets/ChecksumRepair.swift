// Recomputes checksums, so that the fuzzer reaches the code after their verification. Only some modes of
// a target do so, so that wrong checksums are tried as well. Spec/testing/fuzzing.md.

import LogFormat

/// Recomputes the checksums and lengths of changed bytes.
enum ChecksumRepair {
    /// Repairs a segment: its header, then its frames from byte 512 on.
    static func repairSegment(_ bytes: inout [UInt8]) {
        guard bytes.count >= SegmentHeader.encodedBytes else { return }
        set(hash(bytes, 0..<508), at: 508, of: &bytes)
        repairFrames(&bytes, from: SegmentHeader.encodedBytes)
    }

    /// Repairs consecutive LZ4 frames and skippable frames from an offset on.
    static func repairFrames(_ bytes: inout [UInt8], from start: Int) {
        var offset = start
        while offset + 8 <= bytes.count {
            let magic: UInt32 = bytes.span.bytes.integer(at: offset)
            if magic == FrameHeader.magic {
                guard let end = repairFrame(&bytes, at: offset) else { return }
                offset = end
                continue
            }
            guard let frame = SkippableFrame.read(bytes.span.bytes, at: offset) else { return }
            let end = offset + SkippableFrame.prefixBytes + frame.contentBytes
            guard end <= bytes.count else { return }
            switch frame.kind {
            case .cleanShutdownMarker where frame.contentBytes == 12:
                set(hash(bytes, offset..<end - 4), at: end - 4, of: &bytes)
            case .footer where frame.contentBytes >= 96:
                set(digest(bytes, 0..<offset), at: end - 16, of: &bytes)
                set(UInt32(end - offset), at: end - 8, of: &bytes)
                set(hash(bytes, offset..<end - 4), at: end - 4, of: &bytes)
            case .removedIDs where frame.contentBytes >= 24:
                set(digest(bytes, offset..<end - 8), at: end - 8, of: &bytes)
            default: break
            }
            offset = end
        }
    }

    /// Repairs the checksums of a frame's header and blocks.
    ///
    /// - Returns: the end of the frame; nil if it is incomplete.
    private static func repairFrame(_ bytes: inout [UInt8], at start: Int) -> Int? {
        let isBig = bytes[start + 4] & 0b1000 != 0
        let length = isBig ? FrameHeader.bigCommitBytes : FrameHeader.runningBytes
        guard start + length <= bytes.count else { return nil }
        let check = hash(bytes, start + 4..<start + length - 1) >> 8
        bytes[start + length - 1] = UInt8(truncatingIfNeeded: check)
        var offset = start + length
        while offset + 4 <= bytes.count {
            let word: UInt32 = bytes.span.bytes.integer(at: offset)
            if word == 0 { return offset + 4 }
            let end = offset + 4 + Int(word & 0x7FFF_FFFF)
            guard end + 4 <= bytes.count else { return nil }
            set(hash(bytes, offset + 4..<end), at: end, of: &bytes)
            offset = end + 4
        }
        return nil
    }

    static func hash(_ bytes: [UInt8], _ range: Range<Int>) -> UInt32 {
        XXH32.hash(bytes.span.bytes.extracting(range))
    }

    static func digest(_ bytes: [UInt8], _ range: Range<Int>) -> UInt64 {
        var digest = XXH64()
        digest.update(bytes.span.bytes.extracting(range))
        return digest.value()
    }

    static func set<T: FixedWidthInteger>(_ value: T, at offset: Int, of bytes: inout [UInt8]) {
        var encoded: [UInt8] = []
        encoded.append(littleEndian: value)
        bytes.replaceSubrange(offset..<offset + encoded.count, with: encoded)
    }
}
