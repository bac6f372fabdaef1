// A log of events with its views: opening, reading, checkpoints, suspending and closing. One actor on its
// own queue. Appending is in EventStore+Append. Spec/overview.md.

import Foundation
import LogFormat
import LogStorage
import Synchronization
import Telemetry

/// When an append returns.
public enum Durability: Sendable {
    /// When the event is on the disk and survives a power cut.
    case durable
    /// At once. The event waits in memory for the next commit, for at most a second or 64 KiB; a kill
    /// before that commit may lose it.
    case relaxed
}

/// The result of appending one event.
public struct Appended: Hashable, Sendable {
    /// The event's identity.
    public let id: UUID
    /// The event's position; for a known event, the position of the recorded one.
    public let position: Position
    /// True if the event was recorded now; false if the log already had it, with the same content.
    public let isNew: Bool

    /// Creates a result.
    public init(id: UUID, position: Position, isNew: Bool) {
        self.id = id
        self.position = position
        self.isNew = isNew
    }
}

/// A log of events with its views.
public actor EventStore {
    /// What opening found and recovered.
    public nonisolated let recovery: RecoveryReport
    /// The names of the views whose fold gives another state than the one stored under the same version. Their states are
    /// a mixture of both folds: raise their versions. Found in debug builds, if at most 4,096 events were folded between
    /// the last two checkpoints; always empty in release builds.
    public nonisolated let changedFolds: [String]
    /// The log's writer id on this device: the `source` of its events is `urn:uuid:` followed by this.
    public nonisolated var incarnation: UUID { UUID(integer: log.incarnation) }

    /// The log's own id.
    public nonisolated var logID: UUID { UUID(integer: log.id) }
    /// The account the log belongs to, if any.
    public nonisolated var account: String? { log.account }
    /// The known event types.
    public nonisolated let catalogue: EventCatalogue

    nonisolated let executor: StoreExecutor
    /// Watches the closures of `write(_:)`.
    nonisolated let writeWatch: WriteWatch
    /// The store's own serial queue: waiting for the disk blocks no thread of the cooperative pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    package nonisolated let log: Log
    nonisolated let views: ViewSet
    /// File system, clock and randomness.
    public nonisolated let environment: LogEnvironment
    /// The logger, metrics factory and tracer of the task that opened the store.
    package nonisolated let instruments: Instruments
    var floor: TimeFloor
    nonisolated let inbox = AppendInbox()
    var pending = PendingAppends()
    /// The number of commits that were started.
    var commitCount = 0
    private let eraseSecrets: (@Sendable () async throws -> Void)?
    private(set) var isClosed = false
    /// True between `suspend()` and `resume()`.
    public private(set) var isSuspended = false
    var checkpointing: Checkpointing
    /// Stored states of views that this program does not know.
    let unknownStates: [StoredState]
    /// The views, and the rows in databases, that need every event of their types.
    private(set) var needs: ViewNeeds
    /// The rules that the log has recorded.
    private var recordedRules: RecordedRules
    /// The app's rules that the log has not recorded yet.
    private(set) var unrecordedRules: RecordedRules
    private var commitSignals: [UUID: AsyncStream<Void>.Continuation] = [:]
    var compaction = CompactionControl()
    var absorption = AbsorptionControl()
    var handover = HandoverControl()
    /// True if a log line has said that a time may be in seconds.
    var hasWarnedOfSeconds = false
    /// The tables of `transient(_:)`, by their `TransientState` type.
    let transients = Mutex<[ObjectIdentifier: any Sendable]>([:])

    /// Milliseconds to add to the device's clock to get the server's.
    public private(set) var clockOffset: Int64 = 0

    // MARK: Opening

    /// Opens the log in a folder, recovers it after an unclean stop, and folds its views. The store keeps
    /// the calling task's logger, metrics factory and tracer (`Instruments`).
    ///
    /// - Parameters:
    ///   - directory: the log's folder, created if it is missing and `create` is true.
    ///   - account: the account that the log must belong to; nil for any.
    ///   - create: true to create a log in a missing or empty folder.
    ///   - isShared: true if the log must belong to no account.
    ///   - catalogue: the known event types.
    ///   - views: the views to fold.
    ///   - keepingUnknownStates: true to keep stored states of other views in the checkpoints that the
    ///     store writes: for a tool that does not know all of an app's views.
    ///   - environment: file system, clock and randomness.
    ///   - progress: called from time to time with the number of events folded so far and their total.
    ///   - eraseSecrets: deletes the log's secrets, if it has any. `erase` calls it after the erasure is
    ///     durably begun and before the log is deleted; if it throws, or the process ends, the next
    ///     opening of the folder must call it.
    /// - Throws: `EventError` (`refused`) for conflicting rules, upcasters or views, naming them
    ///   (Spec/model/events.md, EVT-15); then nothing is opened. `LogError` as `Log.init`, and `corrupt`
    ///   for a line that is not an event.
    /// - Complexity: O(states + events after the newest checkpoint); O(events) if a view has no stored
    ///   state, or one of another version.
    package static func open(
        at directory: String, account: String? = nil, create: Bool = true, isShared: Bool = false,
        catalogue: EventCatalogue, views: [any Projection.Type], keepingUnknownStates: Bool = false,
        environment: LogEnvironment = LogEnvironment(),
        progress: (@Sendable (_ folded: Int, _ total: Int) -> Void)? = nil,
        eraseSecrets: (@Sendable () async throws -> Void)? = nil
    ) async throws -> EventStore {
        if let fault = catalogue.fault { throw fault }
        try ViewSet.check(views)
        let instruments = Instruments()
        let store = try await instruments.measure(.open) {
            try await BlockingWork.run {
                let log = try Log(
                    at: directory, account: account, create: create, isShared: isShared,
                    environment: environment)
                do {
                    let rules = RecordedRules(of: directory, environment.fileSystem)
                    let catalogue = catalogue.adding(rules)
                    let opening = try StoreOpening(
                        log, catalogue, ViewSet(views, catalogue),
                        keepsUnknownStates: keepingUnknownStates, environment.fileSystem,
                        instruments,
                        progress: progress)
                    opening.reportFaults(instruments)
                    log.keepReserve()
                    return EventStore(
                        log, catalogue, rules, opening, environment, instruments, eraseSecrets)
                } catch {
                    try? log.close()
                    throw (error as? LogError)?.following(log.recovery) ?? error
                }
            }
        }
        await store.warnAfterOpening(knowsApp: !keepingUnknownStates)
        await store.checkpointIfDue()
        if !keepingUnknownStates { await store.beginToAbsorb() }
        return store
    }

    private init(
        _ log: Log, _ catalogue: EventCatalogue, _ rules: RecordedRules, _ opening: StoreOpening,
        _ environment: LogEnvironment, _ instruments: Instruments,
        _ eraseSecrets: (@Sendable () async throws -> Void)?
    ) {
        self.log = log
        self.catalogue = catalogue
        self.environment = environment
        self.instruments = instruments
        let watch = WriteWatch(instruments, environment)
        writeWatch = watch
        executor = StoreExecutor { watch.noteWaiter() }
        self.eraseSecrets = eraseSecrets
        views = opening.views
        floor = opening.floor
        checkpointing = opening.checkpointing
        unknownStates = opening.unknown
        needs = opening.needs
        recordedRules = rules
        unrecordedRules = RecordedRules(of: catalogue).subtracting(rules)
        changedFolds = opening.changedFolds
        recovery = log.recovery
    }

    // MARK: Reading

    /// The state of a view that was passed to `open`. It includes every append that has returned.
    /// O(1).
    public nonisolated func view<View: Projection>(_ view: View.Type) -> View {
        views.snapshot(view)
    }

    /// The state of a view, with its revision. O(1).
    nonisolated func present<View: Projection>(
        _ view: View.Type
    ) -> (view: View, revision: UInt64) {
        views.present(view)
    }

    /// A number that grows whenever a view's state may have changed. O(1).
    nonisolated func revision<View: Projection>(of view: View.Type) -> UInt64 {
        views.revision(of: view)
    }

    /// The current states of all views.
    public nonisolated var projections: [any Projection] { views.projections }

    /// The committed event at a position, as it was recorded, or nil. `catalogue.upcast(_:)` converts it
    /// to its newest form.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: one frame to read.
    public func event(at position: Position) throws -> Event? {
        try checkOpen()
        guard let line = try log.line(at: position) else { return nil }
        return try LogReader.event(line.span.bytes, catalogue, directory: log.directory)
    }

    /// The committed event with an id, as it was recorded, or nil.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: one frame to read.
    package func event(id: UUID) throws -> Event? {
        try checkOpen()
        guard let line = try log.line(id: id.integer) else { return nil }
        return try LogReader.event(line.bytes.span.bytes, catalogue, directory: log.directory)
    }

    /// True if the event at a position is retracted: it counts as never recorded.
    package func isRetracted(_ position: Position) -> Bool { views.discarded.contains(position) }

    /// The last durable position, and the positions of all retracted events, ascending, at one moment.
    package var durableState: (last: Position, retracted: [Position]) {
        (lastDurable, views.discarded.all)
    }

    /// True if a view was passed to `open`.
    package nonisolated func has<View: Projection>(_ view: View.Type) -> Bool {
        views.contains(view)
    }

    /// The state of a view after the last durable event, and the positions of all retracted events: commits
    /// relaxed events first.
    ///
    /// - Throws: `LogError`.
    package func durableView<View: Projection>(
        _ view: View.Type
    ) throws -> (view: View, last: Position, retracted: [Position]) {
        try requireFlushed()
        if views.isStale { try rebuildViews() }
        return (views.snapshot(view), lastDurable, views.discarded.all)
    }

    /// The data of the event with an id, in its newest form; nil if the log does not have it. Blocks.
    ///
    /// - Throws: `LogError`.
    package nonisolated func data(ofEvent id: UUID) throws -> [UInt8]? {
        guard let line = try log.line(id: id.integer) else { return nil }
        let event = try LogReader.event(
            line.bytes.span.bytes, catalogue, directory: log.directory)
        return catalogue.newestForm(of: event).content.json
    }

    /// States of which types the rows in a database need all events: compaction keeps them, also after the store
    /// is opened again. Replaces what was stated for the database before.
    ///
    /// - Parameter types: the types, by the names of the projections.
    package func setNeeds(ofRowsIn database: String, _ types: [String: Set<String>]) {
        let new = needs.settingRows(in: database, types)
        guard new != needs else { return }
        needs = new
        checkpointing.makeNeedsNew()
        checkpointIfDue()
    }

    /// The lines at positions as a JSON array, byte for byte as they are stored: the body of a request to
    /// the server. Commits pending events first if they are among them, so that no event is sent that
    /// could still be lost. Reads outside the store's queue; appends wait only while the last frame of the log is
    /// read.
    ///
    /// - Parameter bytes: the total length of the lines, if known.
    /// - Throws: `LogError`, `corrupt` for a missing line.
    package nonisolated func jsonArray(
        of positions: [Position], bytes: Int = 0
    ) async throws -> [UInt8] {
        if let last = positions.max(), last >= log.next { try await flush() }
        return try await BlockingWork.run { [log] in
            var array: [UInt8] = []
            array.reserveCapacity(bytes + positions.count + 2)
            array.append(UInt8(ascii: "["))
            let missing = try log.forEachLine(at: positions) { line in
                if array.count > 1 { array.append(UInt8(ascii: ",")) }
                array.append(contentsOf: line)
            }
            if let missing {
                throw LogError(
                    .corrupt, path: log.directory, positions: missing...missing,
                    "the outbox names a line that the log does not have")
            }
            array.append(UInt8(ascii: "]"))
            return array
        }
    }

    /// The log's folder.
    public nonisolated var directory: String { log.directory }

    /// The last durable position.
    public var lastDurable: Position { Position(log.next.rawValue - 1) }

    /// A signal whenever the views or the disk have changed or the store was suspended, the first at once.
    /// Signals that are not consumed are merged into one. Ends when the store is closed.
    public func commits() -> AsyncStream<Void> { commits(and: nil) }

    /// As `commits()`, also with a signal for every change of a transient table.
    func commits(and table: (any TransientSource)?) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = UUID()
        guard !isClosed else {
            continuation.finish()
            return stream
        }
        commitSignals[id] = continuation
        table?.subscribe(id, continuation)
        continuation.onTermination = { [weak self] _ in
            table?.unsubscribe(id)
            Task { await self?.removeSignal(id) }
        }
        continuation.yield()
        return stream
    }

    private func removeSignal(_ id: UUID) { commitSignals[id] = nil }

    /// The number of subscribers to commits.
    package var subscriberCount: Int { commitSignals.count }

    // MARK: Views

    /// Rebuilds the views if an event was retracted after they folded it. Pending events are committed by
    /// then.
    func rebuildViewsIfStale() {
        guard views.isStale, pending.isEmpty else { return }
        // If the log cannot be read, the next commit tries again, and so does the next opening.
        try? rebuildViews()
    }

    private func rebuildViews() throws {
        let states = CheckpointSlots(log.directory, fileSystem: environment.fileSystem).usable()
            .filter { $0.logID == log.id && $0.position <= lastDurable }.flatMap(\.states)
        try instruments.measure(.fold) { try views.rebuild(from: states, log, catalogue) }
        checkpointing.makeDue()
    }

    /// Signals all subscribers.
    package func signalChange() {
        for signal in commitSignals.values { signal.yield() }
    }

    // MARK: Checkpoints

    /// Stores the states of the views, so that the next opening folds only later events. Durable on return.
    /// The store also writes checkpoints automatically.
    ///
    /// - Throws: `LogError`: `diskFull`, `io`, `tooLarge`, and as `flush()`; `CancellationError` if
    ///   `suspend(storingStates: false)` or `close(storingStates: false)` has stopped it.
    /// - Complexity: O(states), in the background; appends continue.
    public func checkpoint() async throws {
        repeat {
            // Another task may start one when the running one ends.
            while let running = checkpointing.running { try? await running.value }
            try flush()
            // The commit may have begun one: two would write one file.
        } while checkpointing.running != nil
        // A state that includes a retracted event must not be stored as one without it.
        if views.isStale { try rebuildViews() }
        try await beginCheckpoint().value
    }

    func checkpointIfDue() {
        guard checkpointing.isDue, lastDurable > .zero, pending.isEmpty, !isClosed, !isSuspended,
            !views.isStale
        else {
            return
        }
        // If it fails, the log still has all events, and the next one is due when the tail has grown.
        _ = try? beginCheckpoint()
    }

    private func beginCheckpoint() throws -> Task<Void, any Error> {
        let job = CheckpointJob(
            log: log, snapshot: try log.snapshot(), captures: views.capture(), floor: floor,
            discarded: views.discarded, needs: needs, unknown: unknownStates,
            environment: environment, stop: CancellationFlag())
        checkpointing.begin()
        checkpointing.stop = job.stop
        let task = Task {
            defer {
                checkpointing.running = nil
                checkpointing.stop = nil
            }
            let (stateBytes, faults) = try await instruments.measure(.checkpoint) {
                try await BlockingWork.run(.utility) { try job.run() }
            }
            instruments.count(.checkpointBytes, stateBytes)
            warnOfUnstoredStates(faults)
            checkpointing.finish(stateBytes: stateBytes, storesNeeds: job.needs == needs)
        }
        checkpointing.running = task
        return task
    }

    /// The views as they were at a position.
    ///
    /// - Throws: `EventError` (`refused`) for a position after the end of the log, or before the position
    ///   through which it is compacted, naming it; `LogError`.
    /// - Complexity: O(events after the newest checkpoint that is not later than the position); outside
    ///   the store's queue, so that appends continue.
    public func state(at position: Position) async throws -> PastState {
        try flush()
        guard position <= lastDurable else {
            throw EventError(
                .refused,
                "the log ends at position \(lastDurable); there is no state at \(position) yet")
        }
        let (log, catalogue, past, environment) = (log, catalogue, views.fresh(), environment)
        return try await BlockingWork.run { [instruments] in
            try Self.checkNotCompacted(log, at: position)
            let checkpoints = CheckpointSlots(
                log.directory, fileSystem: environment.fileSystem
            ).usable().filter { $0.logID == log.id }
            past.restore(checkpoints.flatMap(\.states).filter { $0.position <= position })
            try instruments.fold(
                log.runs(from: past.next, through: position, catalogue: catalogue)
            ) { past.fold($0[...]) }
            // A compaction may have removed events during the read.
            try Self.checkNotCompacted(log, at: position)
            return PastState(position: position, views: past)
        }
    }

    private static func checkNotCompacted(_ log: Log, at position: Position) throws {
        let through = try log.compactedThrough()
        guard position >= through else {
            throw EventError(
                .refused,
                "the log is compacted through position \(through); the state at \(position) can no "
                    + "longer be rebuilt")
        }
    }

    // MARK: Rules

    /// Records the rules that the log does not have yet, before an event to which one of them applies is committed.
    /// If the file cannot be written, the next such event tries again. Durable on return.
    func recordRules(for events: [Event]) {
        let isDue = events.contains { event in
            unrecordedRules.rules[event.type] != nil && event.isOwn
                && (event.action != nil || recordedRules.rules[event.type] != nil)
        }
        guard isDue else { return }
        let rules = recordedRules.merging(unrecordedRules)
        do throws(FileError) { try rules.write(to: directory, environment.fileSystem) } catch {
            return
        }
        recordedRules = rules
        unrecordedRules = RecordedRules()
    }

    // MARK: Suspending and closing

    /// Commits pending events and releases the log's lock, as an operating system requires of an app that
    /// it suspends. Views can still be read; appends are refused (`LogError`, `suspended`) until
    /// `resume()`.
    ///
    /// - Parameter storingStates: false to stop a checkpoint under way, for an app with little time: it is begun
    ///   again after `resume()`.
    /// - Throws: `LogError` if pending events cannot be written.
    /// - Complexity: with true, O(states) if a checkpoint is under way; with false, O(states of one view) at most,
    ///   O(1) if the view is `Codable`. A compaction ends before its next frame.
    public func suspend(storingStates: Bool = true) async throws {
        handover.isActive = false
        try await releaseLog(storingStates: storingStates)
    }

    /// Suspends the store, for the app or for another process.
    func releaseLog(storingStates: Bool) async throws {
        // Also while an earlier call waits for the checkpoint.
        if !storingStates { checkpointing.stop?.set() }
        guard !isSuspended else {
            await absorption.wait()
            return await waitForCheckpoint()
        }
        try flush()
        isSuspended = true
        do {
            // The flush may have begun one.
            if !storingStates { checkpointing.stop?.set() }
            await stopCompaction()
            await absorption.wait()
            await waitForCheckpoint()
            try log.suspend()
        } catch {
            isSuspended = false
            signalChange()
            throw error
        }
        // Tasks that follow the store must stop their work too.
        signalChange()
    }

    /// Takes the lock again after `suspend()`, and folds the events that other processes have recorded
    /// meanwhile.
    ///
    /// - Throws: `LogError` as `open`: `locked` while another process holds the lock.
    public func resume() throws {
        guard isSuspended else { return try checkOpen() }
        _ = try log.resume()
        log.keepReserve()
        isSuspended = false
        recordedRules = RecordedRules(of: directory, environment.fileSystem)
        unrecordedRules = RecordedRules(of: catalogue).subtracting(recordedRules)
        // Also if the fold fails: tasks that wait must not wait for a commit.
        defer { signalChange() }
        try instruments.fold(log.runs(from: views.next, catalogue: catalogue)) { run in
            views.fold(run[...])
            for event in run {
                floor.include(event.time)
                checkpointing.countTail(event)
            }
        }
        warnOfUnreadableEvents()
        rebuildViewsIfStale()
        checkpointIfDue()
        lookForCompanions()
    }

    /// Commits pending events, stores the views' states if that spares the next opening much folding, closes the
    /// log and releases its lock. The store cannot be used afterwards.
    ///
    /// - Throws: `LogError` if pending events cannot be written.
    /// - Complexity: as `close(storingStates:)` with true.
    public func close() async throws { try await close(storingStates: true) }

    /// Commits pending events, closes the log and releases its lock. The store cannot be used afterwards.
    ///
    /// The events are on the disk before any state is encoded: an app that is ended meanwhile loses none. An app
    /// with little time passes false, and calls `checkpoint()` when it has more.
    ///
    /// - Parameter storingStates: true to store the views' states if at least 100 events, and a quarter of the
    ///   states' bytes, were recorded since they were stored last. False to store none, and to stop a
    ///   checkpoint under way, a `Codable` view between two values: the next opening folds these events.
    /// - Throws: `LogError` if pending events cannot be written.
    /// - Complexity: with true, O(states), twice if a checkpoint is under way; with false, O(states of one view) at
    ///   most, O(1) if the view is `Codable`. A compaction ends before its next frame.
    public func close(storingStates: Bool) async throws {
        if !storingStates { checkpointing.stop?.set() }
        guard !isClosed else {
            await absorption.wait()
            return await waitForCheckpoint()
        }
        var failure: (any Error)?
        do { if !isSuspended { try flush() } } catch { failure = error }
        end()
        if !storingStates { checkpointing.stop?.set() }
        await stopCompaction()
        await absorption.wait()
        await waitForCheckpoint()
        if storingStates, failure == nil, !isSuspended, checkpointing.isDueAtClose, !views.isStale {
            // An error is ignored: without this checkpoint the next opening folds more events.
            try? await beginCheckpoint().value
        }
        // A closed store cannot be resumed.
        isSuspended = false
        try log.close()
        if let failure { throw failure }
    }

    /// Waits for the checkpoint under way. If it was stopped, the next one is due.
    private func waitForCheckpoint() async {
        do { try await checkpointing.running?.value } catch is CancellationError {
            checkpointing.makeDue()
        } catch {}
    }

    private func end() {
        isClosed = true
        for signal in commitSignals.values { signal.finish() }
        commitSignals = [:]
        compaction.finishReports()
        absorption.end()
        handover.watch?.end()
    }

    /// Deletes the log permanently, and closes the store.
    ///
    /// - Parameters:
    ///   - refuse: reads the views; no event is recorded between this check and the erasure. If it throws,
    ///     the store stays open.
    ///   - folders: folders outside the log's folder whose files can be fetched again. Deleted before the
    ///     log; if that fails, the store stays open.
    /// - Throws: what `refuse` and the deletion of secrets throw; `LogError` as `Log.beginErasure()`.
    package func erase(
        unless refuse: @Sendable (Transaction) throws -> Void, removing folders: [String] = []
    ) async throws {
        repeat {
            await stopCompaction()
            await absorption.wait()
            while let running = checkpointing.running { try? await running.value }
            // Pending appends are accepted already. On a full disk their callers get the error.
            do { try flush() } catch let error as LogError where error.code == .diskFull {}
            // The commit may have started a checkpoint, which must not write into the deleted folder.
        } while checkpointing.running != nil || compaction.running != nil
            || absorption.running != nil
        try refuse(transaction())
        try storage { () throws(FileError) in
            for folder in folders { try environment.fileSystem.erase(folder) }
        }
        try log.beginErasure(withSecrets: eraseSecrets != nil)
        end()
        do { try await eraseSecrets?() } catch {
            try? log.close()
            throw error
        }
        // Work that was running when the store was closed may have created them again.
        for folder in folders { try? environment.fileSystem.erase(folder) }
        try log.finishErasure()
    }

    /// Gives the log a new incarnation: another log writes under the current one.
    package func mintIncarnation() throws { try log.mintIncarnation() }

    /// Sets the clock's correction, as computed from a server's responses.
    package func setClockOffset(_ milliseconds: Int64) { clockOffset = milliseconds }

    /// The device's time, in milliseconds since 1970.
    public nonisolated var deviceNow: Int64 { environment.now() }

    /// The corrected time, in milliseconds since 1970.
    public var now: Int64 { environment.now() + clockOffset }

    /// The corrected time.
    public var timestamp: Timestamp { Timestamp(milliseconds: now) }
}
