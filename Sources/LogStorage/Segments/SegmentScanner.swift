// Reads a segment from a frame onwards and returns its commits, one by one, with checked lines. The basis of
// recovery, readers, lookups and verification. Stops at the first damage and reports it with its offset;
// callers decide what it means. Spec/format/recovery.md.

import LogFormat

/// A line in the scanner's plaintext.
package struct ScannedLine: Sendable {
    package var prefix: LinePrefix
    /// The line's range in the scanner's plaintext, newline not included.
    package var range: Range<Int>
}

/// A commit as read from disk.
package struct ScannedCommit: Sendable {
    /// The offset of the commit's first byte: of its frame if it begins one, otherwise of its block.
    package var offset: Int
    /// The offset after the commit, including a big commit's end mark.
    package var end: Int
    /// The offset of its frame.
    package var frameOffset: Int
    package var isBig: Bool
    /// True if it is the first commit of its frame.
    package var beginsFrame: Bool
    package var lines: [ScannedLine]

    package var positions: ClosedRange<Position> {
        lines[0].prefix.position...lines[lines.count - 1].prefix.position
    }
}

/// The first damage of a scan.
package struct ScanDamage: Sendable {
    /// The structure that was expected at the offset, which decides what later bytes can prove.
    /// Spec/format/recovery.md, REC-3.
    package enum Context: String, Sendable {
        /// A block of a running frame, or its end mark.
        case block
        /// A frame, or what follows the last one.
        case frame
        /// The inside of a big commit.
        case bigCommit = "big commit"
    }
    package var context: Context
    package var offset: Int
    package var error: FormatError
}

/// The result of one step of a scan.
package enum ScanStep: Sendable {
    case commit(ScannedCommit)
    /// The structure after the last frame.
    case tail(SegmentTail, offset: Int)
    case damage(ScanDamage)
}

/// The structure after the last frame of a segment.
package enum SegmentTail: Sendable {
    /// The end of the file.
    case none
    /// The trailer of a live segment, which covers the preallocated space.
    case trailer(contentBytes: Int)
    case cleanShutdownMarker(CleanShutdownMarker)
    case footer(SegmentFooter, bytes: Int)
}

