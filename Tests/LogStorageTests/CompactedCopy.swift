// A sealed segment with lines taken out, put in the place of the old one as compaction does it.

import DaybookTestKit
import LogFormat
import LogStorage

/// Rewrites sealed segments.
enum CompactedCopy {
    /// Replaces a sealed segment by one that holds only some of its lines.
    ///
    /// - Returns: the positions of the lines that went.
    static func replace(
        _ name: String, in files: InMemoryFileSystem, keeping: (Position) -> Bool
    ) throws -> [Position] {
        let path = TestLog.path + "/" + name
        let old = try SealedSegment(name, in: TestLog.path, files)
        var kept: [(prefix: LinePrefix, line: [UInt8])] = []
        var gone: [Position] = []
        var scanner = SegmentScanner(
            old.file, expecting: old.header.base, allowsHoles: old.footer.isCompacted)
        while case .commit(let commit) = try scanner.next() {
            for line in commit.lines {
                if keeping(line.prefix.position) {
                    kept.append((line.prefix, Array(scanner.plaintext[line.range])))
                } else {
                    gone.append(line.prefix.position)
                }
            }
        }
        files["/log/compaction.new"] = bytes(of: kept, old)
        try files.rename("/log/compaction.new", to: path)
        return gone
    }

    /// A frame for every few lines, so that offsets are others than before.
    private static func bytes(
        of kept: [(prefix: LinePrefix, line: [UInt8])], _ old: SealedSegment
    ) -> [UInt8] {
        var bytes = old.header.encoded()
        var contents = SegmentContents(base: old.header.base)
        var frames: [FrameEntry] = []
        for start in stride(from: 0, to: kept.count, by: 3) {
            let lines = kept[start..<min(start + 3, kept.count)]
            frames.append(FrameEntry(offset: bytes.count, first: lines[start].prefix.position))
            contents.begin(frameAt: bytes.count)
            for (prefix, line) in lines { contents.add(prefix, line: line.span.bytes) }
            let plaintext: [UInt8] = lines.flatMap { $0.line + [0x0A] }
            if plaintext.count > FormatLimit.blockPlaintextBytesMax {
                BigCommit.append(plaintext.span.bytes, to: &bytes)
            } else {
                FrameHeader(contentBytes: nil).append(to: &bytes)
                var compressor = BlockCompressor()
                compressor.append(block: plaintext.span.bytes, to: &bytes)
            }
            bytes.append(littleEndian: UInt32(0))
        }
        var digest = XXH64()
        digest.update(bytes.span.bytes)
        var footer = contents.footer(seed: 1, digest: digest.value())
        footer.compaction = SegmentFooter.Compaction(
            through: old.footer.coveredThrough, removedIDBytes: 0)
        footer.coveredThrough = old.footer.coveredThrough
        footer.frames = frames
        return bytes + footer.encoded()
    }
}
