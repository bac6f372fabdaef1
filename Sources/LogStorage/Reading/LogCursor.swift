// Follows a log without its lock, in this process or another, while a writer goes on: each poll
// delivers the lines that were committed since the last one and reads at most one frame again.
// Whatever looks bad at the live end counts as not yet written. Comes after the segment files,
// before LogReader, subscriptions and `inspect --follow`. Spec/format/following.md.

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
    /// The header of the segment that was opened first: all others are of the same log.
    private var first: SegmentHeader?
    /// The log's id; nil where any log may be in the folder.
    private let expectedID: UInt128?
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
        /// The segment if it is known to be sealed, so that all of it must be right.
        var sealed: SealedSegment?
        /// The segment if it should be sealed and has no usable footer.
        var unsealed: UnsealedSegment?
    }

    /// What the reading of a segment ended with.
    private enum End {
        case stopped
        case footer(SegmentFooter, offset: Int)
        /// The live end: nothing more is written yet, or what is there is not right yet.
        case live(ScanDamage?)
    }

    /// Creates a cursor. Nothing is opened yet.
    ///
    /// - Parameters:
    ///   - expectedID: the log's id, for a caller that has the log open: a folder that was replaced
    ///     by another log's is not read. Nil reads any log.
    ///   - position: the last position that is not wanted any more. Where it is after the log's end,
    ///     the cursor waits until the log has passed it.
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
            let end: End
            var refusal: (any Error)?
            do {
                end = try read(here, through: limit) { prefix, line in
                    do { return try body(prefix, line) } catch {
                        refusal = error
                        throw error
                    }
                }
            } catch {
                guard refusal == nil, let damage = error as? LogError, damage.code == .corrupt,
                    here.unsealed == nil
                else { throw error }
                // Readers and the writer report damage in the last segment at the same location.
                if try !hasSegment(behind: here.base) { _ = try judgeEnd(fromStart: true) }
                throw error
            }
            switch end {
            case .stopped: return false
            case .footer(let footer, let offset):
                position = max(position, footer.coveredThrough)
                place?.frame = FrameEntry(offset: offset, first: footer.coveredThrough.next)
                guard try enterNext(behind: footer, of: here.base) else { return true }
            case .live(let damage):
                if damage == nil, position > start { return true }
                if try hasSegment(behind: here.base) {
                    // So this one is sealed by now, and must be right.
                    place = try open(here.base)
                    continue
                }
                if let damage, let unsealed = try check(damage) {
                    place = unsealed
                    continue
                }
                return true
            }
        }
        return true
    }

    private mutating func read(
        _ here: Place, through limit: Position, _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws -> End {
        if let sealed = here.sealed { return try read(sealed, through: limit, body) }
        var scanner = SegmentScanner(
            here.file, at: here.frame.offset, expecting: here.frame.first,
            allowsHoles: here.unsealed?.salvage.isCompacted ?? false)
        while true {
            let step = try storage { () throws(FileError) in try scanner.next() }
            if let unsealed = here.unsealed {
                guard case .commit = step else { throw unsealed.error }
            }
            switch step {
            case .commit(let commit):
                if commit.beginsFrame {
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
                let next = scanner.expected
                guard footer.coveredThrough.next == next else {
                    throw LogError(
                        .corrupt, path: path(here.base), offset: offset,
                        positions: next...max(next, footer.coveredThrough),
                        "the segment ends at position \(next.rawValue - 1); its footer says "
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
                let goesOn = try body(prefix, line)
                position = prefix.position
                return goesOn
            }
            guard isOver else { return .stopped }
            // A writer believes them of every segment but the last.
            if bases.last.map({ $0 > sealed.header.base }) ?? false {
                _ = try sealed.removedIDs()
            }
        }
        return .footer(sealed.footer, offset: sealed.footerAt)
    }

    /// Throws where something proves that damage at the live end had been synced; otherwise it may be
    /// a write that is under way or was torn.
    ///
    /// - Returns: the beginning of a compacted segment: its lines before the damage, after legal holes,
    ///   are still to be read. Nil for any other segment.
    private mutating func check(_ damage: ScanDamage) throws -> Place? {
        do {
            _ = try judgeEnd()
        } catch let error as LogError where error.code == .corrupt {
            // The first damage of a compacted segment may be after the hole that stopped the scan. An
            // end where no writer ends a file may be a write that is under way.
            let size = try place.map { try $0.file.size() } ?? .max
            guard let here = place, let offset = error.offset, offset >= damage.offset,
                offset < size
            else { return nil }
            guard let unsealed = try unsealedPlace(here.base),
                unsealed.unsealed?.salvage.isCompacted ?? false
            else { throw error }
            return unsealed
        }
        return nil
    }

    // MARK: Finding the place

    /// Opens the segment anew by its name. It goes on where it was only if the file is the same.
    private mutating func refresh() throws(LogError) {
        if let here = place, let file = try openLive(here.base),
            try identity(of: file) == here.identity
        {
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
                positions: SealedSegments.gap(next, footer.coveredThrough.next),
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
            do throws(LogError) {
                return try place(
                    in: SealedSegment(SegmentName.of(base), in: directory, fileSystem))
            } catch let error where error.code == .corrupt {
                // Lines before a damaged footer are found by their frames.
                guard let place = try unsealedPlace(base) else { throw error }
                return place
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
            return try place(
                in: SealedSegment(
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
        return Place(base: base, file: file, identity: try identity(of: file), frame: frame)
    }

    private mutating func place(in sealed: SealedSegment) throws(LogError) -> Place {
        try check(sealed.header, sealed.path)
        let base = sealed.header.base
        return Place(
            base: base, file: sealed.file, identity: try identity(of: sealed.file),
            frame: sealed.footer.frames.last
                ?? FrameEntry(offset: SegmentHeader.encodedBytes, first: base),
            sealed: sealed)
    }

    /// The beginning of a segment that should be sealed and has no usable footer; nil where it has one.
    private mutating func unsealedPlace(_ base: Position) throws(LogError) -> Place? {
        let path = path(base)
        let (file, footer) = try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .read)
            return (file, try SegmentFooter.read(atEndOf: file))
        }
        guard footer == nil else { return nil }
        let header = try SealedSegment.header(of: file, path)
        try header.check(isNamedFor: base, path)
        try check(header, path)
        return Place(
            base: base, file: file, identity: try identity(of: file),
            frame: FrameEntry(offset: SegmentHeader.encodedBytes, first: base),
            unsealed: try UnsealedSegment(
                path, file: file, header: header, before: bases.first { $0 > base }))
    }

    /// Checks that a segment is of the log that is read.
    private mutating func check(_ header: SegmentHeader, _ path: String) throws(LogError) {
        if let expectedID, header.logID != expectedID {
            throw LogError(
                .noSuchLog, path: directory,
                "the folder holds another log than the one that was opened")
        }
        try header.check(isOf: &first, path)
    }

    /// The file of a segment, with what a cut recovery left half written completed; nil where there
    /// is none.
    private func openLive(_ base: Position) throws(LogError) -> (any File)? {
        do throws(LogError) {
            return try Recovery.openToRead(SegmentName.of(base), in: directory, fileSystem)
        } catch let error where error.code == .noSuchLog { return nil }
    }

    private func identity(of file: any File) throws(LogError) -> UInt64 {
        try storage { () throws(FileError) in try file.identity() }
    }

    private func path(_ base: Position) -> String { directory + "/" + SegmentName.of(base) }

    // MARK: Judging the end

    /// The id of the log, once a segment was opened.
    var logID: UInt128? { first?.logID }

    /// What the log's last segment is, and its name.
    ///
    /// - Parameter fromStart: false judges from the last frame that was read.
    /// - Throws: as `Recovery.judge`. While a writer is at work, the answer may be wrong: it is to be
    ///   believed only if nothing new has come when the log is polled again.
    func judgeEnd(fromStart: Bool = false) throws -> (last: LastSegment, name: String) {
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard let name = names.last else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        let file = try Recovery.openToRead(name, in: directory, fileSystem)
        var from: FrameEntry?
        if !fromStart, let place, place.base == SegmentName.base(name),
            try identity(of: file) == place.identity
        {
            from = place.frame
        }
        let last = try Recovery(directory: directory, fileSystem: fileSystem)
            .judge(name, file: file, from: from) { _, _ in }
        return (last, name)
    }
}
