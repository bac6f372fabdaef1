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
        /// The projections whose rows are computed anew, with the reasons. Their old rows serve meanwhile.
        public var rebuilding: [String: RebuildReason] = [:]
        /// The error that keeps the rows from following; nil when they follow. The next try is after at most
        /// 30 s.
        public var problem: (any Error)?
    }

    private struct State {
        var status = Status()
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
        writer = ProjectionWriter(
            projections: projections, log: store.logID.uuidString.lowercased(),
            writer: store.incarnation.uuidString.lowercased())
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
                    if state.status.position >= position { return .success(()) }
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
        let parked = try await parked()
        var events: [Position: Event] = [:]
        for entry in parked where events[entry.position] == nil {
            guard let event = try await store.event(at: entry.position) else { continue }
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

    /// Ends the following. A batch that is being written is finished. The rows stay.
    public func close() async {
        let following = state.withLock { $0.following }
        following?.cancel()
        await following?.value
    }

    // MARK: Opening

    /// Creates missing tables, finds out which ones must be built anew, and begins to follow.
    func open() async throws {
        let known = try await database.read { db in try ProjectionRecord.all(in: db) }
        let objects = try await database.read { db in Set(try SchemaObject.all(in: db)) }
        var rebuilding: [String: RebuildReason] = [:]
        var created: [Projecting] = []
        for projection in writer.projections {
            guard let record = known[projection.name] else {
                created.append(projection)
                continue
            }
            guard let reason = try await reason(toRebuild: projection, record, objects) else {
                continue
            }
            rebuilding[projection.name] = reason
            // The rows of another log, perhaps of another account, are not shown any longer.
            if reason == .otherLog { created.append(projection) }
        }
        let (writer, new) = (writer, created)
        if !new.isEmpty {
            try await database.write { db in
                try ProjectionRecord.createTables(in: db)
                for projection in new {
                    try ProjectionRecord.all(in: db)[projection.name]?.objects.drop(from: db)
                    _ = try writer.create(projection, in: db)
                }
            }
            for projection in new { rebuilding[projection.name] = nil }
        }
        let reasons = rebuilding
        state.withLock { state in
            state.status.rebuilding = reasons
            state.following = Task { [self] in await follow() }
        }
    }

    private func reason(
        toRebuild projection: Projecting, _ record: ProjectionRecord, _ objects: Set<SchemaObject>
    ) async throws -> RebuildReason? {
        if record.log != writer.log { return .otherLog }
        if record.version != projection.version { return .version(record.version) }
        if !objects.isSuperset(of: record.objects) { return .missingTables }
        if record.writer != writer.writer { return .copiedLog }
        guard record.through <= (await store.lastDurable) else {
            return .aheadOfLog(record.through)
        }
        if record.through > .zero, let event = record.event,
            let present = try await store.event(at: record.through),
            present.id.uuidString.lowercased() != event
        {
            return .aheadOfLog(record.through)
        }
        let retracted = await store.durableState.retracted
        return try await record.isStale(retracted, projection, store) ? .retraction : nil
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
        for await _ in signals {
            repeat {
                do {
                    try await advance(&catchUp, &builds)
                    pause = .milliseconds(250)
                    state.withLock { $0.status.problem = nil }
                } catch is CancellationError {
                    break
                } catch is RecordsMoved {
                    catchUp = nil
                    continue
                } catch let error as LogError where error.code == .closed {
                    break
                } catch {
                    catchUp = nil
                    fail(error)
                    try? await store.environment.sleep(pause)
                    pause = min(pause * 2, .seconds(30))
                    continue
                }
                break
            } while !Task.isCancelled
            if Task.isCancelled { break }
        }
        for build in builds.values { build.task.cancel() }
        for build in builds.values { _ = try? await build.task.value }
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
        guard await !store.isSuspended else { return }
        for (name, build) in builds where build.isDone.value.load(ordering: .acquiring) {
            builds[name] = nil
            try await build.task.value
            _ = try await build.side.swap(into: database)
            state.withLock { $0.status.rebuilding[name] = nil }
            catchUp = nil
        }
        while !Task.isCancelled {
            let rebuilding = status.rebuilding
            for name in rebuilding.keys where builds[name] == nil {
                builds[name] = begin(building: name)
            }
            let active = writer.projections.filter { rebuilding[$0.name] == nil }
            guard !active.isEmpty else { return }
            var current: CatchUp
            if let catchUp { current = catchUp } else { current = try await newCatchUp(active) }
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

    private func newCatchUp(_ active: [Projecting]) async throws -> CatchUp {
        let names = Set(active.map(\.name))
        let records = try await database.read { db in try ProjectionRecord.all(in: db) }
        return CatchUp(
            store, database,
            ProjectionWriter(projections: active, log: writer.log, writer: writer.writer),
            records.filter { names.contains($0.key) })
    }

    private func begin(building name: String) -> Build? {
        guard let projection = writer.projections.first(where: { $0.name == name }) else {
            return nil
        }
        let side = SideDatabase(projection, beside: database, writer)
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
