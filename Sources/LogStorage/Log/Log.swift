// The log of its one writer. The flow of an append: lines → commit → block → segment → disk; of a lookup:
// id → index → frame → line. LogOpening recovers the log and checks its segments. Spec/overview.md.
//
// Synchronous behind a mutex, so that no other operation runs between computing an offset and writing to
// it. Callers keep it off the cooperative thread pool.

import LogFormat
import Synchronization

/// An append-only log of lines in a folder, opened for writing.
///
/// A line is one JSON object without line breaks that begins as `Spec/format/line.md` says; `EventStore`
/// makes such lines from events. All methods are thread-safe.
public final class Log: Sendable {
    /// The folder.
    public let directory: String
    /// The log's id, the same in all its segments.
    public let id: UInt128
    /// The account that the log belongs to, if any.
    public let account: String?
    /// The report of what opening recovered.
    public let recovery: RecoveryReport

    let environment: LogEnvironment
    let state: Mutex<State>
    private let checkpoint: Mutex<Checkpoint?>
    /// True while a segment is being compacted. All compactions use the same file name.
    let isCompacting = Mutex(false)

    struct State: ~Copyable {
        var lock: WriterLock?
        /// The writer id of new lines; kept after the lock is released.
        var incarnation: UInt128
        var sealed: SealedSegments
        /// The live segment; nil between sealing one and creating the next.
        var live: SegmentWriter?
        var contents: SegmentContents
        /// The index, in a checkpoint, of the ids that `contents` lacks.
        var idIndex: StoredIDIndex?
        var cache = FrameCache()
        /// The lists of removed ids that were read, by their segment's first position.
        var removedIDs: [Position: [RemovedIDsInFile]] = [:]
        var failure: LogError?
        var isSuspended = false
        /// True if the log maintains a reserve file.
        var keepsReserve = false
        /// True if the reserve file exists in full size.
        var hasReserve = false
    }

    // MARK: Opening

