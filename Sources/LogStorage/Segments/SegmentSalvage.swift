// Finds all intact frames of a segment file, whatever the damage: reads frame by frame and, after damage,
// searches the next readable frame. Decides nothing about the log, which is the task of RepairPlan.
// Spec/format/repair.md, REP-2.

import LogFormat

/// The intact parts of a segment file.
struct SegmentSalvage {
    /// A frame, or the intact prefix of one.
    struct Piece: Hashable {
        var offset: Int
        var positions: ClosedRange<Position>
        var lineCount: Int
        /// True if the frame's header is damaged and its kind was guessed.
        var lacksHeader: Bool
        /// True if there is damage in the file between the previous piece and this one.
        var followsDamage: Bool
    }

    /// The pieces in order of position, not overlapping.
    private(set) var pieces: [Piece] = []
    /// A damaged place. Damage that only follows from it, such as the gap before the next frame, is not one.
    struct Damage {
        var offset: Int
        var detail: String
        /// The position after the last line before it.
        var next: Position
    }

    /// The damaged places, in the order of the scan.
    private(set) var damages: [Damage] = []
    /// The first damage in the file.
    var damage: Damage? { damages.first }
    /// The footer, whether or not it ends the file.
    private(set) var footer: SegmentFooter?
    /// The last position, according to a clean-shutdown marker.
    private(set) var closedThrough: Position?
    /// True if positions may be missing because of compaction.
    private(set) var isCompacted: Bool
    /// The intact lists of removed ids.
    private(set) var removedIDs: [RemovedIDsInFile] = []
    /// The positions of lines that compaction has removed and no piece has, in ascending order, as far as
    /// intact lists of removed ids name them. Empty until `readRemovedPositions` is called.
    private var removedPositions: [Position] = []
    /// The number of unreadable bytes after the last piece; 0 if the end of the file is intact.
    private(set) var lostTailBytes = 0
    /// The end of the last frame or list of removed ids that the scan found.
    private(set) var contentEnd = SegmentHeader.encodedBytes
    /// The end of a footer or clean-shutdown marker that is not at the end of the file.
    private(set) var endingEnd: Int?
    /// True if the file ends where no writer ends it, so that any number of bytes may be missing.
    private(set) var isTruncated = false

    /// True if a damaged footer or clean-shutdown marker follows the last piece directly.
    private(set) var hasDamagedEnding = false
    /// True if there is damage after the last piece.
    private var lacksEnd = false
    /// True if positions are missing inside a block.
    private var hasHolesInBlock = false
    /// The lines of a second writer; nil if there are none.
    var secondWriter: SecondWriter?

    private let keepsPartsOfCommits: Bool

    var lineCount: Int { pieces.reduce(0) { $0 + $1.lineCount } }
    var last: Position? { pieces.last?.positions.upperBound }
    /// The last position that the file had; nil if it is not known.
    var end: Position? {
        if let declared = footer?.coveredThrough ?? closedThrough {
            return max(declared, last ?? .zero)
        }
        // A compacted segment may cover more than its last line.
        if hasDamagedEnding, !isCompacted, removedIDs.isEmpty { return last }
        return lostTailBytes == 0 && !isTruncated ? last ?? .zero : nil
    }

    /// Reads a segment file.
    ///
    /// - Parameters:
    ///   - base: the first position that belongs to the segment.
    ///   - keepsPartsOfCommits: true for a repair. A reader must deliver a big commit completely or not
    ///     at all.
    /// - Complexity: O(bytes); memory for one frame.
    init(
        _ file: any File, from base: Position, keepsPartsOfCommits: Bool = true
    ) throws(FileError) {
        self.init(isCompacted: false, keepsPartsOfCommits)
        let ending = try readEnding(file, from: base)
        try scan(file, until: ending, from: base)
        // Without a footer at the end of the file, only the scan reveals that the segment was compacted.
        // Then it is read again with legal holes.
        guard !isCompacted,
            footer?.isCompacted ?? (hasHolesInBlock || !removedIDs.isEmpty)
        else { return }
        let (footer, closedThrough) = (footer, closedThrough)
        self = SegmentSalvage(isCompacted: true, keepsPartsOfCommits)
        self.footer = footer
        self.closedThrough = closedThrough
        try scan(file, until: ending, from: base)
    }

    private init(isCompacted: Bool, _ keepsPartsOfCommits: Bool) {
        self.isCompacted = isCompacted
        self.keepsPartsOfCommits = keepsPartsOfCommits
    }

