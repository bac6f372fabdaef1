// Validates, encodes, appends, syncs, projects and publishes events. Every recorded event enters through
// the inbox and leaves it with a commit. Between the commands and LogStorage. Spec/overview.md.

import Foundation
import LogFormat
import LogStorage
import Synchronization
import Telemetry

extension EventStore {
    /// Bytes of relaxed events that wait at most.
    private static let relaxedBytesMax = 64 * 1024
    /// How long a relaxed event waits at most.
    private static let relaxedDelay = Duration.seconds(1)
    /// Requests that share a commit at most.
    private static let requestsMax = 1_024
    /// Commits that follow each other before other jobs of the store have a turn.
    private static let commitsMax = 16
    /// How far ahead of the clock the time may be that an app gives an event: no mistake about time
    /// zones loses an event, and no slip of units sets a value for ever.
    private static let leadMillisecondsMax: Int64 = 24 * 3_600_000

    // MARK: Append requests

    /// Records a typed event.
    ///
    /// - Throws: as `append(_:durability:)`.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ payload: some EventPayload, durability: Durability = .durable
    ) async throws -> Appended {
        try await append([EventDraft(payload)], durability: durability)[0]
    }

    /// Records an event. An event whose id is known with the same content is not recorded again.
    ///
    /// On return with `.durable`, the event is on the disk. The views include it in any case.
    ///
    /// - Returns: the event's position; that of the known event if the id is known.
    /// - Throws: as `append(_:durability:)` for several drafts.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ draft: EventDraft, durability: Durability = .durable
    ) async throws -> Appended {
        try await append([draft], durability: durability)[0]
    }

    /// Records typed events, of one type or of several, all or none, in one commit.
    ///
    /// ```swift
    /// try await store.append([TripPlanned(city: "porto"), BagPacked(items: 7)])
    /// ```
    ///
    /// On return with `.durable`, the events are on the disk, as with `append(_:durability:)` for drafts.
    /// Each gets a new id; make drafts of events that may be appended twice.
    ///
    /// - Returns: for each event, in order, where it is.
    /// - Throws: as `append(_:durability:)` for drafts, and what a payload's encoder throws; then none was
    ///   recorded.
    /// - Complexity: O(bytes), and an index lookup for each event.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ payloads: [any EventPayload], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await append(payloads.map { try EventDraft($0) }, durability: durability)
    }

    /// Records events, all or none, in one commit. An event whose id is known with the same content
    /// is not recorded again; it gets the position it has.
    ///
    /// On return with `.durable`, the events are on the disk. The views include them in any case.
    /// Cancelling the calling task does not undo an append that is waiting.
    ///
    /// - Returns: for each draft, in order, where it is.
    /// - Throws: `EventError` for a draft that is refused, also for a time more than 24 hours ahead of
    ///   the clock, for a reserved type and for one that only the store writes (`daybook.sync.…`);
    ///   then none was recorded. `LogError`: `diskFull` with nothing recorded, `indeterminate`,
    ///   `closed`, `corrupt`.
    /// - Complexity: O(bytes), and an index lookup for each event.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ drafts: [EventDraft], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await append(drafts, durability, asHistory: false)
    }

    /// Records events that were recorded elsewhere before, as `append(_:durability:)`. They keep
    /// their times, however far ahead, and may be of types that only a later release knows.
    ///
    /// - Throws: as `append(_:durability:)`.
    @discardableResult
    package nonisolated(nonsending) func append(
        history drafts: [EventDraft], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await append(drafts, durability, asHistory: true)
    }

    private nonisolated(nonsending) func append(
        _ drafts: [EventDraft], _ durability: Durability, asHistory isHistory: Bool
    ) async throws -> [Appended] {
        for draft in drafts { try LogRecord.refuse(draft.type) }
        return try await commit(durability) { try $0.prepare(drafts, asHistory: isHistory) }
    }

    /// Records what the server has said, relaxed: on a full disk it takes the room that the log
    /// keeps aside.
    ///
    /// - Throws: as `append(_:durability:)`.
    package nonisolated(nonsending) func record(_ payload: some EventPayload) async throws {
        let draft = try EventDraft(payload, id: newID())
        _ = try await commit(.relaxed, drawingOnReserve: true) { try $0.prepare([draft]) }
    }

    /// An id for an event that the store makes by itself.
    public nonisolated func newID() -> UUID { UUID(integer: environment.randomUUID()) }

    /// A random number from 0 up to, but not, 1.
    public nonisolated func randomFraction() -> Double {
        Double(UInt64(truncatingIfNeeded: environment.random()) >> 11) * 0x1p-53
    }

    /// Checks the state and records events, with nothing in between.
    ///
    /// `body` reads views and appends to the transaction; what it appended is recorded in one
    /// commit if it returns, and dropped if it throws. The views it reads include everything that
    /// was appended before, by the transaction itself as well. It runs on the store's queue, outside the calling task: the task's local
    /// values and its cancellation are not visible in it.
    ///
    /// - Returns: what `body` returned. Durable on return.
    /// - Throws: what `body` throws, and as `append(_:durability:)`.
    @discardableResult
    public nonisolated(nonsending) func write<Result: Sendable>(
        _ body: @escaping @Sendable (inout Transaction) throws -> Result
    ) async throws -> Result {
        try await write(drawingOnReserve: false, body)
    }

    /// Checks the state and records events, as `write(_:)`, for a body whose events the caller wants to
    /// find again.
    ///
    /// - Returns: for each event, in order, where it is.
    public nonisolated(nonsending) func append(
        decidedBy body: @escaping @Sendable (inout Transaction) throws -> Void
    ) async throws -> [Appended] {
        try await transact(drawingOnReserve: false) { try body(&$0) }.appended
    }

    /// As `write(_:)`, for events that free room.
    ///
    /// - Parameters:
    ///   - drawingOnReserve: whether the events may use the space of the log's reserve file on a full
    ///     disk. For events that free more than they take.
    ///   - body: reads views and appends, as for `write(_:)`.
    public nonisolated(nonsending) func write<Result: Sendable>(
        drawingOnReserve: Bool, _ body: @escaping @Sendable (inout Transaction) throws -> Result
    ) async throws -> Result {
        try await transact(drawingOnReserve: drawingOnReserve, body).result
    }

    private nonisolated(nonsending) func transact<Result: Sendable>(
        drawingOnReserve: Bool,
        _ body: @escaping @Sendable (inout Transaction) throws -> Result
    ) async throws -> (result: Result, appended: [Appended]) {
        try await commit(.durable, drawingOnReserve: drawingOnReserve) { store in
            if drawingOnReserve, !store.pending.isEmpty { store.pending.drawsOnReserve = true }
            // Appends that wait for the next sync are decided but not yet in the views.
            try store.flush()
            var transaction = store.transaction()
            let result = try body(&transaction)
            return (try transaction.preparedEvents(), result)
        }
    }

    /// A transaction that has appended nothing yet.
    func transaction() -> Transaction {
        let preview = TransactionPreview(views, catalogue, encoder, now: { self.now }) {
            drafts, transaction in
            try self.prepare(
                Array(transaction.drafts[drafts]),
                replacing: { transaction.replaced[drafts.lowerBound + $0] },
                asHistory: transaction.takesHistory)
        }
        return Transaction(by: incarnation, at: timestamp, preview)
    }

    // MARK: One committer

    /// Enqueues a decision, which the store runs on its own queue, and returns once its events are durable,
    /// or in the views for `.relaxed`.
    ///
    /// - Parameters:
    ///   - drawingOnReserve: true records also where the disk is full.
    ///   - decide: called on the store's queue; what it throws is thrown, with nothing recorded.
    /// - Throws: what `decide` throws, and as `append(_:durability:)`.
    nonisolated(nonsending) func commit(
        _ durability: Durability, drawingOnReserve: Bool = false,
        _ decide: @escaping AppendRequest.Decision
    ) async throws -> [Appended] {
        try await withCheckedThrowingContinuation { caller in
            let needsJob = inbox.enqueue(
                AppendRequest(
                    durability: durability, drawsOnReserve: drawingOnReserve, decide: decide,
                    caller: caller))
            if needsJob { scheduleCommit() }
        }
    }

    /// Commits a decision that also returns a result.
    nonisolated(nonsending) func commit<Result: Sendable>(
        _ durability: Durability, drawingOnReserve: Bool = false,
        _ decide:
            @escaping @Sendable (isolated EventStore) throws -> (
                events: [PreparedEvent], result: Result
            )
    ) async throws -> (result: Result, appended: [Appended]) {
        let decided = Mutex<Result?>(nil)
        let appended = try await commit(durability, drawingOnReserve: drawingOnReserve) { store in
            let (events, result) = try decide(store)
            decided.withLock { $0 = result }
            return events
        }
        guard let result = decided.withLock({ $0 }) else {
            preconditionFailure("a caller was resumed before its decision ran")
        }
        return (result, appended)
    }

    private nonisolated func scheduleCommit() {
        executor.schedule { self.assumeIsolated { $0.commitInbox() } }
    }

    /// Commits the queued requests, at most 16 commits in a row; then other jobs of the store have a
    /// turn. Where several callers shared a commit, it waits a moment for their next requests.
    private func commitInbox() {
        let last = commitCount + Self.commitsMax
        for _ in 0..<Self.commitsMax {
            var count = 0
            while count < Self.requestsMax, commitCount < last, let request = inbox.dequeue() {
                count += 1
                decide(request)
            }
            let waiters = pending.waiterCount
            if waiters > 0 { try? flush() }
            guard waiters > 1, commitCount < last, inbox.waitForRequests(count: waiters) else {
                break
            }
        }
        if inbox.endJob() { scheduleCommit() }
    }

    private func decide(_ request: AppendRequest) {
        do {
            let prepared = try request.decide(self)
            guard !prepared.isEmpty else { return request.caller.resume(returning: []) }
            let (results, waits) = try admit(
                prepared, request.durability, drawingOnReserve: request.drawsOnReserve)
            guard waits else { return request.caller.resume(returning: results) }
            pending.add(request.caller, for: results)
        } catch { request.caller.resume(throwing: error) }
    }

    // MARK: Validate

    /// - Throws: `LogError`: `closed`, `suspended`.
    public func checkOpen() throws {
        guard !isClosed else {
            throw LogError(.closed, path: log.directory, "the store was closed")
        }
        guard !isSuspended else {
            throw LogError(
                .suspended, path: log.directory, "the store is suspended. Call resume() first")
        }
    }

    /// Validates, and finds out which events the log has already.
    ///
    /// - Parameters:
    ///   - drafts: the events.
    ///   - replaced: the LWW timestamps of the values that they replace, by their indexes.
    ///   - isHistory: true for events that were recorded elsewhere before. They keep their times, and
    ///     may be of types that only a later release knows.
    func prepare(
        _ drafts: [EventDraft], replacing replaced: (_ index: Int) -> Stamp? = { _ in nil },
        asHistory isHistory: Bool = false
    ) throws -> [PreparedEvent] {
        try checkOpen()
        let shares = drafts.parallelShares { [catalogue] share in
            Result { () throws(EventError) in
                try share.map { (draft) throws(EventError) in
                    try CheckedDraft(draft, by: catalogue)
                }
            }
        }
        var prepared: [PreparedEvent] = []
        prepared.reserveCapacity(drafts.count)
        for share in shares {
            for draft in try share.get() {
                if let known = try known(draft.id, { draft.draft }) {
                    prepared.append(.known(known))
                    continue
                }
                if !isHistory { try checkIsNew(draft) }
                prepared.append(.new(draft, replacing: replaced(prepared.count)))
            }
        }
        return prepared
    }

    /// Refuses what only an event that was recorded elsewhere may have.
    private func checkIsNew(_ draft: CheckedDraft) throws(EventError) {
        guard draft.type.hasRule || !catalogue.isReserved(draft.draft.type) else {
            throw EventCatalogue.reserved(draft.draft.type, "the event \(draft.id.text)")
        }
        guard let time = draft.draft.time else { return }
        let lead = time.milliseconds - now
        guard lead <= Self.leadMillisecondsMax else {
            throw EventError(
                .refused,
                "the event \(draft.id.text) (\(draft.draft.type)) has the time \(time), which is "
                    + "more than 24 hours ahead of the clock (\(timestamp)). Leave the time out, or "
                    + "correct it")
        }
    }

    /// Where an event is that the log has already; nil for one that is new.
    ///
    /// - Parameter draft: asked for the content only if the id is known.
    /// - Throws: `EventError` (`idReused`) where it is known with another content; `LogError`.
    func known(_ id: UUID, _ draft: () -> EventDraft) throws -> Appended? {
        let found: Event
        if let event = pending.event(id) {
            found = event
        } else if let line = try log.line(id: id.integer) {
            found = try LogReader.event(
                line.bytes.span.bytes, catalogue, directory: log.directory)
        } else if let removed = try log.removed(id: id.integer) {
            guard draft().isContent(of: removed.hashes) else {
                throw EventError.idReused(id, at: removed.position)
            }
            return Appended(id: id, position: removed.position, isNew: false)
        } else {
            return nil
        }
        var recorded = found.content
        try? catalogue.normalise(&recorded)
        guard recorded.isSameContent(as: draft()) else {
            throw EventError.idReused(id, at: found.position, type: found.type)
        }
        return Appended(id: id, position: found.position, isNew: false)
    }

    // MARK: Encode

    /// Gives the events their places in the next commit. Relaxed ones are in the views on return.
    ///
    /// - Returns: what became of them, and whether the caller has to wait for that commit.
    private func admit(
        _ prepared: [PreparedEvent], _ durability: Durability, drawingOnReserve: Bool
    ) throws -> (results: [Appended], waits: Bool) {
        var batch = try encode(prepared)
        if pending.lines.bytes.count + batch.lines.bytes.count
            > WriterSizes.commitPlaintextBytesMax
        {
            try flush()
            batch = try encode(prepared)
        }
        if drawingOnReserve { pending.drawsOnReserve = true }
        let isNothing = batch.events.isEmpty
        // A known event may still be on its way to the disk and shares its fate.
        let joins = isNothing && !pending.isEmpty
        if durability == .relaxed, pending.waiterCount == 0 {
            for event in batch.events { floor.add(event.time) }
            views.fold(batch.events[...])
            pending.add(batch, relaxed: true)
            signalChange()
            if pending.lines.bytes.count >= Self.relaxedBytesMax {
                // On a full disk they go on waiting, until a whole commit of them has gathered.
                do { try flush() } catch let error as LogError where error.code == .diskFull {}
            } else if !isNothing {
                scheduleFlush(after: Self.relaxedDelay)
            }
            return (batch.results, false)
        }
        guard !isNothing || joins else { return (batch.results, false) }
        if pending.floorBefore == nil { pending.floorBefore = floor }
        for event in batch.events { floor.add(event.time) }
        pending.add(batch, relaxed: false)
        return (batch.results, true)
    }

    /// Validated events as lines, with their places.
    private func encode(_ prepared: [PreparedEvent]) throws -> Batch {
        var encoder = encoder
        for event in prepared { try encoder.add(event) { now } }
        return try encoder.batch()
    }

    /// Gives events the positions after all that was decided.
    private var encoder: BatchEncoder {
        let next = Position(log.next.rawValue + UInt64(pending.events.count))
        return BatchEncoder(catalogue, by: log.incarnation, at: next, floor)
    }

    // MARK: Append, sync, project, publish

    /// Writes and syncs everything that waits. On return it is on the disk and in the views.
    ///
    /// - Throws: `LogError`; then everything durable that waited has failed with the same error.
    public func flush() throws {
        try checkOpen()
        guard !pending.isEmpty else { return }
        var batch = pending
        do {
            commitCount += 1
            try instruments.measure(.commit) { () throws(LogError) in
                try log.append(batch.lines, drawingOnReserve: batch.drawsOnReserve)
            }
            pending = PendingAppends()
        } catch {
            pending = error.code == .diskFull ? batch.keepRelaxed() : PendingAppends()
            if let before = batch.floorBefore { floor = before }
            if !pending.isEmpty { scheduleFlush(after: Self.relaxedDelay) }
            batch.tell(error)
            throw error
        }
        instruments.count(.committedEvents, batch.events.count)
        instruments.count(.committedBytes, batch.lines.bytes.count)
        views.fold(batch.events.dropFirst(batch.relaxedCount))
        for event in batch.events { checkpointing.add(event) }
        foldAnewIfStale()
        batch.tell()
        signalChange()
        checkpointIfDue()
        lookForGarbageIfSealed()
    }

    /// As `flush()`, and nothing that was decided is in doubt: no write or sync has failed before.
    ///
    /// - Throws: `LogError`; `indeterminate` where it is not known what is on the disk.
    public func settle() throws {
        try flush()
        try log.requireUsable()
    }

    private func scheduleFlush(after delay: Duration) {
        guard !pending.hasTimer else { return }
        pending.hasTimer = true
        Task { [weak self, sleep = environment.sleep] in
            do { try await sleep(delay) } catch { return }
            try? await self?.flush()
        }
    }
}
