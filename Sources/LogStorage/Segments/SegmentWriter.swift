// Appends commits to the live segment. Comes between the lines of a commit and the disk. A commit is one
// write: its bytes, an end mark, and a trailer that makes the stock tool skip the preallocated space.
// Spec/format/segment.md, SEG-3 and SEG-4.

import LogFormat

/// The writer of the live segment.
///
/// After any error but `diskFull` the writer must not be used again.
struct SegmentWriter: ~Copyable {
    let path: String
    let base: Position
    private let file: any File
    private let sizes: WriterSizes
    private var compressor: BlockCompressor

    /// True if the last frame is a running one, whose end mark may be overwritten.
    private var frameIsOpen: Bool
    /// True if that frame accepts further blocks.
    private var frameAcceptsBlocks: Bool
    /// The offset after the last commit. An open frame's end mark is stored here.
    private(set) var dataEnd: Int
    /// The file's size, including the preallocated space after the data.
    private var fileBytes: Int
    /// True if the file ends with a clean-shutdown marker in place of the trailer.
    private(set) var hasCleanShutdownMarker: Bool

    private static let growthBytesMin = 64 * 1024
    private static let growthBytesMax = 1024 * 1024
    /// End mark and trailer, which follow every commit.
    private static let closingBytes = FrameHeader.endMarkBytes + SkippableFrame.prefixBytes

    /// The size of a new segment file.
    static let creationBytes = growthBytesMin

