// Appends commits to the live segment. Comes after the lines of a commit were put together, before
// the disk. A commit is one write: its bytes, an end mark, and a trailer that makes the stock tool
// step over the preallocated rest. Spec/format/segment.md, SEG-3 and SEG-4.

import LogFormat

/// The live segment's writing end.
///
/// After any method throws anything but `diskFull`, the writer must not be used again.
struct SegmentWriter: ~Copyable {
    let path: String
    let base: Position
    private let file: any File
    private let sizes: WriterSizes
    private var compressor: BlockCompressor

    /// Whether the last frame is a running one, whose end mark may be written over.
    private var frameIsOpen: Bool
    /// Whether that frame takes further blocks.
    private var frameTakesBlocks: Bool
    /// Where the last commit ends. An open frame's end mark stands here.
    private(set) var dataEnd: Int
    /// The file's size: what is behind the data is room.
    private var fileBytes: Int
    /// Whether a close mark stands where the trailer belongs.
    private var hasCloseMark: Bool

    private static let growthBytesMin = 64 * 1024
    private static let growthBytesMax = 1024 * 1024
    /// End mark and trailer, which follow every commit.
    private static let closingBytes = FrameHeader.endMarkBytes + SkippableFrame.prefixBytes

    /// The room of a new segment.
    static let creationBytes = growthBytesMin

