// Finds everything in a segment file that is intact, in whatever state the file is: frame by frame,
// and behind damage at the next place where a frame can be read. Judges nothing about the log; that
// is RepairPlan's. Spec/format/repair.md, REP-2.

import LogFormat

/// What can still be read of a segment file.
struct SegmentSalvage {
    /// A frame, or the intact beginning of one.
    struct Piece: Hashable {
        var offset: Int
        var positions: ClosedRange<Position>
        var lineCount: Int
        /// Whether the frame's header had to be guessed.
        var lacksHeader: Bool
        /// Whether something between this piece and the one before it, in the file, is damaged.
        var followsDamage: Bool
    }

    /// In order of position, not overlapping.
    private(set) var pieces: [Piece] = []
    /// The first thing in the file that is not right.
    private(set) var damage: (offset: Int, detail: String)?
    /// The footer, wherever it was found.
    private(set) var footer: SegmentFooter?
    /// What a close mark behind the last piece names as the last position.
    private(set) var closedAt: Position?
    /// Whether positions were left out on purpose.
    private(set) var isCompacted: Bool
    /// The lists of removed ids that are whole.
    private(set) var removedIDs: [RemovedIDsInFile] = []
    /// Bytes behind the last piece that cannot be read: 0 if the end of the file is in order.
    private(set) var lostTailBytes = 0
    /// Where the frames and the lists of removed ids that were met end.
    private(set) var contentEnd = SegmentHeader.encodedBytes
    /// Where a footer or close mark ends that does not end the file.
    private(set) var endingEnd: Int?
    /// Whether the file ends where no writer ends it, so that any number of bytes may be missing.
    private(set) var isCut = false

    /// Whether right behind the last piece stands what was a footer or a close mark.
    private(set) var hasDamagedEnding = false
    /// Whether something behind the last piece is damaged.
    private var lacksEnd = false
    /// Whether a block leaves positions out.
    private var hasHolesInBlock = false

    private let keepsPartsOfCommits: Bool

    var lineCount: Int { pieces.reduce(0) { $0 + $1.lineCount } }
    var last: Position? { pieces.last?.positions.upperBound }
    /// The last position that the file is known to have had, or nil where nobody can tell.
    var end: Position? {
        if let said = footer?.coveredThrough ?? closedAt { return max(said, last ?? .zero) }
        // A compacted segment may cover more than its last line.
        if hasDamagedEnding, !isCompacted, removedIDs.isEmpty { return last }
        return lostTailBytes == 0 && !isCut ? last ?? .zero : nil
    }

    /// Reads a file whose first line is not before a position.
    ///
    /// - Parameter keepsPartsOfCommits: true for a repair. A reader takes a big commit as a whole or
    ///   not at all.
    /// - Complexity: O(bytes); memory for one frame.
    init(
        _ file: any File, from base: Position, keepsPartsOfCommits: Bool = true
    ) throws(FileError) {
        self.init(isCompacted: false, keepsPartsOfCommits)
        let ending = try readEnding(file, from: base)
        try scan(file, until: ending, from: base)
        // Without a footer, or with one that does not end the file, only what the scan met says that
        // the segment was compacted.
        guard !isCompacted,
            footer?.isCompacted ?? (hasHolesInBlock || !removedIDs.isEmpty)
        else { return }
        let (footer, closedAt) = (footer, closedAt)
        self = SegmentSalvage(isCompacted: true, keepsPartsOfCommits)
        self.footer = footer
        self.closedAt = closedAt
        try scan(file, until: ending, from: base)
    }

    private init(isCompacted: Bool, _ keepsPartsOfCommits: Bool) {
        self.isCompacted = isCompacted
        self.keepsPartsOfCommits = keepsPartsOfCommits
    }

    /// Reads the close mark that ends the file, or the footer with the lists of removed ids.
    ///
    /// - Returns: where they begin, or nil if the file ends otherwise.
    private mutating func readEnding(
        _ file: any File, from base: Position
    ) throws(FileError) -> Int? {
        if let found = try SegmentFooter.read(atEndOf: file) {
            footer = found.footer
            guard let compaction = found.footer.compaction else { return found.start }
            isCompacted = true
            let start = max(SegmentHeader.encodedBytes, found.start - compaction.removedIDBytes)
            var offset = start
            while offset < found.start {
                guard let list = removedIDs(file, at: offset, until: found.start, from: base)
                else {
                    note(offset, "a list of removed ids is damaged")
                    break
                }
                removedIDs.append(list)
                offset = list.end
            }
            return start
        }
        let start = try file.size() - CloseMark.encodedBytes
        guard start >= SegmentHeader.encodedBytes else { return nil }
        let bytes = try file.read(at: start, count: CloseMark.encodedBytes)
        guard let mark = CloseMark(bytes.span.bytes, at: 0) else { return nil }
        closedAt = mark.last
        return start
    }

