// Compaction as the log sees it: which segments are sealed, a new file in a segment's place, what is
// remembered of removed ids. Only the swap holds the log's lock; everything before it goes on beside
// appends. Spec/format/compaction.md.

import LogFormat
import Synchronization

extension Log {
    /// The sealed segments, oldest first, as they are now. Whoever holds one can read it to the end,
    /// whatever becomes of its name.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `suspended`, `indeterminate`.
    /// - Complexity: O(segments that were not open yet).
    package func sealedSegments() throws(LogError) -> [SealedSegment] {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            var segments: [SealedSegment] = []
            for number in 0..<state.sealed.count {
                segments.append(try state.sealed.segment(number))
            }
            return segments
        }
    }

    /// How many segments are sealed. O(1).
    package var sealedCount: Int { state.withLock { $0.sealed.count } }

    /// Bytes of the live segment up to its last commit; 0 if there is none. O(1).
    package var liveBytes: Int { state.withLock { $0.live?.dataEnd ?? 0 } }

    /// States before this position cannot be rebuilt: compaction has taken out lines that they
    /// followed from. `zero` if nothing was ever taken out.
    ///
    /// - Throws: as `sealedSegments()`.
    /// - Complexity: O(segments).
    package func compactedThrough() throws(LogError) -> Position {
        try sealedSegments().compactedThrough
    }

    /// Takes lines out of a sealed segment. Blocks for as long as it takes to read the segment three
    /// times and write it once; appends and lookups go on meanwhile.
    ///
    /// On return the new segment is on the disk under the old name, and used. After any error the
    /// old one is: nothing is lost, and what was begun is removed.
    ///
    /// - Parameters:
    ///   - segment: as `sealedSegments()` gave it.
    ///   - horizon: the position by whose state `judge` judges; `compactedThrough` is at least that
    ///     if anything goes.
    ///   - isCancelled: asked between frames.
    ///   - judge: is told each line, and whether there is room to remember it; says what becomes
    ///     of it.
    /// - Throws: `LogError`: `diskFull`, `corrupt`, `io`, `closed`, `indeterminate`;
    ///   `CancellationError`; and whatever `judge` throws.
    /// - Complexity: O(bytes of the segment); memory for a few frames, and for what is remembered
    ///   of the segment's lines.
    package func compact(
        _ segment: SealedSegment, horizon: Position, isCancelled: () -> Bool,
        judge: (LinePrefix, RawSpan, _ hasRoom: Bool) throws -> LineVerdict
    ) throws -> CompactedSegment {
        precondition(
            isCompacting.withLock { isCompacting in
                defer { isCompacting = true }
                return !isCompacting
            }, "one compaction at a time")
        defer { isCompacting.withLock { $0 = false } }
        return try withoutActuallyEscaping(isCancelled) { isCancelled in
            let compactor = SegmentCompactor(
                segment: segment, directory: directory, environment: environment,
                isCancelled: isCancelled)
            var removed = try compactor.survey(judge)
            let before = try storage { () throws(FileError) in try segment.file.size() }
            var result = CompactedSegment(
                bytesBefore: before, bytesAfter: before, removed: 0, isRewritten: false)
            do {
                let new = try compactor.rewrite(
                    without: &removed, horizon: horizon, create: create)
                guard let new else { return result }
                try replace(segment, by: new, compactor)
                result.bytesAfter = try storage { () throws(FileError) in try new.file.size() }
                result.removed = removed.count
                result.isRewritten = true
                return result
            } catch let error as LogError where error.code == .tooLarge {
                discard(compactor)
                result.hadNoRoom = true
                return result
            } catch {
                discard(compactor)
                throw error
            }
        }
    }

    /// Makes the file of a compacted segment. Without the lock on the folder somebody else may own
    /// the name.
    private func create(_ compactor: SegmentCompactor) throws(LogError) -> any File {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try requireInPlace(&state)
            return try compactor.create()
        }
    }

    /// Gives a compacted segment its name, and uses it from now on; durable on return.
    private func replace(
        _ old: SealedSegment, by new: SealedSegment, _ compactor: SegmentCompactor
    ) throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try requireInPlace(&state)
            // The log may have been suspended and others have compacted the segment meanwhile.
            guard state.sealed.holds(old) else {
                throw LogError(.io, path: old.path, "the segment has another file by now")
            }
            try storage { () throws(FileError) in
                try environment.fileSystem.rename(
                    directory + "/" + LogDirectory.newSegment, to: old.path)
            }
            state.sealed.replace(old, by: new)
            state.removedIDs[new.header.base] = nil
            state.cache = FrameCache()
        }
        // Should this fail, the old file may come back after a power cut. It holds all that the new
        // one does.
        try storage { () throws(FileError) in
            try environment.fileSystem.syncDirectory(directory)
        }
    }

    /// Removes what was begun. If that fails, the next compaction or opening does it.
    private func discard(_ compactor: SegmentCompactor) {
        state.withLock { state in
            // By its path: in a folder that was replaced it is another log's.
            guard state.lock != nil, (try? requireInPlace(&state)) != nil else { return }
            try? compactor.remove()
        }
    }

    /// Calls `body` with the lines of frames that are spread evenly over the log.
    ///
    /// - Parameter frames: how many frames to read at most.
    /// - Throws: `LogError`, and what `body` throws.
    /// - Complexity: O(segments + `frames`).
    package func forEachLine(
        inSampleOf frames: Int, _ body: (LinePrefix, RawSpan) throws -> Void
    ) throws {
        let segments = try sealedSegments()
        let live = try state.withLock {
            (state) throws(LogError) -> (file: any File, path: String, frames: [FrameEntry])? in
            try checkUsable(state)
            guard let reading = state.live?.reading() else { return nil }
            return (reading.file, reading.path, state.contents.frames)
        }
        let total = segments.reduce(live?.frames.count ?? 0) { $0 + $1.footer.frames.count }
        let step = max(1, (total + frames - 1) / max(1, frames))
        var number = 0
        func read(
            _ entries: [FrameEntry], _ frame: (FrameEntry) throws -> DecodedFrame
        ) throws {
            for entry in entries {
                defer { number += 1 }
                guard number % step == 0 else { continue }
                let decoded = try frame(entry)
                for line in decoded.lines {
                    try body(
                        line.prefix, decoded.plaintext.span.bytes.extracting(line.range))
                }
            }
        }
        for segment in segments {
            try read(segment.footer.frames) {
                try DecodedFrame.read(
                    segment.file, path: segment.path, $0,
                    allowsHoles: segment.footer.isCompacted)
            }
        }
        if let live {
            try read(live.frames) {
                try DecodedFrame.read(live.file, path: live.path, $0, allowsHoles: false)
            }
        }
    }

    /// What is remembered of a line that compaction took out within the last 90 days; nil if no such
    /// line is known.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `indeterminate`.
    /// - Complexity: O(compacted segments · log removed ids) and one small read for each. The first
    ///   call after a segment was opened or compacted reads its lists once.
    package func removed(id: UInt128) throws(LogError) -> RemovedID? {
        let now = environment.now()
        return try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            for number in (0..<state.sealed.count).reversed() {
                guard try state.sealed.remembersIDs(number) else { continue }
                let segment = try state.sealed.segment(number)
                for found in try Self.removedIDs(of: segment, &state).reversed()
                where !found.list.isExpired(now: now) {
                    if let removed = try segment.find(id, in: found) { return removed }
                }
            }
            return nil
        }
    }

    private static func removedIDs(
        of segment: SealedSegment, _ state: inout State
    ) throws(LogError) -> [RemovedIDsInFile] {
        if let known = state.removedIDs[segment.header.base] { return known }
        let lists = try segment.removedIDs()
        state.removedIDs[segment.header.base] = lists
        return lists
    }
}

extension Sequence<SealedSegment> {
    /// States before this position cannot be rebuilt.
    var compactedThrough: Position {
        reduce(.zero) { Swift.max($0, $1.footer.compaction?.through ?? .zero) }
    }
}
