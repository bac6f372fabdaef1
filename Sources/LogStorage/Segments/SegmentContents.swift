// What a segment holds, gathered commit by commit: by recovery while it reads, by the log while it
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
    /// Every id with its position, but those in `older`; where they are looked for.
    private var positions = IDTable()
    /// Every id as the id index has it; where they are put into one and nothing else.
    private var entries: [IDIndexEntry] = []
    private let use: IDUse
    /// A frame that has begun and whose first line says where.
    private var newFrame: Int?
    /// The ids that a checkpoint knew, once they are needed.
    private var older: IDIndex?
    /// Whether ids that a checkpoint knew are still to be taken in: until then this neither finds
    /// ids nor makes a footer.
    package private(set) var lacksOlderIDs = false

    /// What becomes of the ids.
    package enum IDUse: Sendable {
        /// They are looked for while the segment grows.
        case lookup
        /// They go into the footer's index, with this seed.
        case index(seed: UInt32)
        /// Nobody needs them.
        case none
    }

    /// Contents without a line. With `lookup` an id takes about 40 bytes, with `index` 8.
    package init(base: Position, ids use: IDUse = .lookup) {
        self.base = base
        self.use = use
    }

    /// Goes on from what a checkpoint knew, without its ids.
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

    /// Takes in the ids that a checkpoint knew. The index is not read through: its digest vouches for
    /// what its own encoder wrote.
    package mutating func takeIn(older index: IDIndex) {
        older = index
        lacksOlderIDs = false
    }

    /// Takes in the ids of all lines, as reading the segment found them.
    mutating func takeIn(positions found: IDTable) {
        positions = found
        lacksOlderIDs = false
    }

    /// The position after the last line.
    package var next: Position { lines?.upperBound.next ?? base }

    /// Takes in a frame's beginning; its first line follows.
    package mutating func begin(frameAt offset: Int) { newFrame = offset }

    /// Takes in a line.
    package mutating func add(_ prefix: LinePrefix, line: RawSpan) {
        // A footer has a place for times and none for their absence.
        add(prefix, lineBytes: line.byteCount, time: LinePrefix.time(of: line) ?? 0)
    }

    /// Takes in a line that was read already.
    package mutating func add(_ prefix: LinePrefix, lineBytes: Int, time: Int64) {
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

    /// The number of the frame that holds a position.
    package func frame(of position: Position) -> Int {
        frames.frame(of: position)
    }

    /// The position of an id, unless it is one of those that a checkpoint knew. O(1).
    package func position(id: UInt128) -> Position? { positions[id].map { Position($0) } }

    /// The frames that may hold an id which `position(id:)` does not know. O(log n).
    package func olderFrames(id: UInt128) -> [FrameEntry] {
        guard let older, let numbers = try? older.frames(hash: older.hash(id)) else { return [] }
        return numbers.filter(frames.indices.contains).map { frames[$0] }
    }

    /// The footer that seals this segment.
    ///
    /// - Parameters:
    ///   - seed: for the id index; contents that were made with one keep that.
    ///   - coveredThrough: the last position it answers for; nil takes that of the last line.
    ///   - compaction: what compaction adds.
    package func footer(
        seed: UInt32, digest: UInt64, coveredThrough: Position? = nil,
        compaction: SegmentFooter.Compaction? = nil
    ) -> SegmentFooter {
        precondition(!lacksOlderIDs, "a footer without some of the segment's ids")
        var seed = seed
        var entries = entries
        if case .index(let known) = use {
            seed = known
        } else {
            // Hashes that a checkpoint kept were made with its seed.
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