    /// Calls `body` with every line of the pieces that is in a range of positions, in order.
    func forEachLine(
        of file: any File, in range: ClosedRange<Position>,
        _ body: (LinePrefix, RawSpan) throws(LogError) -> Void
    ) throws(LogError) {
        for piece in pieces where piece.positions.overlaps(range) {
            let frame = try storage { () throws(FileError) in
                piece.lacksHeader
                    ? try SalvagedFrame.read(
                        file, withoutHeaderAt: piece.offset, allowsHoles: isCompacted)
                    : try SalvagedFrame.read(file, at: piece.offset, allowsHoles: isCompacted)
            }
            guard let frame, frame.positions == piece.positions else {
                throw LogError(
                    .io, path: "", offset: piece.offset,
                    "the file gave other bytes when it was read again. Do not trust this device")
            }
            for line in frame.lines where range.contains(line.prefix.position) {
                try body(line.prefix, frame.plaintext.span.bytes.extracting(line.range))
            }
        }
    }

    /// The bytes of the lists of removed ids, but for those that name other positions than these: no
    /// segment that answers for them could be read with such a list.
    func removedIDs(
        of file: any File, in positions: ClosedRange<Position>
    ) throws(LogError) -> [[UInt8]] {
        var lists: [[UInt8]] = []
        for found in removedIDs {
            do throws(LogError) {
                _ = try RemovedIDsInFile.read(
                    file, path: "", at: found.offset, until: found.end, of: positions)
            } catch let error where error.code == .corrupt { continue }
            lists.append(
                try storage { () throws(FileError) in
                    try file.read(at: found.offset, count: found.end - found.offset)
                })
        }
        return lists
    }

    /// The positions of a range that no piece has, but for those that compaction took out.
    func missing(in range: ClosedRange<Position>) -> [ClosedRange<Position>] {
        var missing: [ClosedRange<Position>] = []
        var next = range.lowerBound
        for piece in pieces where piece.positions.overlaps(range) {
            if piece.positions.lowerBound > next, !isCompacted || piece.followsDamage {
                missing.append(next...Position(piece.positions.lowerBound.rawValue - 1))
            }
            next = max(next, piece.positions.upperBound.next)
        }
        if next <= range.upperBound, !isCompacted || lacksEnd {
            missing.append(next...range.upperBound)
        }
        return missing
    }

    // MARK: Scanning

    private mutating func scan(
        _ file: any File, until ending: Int?, from base: Position
    ) throws(FileError) {
        let size = min(try file.size(), FormatLimit.segmentBytesMax)
        let end: Int
        if let ending { end = ending } else { end = try Self.endOfBytes(file, size: size) }
        var offset = SegmentHeader.encodedBytes
        var dataEnd = offset
        // Whether something must begin at the offset, and whether what came before it was right.
        var isExact = true
        var isInOrder = true
        var hasTrailer = false
        while offset < end {
            var lacksHeader = false
            var frame = try SalvagedFrame.read(file, at: offset, allowsHoles: isCompacted)
            if frame == nil, isExact {
                if let tail = try stepOverTail(file, at: offset, from: base) {
                    hasTrailer = tail.isTrailer
                    offset = tail.end
                    continue
                }
                if isInOrder { hasDamagedEnding = try isEnding(file, at: offset) }
                isInOrder = false
                note(offset, "what stands here cannot be read")
                lacksHeader = true
                frame = try SalvagedFrame.read(
                    file, withoutHeaderAt: offset, allowsHoles: isCompacted)
            }
            guard let frame else {
                offset = try Self.nextFrame(file, after: offset, end: end)
                isExact = false
                continue
            }
            guard frame.isWhole || !frame.isBig || keepsPartsOfCommits else {
                note(frame.end, "the rest of the frame cannot be read")
                (isInOrder, isExact, hasTrailer) = (false, false, false)
                offset = frame.end
                continue
            }
            noteGap(before: frame, at: offset, from: base)
            let isNew = take(
                Piece(
                    offset: offset, positions: frame.positions, lineCount: frame.lines.count,
                    lacksHeader: lacksHeader, followsDamage: !isInOrder), from: base)
            hasHolesInBlock = hasHolesInBlock || frame.hasHolesInBlock
            hasTrailer = false
            hasDamagedEnding = false
            isInOrder = frame.isWhole && isNew
            isExact = frame.isWhole
            offset = frame.end
            dataEnd = frame.end
            contentEnd = frame.end
            if !frame.isWhole { note(offset, "the rest of the frame cannot be read") }
        }
        lacksEnd = !isInOrder
        // What was last is known where a footer or a close mark says it.
        guard footer == nil, closedAt == nil else { return }
        lostTailBytes = isInOrder ? 0 : max(1, end - dataEnd)
        isCut =
            !(hasTrailer && isInOrder)
            && (size % FormatLimit.growthGranularityBytes != 0
                || size - end < SkippableFrame.prefixBytes)
        lacksEnd = lacksEnd || isCut
    }

    private mutating func note(_ offset: Int, _ detail: String) {
        if damage == nil { damage = (offset, detail) }
    }

