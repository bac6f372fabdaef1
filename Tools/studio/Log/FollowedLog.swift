// A log that is read in the background and followed while another process writes it: one thread fills the
// index, another folds the outbox and the views. Nothing is written, and the lock is not taken.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization

/// A log, read without its lock.
final class FollowedLog: Sendable {
    let folder: LogFolder
    /// The account that the log must have; nil accepts any.
    private let account: String?
    private let state = Mutex(State())
    private let isStopped = Atomic(false)
    private static let pause = 0.25
    private static let longPause = 2.0
    private static let roundsOfCompactionCheck = 8

    /// What the threads have read so far.
    struct State {
        var index = EventIndex()
        /// The last position read, or covered by a segment whose last events compaction has removed.
        var last = Position.zero
        /// True once the end of the log was reached.
        var isIndexed = false
        var fold = LogFold()
        var problem: LogProblem?
        /// Changes with the events, the fold and the problem.
        var version = 0
        /// Changes with every status that may have changed.
        var statusVersion = 0
        /// An error of the fold, which ends it.
        var foldProblem: LogProblem?
        /// The number of times that the log was read from its beginning.
        var beginning = 1
    }

    /// Creates a follower of the log in a folder. Opens nothing.
    init(_ folder: LogFolder, account: String? = nil) {
        self.folder = folder
        self.account = account
    }

    var directory: String { folder.directory }

    /// Starts the threads. They end after `stop()`.
    func start() {
        // Before the first answer, so that no page asks for more of another account's log.
        do { try checkAccount() } catch { withState { $0.problem = LogProblem(error) } }
        Thread.detachNewThread { self.followLines() }
        Thread.detachNewThread { self.followFold() }
    }

    /// Throws `wrongAccount` if the log on the disk is not the wanted account's, or its account cannot be read.
    func checkAccount() throws(LogError) {
        guard let account else { return }
        let files = try folder.reader.files()
        guard files.segments > 0, files.account != account else { return }
        throw LogError(
            .wrongAccount, path: directory,
            files.account == nil
                ? "the log belongs to no account" : "the log belongs to another account")
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// Calls a closure with what was read so far. The threads wait meanwhile.
    func withState<Result>(_ body: (inout State) throws -> sending Result) rethrows
        -> sending Result
    {
        try state.withLock { try body(&$0) }
    }

    /// Calls a closure with what was read since a beginning.
    ///
    /// - Throws: `APIError` `changed` if the log was read anew since then: ordinals are valid in one index
    ///   only.
    func withState<Result>(
        since beginning: Int, _ body: (inout State) throws -> sending Result
    ) throws -> sending Result {
        try withState { state in
            guard state.beginning == beginning else { throw APIError.changed }
            return try body(&state)
        }
    }

    // MARK: Reading

    private func followLines() {
        var cursor = folder.cursor()
        // Before the first line is read, so that every later compaction is detected.
        var watch = CompactionWatch()
        _ = detectCompaction(&watch)
        var round = 0
        while !isStopped.load(ordering: .relaxed) {
            let before = withState { $0.index.count }
            let problem = readLines(&cursor)
            withState { state in
                if state.index.count != before || state.problem != problem || !state.isIndexed {
                    state.version += 1
                }
                state.problem = problem
                state.isIndexed = true
                state.last = cursor.position
            }
            if problem != nil { cursor = folder.cursor(after: cursor.position) }
            if problem?.code == "wrongAccount", before > 0 {
                // Another log is in the folder now.
                withState { state in
                    state = State(after: state)
                    state.problem = problem
                }
                cursor = folder.cursor()
            }
            round += 1
            if round % Self.roundsOfCompactionCheck == 0, detectCompaction(&watch) {
                // Events were removed: all is read anew.
                withState { $0 = State(after: $0) }
                cursor = folder.cursor()
            }
            // Damage is classified with a read of the whole segment.
            Thread.sleep(
                forTimeInterval: problem == nil || problem == .empty ? Self.pause : Self.longPause)
        }
    }

    private func readLines(_ cursor: inout LogCursor) -> LogProblem? {
        do {
            try checkAccount()
            _ = try cursor.poll { prefix, line in
                try append(prefix, line)
                return !isStopped.load(ordering: .relaxed)
            }
            return withState { $0.index.count == 0 } ? .empty : nil
        } catch { return LogProblem(error) }
    }

    private func append(_ prefix: LinePrefix, _ line: RawSpan) throws {
        try state.withLock { state in
            try state.index.append(prefix, line, in: directory)
        }
    }

    /// Publishes the position through which the log is compacted. Reads the end of each segment.
    ///
    /// - Returns: true if a compaction has rewritten a segment since the last call.
    private func detectCompaction(_ watch: inout CompactionWatch) -> Bool {
        guard let outline = try? folder.reader.outline() else { return false }
        let through = outline.reduce(Position.zero) { max($0, $1.compactedThrough) }
        withState { state in
            guard state.fold.compactedThrough != through else { return }
            state.fold.compactedThrough = through
            state.version += 1
        }
        return watch.detectRewrite(in: outline)
    }

    /// Reads the log once to its end, in the calling thread, with the histories of the views.
    ///
    /// - Throws: `LogError`. Damage is no error: it is the problem of the state, and the events before it are read.
    func readOnce() throws {
        var (cursor, watch) = (folder.cursor(), CompactionWatch())
        let problem = readLines(&cursor)
        _ = detectCompaction(&watch)
        let records = withState { state in
            (state.problem, state.isIndexed, state.last) = (problem, true, cursor.position)
            state.version += 1
            return state.index.positions(ofTypes: DiscardedEvents.recordTypes)
        }
        var fold = LogFold(keepsHistories: true)
        fold.compactedThrough = withState { $0.compactedThrough }
        try fold.readRecords(records, in: folder)
        try fold.advance(through: cursor.position, in: folder)
        withState { state in
            state.fold = fold
            state.statusVersion += 1
        }
    }

    // MARK: Folding

    private func followFold() {
        while !isStopped.load(ordering: .relaxed) {
            let (isFolded, last) = withState { ($0.isFolded || !$0.isIndexed, $0.last) }
            if !isFolded {
                advance(toward: last)
            } else {
                Thread.sleep(forTimeInterval: Self.pause)
            }
        }
    }

    /// The number of positions after which the result is published.
    private static let portion = 65_536

    private func advance(toward last: Position) {
        let records = withState { $0.index.positions(ofTypes: DiscardedEvents.recordTypes) }
        var (fold, beginning) = withState { ($0.fold, $0.beginning) }
        do {
            try fold.readRecords(records, in: folder)
            try fold.advance(
                through: min(last, fold.last.advanced(by: Self.portion)), in: folder)
        } catch {
            let problem = LogProblem(error)
            withState { state in
                if state.foldProblem != problem { state.version += 1 }
                state.foldProblem = problem
            }
            Thread.sleep(forTimeInterval: Self.longPause)
            return
        }
        withState { state in
            guard state.beginning == beginning else { return }
            fold.compactedThrough = state.fold.compactedThrough
            state.fold = fold
            state.foldProblem = nil
            state.version += 1
            state.statusVersion += 1
        }
    }
}

extension FollowedLog.State {
    /// An empty state after another one.
    init(after other: Self) {
        version = other.version + 1
        statusVersion = other.statusVersion + 1
        beginning = other.beginning + 1
        fold.compactedThrough = other.fold.compactedThrough
    }