    /// Creates a segment file with so much room; durable, folder entry included, on return.
    static func create(
        _ header: SegmentHeader, room: Int = creationBytes, _ sizes: WriterSizes,
        in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> SegmentWriter {
        let path = directory + "/" + SegmentName.of(header.base)
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .createNew) }
        do throws(FileError) {
            // The size is made durable first: whatever is found later, a file that ends elsewhere was
            // cut.
            try file.allocate(size: room)
            try file.sync()
            var bytes = header.encoded()
            SkippableFrame.trailer.appendPrefix(
                contentBytes: room - bytes.count - SkippableFrame.prefixBytes, to: &bytes)
            try file.write(bytes, at: 0)
            try file.sync()
            try fileSystem.syncDirectory(directory)
        } catch {
            try? fileSystem.remove(path)
            throw LogError(error)
        }
        return SegmentWriter(
            path: path, base: header.base, file: file, dataEnd: SegmentHeader.encodedBytes,
            fileBytes: room, openFrame: nil, hasCloseMark: false, sizes)
    }

    /// Goes on with a segment that recovery has put in order. `openFrame` is the plaintext of the
    /// last frame if that is a running one, whose end mark may be written over.
    init(
        path: String, base: Position, file: any File, dataEnd: Int, fileBytes: Int,
        openFrame: [UInt8]?, hasCloseMark: Bool, _ sizes: WriterSizes
    ) {
        self.path = path
        self.base = base
        self.file = file
        self.dataEnd = dataEnd
        self.fileBytes = fileBytes
        self.hasCloseMark = hasCloseMark
        precondition(sizes.areReadable, "sizes that no reader accepts")
        self.sizes = sizes
        compressor = BlockCompressor(capacity: sizes.runningFramePlaintextBytesMax)
        frameIsOpen = openFrame != nil
        // A writer with other sizes may have filled the frame beyond this writer's limit.
        frameTakesBlocks = openFrame.map { $0.count < sizes.framePlaintextBytes } ?? false
        if frameTakesBlocks, let openFrame { compressor.load(framePlaintext: openFrame.span.bytes) }
    }

    /// Whether the segment has reached its size and should be sealed.
    var isFull: Bool { dataEnd >= sizes.segmentBytes }

    /// Where the next frame, or what ends the segment, goes.
    private var boundary: Int { frameIsOpen ? dataEnd + FrameHeader.endMarkBytes : dataEnd }

    /// The file, for reading back what was committed.
    func reading() -> (file: any File, path: String) { (file, path) }

    /// Writes one commit and syncs it.
    ///
    /// - Returns: the offset of the frame if the commit began one.
    /// - Throws: `diskFull` with nothing changed; anything else leaves the disk indeterminate.
    mutating func commit(_ plaintext: [UInt8]) throws(LogError) -> Int? {
        try takeBackCloseMark()
        let isBig = plaintext.count > sizes.blockPlaintextBytes
        let continues = frameIsOpen && !isBig && frameTakesBlocks
        let start = continues ? dataEnd : boundary
        let most =
            isBig
            ? BigCommit.encodedBytesMax(plaintextBytes: plaintext.count)
            : FrameHeader.runningBytes + BlockHeader.overheadBytes + plaintext.count
        try reserve(start + most + Self.closingBytes)

        var bytes: [UInt8] = []
        bytes.reserveCapacity(most + Self.closingBytes)
        if isBig {
            BigCommit.append(plaintext.span.bytes, to: &bytes)
        } else {
            if !continues {
                FrameHeader(contentBytes: nil).append(to: &bytes)
                compressor.reset()
            }
            compressor.append(block: plaintext.span.bytes, to: &bytes)
            frameTakesBlocks = compressor.plaintextBytes < sizes.framePlaintextBytes
        }
        let committed = bytes.count
        bytes.append(littleEndian: UInt32(0))
        if isBig {
            // A big commit is over: its end mark belongs to it.
            frameIsOpen = false
            dataEnd = start + bytes.count
        } else {
            frameIsOpen = true
            dataEnd = start + committed
        }
        appendTrailer(to: &bytes, at: start + bytes.count)
        try write(bytes, at: start)
        return continues ? nil : start
    }

    /// Ends the segment with a footer; durable on return.
    mutating func seal(_ footer: (_ digest: UInt64) -> SegmentFooter) throws(LogError) {
        try takeBackCloseMark()
        let start = boundary
        let bytes = footer(try digest(through: start)).encoded()
        try reserve(start + bytes.count)
        try changing { () throws(FileError) in
            try file.write(bytes, at: start)
            try file.sync()
            // Only now: a torn footer at the end of a file that was cut already would not be known
            // for one.
            try file.truncate(to: start + bytes.count)
            try file.sync()
            try file.requireLinked(path)
        }
    }

    /// Cuts the room off and leaves a close mark; durable on return.
    mutating func close(last: Position) throws(LogError) {
        guard !hasCloseMark else { return }
        let mark = CloseMark(last: last).encoded()
        do {
            try reserve(boundary + mark.count)
        } catch  where error.code == .diskFull {
            return  // Without room for the mark, the log stays as a kill would leave it: sound.
        }
        let start = boundary
        try changing { () throws(FileError) in
            try file.write(mark, at: start)
            try file.truncate(to: start + mark.count)
            try file.sync()
            try file.requireLinked(path)
        }
        hasCloseMark = true
        fileBytes = start + mark.count
    }

    /// Replaces a close mark by a trailer, synced before anything is written behind it: a mark in
    /// front of later bytes would vouch for them.
    private mutating func takeBackCloseMark() throws(LogError) {
        guard hasCloseMark else { return }
        var bytes: [UInt8] = []
        appendTrailer(to: &bytes, at: boundary)
        bytes.append(contentsOf: repeatElement(0, count: fileBytes - boundary - bytes.count))
        try write(bytes, at: boundary)
        hasCloseMark = false
    }

    /// Grows the file so that it reaches `end`, ahead of need where there is space for that; durable
    /// on return, so that a block only ever goes into room that is there.
    private mutating func reserve(_ end: Int) throws(LogError) {
        guard end > fileBytes else { return }
        let step = min(max(fileBytes / 4, Self.growthBytesMin), Self.growthBytesMax)
        do throws(LogError) {
            try grow(to: max(end, fileBytes + step))
        } catch {
            guard error.code == .diskFull, end < fileBytes + step else { throw error }
            try grow(to: end)
        }
    }

    /// The trailer is lengthened first: a stock tool that looks in between steps over the end of the
    /// file, which it takes for granted.
    private mutating func grow(to end: Int) throws(LogError) {
        let granularity = FormatLimit.growthGranularityBytes
        let size = (end + granularity - 1) / granularity * granularity
        let before = fileBytes
        try writeTrailer(fileBytes: size)
        do throws(FileError) {
            try file.allocate(size: size)
        } catch {
            try writeTrailer(fileBytes: before)
            throw LogError(error)
        }
        try changing { () throws(FileError) in try file.sync() }
    }

    private mutating func writeTrailer(fileBytes size: Int) throws(LogError) {
        fileBytes = size
        var bytes: [UInt8] = []
        appendTrailer(to: &bytes, at: boundary)
        let start = boundary
        try changing { () throws(FileError) in try file.write(bytes, at: start) }
    }

    private func appendTrailer(to bytes: inout [UInt8], at offset: Int) {
        SkippableFrame.trailer.appendPrefix(
            contentBytes: fileBytes - offset - SkippableFrame.prefixBytes, to: &bytes)
    }

    private func write(_ bytes: [UInt8], at offset: Int) throws(LogError) {
        try changing { () throws(FileError) in
            try file.write(bytes, at: offset)
            try file.sync()
            // A removed file takes writes and syncs, and is gone with its last descriptor.
            try file.requireLinked(path)
        }
    }

    /// Runs an operation that leaves the disk indeterminate where it fails. That goes for a full
    /// device, too, which some file systems only notice at a write or sync: `diskFull` promises that
    /// nothing was changed.
    private func changing(_ body: () throws(FileError) -> Void) throws(LogError) {
        do throws(FileError) {
            try body()
        } catch {
            var failure = LogError(error)
            if failure.code == .diskFull { failure.code = .io }
            throw failure
        }
    }

    /// XXH64 of the file's bytes before an offset, read back from the file.
    private func digest(through end: Int) throws(LogError) -> UInt64 {
        try storage { () throws(FileError) in try SegmentFooter.digest(of: file, through: end) }
    }
}