    /// Creates a segment file with preallocated space. Durable on return, including its folder entry.
    static func create(
        _ header: SegmentHeader, preallocatedBytes: Int = creationBytes, _ sizes: WriterSizes,
        in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> SegmentWriter {
        let path = directory + "/" + SegmentName.of(header.base)
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .createNew) }
        do throws(FileError) {
            // The size is made durable first, so that a file with another size must have been truncated.
            try file.allocate(size: preallocatedBytes)
            try file.sync()
            var bytes = header.encoded()
            SkippableFrame.trailer.appendPrefix(
                contentBytes: preallocatedBytes - bytes.count - SkippableFrame.prefixBytes,
                to: &bytes)
            try file.write(bytes, at: 0)
            try file.sync()
            try fileSystem.syncDirectory(directory)
        } catch {
            try? fileSystem.remove(path)
            throw LogError(error)
        }
        return SegmentWriter(
            path: path, base: header.base, file: file, dataEnd: SegmentHeader.encodedBytes,
            fileBytes: preallocatedBytes, openFrame: nil, hasCleanShutdownMarker: false, sizes)
    }

    /// Resumes a recovered segment.
    ///
    /// - Parameter openFrame: the plaintext of the last frame if it is a running one, whose end mark may be
    ///   overwritten.
    init(
        path: String, base: Position, file: any File, dataEnd: Int, fileBytes: Int,
        openFrame: [UInt8]?, hasCleanShutdownMarker: Bool, _ sizes: WriterSizes
    ) {
        self.path = path
        self.base = base
        self.file = file
        self.dataEnd = dataEnd
        self.fileBytes = fileBytes
        self.hasCleanShutdownMarker = hasCleanShutdownMarker
        precondition(sizes.areReadable, "readers do not accept these sizes")
        self.sizes = sizes
        compressor = BlockCompressor(capacity: sizes.runningFramePlaintextBytesMax)
        frameIsOpen = openFrame != nil
        // A writer with other sizes may have filled the frame beyond this writer's limit.
        frameAcceptsBlocks = openFrame.map { $0.count < sizes.framePlaintextBytes } ?? false
        if frameAcceptsBlocks, let openFrame {
            compressor.load(framePlaintext: openFrame.span.bytes)
        }
    }

    /// True if the segment has reached its size and should be sealed.
    var isFull: Bool { dataEnd >= sizes.segmentBytes }

    /// The offset of the next frame, footer or clean-shutdown marker.
    private var boundary: Int { frameIsOpen ? dataEnd + FrameHeader.endMarkBytes : dataEnd }

    /// The file, for reading committed lines.
    func reading() -> (file: any File, path: String) { (file, path) }

    /// Writes one commit and syncs it.
    ///
    /// - Returns: the offset of the frame if the commit began one.
    /// - Throws: `diskFull` with nothing changed; any other error leaves the state on disk unknown.
    mutating func commit(_ plaintext: [UInt8]) throws(LogError) -> Int? {
        try removeCleanShutdownMarker()
        let isBig = plaintext.count > sizes.blockPlaintextBytes
        let continues = frameIsOpen && !isBig && frameAcceptsBlocks
        let start = continues ? dataEnd : boundary
        let maxBytes =
            isBig
            ? BigCommit.encodedBytesMax(plaintextBytes: plaintext.count)
            : FrameHeader.runningBytes + BlockHeader.overheadBytes + plaintext.count
        try reserve(start + maxBytes + Self.closingBytes)

        var bytes: [UInt8] = []
        bytes.reserveCapacity(maxBytes + Self.closingBytes)
        if isBig {
            BigCommit.append(plaintext.span.bytes, to: &bytes)
        } else {
            if !continues {
                FrameHeader(contentBytes: nil).append(to: &bytes)
                compressor.reset()
            }
            compressor.append(block: plaintext.span.bytes, to: &bytes)
            frameAcceptsBlocks = compressor.plaintextBytes < sizes.framePlaintextBytes
        }
        let committed = bytes.count
        bytes.append(littleEndian: UInt32(0))
        if isBig {
            // A big commit's frame ends with it, so the end mark is part of the commit.
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
        try removeCleanShutdownMarker()
        let start = boundary
        let bytes = footer(try digest(through: start)).encoded()
        try reserve(start + bytes.count)
        try modifyFile { () throws(FileError) in
            try file.write(bytes, at: start)
            try file.sync()
            // After the sync: if the file were truncated first, a torn footer at its end could not be
            // recognized as an unfinished write.
            try file.truncate(to: start + bytes.count)
            try file.sync()
            try file.requireLinked(path)
        }
    }

    /// Truncates the preallocated space and writes a clean-shutdown marker; durable on return.
    mutating func close(last: Position) throws(LogError) {
        guard !hasCleanShutdownMarker else { return }
        let marker = CleanShutdownMarker(last: last).encoded()
        do {
            try reserve(boundary + marker.count)
        } catch  where error.code == .diskFull {
            return  // Without space for the marker, the log stays as after a kill: sound.
        }
        let start = boundary
        try modifyFile { () throws(FileError) in
            try file.write(marker, at: start)
            try file.truncate(to: start + marker.count)
            try file.sync()
            try file.requireLinked(path)
        }
        hasCleanShutdownMarker = true
        fileBytes = start + marker.count
    }

    /// Replaces a clean-shutdown marker by a trailer and syncs it before the next write. Otherwise a torn
    /// write that left the marker in place would look like damage to synced bytes.
    private mutating func removeCleanShutdownMarker() throws(LogError) {
        guard hasCleanShutdownMarker else { return }
        var bytes: [UInt8] = []
        appendTrailer(to: &bytes, at: boundary)
        bytes.append(contentsOf: repeatElement(0, count: fileBytes - boundary - bytes.count))
        try write(bytes, at: boundary)
        hasCleanShutdownMarker = false
    }

    /// Grows the file to reach `end`, and further ahead if the disk has the space. Durable on return, so that
    /// a block is only ever written into durable preallocated space.
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

    /// Grows the file. The trailer is extended first: if the stock tool reads in between, it skips past the
    /// end of the file, which it accepts.
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
        try modifyFile { () throws(FileError) in try file.sync() }
    }

    private mutating func writeTrailer(fileBytes size: Int) throws(LogError) {
        fileBytes = size
        var bytes: [UInt8] = []
        appendTrailer(to: &bytes, at: boundary)
        let start = boundary
        try modifyFile { () throws(FileError) in try file.write(bytes, at: start) }
    }

    private func appendTrailer(to bytes: inout [UInt8], at offset: Int) {
        SkippableFrame.trailer.appendPrefix(
            contentBytes: fileBytes - offset - SkippableFrame.prefixBytes, to: &bytes)
    }

    private func write(_ bytes: [UInt8], at offset: Int) throws(LogError) {
        try modifyFile { () throws(FileError) in
            try file.write(bytes, at: offset)
            try file.sync()
            // A removed file takes writes and syncs, and is gone with its last descriptor.
            try file.requireLinked(path)
        }
    }

    /// Runs an operation whose failure leaves the state on disk unknown. Some file systems detect a full
    /// disk only at a write or sync; that error becomes `io`, since `diskFull` promises that nothing was
    /// changed.
    private func modifyFile(_ body: () throws(FileError) -> Void) throws(LogError) {
        do throws(FileError) {
            try body()
        } catch {
            var failure = LogError(error)
            if failure.code == .diskFull { failure.code = .io }
            throw failure
        }
    }

    /// Computes the XXH64 of the file's bytes before an offset.
    private func digest(through end: Int) throws(LogError) -> UInt64 {
        try storage { () throws(FileError) in try SegmentFooter.digest(of: file, through: end) }
    }
}
