// The metadata of a segment, collected commit by commit: by recovery while it reads, by the log while it
// writes. Sealing turns it into the footer. Spec/format/segment.md, SEG-5.

import LogFormat

/// Counts, frames and ids of one segment.
package struct SegmentContents: Sendable {
    package let base: Position
    package private(set) var frames: [FrameEntry] = []
    package private(set) var lines: ClosedRange<Position>?
    package private(set) var eventCount = 0
    package private(set) var times: ClosedRange<Int64>?
    package private(set) var plaintextBytes = 0
    /// Every id with its position, except those in `older`. With `IDUse.lookup` only.
    private var positions = IDTable()
    /// Every id as an entry of the id index. With `IDUse.index` only.
    private var entries: [IDIndexEntry] = []
    private let use: IDUse
    /// The offset of a new frame, until its first line gives the position.
    private var newFrame: Int?
    /// The ids in the checkpoint from which the contents were resumed, once they are loaded.
    private var older: IDIndex?
    /// A filter for them, once they were looked up often.
    private var olderFilter: IDFilter?
    private var olderLookups = 0
    /// True until the ids of the checkpoint are set. Until then ids cannot be looked up, and no footer can
    /// be made.
    package private(set) var lacksOlderIDs = false

    /// The purpose for which ids are collected.
    package enum IDUse: Sendable {
        /// Lookup while the segment grows.
        case lookup
        /// The footer's id index, with this seed.
        case index(seed: UInt32)
        /// Ids are not collected.
        case none
    }

    /// Creates contents without lines. An id takes about 40 bytes with `lookup`, 8 with `index`.
    package init(base: Position, ids use: IDUse = .lookup) {
        self.base = base
        self.use = use
    }

    /// Resumes from the contents in a checkpoint, without their ids.
    package init(resuming snapshot: LiveSnapshot) {
        base = snapshot.base
        use = .lookup
        frames = snapshot.footer.frames
        lines = snapshot.footer.lines
        eventCount = Int(clamping: snapshot.footer.eventCount)
        times = snapshot.footer.times
        plaintextBytes = Int(clamping: snapshot.footer.plaintextBytes)
        lacksOlderIDs = true
    }

    /// Sets the ids of the checkpoint. The index is not validated, since its digest was checked.
    package mutating func setOlderIDs(_ index: IDIndex) {
        (older, olderFilter, olderLookups) = (index, nil, 0)
        lacksOlderIDs = false
    }

    /// Sets the ids of all lines, as read from the segment itself.
    mutating func setIDs(_ ids: IDTable) {
        positions = ids
        lacksOlderIDs = false
    }

    /// The position after the last line.
    package var next: Position { lines?.upperBound.next ?? base }

    /// Begins a frame. Its first line is appended next.
    package mutating func beginFrame(at offset: Int) { newFrame = offset }

    /// Appends a line.
    package mutating func append(_ prefix: LinePrefix, line: RawSpan) {
        // A footer cannot express that a line has no time.
        append(prefix, lineBytes: line.byteCount, time: LinePrefix.time(of: line) ?? 0)
    }

    /// Appends a line whose length and time are known.
    package mutating func append(_ prefix: LinePrefix, lineBytes: Int, time: Int64) {
        if let offset = newFrame {
            frames.append(FrameEntry(offset: offset, first: prefix.position))
            newFrame = nil
        }
        switch use {
        case .lookup: positions.set(prefix.id, to: prefix.position.rawValue)
        case .index(let seed):
            let hash = IDIndex.hash(prefix.id, seed: seed)
            entries.append(IDIndexEntry(hash: hash, frame: frames.count - 1))
        case .none: break
        }
        lines = (lines?.lowerBound ?? prefix.position)...prefix.position
        eventCount += 1
        plaintextBytes += lineBytes + 1
        times = times.map { min($0.lowerBound, time)...max($0.upperBound, time) } ?? time...time
    }

    /// The number of the frame whose range includes a position.
    package func frame(of position: Position) -> Int {
        frames.frame(of: position)
    }

    /// The position of an id; nil if it is absent or one of the checkpoint's ids. O(1).
    package func position(id: UInt128) -> Position? { positions[id].map { Position($0) } }

    /// The indices of the frames that may contain an id of the checkpoint. O(log n); once a filter is made, O(1)
    /// for nearly all absent ids.
    package mutating func olderFrames(id: UInt128) -> [Int] {
        guard let older else { return [] }
        if let olderFilter, olderFilter.indexes(mayContain: id) == 0 { return [] }
        olderLookups += 1
        if olderLookups == IDFilter.lookupsMax { olderFilter = try? IDFilter([older]) }
        guard let numbers = try? older.frames(hash: older.hash(id)) else { return [] }
        return numbers.filter(frames.indices.contains)
    }

    /// Creates the footer that seals the segment.
    ///
    /// - Parameters:
    ///   - seed: the seed of the id index, unless the contents already have one.
    ///   - coveredThrough: the last position that the segment covers; nil for that of the last line.
    ///   - compaction: the additional fields of a compacted segment.
    package func footer(
        seed: UInt32, digest: UInt64, coveredThrough: Position? = nil,
        compaction: SegmentFooter.Compaction? = nil
    ) -> SegmentFooter {
        precondition(!lacksOlderIDs, "the ids of the checkpoint are not loaded")
        var seed = seed
        var entries = entries
        if case .index(let known) = use {
            seed = known
        } else {
            // The checkpoint's entries were hashed with its seed.
            seed = older?.hashSeed ?? seed
            entries = (try? older?.entries()) ?? []
            entries += positions.all.map {
                IDIndexEntry(
                    hash: IDIndex.hash($0.id, seed: seed), frame: frame(of: Position($0.number)))
            }
        }
        return SegmentFooter(
            coveredThrough: coveredThrough ?? lines?.upperBound ?? Position(base.rawValue - 1),
            lines: lines, eventCount: UInt64(eventCount), times: times,
            plaintextBytes: UInt64(plaintextBytes), compaction: compaction, frames: frames,
            idIndex: IDIndex.encode(entries, frameCount: frames.count, seed: seed),
            digest: digest)
    }
}

extension Array<FrameEntry> {
    /// The index of the last frame that begins at or before a position. O(log n).
    package func frame(of position: Position) -> Int {
        Swift.max(0, partitioningIndex { $0.first > position } - 1)
    }
}
