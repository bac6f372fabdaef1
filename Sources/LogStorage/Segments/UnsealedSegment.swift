// A segment that should be sealed and does not end with an intact footer: the footer is damaged or lost, or
// bytes follow it. Its lines are found frame by frame, without the footer's frame list.
// Spec/format/recovery.md, REC-10.

import LogFormat

/// A segment that should be sealed and has no usable footer.
struct UnsealedSegment {
    let path: String
    let file: any File
    let header: SegmentHeader
    let salvage: SegmentSalvage
    /// The first position of the next segment; nil for a last segment.
    private let following: Position?

    /// Reads a segment's file.
    ///
    /// - Parameter following: the first position of the next segment; nil for a last segment.
    /// - Throws: `LogError` if the file cannot be read.
    /// - Complexity: O(bytes).
    init(
        _ path: String, file: any File, header: SegmentHeader, before following: Position?
    ) throws(LogError) {
        self.path = path
        self.following = following
        self.file = file
        self.header = header
        salvage = try storage { () throws(FileError) in
            var salvage = try SegmentSalvage(file, from: header.base, keepsPartsOfCommits: false)
            try salvage.readRemovedPositions(of: file, base: header.base)
            return salvage
        }
    }

    /// The last readable position; the one before the base if there is none.
    var last: Position { salvage.last ?? Position(header.base.rawValue - 1) }

    /// True if not only the footer but also lines before it cannot be read.
    var lacksLinesAtEnd: Bool {
        guard let damage = salvage.damage, damage.offset >= salvage.contentEnd,
            salvage.endingEnd == nil, following.map({ $0 > last.next }) ?? true
        else { return false }
        return !salvage.hasDamagedEnding
    }

    /// True if the position through which the log is compacted was in the footer that cannot be read.
    var losesCompactedThrough: Bool { salvage.isCompacted && salvage.footer == nil }

    /// The positions of the lines that cannot be read.
    var lost: [ClosedRange<Position>] {
        if let damage = salvage.damage, damage.offset < salvage.contentEnd {
            return salvage.lostPositions(in: header.base...max(header.base, last))
        }
        guard lacksLinesAtEnd, let following else { return [] }
        return salvage.lostPositions(
            in: last.next...max(last.next, following.advanced(by: -1)))
    }

    /// The damage before the last readable line that follows `error`, each with its location and the first
    /// positions that cannot be read because of it.
    var laterErrors: [LogError] {
        let damages = salvage.damages.filter { $0.offset < salvage.contentEnd }
        let lost = salvage.lostPositions(in: header.base...max(header.base, last))
        return damages.indices.dropFirst().map { number in
            let (damage, following) = (damages[number], damages.dropFirst(number + 1).first)
            let index = lost.partitioningIndex { $0.lowerBound >= damage.next }
            let isOwn =
                index < lost.count && lost[index].lowerBound < following?.next ?? Position(.max)
            return corruption(at: damage.offset, isOwn ? lost[index] : nil, damage.detail)
        }
    }

    private func corruption(
        at offset: Int, _ positions: ClosedRange<Position>?, _ detail: String
    ) -> LogError {
        LogError(
            .corrupt, path: path, offset: offset, positions: positions,
            detail + ". Nothing was changed")
    }

    /// The first damage in the file, with its location. Usually that of the footer.
    var error: LogError {
        let lines = header.base...max(header.base, last)
        let areIntact = salvage.last == nil ? "" : "; the lines before it are intact"
        if let damage = salvage.damage, damage.offset < salvage.contentEnd {
            let noFooter =
                salvage.footer == nil ? "; the segment's footer cannot be read either" : ""
            return corruption(
                at: damage.offset, salvage.lostPositions(in: lines).first, damage.detail + noFooter)
        }
        if let end = salvage.endingEnd {
            return corruption(
                at: end, lines,
                (salvage.damage == nil ? "zeros" : "bytes") + " follow the segment's footer"
                    + (following == nil ? "" : ", and other segments follow"))
        }
        if lacksLinesAtEnd {
            let missing = following.map { last.next...max(last.next, $0.advanced(by: -1)) }
            return corruption(
                at: salvage.contentEnd, missing ?? last.next...last.next,
                "the lines from position \(last.next) on and the segment's footer cannot be read")
        }
        return corruption(
            at: salvage.contentEnd, lines,
            (salvage.damage == nil
                ? "the segment has no footer, but other segments follow"
                : "the segment's footer is damaged") + areIntact)
    }
}
