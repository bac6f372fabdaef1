// Takes lines out of one sealed segment: judge every line, write the others to a file beside the
// segment, sync, read it back, and only then let it take the segment's name. Works in the background
// on its own descriptors; what it was made from stays whole until the rename. Spec/format/compaction.md,
// CMP-20 to CMP-24.

import LogFormat

/// What becomes of a line.
package enum LineVerdict: Hashable, Sendable {
    case keep
    /// It goes; what is remembered of its content stands with its id.
    case remove(ContentHashes)
}

/// What compacting one segment came to.
package struct CompactedSegment: Sendable {
    /// Bytes on disk before and after; equal where nothing went.
    package var bytesBefore: Int
    package var bytesAfter: Int
    /// Lines that went.
    package var removed: Int
    /// Whether the segment would have become larger than a segment may be; then nothing went.
    package var hadNoRoom = false
    /// Whether the segment has another file now.
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

    // MARK: Judging

    /// Asks about every line, and gives those that go, in order.
    ///
    /// - Parameter judge: is told the line, and whether there is room to remember one more.
    /// - Complexity: O(bytes); memory for what is remembered of the lines that go.
    func survey(
        _ judge: (LinePrefix, RawSpan, _ hasRoom: Bool) throws -> LineVerdict
    ) throws -> [RemovedID] {
        let size = try storage { () throws(FileError) in try segment.file.size() }
        // Frames that were regrouped can be a little larger than they were.
        let room = FormatLimit.segmentBytesMax - size - FormatLimit.segmentBytesMax / 32
        let capacity = max(0, room / RemovedIDs.recordBytes)
        var removed: [RemovedID] = []
        // Growing would hold them twice.
        removed.reserveCapacity(min(capacity, Int(clamping: segment.footer.eventCount)))
        try forEachLine { prefix, line in
            let verdict = try judge(prefix, line, removed.count < capacity)
            if case .remove(let hashes) = verdict, removed.count < capacity {
                removed.append(
                    RemovedID(id: prefix.id, position: prefix.position, hashes: hashes))
            }
        }
        return removed
    }

    private func forEachLine(_ body: (LinePrefix, RawSpan) throws -> Void) throws {
        var count: UInt64 = 0
        _ = try segment.forEachLine(from: segment.header.base, betweenCommits: check) {
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

    private func check() throws {
        if isCancelled() { throw CancellationError() }
    }

    // MARK: Writing

    /// Writes the segment without some lines to a file of its own; synced and read back on return.
    ///
    /// - Parameters:
    ///   - removed: the lines that go, in order; afterwards by id, as they are remembered.
    ///   - horizon: the position by whose state they were judged.
    ///   - create: makes the file, once it is known that there is something to write.
    /// - Returns: the new file as the segment it is going to be; nil where nothing would change.
    /// - Throws: `LogError`: `diskFull`, `io`, `corrupt`, and `tooLarge` where the segment would not
    ///   fit; `CancellationError`. The file is removed by the caller then.
    func rewrite(
        without removed: inout [RemovedID], horizon: Position,
        create: (SegmentCompactor) throws(LogError) -> any File
    ) throws -> SealedSegment? {
        let now = environment.now()
        let known = try segment.removedIDs()
        let lists = known.filter { !$0.list.isExpired(now: now) }
        // An empty list only pads the file. It has no age, so it never is a reason to rewrite.
        let hasExpired = known.contains { $0.list.count > 0 && $0.list.isExpired(now: now) }
        guard !removed.isEmpty || hasExpired else { return nil }
        let file = try create(self)
        let header = try storage { () throws(FileError) in
            try segment.file.read(at: 0, count: SegmentHeader.encodedBytes)
        }
        var rewriter = SegmentRewriter(
            file, header: header, base: segment.header.base,
            seed: UInt32(truncatingIfNeeded: environment.random()), environment.sizes)
        var written = XXH64()
        var gone = 0
        try forEachLine { prefix, line in
            if gone < removed.count, removed[gone].position == prefix.position {
                gone += 1
                return
            }
            written.update(line)
            try rewriter.append(prefix, line)
        }
        precondition(gone == removed.count, "only lines of the segment can go")
        try rewriter.endLines()
        for found in lists { try copy(found, to: &rewriter) }
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
        _ found: RemovedIDsInFile, to rewriter: inout SegmentRewriter
    ) throws(LogError) {
        var offset = found.offset
        while offset < found.end {
            let bytes = try storage { () throws(FileError) in
                try segment.file.read(at: offset, count: min(256 * 1024, found.end - offset))
            }
            guard !bytes.isEmpty else { break }
            try rewriter.append(removedIDs: bytes)
            offset += bytes.count
        }
    }

    /// Reads the new file and holds it to what was to be written.
    private func readBack(
        _ footer: SegmentFooter, lines: UInt64, removedIDs: Int
    ) throws -> SealedSegment {
        let name = SegmentName.of(segment.header.base)
        let new = try SealedSegment(
            name, in: directory, fileSystem, from: LogDirectory.newSegment)
        var read = XXH64()
        var count: UInt64 = 0
        _ = try new.forEachLine(from: new.header.base, betweenCommits: check) {
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
                "the compacted segment does not read back as it was written; the segment was "
                    + "left as it was")
        }
        return new
    }

    /// Makes the file that is written to. One that is there is removed, not written over: it may be
    /// a segment under a second name, if only a part of a rename survived a power cut.
    func create() throws(LogError) -> any File {
        try remove()
        return try storage { () throws(FileError) in try fileSystem.open(path, .createNew) }
    }

    /// Removes a file that was not finished, if there is one.
    func remove() throws(LogError) { try Self.remove(from: directory, fileSystem) }

    /// Removes what an interrupted compaction left behind, if anything.
    static func remove(
        from directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        try storage { () throws(FileError) in
            guard try fileSystem.list(directory).contains(LogDirectory.newSegment) else { return }
            try fileSystem.remove(directory + "/" + LogDirectory.newSegment)
        }
    }
}
