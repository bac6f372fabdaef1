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
            try SegmentSalvage(file, from: header.base, keepsPartsOfCommits: false)
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

    /// The positions of the lines that cannot be read.
    var lost: [ClosedRange<Position>] {
        if let damage = salvage.damage, damage.offset < salvage.contentEnd {
            return salvage.lostPositions(in: header.base...max(header.base, last))
        }
        guard lacksLinesAtEnd, let following else { return [] }
        return [last.next...max(last.next, following.advanced(by: -1))]
    }

    /// The first damage in the file, with its location. Usually that of the footer.
    var error: LogError {
        let lines = header.base...max(header.base, last)
        func error(
            at offset: Int, _ positions: ClosedRange<Position>?, _ detail: String
        ) -> LogError {
            LogError(
                .corrupt, path: path, offset: offset, positions: positions,
                detail + ". Nothing was changed")
        }
        let areIntact = salvage.last == nil ? "" : "; the lines before it are intact"
        if let damage = salvage.damage, damage.offset < salvage.contentEnd {
            let noFooter =
                salvage.footer == nil ? "; the segment's footer cannot be read either" : ""
            return error(
                at: damage.offset, salvage.lostPositions(in: lines).first, damage.detail + noFooter)
        }
        if let end = salvage.endingEnd {
            return error(
                at: end, lines,
                (salvage.damage == nil ? "zeros" : "bytes") + " follow the segment's footer"
                    + (following == nil ? "" : ", and other segments follow"))
        }
        if lacksLinesAtEnd {
            let missing = following.map { last.next...max(last.next, $0.advanced(by: -1)) }
            return error(
                at: salvage.contentEnd, missing ?? last.next...last.next,
                "the lines from position \(last.next) on and the segment's footer cannot be read")
        }
        return error(
            at: salvage.contentEnd, lines,
            (salvage.damage == nil
                ? "the segment has no footer, but other segments follow"
                : "the segment's footer is damaged") + areIntact)
    }
}