    /// Notes that a frame begins at another position than the lines before it say. Only compaction
    /// leaves positions out.
    private mutating func noteGap(before frame: SalvagedFrame, at offset: Int, from base: Position)
    {
        let first = frame.positions.lowerBound
        let expected = last?.next ?? base
        guard !isCompacted, first != expected else { return }
        note(
            frame.isBig ? offset : offset + FrameHeader.runningBytes,
            "found position \(first), expected \(expected)")
    }

    /// Takes in a piece unless its positions are known already or are not this segment's.
    private mutating func take(_ piece: Piece, from base: Position) -> Bool {
        let known = pieces.last?.positions.upperBound ?? .zero
        guard piece.positions.lowerBound >= base,
            piece.positions.lowerBound > known
                || !pieces.contains(where: { $0.positions.overlaps(piece.positions) })
        else {
            note(
                piece.offset,
                "positions \(piece.positions.lowerBound) to "
                    + "\(piece.positions.upperBound) do not belong here")
            return false
        }
        let index =
            piece.positions.lowerBound > known
            ? nil
            : pieces.firstIndex { $0.positions.lowerBound > piece.positions.lowerBound }
        pieces.insert(piece, at: index ?? pieces.count)
        return true
    }

    /// The end of a footer, close mark, trailer or list of removed ids that begins at an offset, or
    /// nil.
    private mutating func stepOverTail(
        _ file: any File, at offset: Int, from base: Position
    ) throws(FileError) -> (end: Int, isTrailer: Bool)? {
        let bytes = try file.read(at: offset, count: CloseMark.encodedBytes)
        switch SkippableFrame.read(bytes.span.bytes, at: 0) {
        case (.trailer, _)?: return (offset + SkippableFrame.prefixBytes, true)
        case (.closeMark, _)?:
            guard let mark = CloseMark(bytes.span.bytes, at: 0) else { return nil }
            closedAt = mark.last
            endingEnd = offset + CloseMark.encodedBytes
            return (offset + CloseMark.encodedBytes, false)
        case (.footer, let contentBytes)?:
            let length = contentBytes + SkippableFrame.prefixBytes
            guard length <= FormatLimit.footerBytesMax else { return nil }
            let bytes = try file.read(at: offset, count: length)
            guard let found = try? SegmentFooter(bytes.span.bytes) else { return nil }
            footer = found
            endingEnd = offset + length
            return (offset + length, false)
        case (.removedIDs, _)?:
            let size = try file.size()
            guard let list = removedIDs(file, at: offset, until: size, from: base) else {
                return nil
            }
            removedIDs.append(list)
            contentEnd = list.end
            return (list.end, false)
        default: return nil
        }
    }

    /// Whether what begins here says of itself that it is a footer or close mark that ends the file:
    /// it is written where the last frame ends, whatever has become of it since.
    private func isEnding(_ file: any File, at offset: Int) throws(FileError) -> Bool {
        let bytes = try file.read(at: offset, count: SkippableFrame.prefixBytes)
        let size = try file.size()
        if let frame = SkippableFrame.read(bytes.span.bytes, at: 0), frame.kind == .closeMark {
            return offset + SkippableFrame.prefixBytes + frame.contentBytes == size
        }
        return try SegmentFooter.isExpected(at: offset, of: file)
    }

    /// The list of removed ids at an offset, or nil where it is not whole.
    private func removedIDs(
        _ file: any File, at offset: Int, until end: Int, from base: Position
    ) -> RemovedIDsInFile? {
        let last = footer?.coveredThrough ?? Position(FormatLimit.positionMax)
        return try? RemovedIDsInFile.read(
            file, path: "", at: offset, until: end, of: base...max(base, last))
    }

    /// Where the next frame may begin, or the end.
    private static func nextFrame(
        _ file: any File, after offset: Int, end: Int
    ) throws(FileError) -> Int {
        var start = offset + 1
        // The first read is short: a file can consist of frame headers alone.
        var count = 256
        while start < end {
            let bytes = try file.read(at: start, count: min(count, end - start))
            count = portionBytes
            guard bytes.count >= 4 else { return end }
            let span = bytes.span.bytes
            for at in 0...bytes.count - 4
            where span.byte(at: at) == UInt8(truncatingIfNeeded: FrameHeader.magic)
                && span.integer(at: at, as: UInt32.self) == FrameHeader.magic
            {
                return start + at
            }
            start += bytes.count - 3
        }
        return end
    }

    /// Behind the last byte that is not zero.
    private static func endOfBytes(_ file: any File, size: Int) throws(FileError) -> Int {
        var end = size
        while end > 0 {
            let start = max(0, end - portionBytes)
            let bytes = try file.read(at: start, count: end - start)
            if let last = bytes.lastIndex(where: { $0 != 0 }) { return start + last + 1 }
            end = start
        }
        return 0
    }

    private static let portionBytes = 256 * 1024
}
