// The projections of a store in a database: they follow the log until the store or they are closed.
// Spec/model/sql.md.

import Daybook
import Foundation
import GRDB
import Synchronization

/// The rows of projections, which follow a store.
///
/// They end with `close()`, or when the store is closed. Close them before the database.
public final class ProjectedRows: Sendable {
    /// What the projections are doing.
    public struct Status: Sendable {
        /// The last position that the rows of all projections include.
        public var position = Position.zero
        /// The projections whose rows are computed beside the database, with the reasons. Their old rows, if there
        /// are any, serve meanwhile; `position` does not advance.
        public var rebuilding: [String: RebuildReason] = [:]
        /// The error that keeps the rows from following; nil when they follow. The next try is after at most
        /// 30 s.
        public var problem: (any Error)?
    }

    private struct State {
        var status = Status()
        /// True once the rows have been those of the log. Before, they may be of a longer log that was replaced by
        /// an older copy, so that even position 0 is not reached.
        var hasReached = false
        var isEnded = false
        var waiters: [UUID: Waiter] = [:]
        var following: Task<Void, Never>?
    }

    private struct Waiter {
        var position: Position
        var continuation: CheckedContinuation<Void, any Error>
    }

    private let store: EventStore
    private let database: any DatabaseWriter
    private let writer: ProjectionWriter
    private let state = Mutex(State())
    /// Signals of the store's commits and of tables that were built.
    private let (signals, wake) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(
        _ store: EventStore, _ database: any DatabaseWriter, _ projections: [Projecting]
    ) {
        self.store = store
        self.database = database
        writer = ProjectionWriter(projections, of: store)
    }

    /// What the projections are doing.
    public var status: Status { state.withLock { $0.status } }

