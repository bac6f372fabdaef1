// The sealed segments of an open log, in order. With a checkpoint at hand a segment is opened only
// when something in it is looked for.

import LogFormat

/// The chain of a log's sealed segments.
struct SealedSegments {
    private struct Slot {
        let name: String
        let range: ClosedRange<Position>
        var segment: SealedSegment? {
            didSet { (lookups, filter) = (0, nil) }
        }
        /// How often an id was looked for here.
        var lookups = 0
        var filter: IDFilter?
    }

    /// Lookups after which a segment gets a filter: it takes as long to make as some hundred of them,
    /// and a byte or two of memory for each event.
    private static let lookupsMax = 256

    private let directory: String
    private let fileSystem: any FileSystem
    private var slots: [Slot] = []

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    var count: Int { slots.count }
    /// Where each segment begins and what it covers.
    var ranges: [ClosedRange<Position>] { slots.map(\.range) }
    /// The position after the last segment.
    var next: Position { slots.last?.range.upperBound.next ?? Position(1) }
    /// The header that the opened ones share.
    private(set) var header: SegmentHeader?

    /// Adds a segment that is open.
    ///
    /// - Throws: `corrupt` where it does not follow the one before.
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

    /// Adds segments that a checkpoint knows; they are opened when needed.
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
                "the segment ends at position \(segment.footer.coveredThrough); a checkpoint says "
                    + "\(slot.range.upperBound)")
        }
        slots[number].segment = segment
        return segment
    }

    /// The frames of a segment that may hold an id. O(log n), and O(1) for most other ids where many
    /// have been looked for.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`.
    mutating func candidates(
        _ number: Int, id: UInt128
    ) throws(LogError) -> (segment: SealedSegment, frames: [FrameEntry])? {
        if let filter = slots[number].filter, !filter.mayHold(id) { return nil }
        let segment = try segment(number)
        slots[number].lookups += 1
        if slots[number].lookups == Self.lookupsMax { slots[number].filter = segment.idFilter() }
        let frames = try segment.candidateFrames(id: id)
        return frames.isEmpty ? nil : (segment, frames)
    }

    /// Whether a segment remembers ids that compaction has taken out. Asked for each segment with
    /// each new id, so it copies nothing.
    mutating func remembersIDs(_ number: Int) throws(LogError) -> Bool {
        if slots[number].segment == nil { _ = try segment(number) }
        return slots[number].segment?.footer.compaction?.removedIDBytes ?? 0 > 0
    }

    /// Takes the present file under a segment's name instead of the one that was open.
    mutating func reopen(_ number: Int) throws(LogError) {
        slots[number].segment = nil
        _ = try segment(number)
    }

    /// Whether a segment is open here with this very file.
    func holds(_ segment: SealedSegment) -> Bool {
        number(covering: segment.header.base).map { slots[$0].segment?.file === segment.file }
            ?? false
    }

    /// Takes a compacted segment in the place of the one it was made from, which is held.
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

    /// The positions that no segment has, or two have, where one begins elsewhere than it must.
    static func gap(_ found: Position, _ expected: Position) -> ClosedRange<Position> {
        let first = min(found, expected)
        return first...max(first, Position(max(found, expected).rawValue - 1))
    }

    static func gap(_ path: String, found: Position, expecting: Position) -> LogError {
        LogError(
            .corrupt, path: path, positions: gap(found, expecting),
            "the segment begins at position \(found) where \(expecting) belongs: a segment file is "
                + "missing or was added. Nothing was changed")
    }
}

extension SegmentHeader {
    /// Checks that two segments are of one log.
    func check(isOfLogOf first: SegmentHeader, _ path: String) throws(LogError) {
        guard logID == first.logID, account == first.account else {
            let isOfLog = logID == first.logID
            throw LogError(
                .corrupt, path: path, offset: isOfLog ? 64 : 32,
                isOfLog
                    ? "the segment belongs to another account than the first one"
                    : "the segment is of another log")
        }
    }
}