    /// Opens a log and recovers it after an unclean stop, or creates one.
    ///
    /// - Parameters:
    ///   - directory: the folder; created (0700) if it is missing and `create` is true.
    ///   - account: the account that the log must belong to; nil accepts any.
    ///   - create: true to create a log in a missing or empty folder.
    ///   - isShared: true if the log must belong to no account.
    ///   - newID: the id of a log that is created; nil for a random one.
    ///   - environment: file system, clock and randomness.
    /// - Throws: `LogError`: `noSuchLog`, `notALog`, `locked`, `wrongAccount`, `newerVersion`,
    ///   `unknownFeature`, `readOnly`, `diskFull`, `io`, and `corrupt` if synced bytes are damaged or
    ///   missing; then nothing was changed.
    /// - Complexity: O(size of the last segment + number of segments).
    public init(
        at directory: String, account: String? = nil, create: Bool = true, isShared: Bool = false,
        newID: UInt128? = nil, environment: LogEnvironment = LogEnvironment()
    ) throws(LogError) {
        if let account, account.utf8.count > FormatLimit.accountBytesMax {
            throw LogError(
                .tooLarge, path: directory,
                "an account name has at most \(FormatLimit.accountBytesMax) bytes")
        }
        var opening = try LogOpening.open(
            directory, account: account, isShared: isShared, create: create, newID: newID,
            environment)
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

    /// Returns the checkpoint that opening used and releases it, since its states are large. Nil if opening
    /// used none, and on every later call.
    package func consumeCheckpoint() -> Checkpoint? {
        checkpoint.withLock { (checkpoint: inout Checkpoint?) in checkpoint.take() }
    }

    // MARK: Appending

    /// The writer id of new lines. Every copy of a log gets a new one.
    public var incarnation: UInt128 { state.withLock { $0.incarnation } }

    /// Changes the log's writer id to a new one; durable on return. Needed when another device writes with
    /// the present one.
    ///
    /// - Throws: `LogError`: `io`, `closed`, `indeterminate`.
    public func mintIncarnation() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try state.lock?.mint(environment, next: state.contents.next)
            state.incarnation = state.lock?.incarnation ?? state.incarnation
        }
    }

    /// The position of the next line.
    public var next: Position { state.withLock { $0.contents.next } }

    /// Maintains a reserve file from now on, for the next opening, `append(_:drawingOnReserve:)` and compaction
    /// on a full disk.
    package func keepReserve() {
        state.withLock { state in
            state.keepsReserve = true
            refillReserve(&state)
        }
    }

    /// Releases the reserve file's space for an operation that frees more than that.
    ///
    /// - Returns: true if there was a reserve file.
    package func releaseReserve() -> Bool {
        state.withLock { releaseReserve(&$0) }
    }

    /// A reserve that could not grow with the log is released like any other, so the file decides.
    private func releaseReserve(_ state: inout State) -> Bool {
        guard state.lock != nil else { return false }
        state.hasReserve = false
        return ReserveFile(directory, environment.fileSystem).release()
    }

    /// Allocates the reserve file again, if the disk has space for it.
    package func refillReserve() { state.withLock { refillReserve(&$0) } }

    private func refillReserve(_ state: inout State) {
        guard state.keepsReserve, !state.hasReserve, state.lock != nil else { return }
        state.hasReserve = ReserveFile(directory, environment.fileSystem).allocate(
            bytes: ReserveFile.bytes(events: state.contents.next.rawValue))
    }

    /// Appends lines as one commit. On return all of them are durable. After an error other than
    /// `indeterminate`, none of them is in the log.
    ///
    /// - Parameter lines: lines with their newlines, with consecutive positions from `next`.
    /// - Throws: `LogError`: `tooLarge`, `closed`; `diskFull` with nothing changed; `corrupt` or `io`
    ///   if the ids of the segment to seal cannot be read; `indeterminate` after a failed write or sync,
    ///   and from then on; `noSuchLog` if the segment's file, the file `lock` or the folder was removed,
    ///   renamed or replaced, and from then on (REC-11).
    /// - Complexity: O(bytes).
    package func append(_ lines: [UInt8]) throws(LogError) {
        precondition(!lines.isEmpty, "a commit has at least one line")
        try checkSize(of: lines)
        try append(CommitLines(lines))
    }

    /// Appends one commit: all of its lines or none; durable on return.
    ///
    /// - Parameters:
    ///   - commit: at least one line, with consecutive positions from `next`.
    ///   - drawingOnReserve: true to use the reserve file's space if the disk is full.
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
                "a line has \(line.byteCount) bytes; the limit is \(WriterSizes.lineBytesMax)")
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
            } catch {
                guard error.code == .diskFull, drawingOnReserve, releaseReserve(&state) else {
                    throw error
                }
                newFrame = try write(commit.bytes, &state, isUrgent: true)
            }
            if let newFrame { state.contents.beginFrame(at: newFrame) }
            for line in commit.lines {
                state.contents.append(line.prefix, lineBytes: line.byteCount, time: line.time)
            }
        }
    }

    private func checkSize(of commit: [UInt8]) throws(LogError) {
        guard commit.count <= WriterSizes.commitPlaintextBytesMax else {
            throw LogError(
                .tooLarge, path: directory,
                "a commit has \(commit.count) bytes; the limit is "
                    + "\(WriterSizes.commitPlaintextBytesMax); append in smaller batches")
        }
    }

    /// Writes a commit, after sealing a full segment and creating the next one. An urgent commit, which
    /// draws on the reserve, does not seal and preallocates little.
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
                preallocatedBytes: isUrgent
                    ? FormatLimit.growthGranularityBytes : SegmentWriter.creationBytes)
        }
        // Before the write: another writer's bytes must not be overwritten. After it: a commit counts only if
        // the lock was held until it was durable.
        do throws(LogError) {
            try requireInPlace(&state)
            try state.lock?.requireInUse(next: state.contents.next)
            let newFrame = try state.live?.commit(lines)
            try state.lock?.requireLinked()
            return newFrame
        } catch { throw poison(&state, error) }
    }

    /// Seals the live segment, unless it is empty. The next append begins a new one.
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
        // Usually read before: a store looks up each id before it appends the event.
        try Self.readOlderIDs(&state)
        guard let writer = state.live.take() else { return }
        var live = writer
        let name = SegmentName.of(live.base)
        do throws(LogError) {
            let seed =
                state.sealed.lastIDSeed() ?? UInt32(truncatingIfNeeded: environment.random())
            try live.seal { state.contents.footer(seed: seed, digest: $0) }
        } catch {
            if error.code == .diskFull { state.live = consume live }
            throw poison(&state, error)
        }
        do throws(LogError) {
            try state.sealed.append(
                try SealedSegment(name, in: directory, environment.fileSystem))
        } catch { throw poison(&state, error) }
        state.lock?.releaseSegment()
        state.contents = SegmentContents(base: state.contents.next)
        // A larger log needs a larger reserve, which the next append allocates.
        state.hasReserve = false
        // A frame that was read while it grew is whole only now.
        state.cache = FrameCache()
    }

    private func createSegment(_ state: inout State, preallocatedBytes: Int) throws(LogError) {
        try requireInPlace(&state)
        let header = SegmentHeader(
            logID: id, account: account, base: state.contents.next, createdAt: environment.now())
        state.live = try SegmentWriter.create(
            header, preallocatedBytes: preallocatedBytes, environment.sizes, in: directory,
            environment.fileSystem)
        let end = WriterLock.LogEnd(
            logID: id, base: header.base, file: state.live?.reading().file, next: header.base,
            isClosed: false)
        state.lock?.follow(to: end)
    }

    /// Checks that the log's path still leads to this log. Elsewhere another writer may append to the same
    /// segment, and a new segment, checkpoint or compacted segment would be created in another folder.
    func requireInPlace(_ state: inout State) throws(LogError) {
        do throws(LogError) {
            try state.lock?.requireInPlace()
        } catch { throw error.code == .noSuchLog ? poison(&state, error) : error }
    }

    /// Makes the log refuse further use after a failed write, since the state on disk is unknown. A full
    /// disk has changed nothing and does not poison the log.
    private func poison(_ state: inout State, _ error: LogError) -> LogError {
        guard error.code != .diskFull, state.failure == nil else { return error }
        var failure = error
        if error.code == .noSuchLog {
            failure.detail += "; new events would be lost; open the log again"
        } else {
            failure.code = .indeterminate
            failure.detail +=
                "; the last write may or may not be on the disk; open the log "
            failure.detail += "again to find out"
        }
        state.failure = failure
        return failure
    }

    /// Checks that the log accepts appends: it is not closed, suspended or poisoned by a failed write.
    package func requireUsable() throws(LogError) {
        try state.withLock { state throws(LogError) in try checkUsable(state) }
    }

    func checkUsable(_ state: borrowing State) throws(LogError) {
        if let failure = state.failure { throw failure }
        guard state.lock != nil else {
            throw state.isSuspended
                ? LogError(.suspended, path: directory, "the log is suspended; call resume() first")
                : LogError(.closed, path: directory, "the log was closed")
        }
    }

    // MARK: Lookup

    /// Finds the line with an id; nil if there is none.
    ///
    /// - Throws: `LogError`: `corrupt`, `io`, `closed`, `indeterminate`.
    /// - Complexity: O(segments · log events), and after some hundred lookups O(segments / 64) for nearly all
    ///   absent ids. On a hit one frame (at most 188 KiB, or one big commit) to read, up to the line.
    public func line(id: UInt128) throws(LogError) -> (position: Position, bytes: [UInt8])? {
        try state.withLock { (state) throws(LogError) in
            try checkUsable(state)
            try Self.readOlderIDs(&state)
            if let position = state.contents.position(id: id) {
                let frame = Self.liveFrame(state, at: state.contents.frame(of: position))
                return try Self.line(id: id, in: frame, state.cache)
            }
            for index in state.contents.olderFrames(id: id) {
                let frame = Self.liveFrame(state, at: index)
                if let line = try Self.line(id: id, in: frame, state.cache) { return line }
            }
            var end = state.sealed.count
            while let candidate = try state.sealed.candidate(before: end, id: id) {
                end = candidate.number
                for entry in candidate.frames {
                    let frame = StoredFrame(entry, of: candidate.segment)
                    if let line = try Self.line(id: id, in: frame, state.cache) { return line }
                }
            }
            return nil
        }
    }

    /// Loads the ids that opening left in the checkpoint or, if they cannot be read there, from the lines of
    /// the live segment. O(1) once they are loaded.
    private static func readOlderIDs(_ state: inout State) throws(LogError) {
        guard state.contents.lacksOlderIDs else { return }
        if let index = state.idIndex?.read() {
            state.contents.setOlderIDs(index)
        } else if let reading = state.live?.reading() {
            var positions = IDTable()
            for entry in state.contents.frames {
                let frame = try DecodedFrame.read(
                    reading.file, path: reading.path, entry, allowsHoles: false)
                for line in frame.lines {
                    positions.set(line.prefix.id, to: line.prefix.position.rawValue)
                }
            }
            state.contents.setIDs(positions)
        }
        state.idIndex = nil
    }

    /// Reads the line at a position; nil if there is none.
    ///
    /// - Throws: as `line(id:)`.
    /// - Complexity: O(log segments + log frames), and one frame to read.
    public func line(at position: Position) throws(LogError) -> [UInt8]? {
        var bytes: [UInt8]?
        _ = try forEachLine(at: [position]) { bytes = $0.array }
        return bytes
    }

    /// Calls `body` with the lines at the given positions, in their order. Looks a frame up once for
    /// consecutive positions in it.
    ///
    /// - Returns: the first position without a line, at which the lookup stops; nil if all have one.
    /// - Throws: as `line(id:)`, possibly after `body` was called with some lines.
    package func forEachLine(
        at positions: [Position], _ body: (RawSpan) -> Void
    ) throws(LogError) -> Position? {
        var frame: DecodedFrame?
        for position in positions {
            var line = frame?.line(at: position)
            if line == nil {
                frame = try decodedFrame(of: position)
                line = frame?.line(at: position)
            }
            guard let frame, let line else { return position }
            body(frame.plaintext.span.bytes.extracting(line.range))
        }
        return nil
    }

    /// The frame whose range includes a position, decoded; nil if there is none. A frame that may grow is decoded
    /// under the lock, any other without it, so that appends do not wait.
    private func decodedFrame(of position: Position) throws(LogError) -> DecodedFrame? {
        enum Found {
            case stored(StoredFrame, FrameCache)
            case decoded(DecodedFrame)
        }
        func decoded(
            _ frame: StoredFrame, _ cache: FrameCache
        ) throws(LogError) -> DecodedFrame {
            try cache.decoded(frame) { $0.line(at: position) != nil }
        }
        let found = try state.withLock { (state) throws(LogError) -> Found? in
            try checkUsable(state)
            guard let frame = try Self.frame(&state, of: position) else { return nil }
            return frame.mayGrow
                ? .decoded(try decoded(frame, state.cache)) : .stored(frame, state.cache)
        }
        return switch found {
        case nil: nil
        case .decoded(let frame): frame
        case .stored(let frame, let cache): try decoded(frame, cache)
        }
    }

    /// The frame whose range includes a position; nil if there is none.
    private static func frame(
        _ state: inout State, of position: Position
    ) throws(LogError) -> StoredFrame? {
        if position >= state.contents.base {
            guard position < state.contents.next, !state.contents.frames.isEmpty else { return nil }
            return liveFrame(state, at: state.contents.frame(of: position))
        }
        guard let number = state.sealed.number(covering: position) else { return nil }
        let segment = try state.sealed.segment(number)
        guard !segment.footer.frames.isEmpty else { return nil }
        let entry = segment.footer.frames[segment.footer.frames.frame(of: position)]
        return StoredFrame(entry, of: segment)
    }

    /// The frame at an index of the live segment; nil if there is no live segment.
    private static func liveFrame(_ state: borrowing State, at index: Int) -> StoredFrame? {
        guard let reading = state.live?.reading() else { return nil }
        return StoredFrame(at: index, of: state.contents, reading)
    }

    /// The line with an id in a frame. From the second lookup in it on, the frame is in the cache.
    private static func line(
        id: UInt128, in frame: StoredFrame?, _ cache: FrameCache
    ) throws(LogError) -> (position: Position, bytes: [UInt8])? {
        guard let frame else { return nil }
        // A damaged frame is searched up to the damage.
        guard cache.isWorthDecoding(frame),
            let decoded = try? cache.decoded(frame, isWanted: { $0.line(id: id) != nil })
        else { return try frame.line(id: id) }
        return decoded.copy(ofLineWith: id)
    }

    // MARK: Snapshots and iteration

    /// The log's metadata at its last commit, for a checkpoint. O(1) and one frame to read; the
    /// first time, the footer of the last sealed segment as well.
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
                sealed: state.sealed.ranges, idSeed: state.sealed.lastIDSeed(),
                live: dataEnd.map { (state.contents, $0) })
        }
    }

    /// Calls `body` with every committed line from a position on, in order, until it returns false. Lines
    /// that are appended meanwhile are not read.
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
            "committed lines are missing")
    }

    // MARK: Closing

    /// Closes the log in order and releases its lock. Closing twice is harmless.
    ///
    /// - Throws: `LogError` (`io`, `indeterminate`) if the clean-shutdown marker could not be written; the
    ///   log is closed nevertheless, and every acknowledged line is durable. `noSuchLog` if the log's files
    ///   were removed, renamed or replaced while it was open: then nothing more was written.
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

    /// True if the log was closed and its lock released for good.
    package var isClosed: Bool { state.withLock { $0.lock == nil && !$0.isSuspended } }

    /// Marks the log as erased; durable on return. `finishErasure()` deletes it, or else the next opening
    /// does. Nothing may be appended afterwards.
    ///
    /// - Parameter withSecrets: true if the log's secrets must be deleted first: then only a store with
    ///   its secret store can open the folder again.
    /// - Throws: `LogError`: `closed`, `suspended`; `noSuchLog` if the folder was removed, renamed or
    ///   replaced: then nothing is deleted; other errors with the log unchanged, except
    ///   `indeterminate`.
    package func beginErasure(withSecrets: Bool = false) throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            guard state.lock != nil else { return try checkUsable(state) }
            try requireInPlace(&state)
            let fileSystem = environment.fileSystem
            do throws(LogError) {
                try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
                    try LogErasure(directory: directory, fileSystem: fileSystem)
                        .begin(withSecrets: withSecrets)
                }
            } catch {
                state.hasReserve = false
                if error.code == .indeterminate { state.failure = error }
                throw error
            }
        }
    }

    /// Deletes the log after `beginErasure()`: everything in its folder, including files of other programs.
    /// The deletion is durable on return. The log is closed, also on failure; then the next opening
    /// deletes the remaining files. The empty folder stays.
    ///
    /// - Throws: `LogError`: `noSuchLog` as `beginErasure()`; `io`, `readOnly`.
    package func finishErasure() throws(LogError) {
        try state.withLock { (state) throws(LogError) in
            guard let lock = state.lock else { return try checkUsable(state) }
            defer { withExtendedLifetime(lock) {} }
            drop(&state)
            state.failure = nil
            try lock.requireInPlace()
            try LogErasure(directory: directory, fileSystem: environment.fileSystem)
                .finishWithLock()
        }
    }

    /// Deletes a log without secrets: `beginErasure()` and `finishErasure()`.
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
        guard let held = state.lock else { return }
        // Also while the clean-shutdown marker is written, which does not use the lock.
        defer { withExtendedLifetime(held) {} }
        defer { drop(&state) }
        guard state.failure == nil else { return }
        try requireInPlace(&state)
        do throws(LogError) {
            try state.lock?.recordClose(next: state.contents.next)
        } catch let error where error.code == .diskFull {
            return  // As without space for the clean-shutdown marker.
        } catch { throw error }
        try state.live?.close(last: Position(state.contents.next.rawValue - 1))
    }

    /// Acquires the lock again after `suspend()` and opens the log anew, since other processes may have
    /// appended, sealed and compacted meanwhile.
    ///
    /// - Returns: the report of what opening recovered.
    /// - Throws: as `init`, and `corrupt` if the folder contains another log.
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
                    "while the log was suspended, its folder was replaced by another log or by an "
                        + "earlier copy; close the log and open it again")
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