/// A pull reader of one segment file.
package struct SegmentScanner {
    private let file: any File
    private var decompressor = BlockDecompressor()
    private var window: FileWindow
    private var state: State
    /// The position that the next line must have; with holes allowed, the lowest that it may have.
    package private(set) var expected: Position
    private let allowsHoles: Bool
    /// The offset of the first list of removed ids, once the scan has reached it.
    package private(set) var removedIDsStart: Int?

    private enum State {
        case frame(Int)
        case block(Int, frame: Int, isFirst: Bool)
        case finished(ScanStep)
    }

    /// Creates a scanner that begins at a frame.
    package init(
        _ file: any File, at offset: Int = SegmentHeader.encodedBytes, expecting: Position,
        allowsHoles: Bool
    ) {
        self.file = file
        window = FileWindow(file)
        self.expected = expecting
        self.allowsHoles = allowsHoles
        state = .frame(offset)
    }

    /// The plaintext of the frame being read. The lines of the last commit are ranges of it.
    package var plaintext: [UInt8] { decompressor.storage }
    /// The offset of the frame that `plaintext` belongs to.
    package private(set) var plaintextFrame: Int?
    /// The number of valid bytes in `plaintext`.
    package var plaintextBytes: Int { decompressor.plaintextBytes }

    /// Returns the plaintext of a frame that has been read to its end, without copying it. `plaintext` is empty
    /// afterwards.
    mutating func extractPlaintext() -> [UInt8] { decompressor.extractPlaintext() }

    /// Reads the next commit, or the tail or damage that ends the scan. Once it has ended, returns the same
    /// step again.
    package mutating func next() throws(FileError) -> ScanStep {
        do {
            while true {
                switch state {
                case .finished(let step): return step
                case .frame(let offset):
                    if let step = try frame(at: offset) { return step }
                case .block(let offset, let frame, let isFirst):
                    if let step = try block(at: offset, frame: frame, isFirst: isFirst) {
                        return step
                    }
                }
            }
        } catch {
            switch error {
            case .file(let error): throw error
            case .damage(let damage): return finish(.damage(damage))
            }
        }
    }

    private enum Failure: Error {
        case file(FileError)
        case damage(ScanDamage)
    }

    private mutating func finish(_ step: ScanStep) -> ScanStep {
        state = .finished(step)
        return step
    }

    private mutating func frame(at offset: Int) throws(Failure) -> ScanStep? {
        let available = try load(offset, FrameHeader.bigCommitBytes)
        if available == 0 { return finish(.tail(.none, offset: offset)) }
        let at = offset - window.start
        if let skippable = SkippableFrame.read(window.bytes.span.bytes, at: at) {
            switch skippable.kind {
            case .trailer:
                return finish(
                    .tail(.trailer(contentBytes: skippable.contentBytes), offset: offset))
            case .cleanShutdownMarker:
                _ = try load(offset, CleanShutdownMarker.encodedBytes)
                if let marker = CleanShutdownMarker(
                    window.bytes.span.bytes, at: offset - window.start)
                {
                    return finish(.tail(.cleanShutdownMarker(marker), offset: offset))
                }
                throw damage(
                    .frame, offset, .init(.checksum, "the clean-shutdown marker is damaged"))
            case .footer:
                return finish(try footer(at: offset, contentBytes: skippable.contentBytes))
            case .removedIDs:
                try skipRemovedIDs(skippable.contentBytes, at: offset)
                return nil
            case .header:
                throw damage(.frame, offset, .init(.malformed, "a second segment header"))
            }
        }
        guard removedIDsStart == nil else {
            throw damage(
                .frame, offset, .init(.malformed, "a frame follows a list of removed ids"))
        }
        let header: FrameHeader
        do throws(FormatError) {
            header = try FrameHeader(window.bytes.span.bytes, at: at)
        } catch { throw damage(.frame, offset, error) }
        decompressor.begin(header)
        plaintextFrame = offset
        let first = offset + header.encodedBytes
        guard let contentBytes = header.contentBytes else {
            state = .block(first, frame: offset, isFirst: true)
            return nil
        }
        return try bigCommit(at: offset, blocks: first, contentBytes: contentBytes)
    }

    /// Skips a list of removed ids, which only a compacted segment has, before its footer.
    private mutating func skipRemovedIDs(_ contentBytes: Int, at offset: Int) throws(Failure) {
        guard allowsHoles else {
            throw damage(
                .frame, offset,
                .init(.malformed, "a list of removed ids in a segment that is not compacted"))
        }
        let end = offset + SkippableFrame.prefixBytes + contentBytes
        let size: Int
        do throws(FileError) { size = try file.size() } catch { throw .file(error) }
        guard end < size else {
            throw damage(
                .frame, offset, .init(.truncated, "the file ends inside a list of removed ids"))
        }
        removedIDsStart = removedIDsStart ?? offset
        state = .frame(end)
    }

    private mutating func footer(
        at offset: Int, contentBytes: Int
    ) throws(Failure) -> ScanStep {
        let length = contentBytes + SkippableFrame.prefixBytes
        guard length <= FormatLimit.footerBytesMax, try load(offset, length) >= length else {
            throw damage(.frame, offset, .init(.truncated, "the file ends inside the footer"))
        }
        let at = offset - window.start
        do throws(FormatError) {
            let footer = try SegmentFooter(window.bytes.span.bytes.extracting(at..<at + length))
            return .tail(.footer(footer, bytes: length), offset: offset)
        } catch { throw damage(.frame, offset, error) }
    }

    private mutating func block(
        at offset: Int, frame: Int, isFirst: Bool
    ) throws(Failure) -> ScanStep? {
        guard let decoded = try decode(at: offset, .block) else {
            if isFirst {
                throw damage(.block, offset, .init(.malformed, "a frame has no block"))
            }
            state = .frame(offset + FrameHeader.endMarkBytes)
            return nil
        }
        let lines = try lines(in: decoded.range, .block, offset)
        let end = offset + decoded.blockBytes
        state = .block(end, frame: frame, isFirst: false)
        return .commit(
            ScannedCommit(
                offset: isFirst ? frame : offset, end: end, frameOffset: frame, isBig: false,
                beginsFrame: isFirst, lines: lines))
    }

    private mutating func bigCommit(
        at frame: Int, blocks: Int, contentBytes: Int
    ) throws(Failure) -> ScanStep {
        var offset = blocks
        while decompressor.plaintextBytes < contentBytes {
            guard let decoded = try decode(at: offset, .bigCommit) else {
                throw damage(
                    .bigCommit, offset,
                    .init(.truncated, "a big commit is shorter than its declared size"))
            }
            offset += decoded.blockBytes
        }
        guard try load(offset, FrameHeader.endMarkBytes) >= FrameHeader.endMarkBytes,
            window.bytes.span.bytes.integer(at: offset - window.start, as: UInt32.self) == 0
        else {
            throw damage(.bigCommit, offset, .init(.malformed, "a big commit has no end mark"))
        }
        let lines = try lines(in: 0..<contentBytes, .bigCommit, frame)
        let end = offset + FrameHeader.endMarkBytes
        state = .frame(end)
        return .commit(
            ScannedCommit(
                offset: frame, end: end, frameOffset: frame, isBig: true, beginsFrame: true,
                lines: lines))
    }

    /// Decodes the block at an offset; nil for the end mark.
    private mutating func decode(
        at offset: Int, _ context: ScanDamage.Context
    ) throws(Failure) -> (range: Range<Int>, blockBytes: Int)? {
        guard try load(offset, 4) >= 4 else {
            throw damage(context, offset, .init(.truncated, "the file ends inside a frame"))
        }
        let word: UInt32 = window.bytes.span.bytes.integer(at: offset - window.start)
        let header: BlockHeader?
        do throws(FormatError) {
            header = try BlockHeader.read(word)
        } catch { throw damage(context, offset, error) }
        guard let header else { return nil }
        guard try load(offset, header.blockBytes) >= header.blockBytes else {
            throw damage(context, offset, .init(.truncated, "the file ends inside a block"))
        }
        let bytes = window.bytes
        let at = offset - window.start
        do throws(FormatError) {
            let range = try decompressor.append(header, at: at, of: bytes.span.bytes)
            return (range, header.blockBytes)
        } catch { throw damage(context, offset, error) }
    }

    /// The lines in a range of the plaintext, each with its prefix and position checked.
    private mutating func lines(
        in range: Range<Int>, _ context: ScanDamage.Context, _ offset: Int
    ) throws(Failure) -> [ScannedLine] {
        do throws(FormatError) {
            let lines = try Self.lines(
                in: range, of: decompressor.storage.span.bytes, expecting: expected,
                allowsHoles: allowsHoles)
            if let last = lines.last { expected = last.prefix.position.next }
            return lines
        } catch { throw damage(context, offset, error) }
    }

    /// The lines in a range of plaintext, each with its prefix and position checked.
    static func lines(
        in range: Range<Int>, of bytes: RawSpan, expecting: Position, allowsHoles: Bool
    ) throws(FormatError) -> [ScannedLine] {
        var lines: [ScannedLine] = []
        let text = bytes.extracting(0..<range.upperBound)
        var start = range.lowerBound
        var expected = expecting
        while start < range.upperBound {
            guard let end = text.offset(of: UInt8(ascii: "\n"), from: start) else {
                throw FormatError(.badLine, "the last line of a commit has no newline")
            }
            guard end - start <= FormatLimit.lineBytesMax else {
                throw FormatError(
                    .badLine,
                    "a line has \(end - start) bytes; the limit is \(FormatLimit.lineBytesMax)")
            }
            let prefix = try LinePrefix(text.extracting(start..<end))
            guard
                prefix.position == expected || (allowsHoles && prefix.position > expected),
                prefix.position.rawValue <= FormatLimit.positionMax
            else {
                throw FormatError(
                    .badPosition,
                    "found position \(prefix.position), expected \(expected)")
            }
            expected = prefix.position.next
            lines.append(ScannedLine(prefix: prefix, range: start..<end))
            start = end + 1
        }
        return lines
    }

    /// Loads `count` bytes at `offset` into the window, as far as the file has them.
    ///
    /// - Returns: the number of bytes available there, at most `count`.
    private mutating func load(_ offset: Int, _ count: Int) throws(Failure) -> Int {
        do throws(FileError) { return try window.load(offset, count) } catch { throw .file(error) }
    }

    private func damage(
        _ context: ScanDamage.Context, _ offset: Int, _ error: FormatError
    ) -> Failure {
        .damage(ScanDamage(context: context, offset: offset, error: error))
    }
}