    /// Reads the clean-shutdown marker that ends the file, or the footer with the lists of removed ids.
    ///
    /// - Returns: their offset, or nil if the file does not end with them.
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
                    recordDamage(at: offset, "a list of removed ids is damaged", from: base)
                    break
                }
                removedIDs.append(list)
                offset = list.end
            }
            return start
        }
        let start = try file.size() - CleanShutdownMarker.encodedBytes
        guard start >= SegmentHeader.encodedBytes else { return nil }
        let bytes = try file.read(at: start, count: CleanShutdownMarker.encodedBytes)
        guard let marker = CleanShutdownMarker(bytes.span.bytes, at: 0) else { return nil }
        closedThrough = marker.last
        return start
    }

    /// Calls `body` with every intact line in a range of positions, in order.
    func forEachLine(
        of file: any File, in range: ClosedRange<Position>,
        _ body: (LinePrefix, RawSpan) throws(LogError) -> Void
    ) throws(LogError) {
        for piece in pieces where piece.positions.overlaps(range) {
            let frame = try storage { () throws(FileError) in try self.frame(of: piece, in: file) }
            guard let frame, frame.positions == piece.positions else {
                throw LogError(
                    .io, path: "", offset: piece.offset,
                    "the file's bytes differ when read again; check the device for hardware errors")
            }
            for line in frame.lines where range.contains(line.prefix.position) {
                try body(line.prefix, frame.plaintext.span.bytes.extracting(line.range))
            }
        }
    }

    /// Reads the frame of a piece again.
    func frame(of piece: Piece, in file: any File) throws(FileError) -> SalvagedFrame? {
        piece.lacksHeader
            ? try SalvagedFrame.read(
                file, withoutHeaderAt: piece.offset, allowsHoles: isCompacted)
            : try SalvagedFrame.read(file, at: piece.offset, allowsHoles: isCompacted)
    }

    /// Reads the bytes of the lists of removed ids, except lists with positions outside `positions`, which
    /// would make a segment that covers these unreadable.
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

    /// Reads which positions the lists of removed ids name, so that they do not count as lost.
    ///
    /// - Parameter base: the first position of the segment.
    /// - Complexity: O(removed ids · log removed ids) for a damaged segment.
    mutating func readRemovedPositions(
        of file: any File, base: Position
    ) throws(FileError) {
        guard damage != nil || endingEnd != nil else { return }
        let missing = gaps(in: Position(1)...Position(.max))
        var positions: [Position] = []
        for found in removedIDs {
            positions += try found.positions(in: file, base: base).filter { position in
                let index = missing.partitioningIndex { $0.upperBound >= position }
                return index < missing.count && missing[index].contains(position)
            }
        }
        removedPositions = positions.sorted()
    }

    /// The positions of a range whose lines are lost: those that no piece has and compaction has not removed.
    /// Of a line that compaction removed and that no intact list names any more, it is not known whether it
    /// was there if damage is beside it; it counts as lost.
    func lostPositions(in range: ClosedRange<Position>) -> [ClosedRange<Position>] {
        gaps(in: range).subtracting(removedPositions)
    }

    /// The number of lines in a range of positions.
    func lineCount(in range: ClosedRange<Position>) -> Int {
        pieces.reduce(0) { count, piece in
            guard piece.positions.overlaps(range) else { return count }
            let common = piece.positions.clamped(to: range)
            let positions = Int(clamping: common.lowerBound.distance(to: common.upperBound)) + 1
            return count + min(piece.lineCount, positions)
        }
    }

    /// The positions of a range that no piece has, except legal holes without damage beside them.
    private func gaps(in range: ClosedRange<Position>) -> [ClosedRange<Position>] {
        var missing: [ClosedRange<Position>] = []
        var next = range.lowerBound
        for piece in pieces where piece.positions.overlaps(range) {
            if piece.positions.lowerBound > next, !isCompacted || piece.followsDamage {
                missing.append(next...Position(piece.positions.lowerBound.rawValue - 1))
            }
            next = max(next, piece.positions.upperBound.next)
        }
        if next <= range.upperBound, !isCompacted || lacksEnd && !hasDamagedEnding {
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
        // True if a structure must begin at `offset`, and if there was no damage directly before it.
        var isExact = true
        var isInOrder = true
        var hasTrailer = false
        while offset < end {
            var lacksHeader = false
            var frame = try SalvagedFrame.read(file, at: offset, allowsHoles: isCompacted)
            if frame == nil, isExact {
                if let tail = try skipTail(file, at: offset, from: base) {
                    hasTrailer = tail.isTrailer
                    offset = tail.end
                    continue
                }
                if isInOrder { hasDamagedEnding = try isEnding(file, at: offset) }
                isInOrder = false
                recordDamage(at: offset, "the bytes here cannot be read", from: base)
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
                recordDamage(at: frame.end, "the rest of the frame cannot be read", from: base)
                (isInOrder, isExact, hasTrailer) = (false, false, false)
                offset = frame.end
                continue
            }
            // After damage, a gap only follows from it.
            if isInOrder { recordGap(before: frame, at: offset, from: base) }
            let isNew = insert(
                Piece(
                    offset: offset, positions: frame.positions, lineCount: frame.lines.count,
                    lacksHeader: lacksHeader, followsDamage: !isInOrder), from: base)
            hasHolesInBlock = hasHolesInBlock || frame.hasHolesInBlock
            hasTrailer = false
            hasDamagedEnding = false
            if !isNew { try findSecondWriter(in: frame, at: offset, of: file) }
            isInOrder = frame.isWhole && isNew
            isExact = frame.isWhole
            offset = frame.end
            dataEnd = frame.end
            contentEnd = frame.end
            if !frame.isWhole {
                recordDamage(at: offset, "the rest of the frame cannot be read", from: base)
            }
        }
        lacksEnd = !isInOrder
        // A footer or clean-shutdown marker names the last position.
        guard footer == nil, closedThrough == nil else { return }
        lostTailBytes = isInOrder ? 0 : max(1, end - dataEnd)
        isTruncated =
            !(hasTrailer && isInOrder)
            && (size % FormatLimit.growthGranularityBytes != 0
                || size - end < SkippableFrame.prefixBytes)
        lacksEnd = lacksEnd || isTruncated
    }

    private mutating func recordDamage(at offset: Int, _ detail: String, from base: Position) {
        damages.append(Damage(offset: offset, detail: detail, next: last?.next ?? base))
    }

    /// Records a damage if a frame does not begin at the position after the last line. Only compaction may
    /// leave positions out.
    private mutating func recordGap(
        before frame: SalvagedFrame, at offset: Int, from base: Position
    ) {
        let first = frame.positions.lowerBound
        let expected = last?.next ?? base
        guard !isCompacted, first != expected else { return }
        recordDamage(
            at: frame.isBig ? offset : offset + FrameHeader.runningBytes,
            "found position \(first), expected \(expected)", from: base)
    }

    /// Inserts a piece, unless its positions are already present or before the segment's base.
    ///
    /// - Returns: true if the piece was inserted.
    private mutating func insert(_ piece: Piece, from base: Position) -> Bool {
        let known = pieces.last?.positions.upperBound ?? .zero
        guard piece.positions.lowerBound >= base,
            piece.positions.lowerBound > known
                || !pieces.contains(where: { $0.positions.overlaps(piece.positions) })
        else {
            recordDamage(
                at: piece.offset,
                "positions \(piece.positions.lowerBound) to "
                    + "\(piece.positions.upperBound) are duplicates or belong to another segment",
                from: base)
            return false
        }
        let index =
            piece.positions.lowerBound > known
            ? nil
            : pieces.firstIndex { $0.positions.lowerBound > piece.positions.lowerBound }
        pieces.insert(piece, at: index ?? pieces.count)
        return true
    }

    /// Reads a footer, clean-shutdown marker, trailer or list of removed ids at an offset, and returns its
    /// end; nil if there is none.
    private mutating func skipTail(
        _ file: any File, at offset: Int, from base: Position
    ) throws(FileError) -> (end: Int, isTrailer: Bool)? {
        let bytes = try file.read(at: offset, count: CleanShutdownMarker.encodedBytes)
        switch SkippableFrame.read(bytes.span.bytes, at: 0) {
        case (.trailer, _)?: return (offset + SkippableFrame.prefixBytes, true)
        case (.cleanShutdownMarker, _)?:
            guard let marker = CleanShutdownMarker(bytes.span.bytes, at: 0) else { return nil }
            closedThrough = marker.last
            endingEnd = offset + CleanShutdownMarker.encodedBytes
            return (offset + CleanShutdownMarker.encodedBytes, false)
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

    /// True if the bytes from an offset to the end of the file were a footer or clean-shutdown marker,
    /// according to their own kind and size. Either proves that the last frame ended there.
    private func isEnding(_ file: any File, at offset: Int) throws(FileError) -> Bool {
        let bytes = try file.read(at: offset, count: SkippableFrame.prefixBytes)
        let size = try file.size()
        if let frame = SkippableFrame.read(bytes.span.bytes, at: 0),
            frame.kind == .cleanShutdownMarker
        {
            return offset + SkippableFrame.prefixBytes + frame.contentBytes == size
        }
        return try SegmentFooter.isExpected(at: offset, of: file)
    }

    /// Reads the list of removed ids at an offset; nil if it is damaged.
    private func removedIDs(
        _ file: any File, at offset: Int, until end: Int, from base: Position
    ) -> RemovedIDsInFile? {
        let last = footer?.coveredThrough ?? Position(FormatLimit.positionMax)
        return try? RemovedIDsInFile.read(
            file, path: "", at: offset, until: end, of: base...max(base, last))
    }

    /// The offset of the next frame's magic number, or `end`.
    private static func nextFrame(
        _ file: any File, after offset: Int, end: Int
    ) throws(FileError) -> Int {
        var start = offset + 1
        // The first read is short, since a file can consist of frame headers alone.
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

    /// The offset after the last nonzero byte.
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
