// A segment that is never appended to again. Opened by its header and footer, read by frame.

import LogFormat

/// A sealed segment.
package struct SealedSegment: Sendable {
    package let path: String
    package private(set) var file: any File
    package let header: SegmentHeader
    package let footer: SegmentFooter
    /// The offset of the footer.
    package let footerAt: Int
    private let readIDIndex: Result<IDIndex, FormatError>

    /// Opens a segment that must be sealed.
    ///
    /// - Parameter other: the file's temporary name, before its rename to the segment's.
    /// - Throws: `corrupt` if header or footer is damaged. A malformed id index is no error here, since lines
    ///   can be read without it; callers that look up ids call `checkIDIndex()`.
    package init(
        _ name: String, in directory: String, _ fileSystem: any FileSystem,
        from other: String? = nil
    ) throws(LogError) {
        let path = directory + "/" + name
        let file = try storage { () throws(FileError) in
            try fileSystem.open(directory + "/" + (other ?? name), .read)
        }
        let header = try Self.header(of: file, path)
        try header.check(isNamedFor: SegmentName.base(name), path)
        let found = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        guard let found else {
            throw try UnsealedSegment(path, file: file, header: header, before: nil).error
        }
        try self.init(
            path: path, file: file, header: header, footer: found.footer, footerAt: found.start)
    }

    /// Opens the last segment, which has been read and ends with a footer. Preallocated space may follow the
    /// footer if a kill or an error prevented its truncation.
    init(
        last path: String, footer: SegmentFooter, footerAt: Int, _ fileSystem: any FileSystem
    ) throws(LogError) {
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
        try self.init(last: path, file: file, footer: footer, footerAt: footerAt)
    }

    /// Creates the last segment from the file that was read.
    init(
        last path: String, file: any File, footer: SegmentFooter, footerAt: Int
    ) throws(LogError) {
        try self.init(
            path: path, file: file, header: try Self.header(of: file, path), footer: footer,
            footerAt: footerAt)
    }

    static func header(
        of file: any File, _ path: String
    ) throws(LogError) -> SegmentHeader {
        let bytes = try storage { () throws(FileError) in
            try file.read(at: 0, count: SegmentHeader.encodedBytes)
        }
        do throws(FormatError) {
            return try SegmentHeader(bytes.span.bytes)
        } catch { throw LogError(error, path: path, offset: 0) }
    }

    /// Creates a segment from its parts, which were read from the file.
    init(
        path: String, file: any File, header: SegmentHeader, footer: SegmentFooter, footerAt: Int
    ) throws(LogError) {
        self.path = path
        self.file = file
        self.header = header
        self.footer = footer
        self.footerAt = footerAt
        do throws(FormatError) {
            readIDIndex = .success(try IDIndex(footer.idIndex))
        } catch { readIDIndex = .failure(error) }
    }

    /// The segment with its file among those of an open log.
    func sharing(_ files: SegmentFiles) throws(LogError) -> SealedSegment {
        var segment = self
        segment.file = try storage { () throws(FileError) in
            try files.adopt(file, path: path)
        }
        return segment
    }

    /// The segment after `rename` has given its name to the file of its compacted version, `new`.
    func replaced(
        by new: SealedSegment, in files: SegmentFiles, _ rename: () throws(FileError) -> Void
    ) throws(LogError) -> SealedSegment {
        guard let old = file as? SegmentFile else { preconditionFailure("no segment of a log") }
        var segment = new
        segment.file = try storage { () throws(FileError) in
            try files.replace(old, by: new.file, rename)
        }
        return segment
    }

    /// The id index.
    ///
    /// - Throws: `corrupt` if it is malformed.
    func idIndex() throws(LogError) -> IDIndex {
        do throws(FormatError) { return try readIDIndex.get() } catch {
            throw LogError(error, path: path, offset: footerAt)
        }
    }

    /// Checks that the id index is well-formed.
    func checkIDIndex() throws(LogError) { _ = try idIndex() }

    /// Reads the frame whose range includes a position; nil if there are no frames.
    package func frame(of position: Position) throws(LogError) -> DecodedFrame? {
        guard !footer.frames.isEmpty else { return nil }
        let entry = footer.frames[footer.frames.frame(of: position)]
        return try DecodedFrame.read(file, path: path, entry, allowsHoles: footer.isCompacted)
    }

    /// The frames that may contain an event with this id. O(log n).
    package func candidateFrames(id: UInt128) throws(LogError) -> [FrameEntry] {
        do throws(FormatError) {
            let idIndex = try readIDIndex.get()
            let numbers = try idIndex.frames(hash: idIndex.hash(id))
            guard numbers.allSatisfy({ footer.frames.indices.contains($0) }) else {
                throw FormatError(.malformed, "the id index names a frame that does not exist")
            }
            return numbers.map { footer.frames[$0] }
        } catch { throw LogError(error, path: path, offset: footerAt) }
    }
}

extension SegmentHeader {
    /// Checks that the segment's first position is the one in its file's name.
    func check(isNamedFor base: Position?, _ path: String) throws(LogError) {
        guard self.base == base else {
            throw LogError(
                .corrupt, path: path, offset: 48,
                "the header names first position \(self.base), which differs from the file's name")
        }
    }

    /// Checks that the segment belongs to the same log as `first`; the first segment sets it.
    func check(isOf first: inout SegmentHeader?, _ path: String) throws(LogError) {
        if let first { try check(isOfLogOf: first, path) } else { first = self }
    }
}
