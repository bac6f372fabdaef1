// Follows a log without its lock, in this or another process, while a writer appends: each poll delivers
// the lines that were committed since the last one, and rereads at most one frame. Damage at the live end
// counts as not yet written unless something proves that it was synced. LogReader, subscriptions and
// `inspect --follow` are built on it. Spec/format/following.md.

import LogFormat

/// A cursor that delivers a log's lines as they are committed.
///
/// Lines are delivered in order of position, each once, whatever happens in between: a segment rolls, the
/// log is closed and opened again, a torn tail is truncated, a sealed segment is compacted. A cursor that
/// is created with another cursor's `position` continues after it, also in another process.
///
/// A line is delivered once its commit is complete in the file. Another process may see the commit before
/// its sync has returned; the file does not distinguish the two. **A power cut, or a failed sync, can
/// retract lines that a cursor has delivered**, and their positions are then given to other lines. A
/// caller that must not see such lines reads through `EventStore.events(after:)` in the writer's process,
/// or passes the last durable position to `poll` as its limit.
package struct LogCursor: Sendable {
    /// The folder.
    package let directory: String
    /// The last position that was delivered, skipped on request, or removed by compaction.
    package private(set) var position: Position

    private let fileSystem: any FileSystem
    /// The segment that is being read; nil before it is found or while its file has no header yet.
    private var current: OpenSegment?
    /// The first positions of the segments, as listed last.
    private var bases: [Position] = []
    /// The header of the segment that was opened first. All others must belong to the same log.
    private var first: SegmentHeader?
    /// The log's id; nil to accept any log in the folder.
    private let expectedID: UInt128?
    private let hint: Hint?

    /// The location of the first wanted line in a live segment, for a caller that knows it already.
    package struct Hint: Sendable {
        var base: Position
        /// The frame of the first wanted line.
        var frame: FrameEntry
    }

    private struct OpenSegment {
        var base: Position
        /// Stays open between polls, so that no other file can get its inode number.
        var file: any File
        var identity: UInt64
        /// The location from which the next poll reads: a frame, or the end of the last one.
        var frame: FrameEntry
        /// The segment if it is known to be sealed; then any damage is an error.
        var sealed: SealedSegment?
        /// The segment if it should be sealed and has no usable footer.
        var unsealed: UnsealedSegment?
    }

    /// The reason why reading a segment ended.
    private enum End {
        case stopped
        case footer(SegmentFooter, offset: Int)
        /// The live end: no more is written yet, or the bytes there are incomplete or damaged.
        case live(ScanDamage?)
    }

    /// Creates a cursor. Opens nothing.
    ///
    /// - Parameters:
    ///   - expectedID: the log's id, for a caller that has the log open, so that a folder that was replaced
    ///     by another log's is not read. Nil accepts any log.
    ///   - position: the last position to skip. If it is after the log's end, the cursor delivers nothing
    ///     until the log has passed it.
    package init(
        _ directory: String, of expectedID: UInt128? = nil, after position: Position = .zero,
        fileSystem: any FileSystem = POSIXFileSystem(), _ hint: Hint? = nil
    ) {
        self.directory = directory
        self.expectedID = expectedID
        self.position = position
        self.fileSystem = fileSystem
        self.hint = hint
    }

    // MARK: Reading

    /// Calls `body` with every line after `position`, in order: all that were committed when the call began,
    /// and possibly later ones.
    ///
    /// - Parameters:
    ///   - limit: the last position to deliver; later lines are left for the next poll.
    ///   - body: gets the line's prefix and its bytes without newline. When it returns, the line counts as
    ///     delivered; false stops the poll. If it throws, the next poll delivers the same line again.
    /// - Returns: true if the end of the log was reached; false if `body` or the limit stopped the poll.
    /// - Throws: `LogError`: `noSuchLog`; `corrupt` if bytes are damaged and a later write proves that they
    ///   had been synced; `newerVersion`, `unknownFeature`, `io`. And whatever `body` throws. The lines
    ///   before the damage were delivered.
    /// - Complexity: O(new bytes), and one frame; on the first poll O(log frames) to find the first line
    ///   in a sealed segment, O(bytes of the segment) without decoding them in a live one.
    @discardableResult
    package mutating func poll(
        through limit: Position = Position(.max), _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> Bool {
        let start = position
        try refresh()
        while let segment = current {
            let end: End
            var bodyError: (any Error)?
            do {
                end = try read(segment, through: limit) { prefix, line in
                    do { return try body(prefix, line) } catch {
                        bodyError = error
                        throw error
                    }
                }
            } catch {
                guard bodyError == nil, let damage = error as? LogError, damage.code == .corrupt,
                    segment.unsealed == nil
                else { throw error }
                // Readers and the writer report damage in the last segment at the same location.
                if try !hasSegment(after: segment.base) { _ = try classifyEnd(fromStart: true) }
                throw error
            }
            switch end {
            case .stopped: return false
            case .footer(let footer, let offset):
                position = max(position, footer.coveredThrough)
                current?.frame = FrameEntry(offset: offset, first: footer.coveredThrough.next)
                guard try enterNext(after: footer, of: segment.base) else { return true }
            case .live(let damage):
                if damage == nil, position > start { return true }
                if try hasSegment(after: segment.base) {
                    // This segment is sealed by now, so it is read again as one, and damage is an error.
                    current = try open(segment.base)
                    continue
                }
                if let damage, let unsealed = try check(damage) {
                    current = unsealed
                    continue
                }
                return true
            }
        }
        return true
    }

    private mutating func read(
        _ segment: OpenSegment, through limit: Position,
        _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> End {
        if let sealed = segment.sealed { return try read(sealed, through: limit, body) }
        var scanner = SegmentScanner(
            segment.file, at: segment.frame.offset, expecting: segment.frame.first,
            allowsHoles: segment.unsealed?.salvage.isCompacted ?? false)
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            if let unsealed = segment.unsealed {
                guard case .commit = step else { throw unsealed.error }
            }
            switch step {
            case .commit(let commit):
                if commit.beginsFrame {
                    current?.frame = FrameEntry(
                        offset: commit.frameOffset, first: commit.positions.lowerBound)
                }
                for line in commit.lines where line.prefix.position > position {
                    guard line.prefix.position <= limit else { return .stopped }
                    let bytes = scanner.plaintext.span.bytes.extracting(line.range)
                    let continues = try body(line.prefix, bytes)
                    position = line.prefix.position
                    guard continues else { return .stopped }
                }
                if commit.isBig {
                    current?.frame = FrameEntry(offset: commit.end, first: scanner.expected)
                }
            case .tail(.footer(let footer, _), let offset):
                let next = scanner.expected
                guard footer.coveredThrough.next == next else {
                    throw LogError(
                        .corrupt, path: path(segment.base), offset: offset,
                        positions: next...max(next, footer.coveredThrough),
                        "the segment ends at position \(next.rawValue - 1), but its footer says "
                            + "\(footer.coveredThrough)")
                }
                return .footer(footer, offset: offset)
            case .tail: return .live(nil)
            case .damage(let damage): return .live(damage)
            }
        }
    }

    private mutating func read(
        _ sealed: SealedSegment, through limit: Position,
        _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> End {
        if position < sealed.footer.coveredThrough {
            let isOver = try sealed.forEachLine(from: wanted) { prefix, line in
                guard prefix.position <= limit else { return false }
                let continues = try body(prefix, line)
                position = prefix.position
                return continues
            }
            guard isOver else { return .stopped }
            // A writer looks removed ids up in every segment but the last, so damage there is reported.
            if bases.last.map({ $0 > sealed.header.base }) ?? false {
                _ = try sealed.removedIDs()
            }
        }
        return .footer(sealed.footer, offset: sealed.footerAt)
    }

    /// Throws if damage at the live end is proven to have been synced. Otherwise it may be a torn write or
    /// one in progress.
    ///
    /// - Returns: the start of a compacted segment, whose lines before the damage and after legal holes are
    ///   still to be read. Nil for any other segment.
    private mutating func check(_ damage: ScanDamage) throws -> OpenSegment? {
        do {
            _ = try classifyEnd()
        } catch let error as LogError where error.code == .corrupt {
            // The first damage of a compacted segment may be after the hole that stopped the scan. A file
            // end where no writer ends one may belong to a write in progress.
            let size = try current.map { try $0.file.size() } ?? .max
            guard let segment = current, let offset = error.offset, offset >= damage.offset,
                offset < size
            else { return nil }
            guard let unsealed = try openUnsealed(segment.base),
                unsealed.unsealed?.salvage.isCompacted ?? false
            else { throw error }
            return unsealed
        }
        return nil
    }

    // MARK: Opening segments

    /// Opens the current segment again by its name. Reading continues there only if the file is the same;
    /// otherwise the segment of the first wanted line is opened.
    private mutating func refresh() throws(LogError) {
        if let segment = current, let file = try openLive(segment.base),
            try identity(of: file) == segment.identity
        {
            current?.file = file
            return
        }
        current = nil
        try list()
        guard let base = bases.last(where: { $0 <= wanted }) else {
            guard let first = bases.first else { return }
            throw LogError(
                .corrupt, path: path(first), positions: wanted...wanted,
                "the segment begins at position \(first), expected \(wanted): a segment file is "
                    + "missing or was added")
        }
        current = try open(base)
    }

    /// The first position to deliver.
    private var wanted: Position { position == Position(.max) ? position : position.next }

    /// Opens the segment that follows a sealed one.
    ///
    /// - Returns: false if there is none yet.
    private mutating func enterNext(
        after footer: SegmentFooter, of base: Position
    ) throws(LogError) -> Bool {
        guard try hasSegment(after: base), let next = bases.first(where: { $0 > base }) else {
            return false
        }
        guard next == footer.coveredThrough.next else {
            throw LogError(
                .corrupt, path: path(next),
                positions: SealedSegments.gap(next, footer.coveredThrough.next),
                "the segment begins at position \(next), expected \(footer.coveredThrough.next): a "
                    + "segment file is missing or was added")
        }
        guard let opened = try open(next) else { return false }
        current = opened
        return true
    }

    private mutating func hasSegment(after base: Position) throws(LogError) -> Bool {
        if bases.last.map({ $0 > base }) ?? false { return true }
        try list()
        return bases.last.map { $0 > base } ?? false
    }

    private mutating func list() throws(LogError) {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard names.isEmpty else { return bases = names.compactMap(SegmentName.base) }
        // The next writer removes a first segment whose creation was interrupted, and creates it again.
        guard !bases.isEmpty, position == .zero else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
    }

    /// Opens a segment at the frame of the first wanted line. A segment that others follow must be sealed.
    ///
    /// - Returns: nil for the last segment while it has no header yet.
    private mutating func open(_ base: Position) throws(LogError) -> OpenSegment? {
        let path = path(base)
        if bases.last.map({ $0 > base }) ?? false {
            do throws(LogError) {
                return try openSegment(
                    SealedSegment(SegmentName.of(base), in: directory, fileSystem))
            } catch let error where error.code == .corrupt {
                // Lines before a damaged footer are found by their frames.
                guard let opened = try openUnsealed(base) else { throw error }
                return opened
            }
        }
        guard let file = try openLive(base) else { return nil }
        let bytes = try storage { () throws(FileError) in
            try file.read(at: 0, count: SegmentHeader.encodedBytes)
        }
        let header: SegmentHeader
        do throws(FormatError) {
            header = try SegmentHeader(bytes.span.bytes)
        } catch let error where error.code == .newerVersion || error.code == .unknownFeature {
            throw LogError(error, path: path, offset: 0)
        } catch { return nil }
        try header.check(isNamedFor: base, path)
        try check(header, path)
        let found = try storage { () throws(FileError) in try SegmentFooter.read(atEndOf: file) }
        if let found {
            return try openSegment(
                SealedSegment(
                    last: path, file: file, footer: found.footer, footerAt: found.start))
        }
        let frame: FrameEntry
        if let hint, hint.base == base {
            frame = hint.frame
        } else {
            let wanted = wanted
            frame = try storage { () throws(FileError) in
                try FrameSearch.frame(of: wanted, in: file, from: base)
            }
        }
        return OpenSegment(base: base, file: file, identity: try identity(of: file), frame: frame)
    }

    private mutating func openSegment(_ sealed: SealedSegment) throws(LogError) -> OpenSegment {
        try check(sealed.header, sealed.path)
        let base = sealed.header.base
        return OpenSegment(
            base: base, file: sealed.file, identity: try identity(of: sealed.file),
            frame: sealed.footer.frames.last
                ?? FrameEntry(offset: SegmentHeader.encodedBytes, first: base),
            sealed: sealed)
    }

    /// Opens a segment that should be sealed and has no usable footer at its start; nil if it has one.
    private mutating func openUnsealed(_ base: Position) throws(LogError) -> OpenSegment? {
        let path = path(base)
        let (file, footer) = try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .read)
            return (file, try SegmentFooter.read(atEndOf: file))
        }
        guard footer == nil else { return nil }
        let header = try SealedSegment.header(of: file, path)
        try header.check(isNamedFor: base, path)
        try check(header, path)
        return OpenSegment(
            base: base, file: file, identity: try identity(of: file),
            frame: FrameEntry(offset: SegmentHeader.encodedBytes, first: base),
            unsealed: try UnsealedSegment(
                path, file: file, header: header, before: bases.first { $0 > base }))
    }

    /// Checks that a segment belongs to the log that is read.
    private mutating func check(_ header: SegmentHeader, _ path: String) throws(LogError) {
        if let expectedID, header.logID != expectedID {
            throw LogError(
                .noSuchLog, path: directory,
                "the folder was replaced by another log while the log was open")
        }
        try header.check(isOf: &first, path)
    }

    /// Opens a segment's file, with an interrupted rewrite completed from its journal; nil if there is none.
    private func openLive(_ base: Position) throws(LogError) -> (any File)? {
        do throws(LogError) {
            return try Recovery.openToRead(SegmentName.of(base), in: directory, fileSystem)
        } catch let error where error.code == .noSuchLog { return nil }
    }

    private func identity(of file: any File) throws(LogError) -> UInt64 {
        try storage { () throws(FileError) in try file.identity() }
    }

    private func path(_ base: Position) -> String { directory + "/" + SegmentName.of(base) }

    // MARK: Classifying the end

    /// The id of the log, once a segment was opened.
    var logID: UInt128? { first?.logID }

    /// Classifies the log's last segment.
    ///
    /// - Parameter fromStart: true to read the whole segment, false to read from the current frame.
    /// - Throws: as `Recovery.classify`. While a writer appends, the result may be wrong. It is valid only
    ///   if another poll delivers nothing new.
    func classifyEnd(fromStart: Bool = false) throws -> (last: LastSegment, name: String) {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard let name = names.last else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        let file = try Recovery.openToRead(name, in: directory, fileSystem)
        var from: FrameEntry?
        if !fromStart, let current, current.base == SegmentName.base(name),
            try identity(of: file) == current.identity
        {
            from = current.frame
        }
        let last = try Recovery(directory: directory, fileSystem: fileSystem)
            .classify(name, file: file, from: from) { _, _ in }
        return (last, name)
    }
}