    /// Waits until the rows of all projections include the event at a position, and all before it: to read one's
    /// own write.
    ///
    /// - Throws: `EventError` (`refused`) for a position after the end of the log; the error that keeps the rows
    ///   from following, such as a full disk; `CancellationError` if the task is cancelled or the rows are
    ///   closed.
    public func reach(_ position: Position) async throws {
        if await store.lastDurable < position {
            // It may have been recorded as relaxed.
            try await store.flush()
            let last = await store.lastDurable
            guard position <= last else {
                throw EventError(
                    .refused,
                    "the log ends at position \(last); there is no event at \(position) yet")
            }
        }
        let id = UUID()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if state.hasReached, state.status.position >= position {
                        return .success(())
                    }
                    if state.isEnded || Task.isCancelled { return .failure(CancellationError()) }
                    state.waiters[id] = Waiter(position: position, continuation: continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Waits until the rows of all projections include every event that was appended so far, relaxed ones
    /// included.
    ///
    /// - Throws: as `reach(_:)`; `LogError` if relaxed events cannot be committed.
    public func reach() async throws {
        try await store.flush()
        try await reach(await store.lastDurable)
    }

    /// The events that projections could not apply, by projection and position.
    ///
    /// - Throws: `DatabaseError`.
    public func parked() async throws -> [ParkedProjection] {
        try await database.read { db in
            try ParkedProjection.fetchAll(
                db, sql: "SELECT * FROM daybook_parked ORDER BY projection, position")
        }
    }

    /// Applies the parked events once more, in the order of positions, each in the state that the tables have now.
    /// Those that succeed are no longer parked.
    ///
    /// - Returns: the number of events that were applied.
    /// - Throws: `DatabaseError`, `LogError`; then nothing has changed.
    @discardableResult
    public func retryParked() async throws -> Int {
        let rebuilding = status.rebuilding
        let parked = try await parked().filter { rebuilding[$0.projection] == nil }
        var events: [Position: Event] = [:]
        for entry in parked where events[entry.position] == nil {
            guard let event = try await store.event(at: entry.position), event.id == entry.id else {
                continue
            }
            events[entry.position] = store.catalogue.newestForm(of: event)
        }
        let (writer, known) = (writer, events)
        return try await database.write { db in
            var count = 0
            for projection in writer.projections {
                for entry in parked where entry.projection == projection.name {
                    guard let event = known[entry.position],
                        try ParkedProjection.exists(
                            db,
                            key: [
                                "projection": entry.projection,
                                "position": Int64(clamping: entry.position.rawValue),
                            ])
                    else { continue }
                    guard try ProjectionWriter.applyOrPark(event, projection, in: db) else {
                        continue
                    }
                    try entry.delete(db)
                    count += 1
                }
            }
            return count
        }
    }

    /// Ends the following. A batch that is being written is rolled back or committed. The rows stay.
    public func close() async {
        let following = state.withLock { $0.following }
        following?.cancel()
        await following?.value
    }

    // MARK: Opening

    /// Creates missing tables, finds out which ones must be built anew, and begins to follow.
    func open() async throws {
        SideDatabase.removeAll(beside: database)
        let (known, objects) = try await present()
        var rebuilding: [String: RebuildReason] = [:]
        var created: [Projecting] = []
        for projection in writer.projections {
            guard let record = known[projection.name], record.log == writer.log else {
                created.append(projection)
                continue
            }
            rebuilding[projection.name] = try await reason(
                toRebuild: projection, record, objects)
        }
        // The rows of another log, perhaps of another account, are not shown any longer.
        let foreign = known.values.filter { $0.log != writer.log }
        try await create(created, dropping: foreign)
        for projection in created where await isLongLog(for: projection) {
            rebuilding[projection.name] = .longLog
        }
        let reasons = rebuilding
        state.withLock { state in
            state.status.rebuilding = reasons
            state.following = Task { [self] in await follow() }
        }
    }

    /// The records and the objects of the database.
    private func present() async throws -> ([String: ProjectionRecord], Set<SchemaObject>) {
        try await database.read { db in
            (try ProjectionRecord.all(in: db), Set(try SchemaObject.all(in: db)))
        }
    }

    private func create(_ new: [Projecting], dropping old: [ProjectionRecord]) async throws {
        guard !new.isEmpty || !old.isEmpty else { return }
        let writer = writer
        try await database.writeWithoutTransaction { db in
            try db.withoutForeignKeys {
                try ProjectionRecord.createTables(in: db)
                for record in old {
                    try record.objects.drop(from: db)
                    try record.delete(db)
                    try ParkedProjection.deleteAll(of: record.name, in: db)
                }
                for projection in new { _ = try writer.create(projection, in: db) }
            }
        }
    }

    private func reason(
        toRebuild projection: Projecting, _ record: ProjectionRecord, _ objects: Set<SchemaObject>
    ) async throws -> RebuildReason? {
        if record.version != projection.version { return .version(record.version) }
        if !objects.isSuperset(of: record.objects) { return .missingTables }
        if record.writer != writer.writer { return .copiedLog }
        if record.through == .zero, await isLongLog(for: projection) { return .longLog }
        guard record.through <= (await store.lastDurable) else {
            return .aheadOfLog(record.through)
        }
        if record.through > .zero, let event = record.event,
            let present = try await store.event(at: record.through),
            present.id.text != event
        {
            return .aheadOfLog(record.through)
        }
        let retracted = await store.durableState.retracted
        return try await record.isStale(retracted, projection, store) ? .retraction : nil
    }

    /// True if the first rows of a projection are computed beside the database. The table of a view gets all rows in
    /// one transaction anyhow.
    private func isLongLog(for projection: Projecting) async -> Bool {
        guard projection.follower == nil else { return false }
        return await store.lastDurable.rawValue > CatchUp.shortLogMax
    }

    // MARK: Following

    private func follow() async {
        // The store's commits and the tables that were built wake the same loop.
        let commits = Task { [wake] in
            for await _ in await store.commits() { wake.yield() }
            wake.finish()
        }
        defer { commits.cancel() }
        var catchUp: CatchUp?
        var builds: [String: Build] = [:]
        var pause = Duration.milliseconds(250)
        var isOver = false
        for await _ in signals {
            while !Task.isCancelled {
                do {
                    try await advance(&catchUp, &builds)
                    if status.rebuilding.isEmpty { pause = .milliseconds(250) }
                    state.withLock { $0.status.problem = nil }
                    break
                } catch is RecordsMoved {
                    catchUp = nil
                } catch let error as LogError where error.code == .suspended {
                    break
                } catch let error as LogError where error.code == .closed {
                    isOver = true
                    break
                } catch is OtherOwner {
                    isOver = true
                    break
                } catch {
                    guard !Task.isCancelled else { break }
                    catchUp = nil
                    fail(error)
                    try? await store.environment.sleep(pause)
                    pause = min(pause * 2, .seconds(30))
                }
            }
            if Task.isCancelled || isOver { break }
        }
        for build in builds.values { build.task.cancel() }
        for build in builds.values {
            _ = try? await build.task.value
            try? build.side.remove()
        }
        end()
    }

    /// Tables that are being built, and the task that builds them.
    private struct Build {
        var side: SideDatabase
        var task: Task<Void, any Error>
        let isDone: Flag
    }

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    /// Applies all durable events, and swaps in the tables that were built.
    private func advance(
        _ catchUp: inout CatchUp?, _ builds: inout [String: Build]
    ) async throws {
        try await store.checkOpen()
        var failure: (any Error)?
        for (name, build) in builds where build.isDone.value.load(ordering: .acquiring) {
            do {
                do { try await build.task.value } catch {
                    // It begins anew.
                    builds[name] = nil
                    throw error
                }
                // If the tables cannot be copied, what was built is kept for the next try.
                _ = try await build.side.swap(into: database)
                builds[name] = nil
                state.withLock { $0.status.rebuilding[name] = nil }
                catchUp = nil
            } catch { failure = error }
        }
        try await catchUpToEnd(&catchUp, &builds)
        if let failure { throw failure }
    }

    private func catchUpToEnd(
        _ catchUp: inout CatchUp?, _ builds: inout [String: Build]
    ) async throws {
        while !Task.isCancelled {
            try await store.checkOpen()
            let rebuilding = status.rebuilding
            for name in rebuilding.keys where builds[name] == nil {
                builds[name] = begin(building: name)
            }
            let active = writer.projections.filter { rebuilding[$0.name] == nil }
            guard !active.isEmpty else { return }
            var current: CatchUp
            if let catchUp {
                current = catchUp
            } else {
                guard let new = try await newCatchUp(active) else { continue }
                current = new
            }
            let (end, retracted) = await store.durableState
            let stale = try await current.staleProjections(retracted)
            guard stale.isEmpty else {
                state.withLock { state in
                    for projection in stale {
                        state.status.rebuilding[projection.name] = .retraction
                    }
                }
                catchUp = nil
                continue
            }
            let isBehind = try await current.advance(through: end, retracted: retracted)
            catchUp = current
            if rebuilding.isEmpty { publish(current.through) }
            guard isBehind else { return }
        }
    }

    /// Begins to follow from where the database is. Another process may have changed it.
    ///
    /// - Returns: nil if rows must be built anew.
    /// - Throws: `OtherOwner` if the database has rows of another log.
    private func newCatchUp(_ active: [Projecting]) async throws -> CatchUp? {
        let (known, objects) = try await present()
        guard known.values.allSatisfy({ $0.log == writer.log }) else { throw OtherOwner() }
        let missing = active.filter { known[$0.name] == nil }
        guard missing.isEmpty else {
            try await create(missing, dropping: [])
            return nil
        }
        var records: [String: ProjectionRecord] = [:]
        var reasons: [String: RebuildReason] = [:]
        for projection in active {
            guard let record = known[projection.name] else { continue }
            records[projection.name] = record
            reasons[projection.name] = try await reason(toRebuild: projection, record, objects)
        }
        guard reasons.isEmpty else {
            let new = reasons
            state.withLock { $0.status.rebuilding.merge(new) { $1 } }
            return nil
        }
        return CatchUp(
            store, database, ProjectionWriter(active, of: store), records)
    }

    /// The database has the rows of another log: another store has taken it over.
    private struct OtherOwner: Error {}

    private func begin(building name: String) -> Build? {
        guard let projection = writer.projections.first(where: { $0.name == name }) else {
            return nil
        }
        let side = SideDatabase(projection, beside: database, of: store)
        let isDone = Flag()
        let task = Task { [store, database, wake] in
            defer {
                isDone.value.store(true, ordering: .releasing)
                wake.yield()
            }
            try await side.build(store, database.configuration)
        }
        return Build(side: side, task: task, isDone: isDone)
    }

    // MARK: Waiting

    private func publish(_ position: Position) {
        let reached = state.withLock { state -> [Waiter] in
            state.status.position = position
            state.hasReached = true
            let reached = state.waiters.filter { $0.value.position <= position }
            for id in reached.keys { state.waiters[id] = nil }
            return Array(reached.values)
        }
        for waiter in reached { waiter.continuation.resume() }
    }

    private func fail(_ error: any Error) {
        let waiters = state.withLock { state in
            state.status.problem = error
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
    }

    private func end() {
        let waiters = state.withLock { state in
            state.isEnded = true
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.continuation.resume(throwing: CancellationError()) }
    }
}
