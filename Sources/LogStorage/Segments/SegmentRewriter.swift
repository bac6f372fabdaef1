// Writes a segment anew from the lines that compaction keeps or repair has saved: header, lines
// regrouped into blocks and frames as a writer groups them, lists of removed ids, footer. Nothing
// reads the file before it is whole, so there is neither trailer nor room. Spec/format/compaction.md, CMP-21,
// and Spec/format/repair.md, REP-3.

import LogFormat

/// The writing end of a segment that is written anew.
struct SegmentRewriter: ~Copyable {
    private let file: any File
    private let sizes: WriterSizes
    private var compressor: BlockCompressor
    private var frameIsOpen = false
    /// Whole lines that become the next block.
    private var block: [UInt8] = []
    /// Bytes that are not in the file yet.
    private var output: [UInt8] = []
    private var writtenBytes = 0
    private var removedIDsStart = 0
    private var digest = XXH64()
    private let seed: UInt32
    /// What was put in so far.
    private(set) var contents: SegmentContents

    private static let outputBytesMax = 256 * 1024

    /// - Parameter seed: for the id index.
    init(
        _ file: any File, header: [UInt8], base: Position, seed: UInt32,
        _ sizes: WriterSizes = WriterSizes()
    ) {
        self.file = file
        precondition(sizes.areReadable, "sizes that no reader accepts")
        self.sizes = sizes
        compressor = BlockCompressor(capacity: sizes.runningFramePlaintextBytesMax)
        contents = SegmentContents(base: base, ids: .index(seed: seed))
        self.seed = seed
        output = header
    }

    /// Where the next byte goes.
    private var end: Int { writtenBytes + output.count }

    /// Adds a line, newline not included.
    mutating func append(_ prefix: LinePrefix, _ line: RawSpan) throws(LogError) {
        let count = line.byteCount + 1
        guard count <= sizes.blockPlaintextBytes else {
            return try appendBig(prefix, line)
        }
        if block.count + count > sizes.blockPlaintextBytes { try endBlock() }
        if block.isEmpty { beginBlock() }
        contents.add(prefix, line: line)
        block.append(contentsOf: line)
        block.append(UInt8(ascii: "\n"))
    }

    /// A line that no block holds is a commit of its own.
    private mutating func appendBig(_ prefix: LinePrefix, _ line: RawSpan) throws(LogError) {
        try endBlock()
        endFrame()
        contents.begin(frameAt: end)
        contents.add(prefix, line: line)
        let plaintext = line.array + [UInt8(ascii: "\n")]
        BigCommit.append(plaintext.span.bytes, to: &output)
        output.append(littleEndian: UInt32(0))
        try drain(above: Self.outputBytesMax)
    }

    private mutating func beginBlock() {
        if frameIsOpen, compressor.plaintextBytes < sizes.framePlaintextBytes { return }
        endFrame()
        contents.begin(frameAt: end)
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

    /// Writes what has gathered.
    private mutating func drain(above limit: Int = 0) throws(LogError) {
        guard output.count > limit else { return }
        guard end <= FormatLimit.segmentBytesMax else {
            throw LogError(
                .tooLarge, path: "", "a segment that is written anew has no room for its lines")
        }
        let bytes = output
        let offset = writtenBytes
        digest.update(bytes.span.bytes)
        try storage { () throws(FileError) in try file.write(bytes, at: offset) }
        writtenBytes += bytes.count
        output.removeAll(keepingCapacity: true)
    }

    /// Ends the frames: what is appended now are lists of removed ids.
    mutating func endLines() throws(LogError) {
        try endBlock()
        endFrame()
        removedIDsStart = end
    }

    /// Adds bytes of a list of removed ids.
    mutating func append(removedIDs bytes: [UInt8]) throws(LogError) {
        output += bytes
        try drain(above: Self.outputBytesMax)
    }

    /// Writes the footer and syncs. O(lines log lines).
    ///
    /// - Parameter compactedThrough: states before it cannot be rebuilt; nil for a segment without
    ///   holes and without lists of removed ids.
    mutating func finish(
        coveredThrough: Position, compactedThrough: Position?
    ) throws(LogError) -> SegmentFooter {
        var footer = contents.footer(
            seed: seed, digest: 0, coveredThrough: coveredThrough,
            compaction: compactedThrough.map {
                .init(through: $0, removedIDBytes: end - removedIDsStart)
            })
        // A file of such a size could end in room, and damage at its end be taken for a torn tail.
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
