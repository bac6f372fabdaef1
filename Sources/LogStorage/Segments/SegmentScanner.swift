// Reads a segment from a frame onwards and yields its commits, one after the other, with their lines
// checked. Used by everything that reads: recovery, readers, lookups, verification. It judges
// nothing: at the first thing that is not right it says what and where. Spec/format/recovery.md.

import LogFormat

/// A line in the scanner's plaintext.
package struct ScannedLine: Sendable {
    package var prefix: LinePrefix
    /// Where the line stands in the scanner's plaintext, newline not included.
    package var range: Range<Int>
}

/// One commit as found on disk.
package struct ScannedCommit: Sendable {
    /// Where its bytes begin: the block, or the frame of a big commit.
    package var offset: Int
    /// Where they end; a big commit's end mark is included.
    package var end: Int
    /// Its frame's beginning.
    package var frameOffset: Int
    package var isBig: Bool
    /// Whether it is the first commit of its frame.
    package var beginsFrame: Bool
    package var lines: [ScannedLine]

    package var positions: ClosedRange<Position> {
        lines[0].prefix.position...lines[lines.count - 1].prefix.position
    }
}

/// Where a scan met something that is not right.
package struct ScanDamage: Sendable {
    /// What was expected at the place; decides what later bytes can prove. Spec/format/recovery.md, REC-3.
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

/// What a scan finds next.
package enum ScanStep: Sendable {
    case commit(ScannedCommit)
    /// All frames have been read; this stands behind them.
    case tail(SegmentTail, offset: Int)
    case damage(ScanDamage)
}

/// What stands behind the last frame of a segment.
package enum SegmentTail: Sendable {
    /// The file ends.
    case none
    /// The trailer of a live segment; its size covers the rest.
    case trailer(contentBytes: Int)
    case closeMark(CloseMark)
    case footer(SegmentFooter, bytes: Int)
}

/// A pull reader of one segment file.
package struct SegmentScanner {
    private let file: any File
    private var decompressor = BlockDecompressor()
    private var window: [UInt8] = []
    private var windowStart = 0
    private var state: State
    /// The position the next line must have, or, with holes allowed, must reach.
    package private(set) var expected: Position
    private let allowsHoles: Bool
    /// Where the lists of removed ids begin, once the scan has come to them.
    package private(set) var removedIDsStart: Int?

    private enum State {
        case frame(Int)
        case block(Int, frame: Int, isFirst: Bool)
        case finished(ScanStep)
    }

    private static let windowBytes = 256 * 1024

    /// Creates a scanner that begins at a frame.
    package init(
        _ file: any File, at offset: Int = SegmentHeader.encodedBytes, expecting: Position,
        allowsHoles: Bool
    ) {
        self.file = file
        self.expected = expecting
        self.allowsHoles = allowsHoles
        state = .frame(offset)
    }

    /// The plaintext of the frame being read; the lines of the last commit are ranges of it.
    package var plaintext: [UInt8] { decompressor.storage }
    /// Where the frame that `plaintext` belongs to begins.
    package private(set) var plaintextFrame: Int?
    /// How much of `plaintext` counts.
    package var plaintextBytes: Int { decompressor.plaintextBytes }

    /// Reads the next commit, or says what stands there instead. After a tail or damage the answer
    /// stays the same.
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
        let at = offset - windowStart
        if let skippable = SkippableFrame.read(window.span.bytes, at: at) {
            switch skippable.kind {
            case .trailer:
                return finish(
                    .tail(.trailer(contentBytes: skippable.contentBytes), offset: offset))
            case .closeMark:
                _ = try load(offset, CloseMark.encodedBytes)
                if let mark = CloseMark(window.span.bytes, at: offset - windowStart) {
                    return finish(.tail(.closeMark(mark), offset: offset))
                }
                throw damage(.frame, offset, .init(.checksum, "the close mark is damaged"))
            case .footer:
                return finish(try footer(at: offset, contentBytes: skippable.contentBytes))
            case .removedIDs:
                try stepOver(skippable.contentBytes, at: offset)
                return nil
            case .header:
                throw damage(.frame, offset, .init(.malformed, "a second segment header"))
            }
        }
        guard removedIDsStart == nil else {
            throw damage(.frame, offset, .init(.malformed, "a frame behind removed ids"))
        }
        let header: FrameHeader
        do throws(FormatError) {
            header = try FrameHeader(window.span.bytes, at: at)
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

    /// Steps over a list of removed ids, which only a compacted segment has, before its footer.
    private mutating func stepOver(_ contentBytes: Int, at offset: Int) throws(Failure) {
        guard allowsHoles else {
            throw damage(
                .frame, offset, .init(.malformed, "removed ids in a segment that is not compacted"))
        }
        let end = offset + SkippableFrame.prefixBytes + contentBytes
        let size: Int
        do throws(FileError) { size = try file.size() } catch { throw .file(error) }
        guard end < size else {
            throw damage(.frame, offset, .init(.truncated, "the file ends inside removed ids"))
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
        let at = offset - windowStart
        do throws(FormatError) {
            let footer = try SegmentFooter(window.span.bytes.extracting(at..<at + length))
            return .tail(.footer(footer, bytes: length), offset: offset)
        } catch { throw damage(.frame, offset, error) }
    }

    private mutating func block(
        at offset: Int, frame: Int, isFirst: Bool
    ) throws(Failure) -> ScanStep? {
        guard let decoded = try decode(at: offset, .block) else {
            if isFirst {
                throw damage(.block, offset, .init(.malformed, "a frame without a block"))
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
                    .bigCommit, offset, .init(.truncated, "a big commit ends before its size"))
            }
            offset += decoded.blockBytes
        }
        guard try load(offset, FrameHeader.endMarkBytes) >= FrameHeader.endMarkBytes,
            window.span.bytes.integer(at: offset - windowStart, as: UInt32.self) == 0
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
        let word: UInt32 = window.span.bytes.integer(at: offset - windowStart)
        let header: BlockHeader?
        do throws(FormatError) {
            header = try BlockHeader.read(word)
        } catch { throw damage(context, offset, error) }
        guard let header else { return nil }
        guard try load(offset, header.blockBytes) >= header.blockBytes else {
            throw damage(context, offset, .init(.truncated, "the file ends inside a block"))
        }
        let window = window
        let at = offset - windowStart
        do throws(FormatError) {
            let range = try decompressor.append(header, at: at, of: window.span.bytes)
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
                throw FormatError(.badLine, "a line runs over the end of its commit")
            }
            guard end - start <= FormatLimit.lineBytesMax else {
                throw FormatError(.badLine, "a line of \(end - start) bytes")
            }
            let prefix = try LinePrefix(text.extracting(start..<end))
            guard
                prefix.position == expected || (allowsHoles && prefix.position > expected),
                prefix.position.rawValue <= FormatLimit.positionMax
            else {
                throw FormatError(
                    .badPosition,
                    "position \(prefix.position) stands where \(expected) belongs")
            }
            expected = prefix.position.next
            lines.append(ScannedLine(prefix: prefix, range: start..<end))
            start = end + 1
        }
        return lines
    }

    /// Sees to it that `count` bytes at `offset` are in the window, as far as the file has them.
    private mutating func load(_ offset: Int, _ count: Int) throws(Failure) -> Int {
        if offset >= windowStart, offset + count <= windowStart + window.count { return count }
        do throws(FileError) {
            window = try file.read(at: offset, count: max(count, Self.windowBytes))
        } catch { throw .file(error) }
        windowStart = offset
        return min(count, window.count)
    }

    private func damage(
        _ context: ScanDamage.Context, _ offset: Int, _ error: FormatError
    ) -> Failure {
        .damage(ScanDamage(context: context, offset: offset, error: error))
    }
}