    /// The position before which states cannot be rebuilt; of a damaged log at most the last one read.
    var compactedThrough: Position { min(fold.compactedThrough ?? .zero, last) }

    /// True once the views and the outbox are at the end of the index.
    var isFolded: Bool { isIndexed && fold.last >= last }

    /// The positions of the events that changed a view, ascending, as far as they are folded. Not those before
    /// a compaction, where the view's state can no longer be shown.
    func changes(of view: Int) -> ArraySlice<UInt64> {
        let start = compactedThrough
        return fold.changes(
            of: view, after: start == .zero ? start : start.advanced(by: -1), through: last)
    }

    /// The number of events by status. O((waiting and retracted events) log n).
    func statusCounts() -> [EventStatus: Int] {
        var counts: [EventStatus: Int] = [:]
        for (origin, kinds) in index.kindCounts() {
            for (kind, events) in kinds {
                counts[status(of: kind, origin), default: 0] += events
            }
        }
        var next = 0
        func count(_ position: Position) {
            // Waiting events are usually adjacent, so the next ordinal is tried first.
            let isNext = next < index.count && index.positions[next] == position.rawValue
            guard let ordinal = isNext ? next : index.ordinal(at: position.rawValue) else { return }
            next = ordinal + 1
            counts[status(of: index.kind(ordinal), index.origins[ordinal]), default: 0] -= 1
            counts[status(ordinal), default: 0] += 1
        }
        for entry in fold.outbox.entries { count(entry.position) }
        for position in fold.discarded.all where fold.entry(at: position) == nil {
            count(position)
        }
        return counts.filter { $0.value > 0 }
    }

    /// The state of an event that neither waits nor is retracted.
    private func status(of kind: EventIndex.TypeKind, _ origin: EventIndex.Origin) -> EventStatus {
        switch kind {
        case .record: .record
        case _ where origin == .foreign: .received
        case .shipped: .settled
        case .local: .local
        case .unknown: .unknown
        }
    }

    /// The state of the event at a position; nil if there is none in the index.
    func status(at position: Position) -> EventStatus? {
        index.ordinal(at: position.rawValue).map { status($0) }
    }

    /// The state of an event.
    func status(_ ordinal: Int) -> EventStatus {
        let position = Position(index.positions[ordinal])
        if let entry = fold.entry(at: position) {
            return switch entry.status {
            case .pending: .pending
            case .failed: .parked
            case .conflict: .conflict
            }
        }
        if fold.discarded.contains(position) { return .retracted }
        let status = status(of: index.kind(ordinal), index.origins[ordinal])
        // Until it is folded, it may still wait.
        return status == .settled && fold.last < position ? .pending : status
    }
}

/// Why a log cannot be shown whole.
struct LogProblem: Hashable, Sendable {
    var code: String
    var message: String
    var remedy: String?
    /// The location of damage.
    var segment: String?
    var offset: Int?
    var positions: ClosedRange<Position>?

    static let empty = LogProblem(
        code: "empty", message: "the log has no events yet",
        remedy: "record an event in the app, or run `logtool import`")

    init(code: String, message: String, remedy: String?) {
        self.code = code
        self.message = message
        self.remedy = remedy
    }

    init(_ error: any Error) {
        guard let error = error as? LogError else {
            let refusal = APIError(error)
            (code, message, remedy) = ("io", refusal.message, refusal.remedy)
            return
        }
        code =
            switch error.code {
            case .corrupt: "damaged"
            case .newerVersion, .unknownFeature: "newer"
            case .noSuchLog: "noLog"
            case .notALog: "notALog"
            case .wrongAccount: "wrongAccount"
            default: "io"
            }
        message = error.description
        // That of the account is for the app that opens the log; the page has one of its own.
        remedy = error.code == .wrongAccount ? nil : error.recoverySuggestion
        guard error.code == .corrupt else { return }
        segment = error.path.split(separator: "/").last.map(String.init)
        (offset, positions) = (error.offset, error.positions)
    }
}
