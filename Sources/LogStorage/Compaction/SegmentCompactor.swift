// Removes lines from one sealed segment: decide for every line, write the kept lines to a file beside the
// segment, sync, read it back; the log then renames it to the segment's name. Works in the background on
// its own descriptors, and the old file stays intact until the rename. Spec/format/compaction.md, CMP-20
// to CMP-24.

import LogFormat

/// The decision whether compaction removes a line.
package enum LineVerdict: Hashable, Sendable {
    case keep
    /// Removes the line; the hashes of its content are stored with its id.
    case remove(ContentHashes)
}

/// The result of compacting one segment.
package struct CompactedSegment: Sendable {
    /// Bytes on disk before compaction.
    package var bytesBefore: Int
    /// Bytes on disk after compaction; equal to `bytesBefore` if no line was removed.
    package var bytesAfter: Int
    /// The number of removed lines.
    package var removed: Int
    /// True if the new segment would have exceeded the size of a segment; then nothing was removed.
    package var exceedsSegmentLimit = false
    /// True if the segment was replaced by a new file.
    package var isRewritten: Bool
}

/// The compaction of one segment.
struct SegmentCompactor {
    let segment: SealedSegment
    let directory: String
    let environment: LogEnvironment
    let isCancelled: () -> Bool

    private var path: String { directory + "/" + LogDirectory.newSegment }
    private var fileSystem: any FileSystem { environment.fileSystem }

    // MARK: Deciding

    /// Calls `decide` with every line and returns the lines to remove, in order.
    ///
    /// - Parameter decide: gets the line, and whether the list of removed ids can hold one more.
    /// - Complexity: O(bytes); memory for the records of the removed lines.
    func survey(
        _ decide: (LinePrefix, RawSpan, _ hasCapacity: Bool) throws -> LineVerdict
    ) throws -> [RemovedID] {
        let size = try storage { () throws(FileError) in try segment.file.size() }
        // Regrouped frames can be slightly larger than the old ones.
        let freeBytes = FormatLimit.segmentBytesMax - size - FormatLimit.segmentBytesMax / 32
        let capacity = max(0, freeBytes / RemovedIDs.recordBytes)
        var removed: [RemovedID] = []
        // Growing the array would hold the records twice.
        removed.reserveCapacity(min(capacity, Int(clamping: segment.footer.eventCount)))
        try forEachLine { prefix, line in
            let verdict = try decide(prefix, line, removed.count < capacity)
            if case .remove(let hashes) = verdict, removed.count < capacity {
                removed.append(
                    RemovedID(id: prefix.id, position: prefix.position, hashes: hashes))
            }
        }
        return removed
    }

    private func forEachLine(_ body: (LinePrefix, RawSpan) throws -> Void) throws {
        var count: UInt64 = 0
        _ = try segment.forEachLine(from: segment.header.base, betweenCommits: checkCancellation) {
            try body($0, $1)
            count += 1
            return true
        }
        guard count == segment.footer.eventCount else {
            throw LogError(
                .corrupt, path: segment.path, offset: segment.footerAt,
                "the segment holds \(count) lines; its footer says \(segment.footer.eventCount). "
                    + "Nothing was changed")
        }
    }

    private func checkCancellation() throws {
        if isCancelled() { throw CancellationError() }
    }

    // MARK: Writing

