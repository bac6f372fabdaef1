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
/// A line is one JSON object without line breaks that begins as `Spec/format/line.md` says; `EventStore`
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
    private let checkpoint: Mutex<Checkpoint?>
    /// Whether a segment is being compacted; there is one file for that.
    let isCompacting = Mutex(false)

    struct State: ~Copyable {
        var lock: WriterLock?
        /// Under which name this log writes; stays known when the lock is released.
        var incarnation: UInt128
        var sealed: SealedSegments
        /// Missing between sealing a segment and creating the next.
        var live: SegmentWriter?
        var contents: SegmentContents
        /// Where the ids are that the contents lack.
        var idIndex: StoredIDIndex?
        var cache = FrameCache()
        /// The lists of removed ids that were read, by their segment's first position.
        var removedIDs: [Position: [RemovedIDsInFile]] = [:]
        var failure: LogError?
        var isSuspended = false
        /// Whether room is kept aside, and whether it is there.
        var keepsReserve = false
        var hasReserve = false
    }

    // MARK: Opening

    /// Opens a log and mends what an unclean stop left behind, or creates one.
    ///
    /// - Parameters:
    ///   - directory: the folder; created (0700) if it is missing and `create` is true.
    ///   - account: whose log it is; nil takes whatever the log says.
    ///   - create: whether a missing or empty folder becomes a new log.
    ///   - isShared: whether the log must belong to no account.
    ///   - environment: file system, clock and randomness.
    /// - Throws: `LogError`: `noSuchLog`, `notALog`, `locked`, `wrongAccount`, `newerVersion`,
    ///   `unknownFeature`, `readOnly`, `diskFull`, `io`, and `corrupt` where synced bytes are
    ///   damaged or missing, in which case nothing was changed.
    /// - Complexity: O(size of the last segment + number of segments).
    public init(
        at directory: String, account: String? = nil, create: Bool = true, isShared: Bool = false,
        environment: LogEnvironment = LogEnvironment()
    ) throws(LogError) {
        if let account, account.utf8.count > FormatLimit.accountBytesMax {
            throw LogError(
                .tooLarge, path: directory,
                "an account name has at most \(FormatLimit.accountBytesMax) bytes")
        }
        var opening = try LogOpening.open(
            directory, account: account, isShared: isShared, create: create, environment)
        self.directory = directory
        self.environment = environment
        id = opening.id
        self.account = opening.account
        recovery = opening.report
        checkpoint = Mutex(opening.checkpoint)
        state = Mutex(
            State(
                lock: opening.lock, incarnation: opening.lock.incarnation, sealed: opening.sealed,
                live: opening.live.take(), contents: opening.contents,
                idIndex: opening.idIndex))
    }

    /// The checkpoint that opening built on, once: its states are large.
    package func takeCheckpoint() -> Checkpoint? {
        checkpoint.withLock { (checkpoint: inout Checkpoint?) in checkpoint.take() }
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

    /// Keeps room aside for `append(_:drawingOnReserve:)` and compaction on a full disk, from now
    /// on.
    package func keepReserve() {
        state.withLock { state in
            state.keepsReserve = true
            refillReserve(&state)
        }
    }

    /// Gives the room aside back to the device, for work that frees more than that.
    ///
    /// - Returns: whether there was any.
    package func releaseReserve() -> Bool {
        state.withLock { state in
            guard state.hasReserve else { return false }
            state.hasReserve = false
            return ReserveFile(directory, environment.fileSystem).release()
        }
    }

    /// Sets room aside again, where there is any.
    package func refillReserve() { state.withLock { refillReserve(&$0) } }

    private func refillReserve(_ state: inout State) {
        guard state.keepsReserve, !state.hasReserve, state.lock != nil else { return }
        state.hasReserve = ReserveFile(directory, environment.fileSystem).keep(
            bytes: ReserveFile.bytes(events: state.contents.next.rawValue))
    }

    /// Appends lines as one commit. On return they are on the disk, all of them; after any error
    /// but `indeterminate`, none of them ever will be.
    ///
    /// - Parameter lines: lines with their newlines, positions rising from `next`.
    /// - Throws: `LogError`: `tooLarge`, `closed`; `diskFull` with nothing changed; `corrupt` or `io`
    ///   where the ids of a segment that is to be sealed cannot be read;
    ///   `indeterminate` after a failed write or sync, and from then on; `noSuchLog` where the
    ///   segment's file was removed, and from then on: what was appended since is lost. A folder that
    ///   was renamed or replaced is noticed when a segment ends or a checkpoint is written (REC-11).
    /// - Complexity: O(bytes).
    package func append(_ lines: [UInt8]) throws(LogError) {
        precondition(!lines.isEmpty, "a commit has at least one line")
        try checkSize(of: lines)
        try append(CommitLines(lines))
    }

    /// Appends one commit: all of its lines or none; durable on return.
    ///
    /// - Parameters:
    ///   - commit: at least one line. The first has the next position, the others follow.
    ///   - drawingOnReserve: true uses the reserve file where the disk is full.
    /// - Throws: as `append(_:)` of bytes.
    /// - Complexity: O(bytes).
    package func append(
        _ commit: CommitLines, drawingOnReserve: Bool = false
    ) throws(LogError) {
        precondition(!commit.lines.isEmpty, "a commit has at least one line")
        try checkSize(of: commit.bytes)
        for line in commit.lines where line.byteCount > WriterSizes.lineBytesMax {
            throw LogError(
                .tooLarge, path: directory,
                "a line of \(line.byteCount) bytes; at most \(WriterSizes.lineBytesMax) fit")
        }
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            var expected = state.contents.next
            for line in commit.lines {
                precondition(line.prefix.position == expected, "positions do not follow")
                expected = expected.next
            }
            guard expected.rawValue <= FormatLimit.positionMax + 1 else {
                throw LogError(.tooLarge, path: directory, "the log has no positions left")
            }
            let newFrame: Int?
            do throws(LogError) {
                newFrame = try write(commit.bytes, &state, isUrgent: false)
                if !state.hasReserve { refillReserve(&state) }
            } catch let error
                where error.code == .diskFull && drawingOnReserve && state.hasReserve
            {
                state.hasReserve = false
                _ = ReserveFile(directory, environment.fileSystem).release()
                newFrame = try write(commit.bytes, &state, isUrgent: true)
            }
            if let newFrame { state.contents.begin(frameAt: newFrame) }
            for line in commit.lines {
                state.contents.add(line.prefix, lineBytes: line.byteCount, time: line.time)
            }
        }
    }

    private func checkSize(of commit: [UInt8]) throws(LogError) {
        guard commit.count <= WriterSizes.commitPlaintextBytesMax else {
            throw LogError(
                .tooLarge, path: directory,
                "a commit of \(commit.count) bytes; at most "
                    + "\(WriterSizes.commitPlaintextBytesMax) fit. Append in smaller batches")
        }
    }

    /// Writes a commit, in a new segment if it is time for one; what is urgent on a full disk does
    /// without that, and with little room.
    private func write(
        _ lines: [UInt8], _ state: inout State, isUrgent: Bool
    ) throws(LogError) -> Int? {
        let isFull =
            state.live?.isFull ?? false
            || state.contents.eventCount >= environment.sizes.segmentEvents
        if isFull, !isUrgent { try seal(&state) }
        if state.live == nil {
            try createSegment(
                &state,
                room: isUrgent ? FormatLimit.growthGranularityBytes : SegmentWriter.creationBytes)
        }
        do throws(LogError) {
            return try state.live?.commit(lines)
        } catch { throw poison(&state, error) }
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
        try requireInPlace(&state)
        // Mostly read by then: a store looks for each id before it appends it.
        try Self.readOlderIDs(&state)
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
            try state.sealed.append(
                try SealedSegment(name, in: directory, environment.fileSystem))
        } catch { throw poison(&state, error) }
        state.contents = SegmentContents(base: state.contents.next)
        // A longer log keeps more aside: the next append sees to it.
        state.hasReserve = false
        // A frame that was read while it grew is whole only now.
        state.cache = FrameCache()
    }

    private func createSegment(_ state: inout State, room: Int) throws(LogError) {
        try requireInPlace(&state)
        let header = SegmentHeader(
            logID: id, account: account, base: state.contents.next, createdAt: environment.now())
        state.live = try SegmentWriter.create(
            header, room: room, environment.sizes, in: directory, environment.fileSystem)
    }

    /// Checks that files that are named by the log's path are this log's. A folder that was renamed
    /// keeps taking commits; a new segment, a checkpoint or a compacted segment would go elsewhere.
    func requireInPlace(_ state: inout State) throws(LogError) {
        do throws(LogError) {
            try state.lock?.requireInPlace(directory, environment.fileSystem)
        } catch { throw error.code == .noSuchLog ? poison(&state, error) : error }
    }

    /// A full disk changed nothing; after anything else nobody knows what is on the disk.
    private func poison(_ state: inout State, _ error: LogError) -> LogError {
        guard error.code != .diskFull else { return error }
        var failure = error
        if error.code == .noSuchLog {
            failure.detail += ". What is appended now would be lost; open the log again"
        } else {
            failure.code = .indeterminate
            failure.detail +=
                ". What was being written may or may not be on the disk; open the log "
            failure.detail += "again to find out"
        }
        state.failure = failure
        return failure
    }

    /// Checks that appends are possible: nothing is closed, suspended or in doubt.
    package func requireUsable() throws(LogError) {
        try state.withLock { state throws(LogError) in try checkUsable(state) }
    }

    func checkUsable(_ state: borrowing State) throws(LogError) {
        if let failure = state.failure { throw failure }
        guard state.lock != nil else {
            throw state.isSuspended
                ? LogError(.suspended, path: directory, "the log is suspended. Call resume() first")
                : LogError(.closed, path: directory, "the log was closed")
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
            try Self.readOlderIDs(&state)
            if let position = state.contents.position(id: id) {
                return try Self.frame(&state, of: position).flatMap { frame in
                    frame.line(at: position).map { (position, Array(frame.plaintext[$0.range])) }
                }
            }
            for entry in state.contents.olderFrames(id: id) {
                guard let frame = try Self.liveFrame(&state, entry), let line = frame.line(id: id)
                else { continue }
                return (line.prefix.position, Array(frame.plaintext[line.range]))
            }
            for number in (0..<state.sealed.count).reversed() {
                guard let (segment, frames) = try state.sealed.candidates(number, id: id) else {
                    continue
                }
                for entry in frames {
                    let frame = try Self.frame(of: segment, entry, &state.cache)
                    if let line = frame.line(id: id) {
                        return (line.prefix.position, Array(frame.plaintext[line.range]))
                    }
                }
            }
            return nil
        }
    }

    /// Takes in the ids that opening left in the checkpoint; where they cannot be read there, those of
    /// the live segment's lines. O(1) once that is done.
    private static func readOlderIDs(_ state: inout State) throws(LogError) {
        guard state.contents.lacksOlderIDs else { return }
        if let index = state.idIndex?.read() {
            state.contents.takeIn(older: index)
        } else if let reading = state.live?.reading() {
            var positions = IDTable()
            for entry in state.contents.frames {
                let frame = try DecodedFrame.read(
                    reading.file, path: reading.path, entry, allowsHoles: false)
                for line in frame.lines {
                    positions.set(line.prefix.id, to: line.prefix.position.rawValue)
                }
            }
            state.contents.takeIn(positions: positions)
        }
        state.idIndex = nil
    }

    /// The bytes of the line at a position, or nil if there is none.
    ///
    /// - Throws: as `line(id:)`.
    /// - Complexity: O(log segments + log frames), and one frame to read.
    public func line(at position: Position) throws(LogError) -> [UInt8]? {
        var bytes: [UInt8]?
        _ = try forEachLine(at: CollectionOfOne(position)) { bytes = $0.array }
        return bytes
    }

    /// Calls `body` with the bytes of the lines at positions, in the order of these. Of lines that stand
    /// in one frame and are asked for one after the other, the frame is looked up once.
    ///
    /// - Returns: the first position that has no line; those behind it are not looked up.
    /// - Throws: as `line(id:)`.
    package func forEachLine(
        at positions: some Sequence<Position>, _ body: (RawSpan) -> Void
    ) throws(LogError) -> Position? {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            var frame: DecodedFrame?
            for position in positions {
                var line = frame?.line(at: position)
                if line == nil {
                    frame = try Self.frame(&state, of: position)
                    line = frame?.line(at: position)
                }
                guard let frame, let line else { return position }
                body(frame.plaintext.span.bytes.extracting(line.range))
            }
            return nil
        }
    }

    /// The frame where a position belongs; nil if there is none.
    private static func frame(
        _ state: inout State, of position: Position
    ) throws(LogError) -> DecodedFrame? {
        if position >= state.contents.base {
            guard position < state.contents.next, !state.contents.frames.isEmpty else { return nil }
            let entry = state.contents.frames[state.contents.frame(of: position)]
            return try liveFrame(&state, entry) { $0.line(at: position) != nil }
        }
        guard let number = state.sealed.number(covering: position) else { return nil }
        let segment = try state.sealed.segment(number)
        guard !segment.footer.frames.isEmpty else { return nil }
        let entry = segment.footer.frames[segment.footer.frames.frame(of: position)]
        return try frame(of: segment, entry, &state.cache)
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

    /// A frame of the live segment; one that was read while it grew is read again unless it is
    /// recent enough.
    private static func liveFrame(
        _ state: inout State, _ entry: FrameEntry,
        isCurrent: (DecodedFrame) -> Bool = { _ in true }
    ) throws(LogError) -> DecodedFrame? {
        guard let reading = state.live?.reading() else { return nil }
        return try state.cache.frame(
            segment: state.contents.base, first: entry.first,
            read: { () throws(LogError) in
                try DecodedFrame.read(
                    reading.file, path: reading.path, entry, allowsHoles: false)
            },
            isCurrent: isCurrent)
    }

    // MARK: Reading on

    /// The log at its last commit, for a checkpoint. O(1) and one frame to read.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `indeterminate`, `noSuchLog`.
    package func snapshot() throws(LogError) -> LogSnapshot {
        let position = Position(next.rawValue - 1)
        let last = position > .zero ? try line(at: position) : nil
        return try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try requireInPlace(&state)
            try Self.readOlderIDs(&state)
            let dataEnd = state.live?.dataEnd
            return LogSnapshot(
                logID: id, position: position,
                lastID: last.flatMap { try? LinePrefix($0.span.bytes).id } ?? 0,
                sealed: state.sealed.ranges,
                live: dataEnd.map { (state.contents, $0) })
        }
    }

    /// Calls `body` with every committed line from a position on, in order; false stops. Lines that
    /// are appended meanwhile are not read.
    ///
    /// - Throws: `LogError`, and what `body` throws.
    /// - Complexity: O(bytes from the frame of `first` on).
    package func forEachLine(
        from first: Position, _ body: (LinePrefix, RawSpan) throws -> Bool
    ) throws {
        let (next, live) = try state.withLock {
            (state) throws(LogError) -> (Position, LogCursor.Hint?) in
            try checkUsable(state)
            let contents = state.contents
            guard state.live != nil, !contents.frames.isEmpty else { return (contents.next, nil) }
            let frame = contents.frames[contents.frame(of: max(first, contents.base))]
            return (contents.next, LogCursor.Hint(base: contents.base, frame: frame))
        }
        var cursor = LogCursor(
            directory, of: id, after: first.advanced(by: -1), fileSystem: environment.fileSystem,
            live)
        let isOver = try cursor.poll(through: Position(next.rawValue - 1), body)
        guard isOver, cursor.position.next < next else { return }
        throw LogError(
            .corrupt, path: directory,
            positions: cursor.position.next...Position(next.rawValue - 1),
            "a committed line is not there any more")
    }

    // MARK: Closing

    /// Closes the log in order and releases its lock. Closing twice is harmless.
    ///
    /// - Throws: `LogError` (`io`, `indeterminate`) where the close mark could not be written; the
    ///   log is closed all the same, and everything acknowledged is on the disk. `noSuchLog` where
    ///   the log's files were removed while it was open: then they are gone.
    public func close() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            state.isSuspended = false
            try release(&state)
        }
    }

    /// Closes the log in order and releases its lock, until `resume()`.
    ///
    /// - Throws: as `close()`.
    package func suspend() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            state.isSuspended = true
            try release(&state)
        }
    }

    /// Whether the lock was given back for good.
    package var isClosed: Bool { state.withLock { $0.lock == nil && !$0.isSuspended } }

    /// Decides that the log is gone; durable on return. `finishErasure()` deletes it, or else the next
    /// opening does. Nothing must be written any more.
    ///
    /// - Parameter withSecrets: whether the log's secrets have to go first: then only who can delete
    ///   them opens the folder again.
    /// - Throws: `LogError`: `closed`, `suspended`; `noSuchLog` where the folder was removed, renamed
    ///   or replaced: then nothing is deleted; others with the log as it was, unless it is
    ///   `indeterminate`.
    package func beginErasure(withSecrets: Bool = false) throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            guard state.lock != nil else { return try checkUsable(state) }
            try requireInPlace(&state)
            do throws(LogError) {
                try LogErasure(directory: directory, fileSystem: environment.fileSystem)
                    .begin(withSecrets: withSecrets)
            } catch {
                if error.code == .indeterminate { state.failure = error }
                throw error
            }
        }
    }

    /// Deletes the log after `beginErasure()`: everything in its folder, also what others put there. On
    /// return it is gone, power cuts included, and this is closed, also if it fails: the next
    /// opening deletes the rest. The empty folder stays.
    ///
    /// - Throws: `LogError`: `noSuchLog` as `beginErasure()`; `io`, `readOnly`.
    package func finishErasure() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            guard var lock = state.lock else { return try checkUsable(state) }
            drop(&state)
            state.failure = nil
            try lock.requireInPlace(directory, environment.fileSystem)
            try LogErasure(directory: directory, fileSystem: environment.fileSystem)
                .finishWithLock(&lock, environment)
        }
    }

    /// Deletes the log, which has no secrets: `beginErasure()` and `finishErasure()`.
    package func erase() throws(LogError) {
        try beginErasure()
        try finishErasure()
    }

    private func drop(_ state: inout State) {
        state.live = nil
        state.lock = nil
        state.sealed = SealedSegments(directory, environment.fileSystem)
        state.idIndex = nil
        state.removedIDs = [:]
        state.cache = FrameCache()
    }

    private func release(_ state: inout State) throws(LogError) {
        guard state.lock != nil else { return }
        defer { drop(&state) }
        guard state.failure == nil, state.live != nil else { return }
        try state.live?.close(last: Position(state.contents.next.rawValue - 1))
    }

    /// Takes the lock again after `suspend()`. Others may have written, sealed and compacted since.
    ///
    /// - Returns: what opening found and mended.
    /// - Throws: as `init`, and `corrupt` if another log stands in the folder.
    package func resume() throws(LogError) -> RecoveryReport {
        try state.withLock { (state) throws(LogError) in
            guard state.isSuspended else {
                try checkUsable(state)
                return RecoveryReport()
            }
            var opening = try LogOpening.open(
                directory, account: account, create: false, environment)
            guard opening.id == id, opening.contents.next >= state.contents.next else {
                throw LogError(
                    .corrupt, path: directory,
                    "the folder holds another log, or an earlier state of it, than before it was "
                        + "suspended. Open it anew")
            }
            let report = opening.report
            state = State(
                lock: opening.lock, incarnation: opening.lock.incarnation, sealed: opening.sealed,
                live: opening.live.take(), contents: opening.contents,
                idIndex: opening.idIndex)
            return report
        }
    }
}
