// Finds one line of a segment by its id: decodes the blocks of its frame up to the line, and parses only that
// line and the frame's first. Spec/format/block-and-frame.md; Spec/decisions/0055-id-filter.md has what it saves.

import LogFormat

/// The search for a line in a frame.
enum LineSearch {
    /// Finds the first line with an id in a frame; nil if the frame has none. O(bytes of the frame up to the
    /// line).
    ///
    /// - Throws: `LogError`: `io`; `corrupt` for damage before the line. Damage after the line's block is not
    ///   noticed.
    static func line(
        id: UInt128, in file: any File, path: String, _ frame: FrameEntry, allowsHoles: Bool
    ) throws(LogError) -> (position: Position, bytes: [UInt8])? {
        // One block at a time, since on average half of a frame is read.
        var window = FileWindow(
            file, length: FormatLimit.blockBytesMax + BlockHeader.overheadBytes)
        var decompressor = BlockDecompressor()
        var offset = frame.offset
        func format<T>(_ body: () throws(FormatError) -> T) throws(LogError) -> T {
            do throws(FormatError) { return try body() } catch {
                throw LogError(error, path: path, offset: offset)
            }
        }
        /// The place of the next `count` bytes in the window.
        func load(_ count: Int) throws(LogError) -> Int {
            let available = try storage { () throws(FileError) in try window.load(offset, count) }
            return try format { () throws(FormatError) in
                guard available == count else {
                    throw FormatError(.truncated, "the file ends inside a frame")
                }
                return offset - window.start
            }
        }
        func blockHeader() throws(LogError) -> BlockHeader? {
            let at = try load(FrameHeader.endMarkBytes)
            return try format { () throws(FormatError) in
                try BlockHeader.read(window.bytes.span.bytes.integer(at: at))
            }
        }
        // A block is longer than the difference to the shorter header.
        let at = try load(FrameHeader.bigCommitBytes)
        let header = try format { () throws(FormatError) in
            try FrameHeader(window.bytes.span.bytes, at: at)
        }
        decompressor.begin(header)
        offset += header.encodedBytes
        var lineStart = 0
        while decompressor.plaintextBytes < header.contentBytes ?? .max,
            let block = try blockHeader()
        {
            let at = try load(block.blockBytes)
            let found = try format { () throws(FormatError) in
                let bytes = window.bytes
                let new = try decompressor.append(block, at: at, of: bytes.span.bytes)
                return try line(id: id, of: frame, in: decompressor, new, from: &lineStart)
            }
            if let found { return found }
            offset += block.blockBytes
        }
        // Rarely: another id has the same hash. A frame that is not as it must be must not look like this.
        return try DecodedFrame.read(file, path: path, frame, allowsHoles: allowsHoles)
            .copy(ofLineWith: id)
    }

    /// Looks for an id in the lines of decoded blocks that begin at `start` or after it.
    ///
    /// - Parameters:
    ///   - new: the plaintext of the last block.
    ///   - start: moved to the first line that is not complete yet.
    private static func line(
        id: UInt128, of frame: FrameEntry, in decompressor: BlockDecompressor, _ new: Range<Int>,
        from start: inout Int
    ) throws(FormatError) -> (position: Position, bytes: [UInt8])? {
        var text: [UInt8] = []
        LineText.append(uuid: id, to: &text)
        let plaintext = decompressor.storage.span.bytes
            .extracting(0..<decompressor.plaintextBytes)
        while let end = plaintext.offset(
            of: UInt8(ascii: "\n"), from: max(start, new.lowerBound))
        {
            let line = plaintext.extracting(start..<end)
            if start == 0, try LinePrefix(line).position != frame.first {
                throw FormatError(.badPosition, "no frame with this first position begins here")
            }
            if line.matches(text, at: LinePrefix.idOffset) {
                return (try LinePrefix(line).position, line.array)
            }
            start = end + 1
        }
        return nil
    }
}
