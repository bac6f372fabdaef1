// Follows a log without its lock, in this process or another, while a writer goes on: each poll
// delivers the lines that were committed since the last one and reads at most one frame again.
// Whatever looks bad at the live end counts as not yet written. Comes after the segment files,
// before LogReader, subscriptions and `inspect --follow`. Spec/following.md.

import LogFormat

/// A place in a log from which lines are read as they are committed.
///
/// Lines come in order of position, each once, whatever happens in between: a segment rolls, the log
/// is closed and opened again, a torn tail is cut, a sealed segment is compacted. The cursor of
/// another process goes on where this one was if it is given its `position`.
///
/// A line is delivered once its commit is whole in the file. Another process may see that before the
/// commit's sync has returned; nothing in the file tells the two apart. **A power cut, or a sync that
/// failed, can take back lines that a cursor has delivered**, and their positions then go to other
/// lines. Whoever must not see such lines reads through `EventStore.events(after:)` in the writer's
/// process, or gives `poll` the last durable position as its limit.
package struct LogCursor: Sendable {
    /// The folder.
    package let directory: String
    /// Lines up to here were delivered, or were asked to be left out, or are gone.
    package private(set) var position: Position

    private let fileSystem: any FileSystem
    /// The segment that is being read; nil before it was found, or while it is not there yet.
    private var place: Place?
    /// Where the segments begin, as they were listed last.
    private var bases: [Position] = []
    private var logID: UInt128?
    private let hint: Hint?

    /// Where the lines of a live segment are, for who knows it already.
    package struct Hint: Sendable {
        var base: Position
        /// The frame of the first wanted line.
        var frame: FrameEntry
    }

    private struct Place {
        var base: Position
        /// Kept open also between polls, so that no other file can get its identity.
        var file: any File
        var identity: UInt64
        /// From where the next poll reads: a frame, or what stands behind the last one.
        var frame: FrameEntry
        /// Where the frames are, if compaction took lines out: positions do not tell then that one is
        /// missing.
        var compacted: SegmentFooter?
        /// The segment if it is followed by others, so that all of it must be right.
        var sealed: SealedSegment?
    }

    /// What the reading of a segment ended with.
    private enum End {
        case stopped
        case footer(SegmentFooter, offset: Int, expected: Position)
        /// The live end: nothing more is written yet, or what is there is not right yet.
        case live(ScanDamage?)
    }

    /// Creates a cursor. Nothing is opened yet.
    ///
    /// - Parameter position: the last position that is not wanted any more. Where it is behind the
    ///   log's end, the cursor waits until the log has passed it.
    package init(
        _ directory: String, after position: Position = .zero,
        fileSystem: any FileSystem = POSIXFileSystem(), _ hint: Hint? = nil
    ) {
        self.directory = directory
        self.position = position
        self.fileSystem = fileSystem
        self.hint = hint
    }

    // MARK: Reading

    /// Calls `body` with every line behind `position`, in order: all whose commits were over when the
    /// call began, and maybe later ones.
    ///
    /// - Parameters:
    ///   - limit: where to stop: lines behind it are left for later.
    ///   - body: gets the line's prefix and its bytes without newline. Once it has returned, the line
    ///     is delivered; false stops. If it throws, the next poll gives it the same line again.
    /// - Returns: whether the end was reached; false if `body` or the limit stopped it.
    /// - Throws: `LogError`: `noSuchLog`; `corrupt` where bytes are not right although something that
    ///   was written later proves that they had been synced; `newerVersion`, `unknownFeature`, `io`.
    ///   And whatever `body` throws. Lines before the place were delivered.
    /// - Complexity: O(bytes that are new), and one frame; the first time O(log frames) to find the
    ///   place in a sealed segment, O(bytes of the segment) without decoding them in a live one.
    @discardableResult
    package mutating func poll(
        through limit: Position = Position(.max), _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> Bool {
        let start = position
        try refresh()
        while let here = place {
            switch try read(here, through: limit, body) {
            case .stopped: return false
            case .footer(let footer, let offset, let expected):
                position = max(position, footer.coveredThrough)
                place?.frame = FrameEntry(offset: offset, first: expected)
                guard try enterNext(behind: footer, of: here.base) else { return true }
            case .live(let damage):
                if damage == nil, position > start { return true }
                if try hasSegment(behind: here.base) {
                    // So this one is sealed by now, and must be right.
                    place = try open(here.base)
                    continue
                }
                if let damage { try check(damage) }
                return true
            }
        }
        return true
    }

    private mutating func read(
        _ here: Place, through limit: Position, _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> End {
        var scanner = SegmentScanner(
            here.file, at: here.frame.offset, expecting: here.frame.first,
            allowsHoles: here.compacted != nil)
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            switch step {
            case .commit(let commit):
                if commit.beginsFrame {
                    try here.compacted?.check(commit, path(here.base))
                    place?.frame = FrameEntry(
                        offset: commit.frameOffset, first: commit.positions.lowerBound)
                }
                for line in commit.lines where line.prefix.position > position {
                    guard line.prefix.position <= limit else { return .stopped }
                    let bytes = scanner.plaintext.span.bytes.extracting(line.range)
                    let goesOn = try body(line.prefix, bytes)
                    position = line.prefix.position
                    guard goesOn else { return .stopped }
                }
                if commit.isBig {
                    place?.frame = FrameEntry(offset: commit.end, first: scanner.expected)
                }
            case .tail(.footer(let footer, _), let offset):
                try check(footer, at: offset, of: here, next: scanner.expected)
                return .footer(footer, offset: offset, expected: scanner.expected)
            case .tail(_, let offset):
                guard let sealed = here.sealed else { return .live(nil) }
                throw LogError(
                    .corrupt, path: sealed.path, offset: offset,
                    positions: sealed.positions(from: scanner.expected, after: offset),
                    "a sealed segment ends before its footer")
            case .damage(let damage):
                guard let sealed = here.sealed else { return .live(damage) }
                throw LogError(
                    .corrupt, path: sealed.path, offset: damage.offset,
                    positions: sealed.positions(from: scanner.expected, after: damage.offset),
                    damage.error.detail + " in a sealed segment. Nothing was changed")
            }
        }
    }

    private func check(
        _ footer: SegmentFooter, at offset: Int, of here: Place, next: Position
    ) throws(LogError) {
        // A compacted segment may cover more than its last line, or have none.
        let last = footer.isCompacted ? footer.lines?.upperBound : footer.coveredThrough
        let isWhole = next == last?.next ?? here.base
        guard !isWhole || here.sealed.map({ $0.footerAt != offset }) ?? false else { return }
        throw LogError(
            .corrupt, path: path(here.base), offset: offset,
            positions: next...max(next, footer.coveredThrough),
            "the segment ends at position \(next.rawValue - 1); its footer says "
                + "\(footer.coveredThrough)")
    }

    /// Throws where something proves that damage at the live end had been synced; otherwise it may be
    /// a write that is under way or was torn.
    private func check(_ damage: ScanDamage) throws {
        do {
            _ = try judgeEnd()
        } catch let error as LogError where error.code == .corrupt {
            if error.offset == damage.offset { throw error }
        }
    }

    // MARK: Finding the place

    /// Opens the segment anew by its name. It goes on where it was only if the file is the same.
    private mutating func refresh() throws(LogError) {
        if let here = place, let file = try openLive(here.base), try isSame(file, here) {
            place?.file = file
            return
        }
        place = nil
        try list()
        guard let base = bases.last(where: { $0 <= wanted }) else {
            guard let first = bases.first else { return }
            throw LogError(
                .corrupt, path: path(first), positions: wanted...wanted,
                "the segment is named for another position than \(wanted), which belongs here: a "
                    + "segment file is missing or was added")
        }
        place = try open(base)
    }

    /// The first position that is wanted.
    private var wanted: Position { position == Position(.max) ? position : position.next }

    /// Goes on with the segment behind one that ends with a footer.
    ///
    /// - Returns: false where there is none yet.
    private mutating func enterNext(
        behind footer: SegmentFooter, of base: Position
    ) throws(LogError) -> Bool {
        guard try hasSegment(behind: base), let next = bases.first(where: { $0 > base }) else {
            return false
        }
        guard next == footer.coveredThrough.next else {
            throw LogError(
                .corrupt, path: path(next),
                positions: min(
                    next, footer.coveredThrough.next)...max(
                        next, footer.coveredThrough.next),
                "the segment is named for another position than \(footer.coveredThrough.next), "
                    + "which belongs here: a segment file is missing or was added")
        }
        guard let opened = try open(next) else { return false }
        place = opened
        return true
    }

    private mutating func hasSegment(behind base: Position) throws(LogError) -> Bool {
        if bases.last.map({ $0 > base }) ?? false { return true }
        try list()
        return bases.last.map { $0 > base } ?? false
    }

    private mutating func list() throws(LogError) {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard names.isEmpty else { return bases = names.compactMap(SegmentName.base) }
        // A first segment that had only begun to exist is removed by the next writer, and made anew.
        guard !bases.isEmpty, position == .zero else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
    }

    /// Opens a segment at the frame of the first wanted line. One that is followed by others must be
    /// sealed; of the last one, nil while it has no header yet.
    private mutating func open(_ base: Position) throws(LogError) -> Place? {
        let path = path(base)
        if bases.last.map({ $0 > base }) ?? false {
            let segment = try SealedSegment(SegmentName.of(base), in: directory, fileSystem)
            try segment.header.check(isOf: &logID, path)
            let identity = try storage { () throws(FileError) in try segment.file.identity() }
            return Place(
                base: base, file: segment.file, identity: identity,
                frame: segment.footer.frame(of: wanted, from: base),
                compacted: segment.footer.isCompacted ? segment.footer : nil, sealed: segment)
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
        try header.check(isOf: &logID, path)
        let (wanted, hint) = (wanted, hint)
        return try storage { () throws(FileError) in
            let identity = try file.identity()
            if let footer = try SegmentFooter.read(atEndOf: file)?.footer {
                return Place(
                    base: base, file: file, identity: identity,
                    frame: footer.frame(of: wanted, from: base),
                    compacted: footer.isCompacted ? footer : nil)
            }
            let frame: FrameEntry
            if let hint, hint.base == base {
                frame = hint.frame
            } else {
                frame = try FrameSearch.frame(of: wanted, in: file, from: base)
            }
            return Place(
                base: base, file: file, identity: identity, frame: frame)
        }
    }

    /// The file of a segment, with what a cut recovery left half written completed; nil where there
    /// is none.
    private func openLive(_ base: Position) throws(LogError) -> (any File)? {
        do throws(LogError) {
            return try Recovery.openToRead(SegmentName.of(base), in: directory, fileSystem)
        } catch let error where error.code == .noSuchLog { return nil }
    }

    private func isSame(_ file: any File, _ place: Place) throws(LogError) -> Bool {
        try storage { () throws(FileError) in try file.identity() } == place.identity
    }

    private func path(_ base: Position) -> String { directory + "/" + SegmentName.of(base) }

    // MARK: Judging the end

    /// What the log's last segment is, judged from the last frame that was read.
    ///
    /// - Throws: as `Recovery.judge`. While a writer is at work, the answer may be wrong: it is to be
    ///   believed only if nothing new has come when the log is polled again.
    func judgeEnd() throws -> LastSegment {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard let name = names.last else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        let file = try Recovery.openToRead(name, in: directory, fileSystem)
        var from: FrameEntry?
        if let place, place.base == SegmentName.base(name), try isSame(file, place) {
            from = place.frame
        }
        return try Recovery(directory: directory, fileSystem: fileSystem)
            .judge(name, file: file, from: from) { _, _ in }
    }
}

extension SegmentFooter {
    /// The frame at which to begin reading for a position.
    fileprivate func frame(of position: Position, from base: Position) -> FrameEntry {
        frames.isEmpty
            ? FrameEntry(offset: SegmentHeader.encodedBytes, first: base)
            : frames[frames.frame(of: position)]
    }
}
