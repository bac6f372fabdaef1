// Reads one frame of a damaged segment, as far as it can be read. A block needs all blocks before it,
// so what is intact is a beginning of the frame. Used by SegmentSalvage. Spec/format/repair.md, REP-2.

import LogFormat

/// The intact beginning of a frame.
struct SalvagedFrame {
    /// Plaintext that `lines` are ranges of.
    var plaintext: [UInt8]
    /// At least one line; positions rise.
    var lines: [ScannedLine]
    /// Where what is intact ends: behind the end mark, or at the block that is not right.
    var end: Int
    /// Whether the whole frame is intact.
    var isWhole: Bool
    /// Whether positions are left out inside a block, as only compaction does it.
    var hasHolesInBlock: Bool
    /// Whether the frame is a big commit.
    let isBig: Bool

    var positions: ClosedRange<Position> {
        lines[0].prefix.position...lines[lines.count - 1].prefix.position
    }

    /// Reads the frame at an offset; nil where not even its first line is intact.
    ///
    /// - Parameter allowsHoles: whether positions may be left out between two blocks. In a segment
    ///   that was never compacted such a hole is a block that was taken out, and what follows would
    ///   be decoded with a wrong history.
    static func read(
        _ file: any File, at offset: Int, allowsHoles: Bool
    ) throws(FileError) -> SalvagedFrame? {
        let bytes = try file.read(at: offset, count: FrameHeader.bigCommitBytes)
        guard let header = try? FrameHeader(bytes.span.bytes, at: 0) else { return nil }
        return try read(
            file, at: offset, header, sizeIsKnown: true, allowsHoles: allowsHoles)
    }

    /// Reads the frame at an offset whose header is damaged: as one of either kind.
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
            // The lines of a big commit run over the ends of its blocks: they are read at the end.
            if header.contentBytes == nil,
                !frame.add(linesIn: range, of: decompressor, allowsHoles: allowsHoles)
            {
                break
            }
            frame.end += block.blockBytes
        }
        if header.contentBytes != nil {
            let plaintext = decompressor.storage[..<decompressor.plaintextBytes]
            let end = plaintext.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            if !frame.add(linesIn: 0..<end, of: decompressor, allowsHoles: allowsHoles) {
                return nil
            }
        }
        guard !frame.lines.isEmpty else { return nil }
        frame.plaintext = Array(decompressor.storage[..<decompressor.plaintextBytes])
        return frame
    }

    /// Takes in the lines of a block, or of a big commit; false where they are not right.
    private mutating func add(
        linesIn range: Range<Int>, of decompressor: BlockDecompressor, allowsHoles: Bool
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
