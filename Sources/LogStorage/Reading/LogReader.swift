// Reads a log once, without its lock, in this or another process, while a writer may append: with a
// LogCursor up to the end, which is then classified. Damage at the end is read again before it is
// reported. Spec/format/recovery.md, REC-6.

import LogFormat

/// A reader of a log's lines, in order.
package struct LogReader: Sendable {
    /// The result of reading.
    package struct Outcome: Hashable, Sendable {
        /// The last position that was read; `zero` if the log has no lines.
        package var last: Position
        /// The bytes after the last commit that the next writer will truncate.
        package var tornTail: TornTail?
        /// True if a writer has the log open or did not close it.
        package var isOpenEnded: Bool
    }

    /// The folder.
    package let directory: String
    private let fileSystem: any FileSystem

    /// Creates a reader. Opens nothing.
    package init(_ directory: String, fileSystem: any FileSystem = POSIXFileSystem()) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    /// Calls `body` with every line whose position is at least `first`, in order.
    ///
    /// - Parameter body: gets the line's prefix and its bytes without newline; returns false to
    ///   stop.
    /// - Throws: `LogError` (`noSuchLog`, `notALog`, `corrupt`, `newerVersion`, …) after all intact
    ///   lines before the damage were delivered, and whatever `body` throws. A log that ends before a
    ///   position that a checkpoint names is `corrupt` (CHK-5).
    /// - Complexity: O(bytes from the frame of `first` on); in a live segment O(bytes of it) to find
    ///   that frame, without decoding them. Memory for one frame.
    @discardableResult
    package func forEachLine(
        from first: Position = Position(1), _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> Outcome {
        let claims = CheckpointSlots(directory, fileSystem: fileSystem).claims()
        var cursor = LogCursor(
            directory, after: first.advanced(by: -1), fileSystem: fileSystem)
        var attempt = 1
        while true {
            let start = cursor.position
            guard try cursor.poll(body) else {
                return Outcome(last: cursor.position, tornTail: nil, isOpenEnded: false)
            }
            // The damage has become a commit: a writer was in the middle of its write.
            if attempt > 1, cursor.position > start {
                return Outcome(last: cursor.position, tornTail: nil, isOpenEnded: true)
            }
            var outcome = Outcome(last: cursor.position, tornTail: nil, isOpenEnded: true)
            do {
                let (last, name) = try cursor.classifyEnd()
                try claims.check(
                    next: last.next(base: SegmentName.base(name) ?? Position(1)),
                    of: cursor.logID, location: (directory + "/" + name, last.end))
                switch last {
                case .sealed, .closed: outcome.isOpenEnded = false
                case .live, .unfinished: break
                case .torn(_, let tail):
                    if attempt < Recovery.attemptsMax {
                        attempt += 1
                        continue
                    }
                    outcome.tornTail = tail
                }
                return outcome
            } catch let error as LogError where error.code == .corrupt {
                guard attempt < Recovery.attemptsMax else { throw error }
                attempt += 1
            }
        }
    }

    /// The number and size of the segments, the log's id and its account, from the first readable header.
    package func files() throws(LogError) -> (
        segments: Int, bytes: Int, logID: String, account: String?
    ) {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        var bytes = 0
        var header: SegmentHeader?
        for name in names {
            let path = directory + "/" + name
            let file = try storage { () throws(FileError) in try fileSystem.open(path, .read) }
            bytes += try storage { () throws(FileError) in try file.size() }
            guard header == nil else { continue }
            let start = try storage { () throws(FileError) in
                try file.read(at: 0, count: SegmentHeader.encodedBytes)
            }
            header = try? SegmentHeader(start.span.bytes)
        }
        var id: [UInt8] = []
        LineText.append(uuid: header?.logID ?? 0, to: &id)
        return (names.count, bytes, String(decoding: id, as: UTF8.self), header?.account)
    }

    /// A segment's name, size and footer fields, known without reading its lines.
    package struct SegmentOutline: Sendable {
        package var base: Position
        package var bytes: Int
        package var isSealed: Bool
        /// See `compactedThrough()`.
        package var compactedThrough: Position
        /// The times of the oldest and the newest line of a sealed segment, in milliseconds since 1970; 0 for one in
        /// another form than that of LINE-1.
        package var times: ClosedRange<Int64>?
    }

    /// A cursor in the log, after a position.
    func cursor(after position: Position) -> LogCursor {
        LogCursor(directory, after: position, fileSystem: fileSystem)
    }

    /// Opens a sealed segment.
    func open(_ outline: SegmentOutline) throws(LogError) -> SealedSegment {
        try SealedSegment(SegmentName.of(outline.base), in: directory, fileSystem)
    }

    /// The total number of bytes to read for the whole log, for progress; 0 if it is not known.
    ///
    /// - Parameter verifying: true if sealed segments are read a second time for their digests.
    /// - Complexity: O(segments).
    package func bytesToRead(verifying: Bool = false) -> Int {
        ((try? outline(skippingUnreadable: true)) ?? []).reduce(0) {
            $0 + (verifying && $1.isSealed ? 2 : 1) * $1.bytes
        }
    }

    /// The segments, oldest first.
    ///
    /// - Parameter skippingUnreadable: true to leave out entries that cannot be read or are no files.
    /// - Throws: `LogError`.
    /// - Complexity: O(segments).
    package func outline(
        skippingUnreadable: Bool = false
    ) throws(LogError) -> [SegmentOutline] {
        var outline: [SegmentOutline] = []
        for name in try LogDirectory.segments(of: directory, fileSystem) {
            let bytes: Int
            let footer: SegmentFooter?
            do throws(FileError) {
                let file = try fileSystem.open(directory + "/" + name, .read)
                (bytes, footer) = (
                    try file.size(), try SegmentFooter.read(atEndOf: file)?.footer
                )
            } catch {
                guard skippingUnreadable else { throw LogError(error) }
                continue
            }
            outline.append(
                SegmentOutline(
                    base: SegmentName.base(name) ?? .zero, bytes: bytes, isSealed: footer != nil,
                    compactedThrough: footer?.compaction?.through ?? .zero, times: footer?.times))
        }
        return outline
    }

    /// The position before which states cannot be rebuilt, since compaction has removed lines that they
    /// depend on. `zero` if the log was never compacted.
    ///
    /// - Parameter skippingUnreadable: as for `outline`.
    /// - Throws: `LogError`.
    /// - Complexity: O(segments).
    package func compactedThrough(
        skippingUnreadable: Bool = false
    ) throws(LogError) -> Position {
        try outline(skippingUnreadable: skippingUnreadable)
            .reduce(.zero) { max($0, $1.compactedThrough) }
    }

    /// The number of removed ids that have not expired at `now`, in milliseconds since 1970.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(segments + removed ids).
    package func removedIDCount(now: Int64) throws(LogError) -> Int {
        var count = 0
        for segment in try outline() where segment.compactedThrough > .zero {
            let opened = try SealedSegment(
                SegmentName.of(segment.base), in: directory, fileSystem)
            for found in try opened.removedIDs() where !found.list.isExpired(now: now) {
                count += found.list.count
            }
        }
        return count
    }

    /// The position of the event with an id; nil if there is none.
    ///
    /// - Throws: `LogError`, as `forEachLine`; a segment that is compacted during the call may be reported as
    ///   damaged.
    /// - Complexity: O(segments · log ids), and O(bytes) of a segment that is not sealed.
    package func position(of id: UInt128) throws -> Position? {
        let outline = try outline()
        for segment in outline.reversed() where segment.isSealed {
            let sealed = try SealedSegment(SegmentName.of(segment.base), in: directory, fileSystem)
            for entry in try sealed.candidateFrames(id: id) {
                let line = try LineSearch.line(
                    id: id, in: sealed.file, path: sealed.path, entry,
                    allowsHoles: sealed.footer.isCompacted)
                if let line { return line.position }
            }
        }
        // Last, because it is decoded.
        guard let live = outline.last, !live.isSealed else { return nil }
        var found: Position?
        var cursor = LogCursor(
            directory, after: live.base.advanced(by: -1), fileSystem: fileSystem)
        try cursor.poll { prefix, _ in
            if prefix.id == id { found = prefix.position }
            return found == nil
        }
        return found
    }

    /// Looks up the record of a removed line that has not expired at `now`, in milliseconds since 1970; nil
    /// if there is none.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(segments + removed ids).
    package func removed(id: UInt128, now: Int64) throws(LogError) -> RemovedID? {
        for segment in try outline().reversed() where segment.compactedThrough > .zero {
            let opened = try SealedSegment(
                SegmentName.of(segment.base), in: directory, fileSystem)
            for found in try opened.removedIDs().reversed()
            where !found.list.isExpired(now: now) {
                if let removed = try opened.find(id, in: found) { return removed }
            }
        }
        return nil
    }
}
