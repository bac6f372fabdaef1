// A log as its one writer sees it. The flow of an append: lines → commit → block → segment → disk;
// of a lookup: id → index → frame → line. Opening: list → check the chain → judge the last segment
// → mend. Spec/overview.md.
//
// Synchronous behind a mutex: between finding an offset and writing to it nothing else happens.
// Callers keep it off the cooperative thread pool.

import LogFormat
import Synchronization

/// An append-only log of lines in a folder, opened for writing.
///
/// A line is one JSON object without line breaks that begins as `Spec/line.md` says; `EventStore`
/// makes such lines from events. All methods are thread-safe.
public final class Log: Sendable {
    /// The folder.
    public let directory: String
    /// The log's identity, the same in all its segments.
    public let id: UInt128
    /// The account the log belongs to, if any.
    public let account: String?
    /// What opening found and mended.
    public let recovery: RecoveryReport

    let environment: LogEnvironment
    let state: Mutex<State>
    /// Whether a segment is being compacted; there is one file for that.
    let isCompacting = Mutex(false)

    struct State: ~Copyable {
        var lock: WriterLock?
        /// Under which name this log writes; stays known when the lock is released.
        var incarnation: UInt128
        var sealed: [SealedSegment]
        /// Missing between sealing a segment and creating the next.
        var live: SegmentWriter?
        var contents: SegmentContents
        var cache = FrameCache()
        /// The lists of removed ids that were read, by their segment's first position.
        var removedIDs: [Position: [RemovedIDsInFile]] = [:]
        var failure: LogError?
    }

    // MARK: Opening