    /// Writes the segment without some lines to a new file, which is synced and read back on return.
    ///
    /// - Parameters:
    ///   - removed: the lines to remove, in order; on return sorted by id, as they are stored.
    ///   - horizon: the position whose state decided which lines to remove.
    ///   - create: creates the file; called only if there is something to write.
    /// - Returns: the new file, opened as the segment that it will replace; nil if nothing would change.
    /// - Throws: `LogError`: `diskFull`, `io`, `corrupt`, and `tooLarge` if the new segment would exceed
    ///   the size of a segment; `CancellationError`. The caller then removes the file.
    func rewrite(
        without removed: inout [RemovedID], horizon: Position,
        create: (SegmentCompactor) throws(LogError) -> any File
    ) throws -> SealedSegment? {
        let now = environment.now()
        let known = try segment.removedIDs()
        let lists = known.filter { !$0.list.isExpired(now: now) }
        // An empty list only pads the file and must not cause a rewrite when it expires.
        let hasExpired = known.contains { $0.list.count > 0 && $0.list.isExpired(now: now) }
        guard !removed.isEmpty || hasExpired else { return nil }
        let file = try create(self)
        let header = try storage { () throws(FileError) in
            try segment.file.read(at: 0, count: SegmentHeader.encodedBytes)
        }
        var rewriter = SegmentRewriter(
            file, header: header, base: segment.header.base, seed: try segment.idIndex().hashSeed,
            environment.sizes)
        var written = XXH64()
        var removedCount = 0
        try forEachLine { prefix, line in
            if removedCount < removed.count, removed[removedCount].position == prefix.position {
                removedCount += 1
                return
            }
            written.update(line)
            try rewriter.append(prefix, line)
        }
        precondition(removedCount == removed.count, "a removed line is not in the segment")
        try rewriter.endLines()
        for list in lists { try copy(list, to: &rewriter) }
        if !removed.isEmpty {
            removed.sort { $0.id < $1.id }
            try RemovedIDs.encode(
                sorted: removed, base: segment.header.base, removedAt: now
            ) { bytes throws(LogError) in try rewriter.append(removedIDs: bytes) }
        }
        let before = segment.footer.compaction?.through ?? .zero
        let footer = try rewriter.finish(
            coveredThrough: segment.footer.coveredThrough,
            compactedThrough: removed.isEmpty ? before : max(before, horizon))
        let count = lists.reduce(removed.count) { $0 + $1.list.count }
        return try readBack(footer, lines: written.value(), removedIDs: count)
    }

    private func copy(
        _ list: RemovedIDsInFile, to rewriter: inout SegmentRewriter
    ) throws(LogError) {
        var offset = list.offset
        while offset < list.end {
            let bytes = try storage { () throws(FileError) in
                try segment.file.read(at: offset, count: min(256 * 1024, list.end - offset))
            }
            guard !bytes.isEmpty else { break }
            try rewriter.append(removedIDs: bytes)
            offset += bytes.count
        }
    }

    /// Reads the new file and compares it with the lines and footer that were written.
    private func readBack(
        _ footer: SegmentFooter, lines: UInt64, removedIDs: Int
    ) throws -> SealedSegment {
        let name = SegmentName.of(segment.header.base)
        let new = try SealedSegment(
            name, in: directory, fileSystem, from: LogDirectory.newSegment)
        var read = XXH64()
        var count: UInt64 = 0
        _ = try new.forEachLine(from: new.header.base, betweenCommits: checkCancellation) {
            read.update($1)
            count += 1
            return true
        }
        let digest = try storage { () throws(FileError) in
            try SegmentFooter.digest(of: new.file, through: new.footerAt)
        }
        let remembered = try new.removedIDs().reduce(0) { $0 + $1.list.count }
        guard new.header == segment.header, new.footer == footer, digest == footer.digest,
            read.value() == lines, count == footer.eventCount, remembered == removedIDs
        else {
            throw LogError(
                .io, path: path,
                "the compacted segment differs when read back; the old segment is unchanged")
        }
        return new
    }

    /// Creates the file. An existing one is removed and not overwritten: if a power cut kept only a part of
    /// a rename, it is a segment under a second name.
    func create() throws(LogError) -> any File {
        try remove()
        return try storage { () throws(FileError) in try fileSystem.open(path, .createNew) }
    }

    /// Removes the unfinished file, if there is one.
    func remove() throws(LogError) { try Self.remove(from: directory, fileSystem) }

    /// Removes the file of an interrupted compaction, if there is one.
    static func remove(
        from directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        try storage { () throws(FileError) in
            guard try fileSystem.list(directory).contains(LogDirectory.newSegment) else { return }
            try fileSystem.remove(directory + "/" + LogDirectory.newSegment)
        }
    }
}
