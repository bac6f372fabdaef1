// Writes a new segment from the lines that compaction keeps or repair has saved: header, lines regrouped into
// blocks and frames as a writer groups them, lists of removed ids, footer. The file is read only after it is
// complete, so it has neither trailer nor preallocated space. Spec/format/compaction.md, CMP-21, and
// Spec/format/repair.md, REP-3.

import LogFormat

/// The writer of a segment that replaces another one.
struct SegmentRewriter: ~Copyable {
    private let file: any File
    private let sizes: WriterSizes
    private var compressor: BlockCompressor
    private var frameIsOpen = false
    /// The lines of the next block.
    private var block: [UInt8] = []
    /// Encoded bytes that are not in the file yet.
    private var output: [UInt8] = []
    private var writtenBytes = 0
    private var removedIDsStart = 0
    private var digest = XXH64()
    private let seed: UInt32
    /// The metadata of the lines so far.
    private(set) var contents: SegmentContents

    private static let outputBytesMax = 256 * 1024

    /// - Parameter seed: the seed of the id index.
    init(
        _ file: any File, header: [UInt8], base: Position, seed: UInt32,
        _ sizes: WriterSizes = WriterSizes()
    ) {
        self.file = file
        precondition(sizes.areReadable, "readers do not accept these sizes")
        self.sizes = sizes
        compressor = BlockCompressor(capacity: sizes.runningFramePlaintextBytesMax)
        contents = SegmentContents(base: base, ids: .index(seed: seed))
        self.seed = seed
        output = header
    }

    /// The offset of the next byte.
    private var end: Int { writtenBytes + output.count }

    /// Appends a line, given without its newline.
    mutating func append(_ prefix: LinePrefix, _ line: RawSpan) throws(LogError) {
        let count = line.byteCount + 1
        guard count <= sizes.blockPlaintextBytes else {
            return try appendBig(prefix, line)
        }
        if block.count + count > sizes.blockPlaintextBytes { try endBlock() }
        if block.isEmpty { beginBlock() }
        contents.append(prefix, line: line)
        block.append(contentsOf: line)
        block.append(UInt8(ascii: "\n"))
    }

    /// Appends a line that exceeds a block as a big commit.
    private mutating func appendBig(_ prefix: LinePrefix, _ line: RawSpan) throws(LogError) {
        try endBlock()
        endFrame()
        contents.beginFrame(at: end)
        contents.append(prefix, line: line)
        let plaintext = line.array + [UInt8(ascii: "\n")]
        BigCommit.append(plaintext.span.bytes, to: &output)
        output.append(littleEndian: UInt32(0))
        try drain(above: Self.outputBytesMax)
    }

    private mutating func beginBlock() {
        if frameIsOpen, compressor.plaintextBytes < sizes.framePlaintextBytes { return }
        endFrame()
        contents.beginFrame(at: end)
        FrameHeader(contentBytes: nil).append(to: &output)
        compressor.reset()
        frameIsOpen = true
    }

    private mutating func endBlock() throws(LogError) {
        guard !block.isEmpty else { return }
        let lines = block
        compressor.append(block: lines.span.bytes, to: &output)
        block.removeAll(keepingCapacity: true)
        try drain(above: Self.outputBytesMax)
    }

    private mutating func endFrame() {
        if frameIsOpen { output.append(littleEndian: UInt32(0)) }
        frameIsOpen = false
    }

    /// Writes `output` to the file if it has more than `limit` bytes.
    private mutating func drain(above limit: Int = 0) throws(LogError) {
        guard output.count > limit else { return }
        guard end <= FormatLimit.segmentBytesMax else {
            throw LogError(
                .tooLarge, path: "",
                "the rewritten segment exceeds \(FormatLimit.segmentBytesMax) bytes")
        }
        let bytes = output
        let offset = writtenBytes
        digest.update(bytes.span.bytes)
        try storage { () throws(FileError) in try file.write(bytes, at: offset) }
        writtenBytes += bytes.count
        output.removeAll(keepingCapacity: true)
    }

    /// Ends the last frame. Only lists of removed ids may be appended afterwards.
    mutating func endLines() throws(LogError) {
        try endBlock()
        endFrame()
        removedIDsStart = end
    }

    /// Appends bytes of a list of removed ids.
    mutating func append(removedIDs bytes: [UInt8]) throws(LogError) {
        output += bytes
        try drain(above: Self.outputBytesMax)
    }

    /// Writes the footer and syncs. O(lines log lines).
    ///
    /// - Parameter compactedThrough: the position before which states cannot be rebuilt; nil for a segment
    ///   without holes and without lists of removed ids.
    mutating func finish(
        coveredThrough: Position, compactedThrough: Position?
    ) throws(LogError) -> SegmentFooter {
        var footer = contents.footer(
            seed: seed, digest: 0, coveredThrough: coveredThrough,
            compaction: compactedThrough.map {
                .init(through: $0, removedIDBytes: end - removedIDsStart)
            })
        // At a multiple of the growth unit, the file would look as if it ended in preallocated space, and
        // damage at its end would be taken for a torn tail. An empty list avoids that size.
        if compactedThrough != nil,
            (end + footer.encoded().count) % FormatLimit.growthGranularityBytes == 0
        {
            output += RemovedIDs.encode([], base: contents.base, removedAt: 0)
            footer.compaction?.removedIDBytes = end - removedIDsStart
        }
        try drain()
        footer.digest = digest.value()
        output = footer.encoded()
        try drain()
        try storage { () throws(FileError) in try file.sync() }
        return footer
    }
}
