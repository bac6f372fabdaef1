// Writes a whole sealed segment from lines: what repair puts in the place of a damaged one. One file,
// written once, synced and read back before anybody relies on it; nothing of the log changes until
// it is renamed. Comes after the lines were chosen, before the rename. Spec/segment.md, SEG-5.

import LogFormat

/// A sealed segment under construction.
///
/// Lines come in rising order of position; positions may be left out. Memory: one frame, and the
/// segment's ids.
package struct SealedSegmentWriter: ~Copyable {
    private let path: String
    private let file: any File
    private var contents: SegmentContents
    private var compressor = BlockCompressor()
    /// Lines that wait to become a block.
    private var block: [UInt8] = []
    private var frameIsOpen = false
    /// Bytes that wait to be written, and where they go.
    private var output: [UInt8]
    private var writtenBytes = 0
    private var digest = XXH64()

    private static let outputBytesTarget = 256 * 1024

    /// Begins a segment in a file that must not exist yet.
    ///
    /// - Throws: `LogError` (`io`, `diskFull`, `readOnly`).
    package init(
        _ header: SegmentHeader, at path: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        self.path = path
        file = try storage { () throws(FileError) in try fileSystem.open(path, .createNew) }
        contents = SegmentContents(base: header.base)
        output = header.encoded()
    }

    /// Takes in a line, given without its newline.
    ///
    /// - Throws: `LogError` (`io`, `diskFull`); the file is of no use then.
    /// - Complexity: O(bytes of the line).
    package mutating func append(_ prefix: LinePrefix, _ line: RawSpan) throws(LogError) {
        precondition(prefix.position >= contents.next, "lines come in order of position")
        let bytes = line.byteCount + 1
        if bytes > FormatLimit.blockPlaintextBytesMax {
            endFrame()
            contents.begin(frameAt: end)
            let commit = line.array + [UInt8(ascii: "\n")]
            BigCommit.append(commit.span.bytes, to: &output)
            output.append(littleEndian: UInt32(0))
            digest.update(commit.span.bytes)
        } else {
            if block.count + bytes > FormatLimit.blockPlaintextBytesMax { endBlock() }
            if block.isEmpty { beginBlock() }
            block.append(contentsOf: line)
            block.append(UInt8(ascii: "\n"))
        }
        contents.add(prefix, line: line)
        if output.count >= Self.outputBytesTarget { try write() }
    }

    /// Ends the segment with a footer, and reads it back. Its bytes are durable on return; its name
    /// is not.
    ///
    /// - Parameters:
    ///   - coveredThrough: the last position that the segment answers for.
    ///   - isCompacted: whether positions are left out.
    ///   - seed: any number, for the id index.
    /// - Throws: `LogError` (`io`, `diskFull`), also where the file does not give back what was
    ///   written.
    /// - Complexity: O(bytes written).
    package consuming func finish(
        coveredThrough: Position, isCompacted: Bool, seed: UInt32
    ) throws(LogError) {
        endFrame()
        try write()
        let footerAt = end
        let bytesDigest = try storage { [file] () throws(FileError) in
            try SegmentFooter.digest(of: file, through: footerAt)
        }
        let footer = contents.footer(
            seed: seed, digest: bytesDigest, coveredThrough: coveredThrough,
            isCompacted: isCompacted)
        output = footer.encoded()
        try write()
        try storage { [file] () throws(FileError) in try file.sync() }
        try readBack(footer, footerAt: footerAt)
    }

    private var end: Int { writtenBytes + output.count }

    private mutating func beginBlock() {
        let continues =
            frameIsOpen && compressor.plaintextBytes < FormatLimit.framePlaintextBytesTarget
        guard !continues else { return }
        endFrame()
        contents.begin(frameAt: end)
        FrameHeader(contentBytes: nil).append(to: &output)
        compressor.reset()
        frameIsOpen = true
    }

    private mutating func endBlock() {
        guard !block.isEmpty else { return }
        let plaintext = block
        compressor.append(block: plaintext.span.bytes, to: &output)
        digest.update(plaintext.span.bytes)
        block.removeAll()
    }

    private mutating func endFrame() {
        endBlock()
        guard frameIsOpen else { return }
        output.append(littleEndian: UInt32(0))
        frameIsOpen = false
    }

    private mutating func write() throws(LogError) {
        let (bytes, offset) = (output, writtenBytes)
        try storage { [file] () throws(FileError) in try file.write(bytes, at: offset) }
        writtenBytes += output.count
        output.removeAll(keepingCapacity: true)
    }

    /// Reads every line from the file again, and the footer.
    private func readBack(_ footer: SegmentFooter, footerAt: Int) throws(LogError) {
        var found = XXH64()
        var scanner = SegmentScanner(
            file, expecting: contents.base, allowsHoles: footer.isCompacted)
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            switch step {
            case .commit(let commit):
                for line in commit.lines {
                    let range = line.range.lowerBound..<line.range.upperBound + 1
                    found.update(scanner.plaintext.span.bytes.extracting(range))
                }
            case .tail(.footer(footer, _), footerAt) where found.value() == digest.value(): return
            case .tail, .damage:
                throw LogError(
                    .io, path: path,
                    "the file does not give back what was written to it. Do not trust this device")
            }
        }
    }
}