    /// Opens a log and mends what an unclean stop left behind, or creates one.
    ///
    /// - Parameters:
    ///   - directory: the folder; created (0700) if it is missing and `create` is true.
    ///   - account: whose log it is; nil takes whatever the log says.
    ///   - create: whether a missing or empty folder becomes a new log.
    ///   - environment: file system, clock and randomness.
    /// - Throws: `LogError`: `noSuchLog`, `notALog`, `locked`, `wrongAccount`, `newerVersion`,
    ///   `unknownFeature`, `readOnly`, `diskFull`, `io`, and `corrupt` where synced bytes are
    ///   damaged or missing, in which case nothing was changed.
    /// - Complexity: O(size of the last segment + number of segments).
    public init(
        at directory: String, account: String? = nil, create: Bool = true,
        environment: LogEnvironment = LogEnvironment()
    ) throws(LogError) {
        let fileSystem = environment.fileSystem
        if let account, account.utf8.count > FormatLimit.accountBytesMax {
            throw LogError(
                .tooLarge, path: directory,
                "an account name has at most \(FormatLimit.accountBytesMax) bytes")
        }
        var names: [String]
        do throws(LogError) {
            names = try LogDirectory.segments(of: directory, fileSystem)
        } catch  where error.code == .noSuchLog && create {
            try storage { () throws(FileError) in
                try fileSystem.createDirectory(directory)
                try fileSystem.syncDirectory(Self.parent(of: directory))
            }
            names = []
        }
        if names.isEmpty, !create {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        let lock = try WriterLock(directory, environment)
        // Somebody may have written between the listing and the lock.
        names = try LogDirectory.segments(of: directory, fileSystem)

        var report = RecoveryReport()
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        var last: LastSegment?
        var unfinished: String?
        if let name = names.last {
            let path = directory + "/" + name
            try RewriteJournal.read(in: directory, fileSystem)?
                .apply(to: name, in: directory, fileSystem)
            let file = try storage { () throws(FileError) in try fileSystem.open(path, .readWrite) }
            last = try recovery.judge(name, file: file)
            if case .unfinished = last {
                report.removedUnfinishedSegment = true
                report.wasUnclean = true
                unfinished = path
                names.removeLast()
                last = nil
            }
        }

        var sealed: [SealedSegment] = []
        for name in names.dropLast(last == nil ? 0 : 1) {
            sealed.append(try SealedSegment(name, in: directory, fileSystem))
        }
        if case .sealed(let footer, let footerAt, _) = last {
            let path = directory + "/" + names[names.count - 1]
            sealed.append(
                try SealedSegment(
                    last: path, footer: footer, footerAt: footerAt, fileSystem))
        }
        // All is checked before anything is mended: whoever is refused finds nothing changed.
        let next = try Self.checkChain(sealed, last, account, directory)
        if let path = unfinished {
            try storage { () throws(FileError) in
                try fileSystem.remove(path)
                try fileSystem.syncDirectory(directory)
            }
        }
        var header = sealed.last?.header
        var writer: SegmentWriter?
        var contents: SegmentContents?
        switch last {
        case nil, .unfinished: break
        case .sealed(_, let footerAt, let end):
            try Self.confirmSeal(
                names[names.count - 1], footerAt: footerAt, end: end, directory, fileSystem)
        case .closed(let live):
            header = live.header
            contents = live.contents
            writer = Self.writer(live, directory, hasCloseMark: true)
        case .live(let live):
            report.wasUnclean = true
            header = live.header
            contents = live.contents
            writer = Self.writer(
                try recovery.mend(live, tornTail: nil).live, directory, hasCloseMark: false)
        case .torn(let live, let tail):
            report.wasUnclean = true
            header = live.header
            contents = live.contents
            let mended = try recovery.mend(live, tornTail: tail)
            report.tornTail = mended.tornTail
            writer = Self.writer(mended.live, directory, hasCloseMark: false)
        }

        try RewriteJournal.remove(from: directory, fileSystem)
        try SegmentCompactor.remove(from: directory, fileSystem)
        self.directory = directory
        self.environment = environment
        self.recovery = report
        self.id = header?.logID ?? environment.randomUUID()
        self.account = header.map(\.account) ?? account
        if header == nil {
            writer = try SegmentWriter.create(
                SegmentHeader(
                    logID: id, account: account, base: next, createdAt: environment.now()),
                in: directory, fileSystem)
        }
        let gathered = contents ?? SegmentContents(base: next)
        state = Mutex(
            State(
                lock: lock, incarnation: lock.incarnation, sealed: sealed, live: writer.take(),
                contents: gathered))
    }

    private static func writer(
        _ live: LiveSegment, _ directory: String, hasCloseMark: Bool
    ) -> SegmentWriter {
        SegmentWriter(
            path: directory + "/" + SegmentName.of(live.header.base), base: live.header.base,
            file: live.file, dataEnd: live.dataEnd, fileBytes: live.fileBytes,
            openFrame: live.openFrame, hasCloseMark: hasCloseMark)
    }

    /// Writes the footer of a sealed last segment again: if its sync failed, only the page cache
    /// knows it, and the next segment must not stand on that.
    private static func confirmSeal(
        _ name: String, footerAt: Int, end: Int, _ directory: String,
        _ fileSystem: any FileSystem
    ) throws(LogError) {
        let path = directory + "/" + name
        let file = try storage { () throws(FileError) in try fileSystem.open(path, .readWrite) }
        let bytes = try storage { () throws(FileError) in
            try file.read(at: footerAt, count: end - footerAt)
        }
        guard let base = SegmentName.base(name) else { return }
        try RewriteJournal.rewrite(
            bytes, then: [], at: footerAt, of: file, segment: base, in: directory, fileSystem)
        try storage { () throws(FileError) in
            try file.truncate(to: end)
            try file.sync()
        }
    }

    /// Checks that the segments follow each other in one log, and whose it is.
    ///
    /// - Returns: the position after the last segment.
    private static func checkChain(
        _ sealed: [SealedSegment], _ last: LastSegment?, _ account: String?, _ directory: String
    ) throws(LogError) -> Position {
        var chain = sealed.map { ($0.path, $0.header, $0.footer.coveredThrough.next) }
        switch last {
        case nil, .unfinished, .sealed: break
        case .closed(let live), .live(let live), .torn(let live, _):
            chain.append(
                (
                    directory + "/" + SegmentName.of(live.header.base), live.header,
                    live.contents.next
                ))
        }
        var next = Position(1)
        for (path, header, following) in chain {
            try checkChain(path, header, first: chain[0].1, expecting: next)
            next = following
        }
        if let account, let header = chain.last?.1, header.account != account {
            throw LogError(
                .wrongAccount, path: directory,
                header.account == nil
                    ? "the log belongs to no account"
                    : "the log belongs to another account. Every account has a log of its own")
        }
        return next
    }

    private static func checkChain(
        _ path: String, _ header: SegmentHeader, first: SegmentHeader, expecting: Position
    ) throws(LogError) {
        guard header.logID == first.logID, header.account == first.account else {
            throw LogError(.corrupt, path: path, offset: 32, "the segment is of another log")
        }
        guard header.base == expecting else {
            throw LogError(
                .corrupt, path: path,
                positions: min(expecting, header.base)...max(expecting, header.base),
                "the segment begins at position \(header.base) where \(expecting) belongs: a "
                    + "segment file is missing or was added. Nothing was changed")
        }
    }

    private static func parent(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }

    // MARK: Appending

    /// Under which name this log writes: new for every copy of it.
    public var incarnation: UInt128 { state.withLock { $0.incarnation } }

    /// Writes under a new name from now on; durable on return. For when somebody else is found to
    /// write under the present one.
    ///
    /// - Throws: `LogError`: `io`, `closed`, `indeterminate`.
    public func mintIncarnation() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try state.lock?.mint(directory, environment)
            state.incarnation = state.lock?.incarnation ?? state.incarnation
        }
    }

    /// The position that the next line gets.
    public var next: Position { state.withLock { $0.contents.next } }

    /// Appends lines as one commit. On return they are on the disk, all of them; after any error
    /// but `indeterminate`, none of them ever will be.
    ///
    /// - Parameter lines: lines with their newlines, positions rising from `next`.
    /// - Throws: `LogError`: `tooLarge`, `closed`; `diskFull` with nothing changed;
    ///   `indeterminate` after a failed write or sync, and from then on.
    /// - Complexity: O(bytes).
    public func append(_ lines: [UInt8]) throws(LogError) {
        precondition(!lines.isEmpty, "a commit has at least one line")
        guard lines.count <= FormatLimit.commitPlaintextBytesMax else {
            throw LogError(
                .tooLarge, path: directory,
                "a commit of \(lines.count) bytes; at most "
                    + "\(FormatLimit.commitPlaintextBytesMax) fit. Append in smaller batches")
        }
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            let isFull =
                state.live?.isFull ?? false
                || state.contents.eventCount >= FormatLimit.segmentEventsTarget
            if isFull { try seal(&state) }
            if state.live == nil { try createSegment(&state) }
            let parsed = try split(lines, expecting: state.contents.next)
            let newFrame: Int?
            do throws(LogError) {
                newFrame = try state.live?.commit(lines)
            } catch { throw poison(&state, error) }
            if let newFrame { state.contents.begin(frameAt: newFrame) }
            for (prefix, range) in parsed {
                state.contents.add(prefix, line: lines.span.bytes.extracting(range))
            }
        }
    }

    private func split(
        _ lines: [UInt8], expecting first: Position
    ) throws(LogError) -> [(LinePrefix, Range<Int>)] {
        var result: [(LinePrefix, Range<Int>)] = []
        var start = 0
        var expected = first
        while start < lines.count {
            guard let end = lines[start...].firstIndex(of: UInt8(ascii: "\n")) else {
                preconditionFailure("the last line of a commit has no newline")
            }
            guard end - start <= FormatLimit.lineBytesMax else {
                throw LogError(
                    .tooLarge, path: directory,
                    "a line of \(end - start) bytes; at most \(FormatLimit.lineBytesMax) fit")
            }
            guard let prefix = try? LinePrefix(lines.span.bytes.extracting(start..<end)),
                prefix.position == expected
            else { preconditionFailure("a line does not begin as a stored line must") }
            result.append((prefix, start..<end))
            expected = expected.next
            start = end + 1
        }
        return result
    }

    /// Seals the live segment now; the next append begins a new one. Nothing to do for an empty
    /// segment.
    ///
    /// - Throws: as `append(_:)`.
    public func roll() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            if state.live != nil, state.contents.eventCount > 0 { try seal(&state) }
        }
    }

    private func seal(_ state: inout State) throws(LogError) {
        guard let writer = state.live.take() else { return }
        var live = writer
        let name = SegmentName.of(live.base)
        do throws(LogError) {
            let seed = UInt32(truncatingIfNeeded: environment.random())
            try live.seal { state.contents.footer(seed: seed, digest: $0) }
        } catch {
            if error.code == .diskFull { state.live = consume live }
            throw poison(&state, error)
        }
        do throws(LogError) {
            state.sealed.append(try SealedSegment(name, in: directory, environment.fileSystem))
        } catch { throw poison(&state, error) }
        state.contents = SegmentContents(base: state.contents.next)
        // A frame that was read while it grew is whole only now.
        state.cache = FrameCache()
    }

    private func createSegment(_ state: inout State) throws(LogError) {
        let header = SegmentHeader(
            logID: id, account: account, base: state.contents.next, createdAt: environment.now())
        state.live = try SegmentWriter.create(header, in: directory, environment.fileSystem)
    }

    /// A full disk changed nothing; after anything else nobody knows what is on the disk.
    private func poison(_ state: inout State, _ error: LogError) -> LogError {
        guard error.code != .diskFull else { return error }
        var failure = error
        failure.code = .indeterminate
        failure.detail += ". What was being written may or may not be on the disk; open the log "
        failure.detail += "again to find out"
        state.failure = failure
        return failure
    }

    func checkUsable(_ state: borrowing State) throws(LogError) {
        if let failure = state.failure { throw failure }
        guard state.lock != nil else {
            throw LogError(.closed, path: directory, "the log was closed")
        }
    }

    // MARK: Looking up

    /// The position and bytes of the line with an id, or nil if no line has it.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `indeterminate`.
    /// - Complexity: O(segments · log events), and one frame (at most 188 KiB, or one big commit)
    ///   to read on a hit.
    public func line(id: UInt128) throws(LogError) -> (position: Position, bytes: [UInt8])? {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            if let position = state.contents.positions[id] {
                return try Self.liveLine(&state, at: position).map { (position, $0) }
            }
            for segment in state.sealed.reversed() {
                for entry in try segment.candidateFrames(id: id) {
                    let frame = try Self.frame(of: segment, entry, &state.cache)
                    if let line = frame.line(id: id) {
                        return (line.prefix.position, Array(frame.plaintext[line.range]))
                    }
                }
            }
            return nil
        }
    }

    /// The bytes of the line at a position, or nil if there is none.
    ///
    /// - Throws: as `line(id:)`.
    /// - Complexity: O(log segments + log frames), and one frame to read.
    public func line(at position: Position) throws(LogError) -> [UInt8]? {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            if position >= state.contents.base {
                return try Self.liveLine(&state, at: position)
            }
            guard let segment = state.sealed.last(where: { $0.header.base <= position }),
                !segment.footer.frames.isEmpty
            else { return nil }
            let entry = segment.footer.frames[segment.footer.frames.frame(of: position)]
            let frame = try Self.frame(of: segment, entry, &state.cache)
            return frame.line(at: position).map { Array(frame.plaintext[$0.range]) }
        }
    }

    private static func frame(
        of segment: SealedSegment, _ entry: FrameEntry, _ cache: inout FrameCache
    ) throws(LogError) -> DecodedFrame {
        try cache.frame(
            segment: segment.header.base, first: entry.first,
            read: { () throws(LogError) in
                try DecodedFrame.read(
                    segment.file, path: segment.path, entry,
                    allowsHoles: segment.footer.isCompacted)
            },
            isCurrent: { _ in true })
    }

    private static func liveLine(
        _ state: inout State, at position: Position
    ) throws(LogError) -> [UInt8]? {
        guard let reading = state.live?.reading(), position < state.contents.next else {
            return nil
        }
        let entry = state.contents.frames[state.contents.frame(of: position)]
        let frame = try state.cache.frame(
            segment: state.contents.base, first: entry.first,
            read: { () throws(LogError) in
                try DecodedFrame.read(
                    reading.file, path: reading.path, entry, allowsHoles: false)
            },
            isCurrent: { $0.line(at: position) != nil })
        return frame.line(at: position).map { Array(frame.plaintext[$0.range]) }
    }

    // MARK: Closing

    /// Closes the log in order and releases its lock. Closing twice is harmless.
    ///
    /// - Throws: `LogError` (`io`, `indeterminate`) where the close mark could not be written; the
    ///   log is closed all the same, and everything acknowledged is on the disk.
    public func close() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            guard state.lock != nil else { return }
            defer {
                state.live = nil
                state.lock = nil
                state.sealed = []
            }
            guard state.failure == nil, state.live != nil else { return }
            let last = Position(state.contents.next.rawValue - 1)
            try state.live?.close(last: last)
        }
    }
}
