// The sealed segments of an open log, in order. The segments that a checkpoint names are opened only when
// they are needed.

import LogFormat

/// The chain of a log's sealed segments.
struct SealedSegments {
    private struct Slot {
        let name: String
        let range: ClosedRange<Position>
        var segment: SealedSegment?
    }

    /// A filter for the ids of some segments that follow each other.
    private struct FilteredRun {
        let numbers: Range<Int>
        let filter: IDFilter
    }

    private let directory: String
    private let fileSystem: any FileSystem
    private let files: SegmentFiles
    private var slots: [Slot] = []
    /// Filters for the first segments, without gaps. A segment that compaction replaced has lost ids and got
    /// none, so its filter stays.
    private var filtered: [FilteredRun] = []
    /// The number of id lookups since the last filter was made.
    private var lookups = 0
    /// The segments that have lists of removed ids, descending; nil until they are needed.
    private var withRemovedIDs: [Int]?

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
        files = SegmentFiles(fileSystem)
    }

    var count: Int { slots.count }
    /// The positions that each segment covers.
    var ranges: [ClosedRange<Position>] { slots.map(\.range) }
    /// The position after the last segment.
    var next: Position { slots.last?.range.upperBound.next ?? Position(1) }
    /// The header of the segment that was opened first. All others must have the same log and account.
    private(set) var header: SegmentHeader?

    /// Appends a segment.
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
        slots.append(
            Slot(name: name, range: base...through, segment: try segment.sharing(files)))
        withRemovedIDs = nil
    }

    /// Appends the segments that a checkpoint names. They are read when needed.
    mutating func append(known ranges: [ClosedRange<Position>]) {
        for range in ranges {
            slots.append(
                Slot(name: SegmentName.of(range.lowerBound), range: range, segment: nil))
        }
        withRemovedIDs = nil
    }

    /// Reads the header and the footer of every segment. O(segments).
    ///
    /// - Throws: `LogError` of the first segment that cannot be read, or is not as a checkpoint says.
    mutating func readAll() throws(LogError) {
        for number in 0..<count { _ = try segment(number) }
    }

    /// The segment with a number. The first time, its header and footer are read.
    mutating func segment(_ number: Int) throws(LogError) -> SealedSegment {
        if let segment = slots[number].segment { return segment }
        let slot = slots[number]
        let segment = try SealedSegment(slot.name, in: directory, fileSystem).sharing(files)
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

    /// A segment whose index contains an id's hash, and the frames that it names.
    struct Candidate {
        let number: Int
        let segment: SealedSegment
        let frames: [FrameEntry]
    }

    /// The last candidate before the segment with number `end`; nil if there is none. O(segments · log events);
    /// once filters are made, three reads for each 64 segments for nearly all absent ids.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`.
    mutating func candidate(before end: Int, id: UInt128) throws(LogError) -> Candidate? {
        if end == count { countLookup() }
        var number = end
        while number > filteredEnd {
            number -= 1
            if let candidate = try candidate(number, id: id) { return candidate }
        }
        for run in filtered.reversed() where run.numbers.lowerBound < end {
            var found = run.filter.indexes(mayContain: id)
            while found != 0 {
                let place = UInt64.bitWidth - 1 - found.leadingZeroBitCount
                found &= ~(1 << UInt64(place))
                let number = run.numbers.lowerBound + place
                guard number < end else { continue }
                if let candidate = try candidate(number, id: id) { return candidate }
            }
        }
        return nil
    }

    private mutating func candidate(
        _ number: Int, id: UInt128
    ) throws(LogError) -> Candidate? {
        let segment = try segment(number)
        let frames = try segment.candidateFrames(id: id)
        return frames.isEmpty ? nil : Candidate(number: number, segment: segment, frames: frames)
    }

    /// Counts a lookup, and makes filters for the segments that have none once there were enough.
    private mutating func countLookup() {
        var first = filteredEnd
        guard first < count else { return }
        lookups += 1
        guard lookups >= IDFilter.lookupsMax else { return }
        lookups = 0
        guard var indexes = idIndexes(of: first..<count) else { return stopMakingFilters() }
        // As in a binary counter, the new segments join the runs before once they are as many. So a run's
        // segments double with each join, and there are few runs.
        var runs = filtered
        while let last = runs.last, last.numbers.count <= indexes.count,
            let joined = idIndexes(of: last.numbers).map({ $0 + indexes }),
            Self.runLength(joined[...]) > last.numbers.count
        {
            (indexes, first) = (joined, last.numbers.lowerBound)
            runs.removeLast()
        }
        var remaining = indexes[...]
        while !remaining.isEmpty {
            let length = Self.runLength(remaining)
            guard let filter = try? IDFilter(Array(remaining.prefix(length))) else {
                stopMakingFilters()
                break
            }
            runs.append(FilteredRun(numbers: first..<first + length, filter: filter))
            remaining = remaining.dropFirst(length)
            first += length
        }
        if first > filteredEnd || remaining.isEmpty { filtered = runs }
    }

    /// The number of the first segment without a filter.
    private var filteredEnd: Int { filtered.last?.numbers.upperBound ?? 0 }

    /// The id indexes of segments; nil if one cannot be read.
    private mutating func idIndexes(of numbers: Range<Int>) -> [IDIndex]? {
        var indexes: [IDIndex] = []
        for number in numbers {
            guard let index = try? segment(number).idIndex() else { return nil }
            indexes.append(index)
        }
        return indexes
    }

    /// Makes no more filters while the log is open, since an index is damaged: each attempt would decode it in
    /// vain. The lookup that meets the damage reports it.
    private mutating func stopMakingFilters() { lookups = .min }

    /// The number of indexes that get one filter: those with the seed of the first one, as long as they have a
    /// quarter of the ids for which the filter has capacity; a power of two, since others take the memory of the
    /// next one.
    private static func runLength(_ indexes: ArraySlice<IDIndex>) -> Int {
        var (length, ids, idsMax) = (0, 0, 0)
        for index in indexes.prefix(IDFilter.indexesMax) {
            guard index.hashSeed == indexes.first?.hashSeed else { break }
            ids += index.count
            idsMax = max(idsMax, index.count)
            guard (length + 1) * idsMax <= 4 * ids else { break }
            length += 1
        }
        return length == 0 ? 1 : 1 << (Int.bitWidth - 1 - length.leadingZeroBitCount)
    }

    /// The seed of the last segment's id index; nil if there is none or it is damaged.
    mutating func lastIDSeed() -> UInt32? {
        slots.isEmpty ? nil : try? segment(count - 1).idIndex().hashSeed
    }

    /// The segments that have lists of removed ids, the last one first. Called for each new id: O(1), or
    /// O(segments) after one was sealed or replaced.
    mutating func numbersWithRemovedIDs() throws(LogError) -> [Int] {
        if let withRemovedIDs { return withRemovedIDs }
        var numbers: [Int] = []
        for number in (0..<count).reversed()
        where try segment(number).footer.compaction?.removedIDBytes ?? 0 > 0 {
            numbers.append(number)
        }
        withRemovedIDs = numbers
        return numbers
    }

    /// True if the segment has the same file.
    func contains(_ segment: SealedSegment) -> Bool {
        number(covering: segment.header.base).map { slots[$0].segment?.file === segment.file }
            ?? false
    }

    /// Replaces a segment by its compacted version, whose file gets the segment's name by `rename`. A caller
    /// that has the old segment reads on in it.
    mutating func replace(
        _ old: SealedSegment, by new: SealedSegment, _ rename: () throws(FileError) -> Void
    ) throws(LogError) {
        guard let number = number(covering: old.header.base) else { return }
        slots[number].segment = try old.replaced(by: new, in: files, rename)
        withRemovedIDs = nil
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
    ///
    /// - Parameter other: the name of the other segment in the message.
    func check(
        isOfLogOf first: SegmentHeader, _ path: String, than other: String = "the first one"
    ) throws(LogError) {
        guard isOfOneLog(with: first) else {
            let isOfLog = logID == first.logID
            throw LogError(
                .corrupt, path: path, offset: isOfLog ? 64 : 32,
                isOfLog
                    ? "the segment belongs to another account than \(other)"
                    : "the segment belongs to another log than \(other)")
        }
    }
}
