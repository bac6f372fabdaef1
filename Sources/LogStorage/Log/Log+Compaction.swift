// The log's part of compaction: lists the sealed segments, replaces a segment's file, and looks up removed
// ids. Only the replacement holds the log's mutex; everything before it runs concurrently with appends.
// Spec/format/compaction.md.

import LogFormat
import Synchronization

extension Log {
    /// The current sealed segments, oldest first. A segment stays readable after another file has taken its
    /// name; its file is then open for as long as a caller has the segment.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `suspended`, `indeterminate`.
    /// - Complexity: O(segments whose footers were not read yet).
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

    /// The number of sealed segments. O(1).
    package var sealedCount: Int { state.withLock { $0.sealed.count } }

    /// The bytes of the live segment up to its last commit; 0 if there is none. O(1).
    package var liveBytes: Int { state.withLock { $0.live?.dataEnd ?? 0 } }

    /// The position before which states cannot be rebuilt, since compaction has removed lines that they
    /// depend on. `zero` if the log was never compacted.
    ///
    /// - Throws: as `sealedSegments()`.
    /// - Complexity: O(segments).
    package func compactedThrough() throws(LogError) -> Position {
        try sealedSegments().compactedThrough
    }

    /// Removes lines from a sealed segment. Blocks while it reads the segment three times and writes it
    /// once; appends and lookups run meanwhile.
    ///
    /// On return the new segment is durable under the old name and in use. After any error the old one
    /// stays in use, nothing is lost, and the unfinished file is removed.
    ///
    /// - Parameters:
    ///   - segment: one of `sealedSegments()`.
    ///   - horizon: the position whose state `decide` relies on. If a line is removed,
    ///     `compactedThrough` becomes at least this.
    ///   - isCancelled: called between commits.
    ///   - decide: gets each line, and whether its id can still be recorded as removed; returns whether the
    ///     line is removed.
    /// - Throws: `LogError`: `diskFull`, `corrupt`, `io`, `closed`, `indeterminate`;
    ///   `CancellationError`; and whatever `decide` throws.
    /// - Complexity: O(bytes of the segment); memory for a few frames and the records of the removed
    ///   lines.
    package func compact(
        _ segment: SealedSegment, horizon: Position, isCancelled: () -> Bool,
        decide: (LinePrefix, RawSpan, _ hasCapacity: Bool) throws -> LineVerdict
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
            var removed = try compactor.survey(decide)
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
                result.exceedsSegmentLimit = true
                return result
            } catch {
                discard(compactor)
                throw error
            }
        }
    }

    /// Creates the file of a compacted segment. Without the writer lock, another process may be using
    /// that name.
    private func create(_ compactor: SegmentCompactor) throws(LogError) -> any File {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try requireInPlace(&state)
            return try compactor.create()
        }
    }

    /// Renames a compacted segment over the old one and uses it from now on; durable on return.
    private func replace(
        _ old: SealedSegment, by new: SealedSegment, _ compactor: SegmentCompactor
    ) throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try requireInPlace(&state)
            // While the log was suspended, another writer may have compacted the segment.
            guard state.sealed.contains(old) else {
                throw LogError(.io, path: old.path, "the segment's file was replaced meanwhile")
            }
            try state.sealed.replace(old, by: new) { () throws(FileError) in
                try environment.fileSystem.rename(
                    directory + "/" + LogDirectory.newSegment, to: old.path)
            }
            state.removedIDs[new.header.base] = nil
            state.cache = FrameCache()
        }
        // If this sync fails, the old file may reappear after a power cut. It has all lines of the new one.
        try storage { () throws(FileError) in
            try environment.fileSystem.syncDirectory(directory)
        }
    }

    /// Removes the unfinished file. If that fails, the next compaction or opening removes it.
    private func discard(_ compactor: SegmentCompactor) {
        state.withLock { state in
            // The file is removed by path, and in a replaced folder that path is another log's.
            guard state.lock != nil, (try? requireInPlace(&state)) != nil else { return }
            try? compactor.remove()
        }
    }

    /// Calls `body` with the lines of a sample of frames, evenly spread over the log.
    ///
    /// - Parameter frames: the maximum number of frames to read.
    /// - Throws: `LogError`, and what `body` throws.
    /// - Complexity: O(segments + `frames`).
    package func forEachLine(
        inSampleOf frames: Int, _ body: (LinePrefix, RawSpan) throws -> Void
    ) throws {
        let counts = try sealedSegments().map(\.footer.frames.count)
        let live = try state.withLock {
            (state) throws(LogError) -> (file: any File, path: String, frames: [FrameEntry])? in
            try checkUsable(state)
            guard let reading = state.live?.reading() else { return nil }
            return (reading.file, reading.path, state.contents.frames)
        }
        let total = counts.reduce(live?.frames.count ?? 0, +)
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
        for index in counts.indices {
            // One at a time: compaction keeps the file of a replaced segment open while a reader has it.
            let segment = try state.withLock { (state) throws(LogError) -> SealedSegment in
                try checkUsable(state)
                return try state.sealed.segment(index)
            }
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

    /// Looks up the record of a line that compaction removed within the last 90 days; nil if there is none.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `indeterminate`.
    /// - Complexity: O(compacted segments · log removed ids), and for an absent id one small read for a
    ///   thousand of them. The first call after a segment was opened or compacted reads its lists once.
    package func removed(id: UInt128) throws(LogError) -> RemovedID? {
        let now = environment.now()
        return try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            for number in try state.sealed.numbersWithRemovedIDs() {
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
    /// The position before which states cannot be rebuilt.
    var compactedThrough: Position {
        reduce(.zero) { Swift.max($0, $1.footer.compaction?.through ?? .zero) }
    }
}
