// Reads the intact blocks of a frame in a damaged segment. A block needs all blocks before it for decoding,
// so the intact part is always a prefix of the frame. Spec/format/repair.md, REP-2.

import LogFormat

/// The intact prefix of a frame.
struct SalvagedFrame {
    /// The plaintext that the ranges of `lines` refer to.
    var plaintext: [UInt8]
    /// At least one line, in order of position.
    var lines: [ScannedLine]
    /// The end of the intact part: after the end mark, or at the damaged block.
    var end: Int
    /// True if the whole frame is intact.
    var isWhole: Bool
    /// True if positions are missing inside a block, which only compaction causes.
    var hasHolesInBlock: Bool
    /// True if the frame is a big commit.
    let isBig: Bool

    var positions: ClosedRange<Position> {
        lines[0].prefix.position...lines[lines.count - 1].prefix.position
    }

    /// Reads the frame at an offset; nil if not even its first line is intact.
    ///
    /// - Parameter allowsHoles: true if positions may be missing between two blocks. In a segment that was
    ///   never compacted, such a hole is a lost block, and later blocks would decode with a wrong history.
    static func read(
        _ file: any File, at offset: Int, allowsHoles: Bool
    ) throws(FileError) -> SalvagedFrame? {
        let bytes = try file.read(at: offset, count: FrameHeader.bigCommitBytes)
        guard let header = try? FrameHeader(bytes.span.bytes, at: 0) else { return nil }
        return try read(
            file, at: offset, header, sizeIsKnown: true, allowsHoles: allowsHoles)
    }

    /// Reads a frame with a damaged header, trying both kinds of frames.
    static func read(
        _ file: any File, withoutHeaderAt offset: Int, allowsHoles: Bool
    ) throws(FileError) -> SalvagedFrame? {
        for size in [nil, FormatLimit.commitPlaintextBytesMax] {
            let frame = try read(
                file, at: offset, FrameHeader(contentBytes: size), sizeIsKnown: false,
                allowsHoles: allowsHoles)
            if let frame { return frame }
        }
        return nil
    }

    private static func read(
        _ file: any File, at offset: Int, _ header: FrameHeader, sizeIsKnown: Bool,
        allowsHoles: Bool
    ) throws(FileError) -> SalvagedFrame? {
        var decompressor = BlockDecompressor()
        decompressor.begin(header)
        var frame = SalvagedFrame(
            plaintext: [], lines: [], end: offset + header.encodedBytes, isWhole: false,
            hasHolesInBlock: false, isBig: header.contentBytes != nil)
        while true {
            let word = try file.read(at: frame.end, count: FrameHeader.endMarkBytes)
            guard word.count == FrameHeader.endMarkBytes,
                let block = try? BlockHeader.read(word.span.bytes.integer(at: 0))
            else {
                let isEndMark =
                    word.count == FrameHeader.endMarkBytes && word.allSatisfy { $0 == 0 }
                frame.isWhole =
                    isEndMark
                    && (!sizeIsKnown || header.contentBytes == nil
                        || header.contentBytes == decompressor.plaintextBytes)
                if isEndMark { frame.end += FrameHeader.endMarkBytes }
                break
            }
            let bytes = try file.read(at: frame.end, count: block.blockBytes)
            guard bytes.count == block.blockBytes,
                let range = try? decompressor.append(block, at: 0, of: bytes.span.bytes)
            else { break }
            // Lines of a big commit cross block boundaries, so they are read after its last block.
            if header.contentBytes == nil,
                !frame.appendLines(in: range, of: decompressor, allowsHoles: allowsHoles)
            {
                break
            }
            frame.end += block.blockBytes
        }
        if header.contentBytes != nil {
            let plaintext = decompressor.storage[..<decompressor.plaintextBytes]
            let end = plaintext.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            if !frame.appendLines(in: 0..<end, of: decompressor, allowsHoles: allowsHoles) {
                return nil
            }
        }
        guard !frame.lines.isEmpty else { return nil }
        frame.plaintext = Array(decompressor.storage[..<decompressor.plaintextBytes])
        return frame
    }

    /// Appends the lines of a block or a big commit; returns false if they are invalid.
    private mutating func appendLines(
        in range: Range<Int>, of decompressor: BlockDecompressor, allowsHoles: Bool
    ) -> Bool {
        let next = lines.last?.prefix.position.next
        let found = try? SegmentScanner.lines(
            in: range, of: decompressor.storage.span.bytes, expecting: next ?? Position(1),
            allowsHoles: true)
        guard let found, let first = found.first?.prefix.position,
            let last = found.last?.prefix.position,
            allowsHoles || next == nil || first == next
        else { return false }
        if first.distance(to: last) != found.count - 1 { hasHolesInBlock = true }
        lines += found
        return true
    }
}
