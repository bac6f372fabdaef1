// The sealed segments of an open log, in order. The segments that a checkpoint names are opened only when
// they are needed.

import LogFormat

/// The chain of a log's sealed segments.
struct SealedSegments {
    private struct Slot {
        let name: String
        let range: ClosedRange<Position>
        var segment: SealedSegment? {
            didSet { (lookups, filter) = (0, nil) }
        }
        /// The number of id lookups in the segment.
        var lookups = 0
        var filter: IDFilter?
    }

    /// Lookups after which a segment gets a filter. Making one costs as much as some hundred lookups, and
    /// one or two bytes of memory per event.
    private static let lookupsMax = 256

    private let directory: String
    private let fileSystem: any FileSystem
    private var slots: [Slot] = []

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    var count: Int { slots.count }
    /// The positions that each segment covers.
    var ranges: [ClosedRange<Position>] { slots.map(\.range) }
    /// The position after the last segment.
    var next: Position { slots.last?.range.upperBound.next ?? Position(1) }
    /// The header of the segment that was opened first. All others must have the same log and account.
    private(set) var header: SegmentHeader?

    /// Appends an open segment.
    ///
    /// - Throws: `corrupt` if it does not follow the last one.
    mutating func append(_ segment: SealedSegment) throws(LogError) {
        try check(segment.header, segment.path)
        try segment.checkIDIndex()
        let base = segment.header.base
        let name = SegmentName.of(base)
        let through = segment.footer.coveredThrough
        guard base == next, through >= base else {
            throw Self.gap(segment.path, found: base, expecting: next)
        }
        slots.append(Slot(name: name, range: base...through, segment: segment))
    }

    /// Appends the segments that a checkpoint names. They are opened when needed.
    mutating func append(known ranges: [ClosedRange<Position>]) {
        for range in ranges {
            slots.append(
                Slot(name: SegmentName.of(range.lowerBound), range: range, segment: nil))
        }
    }

    /// The segment with a number, opened.
    mutating func segment(_ number: Int) throws(LogError) -> SealedSegment {
        if let segment = slots[number].segment { return segment }
        let slot = slots[number]
        let segment = try SealedSegment(slot.name, in: directory, fileSystem)
        try check(segment.header, segment.path)
        try segment.checkIDIndex()
        guard segment.footer.coveredThrough == slot.range.upperBound else {
            throw LogError(
                .corrupt, path: segment.path, offset: segment.footerAt,
                "the segment ends at position \(segment.footer.coveredThrough), but a checkpoint "
                    + "says \(slot.range.upperBound)")
        }
        slots[number].segment = segment
        return segment
    }

    /// The frames of a segment that may contain an id; nil if there are none. O(log n); with a filter O(1)
    /// for most absent ids.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`.
    mutating func candidates(
        _ number: Int, id: UInt128
    ) throws(LogError) -> (segment: SealedSegment, frames: [FrameEntry])? {
        if let filter = slots[number].filter, !filter.mayContain(id) { return nil }
        let segment = try segment(number)
        slots[number].lookups += 1
        if slots[number].lookups == Self.lookupsMax { slots[number].filter = segment.idFilter() }
        let frames = try segment.candidateFrames(id: id)
        return frames.isEmpty ? nil : (segment, frames)
    }

    /// True if a segment has lists of removed ids. Called for each segment and each new id, so it copies
    /// nothing.
    mutating func hasRemovedIDs(_ number: Int) throws(LogError) -> Bool {
        if slots[number].segment == nil { _ = try segment(number) }
        return slots[number].segment?.footer.compaction?.removedIDBytes ?? 0 > 0
    }

    /// Opens the file that has a segment's name now, in place of the one that was open.
    mutating func reopen(_ number: Int) throws(LogError) {
        slots[number].segment = nil
        _ = try segment(number)
    }

    /// True if the segment is open with the same file.
    func contains(_ segment: SealedSegment) -> Bool {
        number(covering: segment.header.base).map { slots[$0].segment?.file === segment.file }
            ?? false
    }

    /// Replaces an open segment by its compacted version.
    mutating func replace(_ old: SealedSegment, by new: SealedSegment) {
        if let number = number(covering: old.header.base) { slots[number].segment = new }
    }

    /// The number of the segment that covers a position. O(log n).
    func number(covering position: Position) -> Int? {
        let number = slots.partitioningIndex { $0.range.upperBound >= position }
        return number < slots.count && slots[number].range.contains(position) ? number : nil
    }

    private mutating func check(_ header: SegmentHeader, _ path: String) throws(LogError) {
        let first = self.header ?? header
        self.header = first
        try header.check(isOfLogOf: first, path)
    }

    /// The positions that no segment has, or that two have, if a segment begins at `found` and not at
    /// `expected`.
    static func gap(_ found: Position, _ expected: Position) -> ClosedRange<Position> {
        let first = min(found, expected)
        return first...max(first, Position(max(found, expected).rawValue - 1))
    }

    /// The error for a segment that begins at `found` and not at `expected`.
    static func gap(_ path: String, found: Position, expecting: Position) -> LogError {
        LogError(
            .corrupt, path: path, positions: gap(found, expecting),
            "the segment begins at position \(found), expected \(expecting): a segment file is "
                + "missing or was added. Nothing was changed")
    }
}

extension SegmentHeader {
    /// Checks that two segments belong to the same log and account.
    func check(isOfLogOf first: SegmentHeader, _ path: String) throws(LogError) {
        guard logID == first.logID, account == first.account else {
            let isOfLog = logID == first.logID
            throw LogError(
                .corrupt, path: path, offset: isOfLog ? 64 : 32,
                isOfLog
                    ? "the segment belongs to another account than the first one"
                    : "the segment belongs to another log than the first one")
        }
    }
}
