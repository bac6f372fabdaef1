// Validates, encodes, appends, syncs, projects and publishes events. Every append request goes through
// the inbox into a commit. Between the commands and LogStorage. Spec/overview.md.

import Foundation
import LogFormat
import LogStorage
import Synchronization
import Telemetry

extension EventStore {
    /// The bytes of pending relaxed lines at which they are committed.
    private static let relaxedBytesMax = 64 * 1024
    /// The longest time that a relaxed event waits for its commit.
    private static let relaxedDelay = Duration.seconds(1)
    /// The most requests that share a commit.
    private static let requestsMax = 1_024
    /// The most commits in a row before the store's other jobs run.
    private static let commitsMax = 16
    /// The time for folding a commit from which a warning is logged, and what is added to it for each event, so
    /// that large imports log none.
    private static let foldDelayMin = Duration.milliseconds(100)
    private static let foldDelayPerEvent = Duration.milliseconds(1)

    // MARK: Append requests

    /// Records a typed event.
    ///
    /// - Throws: as `append(contentsOf:durability:)` for drafts, and what the payload's encoder throws.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ payload: some EventPayload, durability: Durability = .durable
    ) async throws -> Appended {
        try await append(EventDraft(payload), durability: durability)
    }

    /// Records an event. If the log has an event with the same id and content, it is not recorded again.
    ///
    /// On return with `.durable`, the event is on the disk. The views include it in both cases.
    ///
    /// - Returns: the event's position; for a known id, the position of the recorded event.
    /// - Throws: as `append(contentsOf:durability:)` for drafts.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ draft: EventDraft, durability: Durability = .durable
    ) async throws -> Appended {
        try await append([draft], durability, asHistory: false)[0]
    }

    /// Records typed events, of one or several types, all or none, in one commit.
    ///
    /// ```swift
    /// try await store.append(contentsOf: [TripPlanned(city: "porto"), BagPacked(items: 7)])
    /// ```
    ///
    /// On return with `.durable`, the events are on the disk. Each gets a new id; use drafts for events that
    /// may be appended twice.
    ///
    /// - Returns: for each event, in order, its position.
    /// - Throws: as `append(contentsOf:durability:)` for drafts, and what a payload's encoder throws; then no
    ///   event is recorded.
    /// - Complexity: O(bytes), and an index lookup for each event.
    @discardableResult
    public nonisolated(nonsending) func append(
        contentsOf payloads: [any EventPayload], durability: Durability = .durable
    ) async throws -> [Appended] {
        let drafts = try payloads.enumerated().map { index, payload in
            do {
                return try EventDraft(payload)
            } catch let error as EventError {
                throw error.ofEvent(index, in: payloads.count)
            }
        }
        return try await append(contentsOf: drafts, durability: durability)
    }

    /// Records typed events of one type, as the method for events of several types.
    ///
    /// - Returns: for each event, in order, its position.
    /// - Throws: as that method.
    // Without it, the compiler has no message for `[A(), A()]` of a type that is no payload.
    @discardableResult
    public nonisolated(nonsending) func append(
        contentsOf payloads: [some EventPayload], durability: Durability = .durable
    ) async throws -> [Appended] {
        try await append(contentsOf: payloads as [any EventPayload], durability: durability)
    }

    /// Records events, all or none, in one commit. If the log has an event with the same id and content,
    /// it is not recorded again; its position is returned.
    ///
    /// On return with `.durable`, the events are on the disk. The views include them in both cases.
    /// Cancelling the calling task does not undo a waiting append.
    ///
    /// - Returns: for each draft, in order, its position.
    /// - Throws: `EventError` if a draft is refused: also for a time more than 24 hours ahead of the
    ///   clock, for a reserved type and for a type that only the store writes (`daybook.sync.…`); then
    ///   no event is recorded. `LogError`: `diskFull` with nothing recorded, `indeterminate`, `closed`,
    ///   `corrupt`.
    /// - Complexity: O(bytes), and an index lookup for each event.
    // A collection, not an array: so the compiler names the draft among payloads that does not fit.
    @discardableResult
    public nonisolated(nonsending) func append(
        contentsOf drafts: some Collection<EventDraft>, durability: Durability = .durable
    ) async throws -> [Appended] {
        try await append(Array(drafts), durability, asHistory: false)
    }

    /// Records events that another log has recorded before, as `append(contentsOf:durability:)`. They keep their
    /// times, however far ahead, and may have types that only a later release defines.
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
        for (index, draft) in drafts.enumerated() {
            do throws(EventError) { try LogRecord.refuse(draft.type) } catch {
                throw error.ofEvent(index, in: drafts.count)
            }
        }
        return try await enqueueAppend(durability) { try $0.prepare(drafts, asHistory: isHistory) }
    }

    /// Records a server's answer, relaxed. On a full disk it uses the log's reserve file.
    ///
    /// - Parameters:
    ///   - payload: the record.
    ///   - drafts: events to record in the same commit.
    /// - Throws: as `append(_:durability:)`.
    package nonisolated(nonsending) func record(
        _ payload: some EventPayload, with drafts: [EventDraft] = []
    ) async throws {
        let draft = try EventDraft(payload, id: newID())
        _ = try await enqueueAppend(.relaxed, drawingOnReserve: true) {
            try $0.prepare([draft] + drafts)
        }
    }

    /// Records what is about to be sent. Durable on return.
    ///
    /// - Throws: as `append(_:durability:)`.
    package nonisolated(nonsending) func recordDurably(
        _ payload: some EventPayload
    ) async throws {
        let draft = try EventDraft(payload, id: newID())
        _ = try await enqueueAppend(.durable) { try $0.prepare([draft]) }
    }

    /// A new id for an event that the store itself creates.
    public nonisolated func newID() -> UUID { UUID(integer: environment.randomUUID()) }

    /// A random number in `0..<1`.
    public nonisolated func randomFraction() -> Double {
        Double(UInt64(truncatingIfNeeded: environment.random()) >> 11) * 0x1p-53
    }

    /// Reads views and records events in one transaction: no other event is recorded in between.
    ///
    /// `body` reads views and appends to the transaction. Its events are recorded in one commit if it
    /// returns, and dropped if it throws. The views include every event appended before, also by the
    /// transaction itself. `body` runs on the store's queue, outside the calling task: it does not see the
    /// task's local values and cancellation. It must not wait for an append or another call of this store, for
    /// example with a semaphore: that call runs after the transaction, so neither would ever end. If another call
    /// waits for `body` for 2 s, the store logs a warning.
    ///
    /// - Returns: the result of `body`. The events are durable on return.
    /// - Throws: what `body` throws, and as `append(_:durability:)`.
    @discardableResult
    public nonisolated(nonsending) func write<Result: Sendable>(
        _ body: @escaping @Sendable (inout Transaction) throws -> Result
    ) async throws -> Result {
        try await write(drawingOnReserve: false, body)
    }

    /// Reads views and records events in one transaction, as `write(_:)`, and returns the events'
    /// positions.
    ///
    /// - Returns: for each event, in order, its position.
    public nonisolated(nonsending) func append(
        decidedBy body: @escaping @Sendable (inout Transaction) throws -> Void
    ) async throws -> [Appended] {
        try await transact(drawingOnReserve: false) { try body(&$0) }.appended
    }

    /// Reads views and records events as `write(_:)`, for events that free disk space.
    ///
    /// - Parameters:
    ///   - drawingOnReserve: true if the events may use the log's reserve file on a full disk. For events
    ///     that free more space than they need.
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
        try await enqueueAppend(.durable, drawingOnReserve: drawingOnReserve) { store in
            if drawingOnReserve, !store.pending.isEmpty { store.pending.drawsOnReserve = true }
            // Durable appends that wait for the next commit are accepted but not yet in the views.
            try store.flush()
            var transaction = store.transaction()
            let result = try store.writeWatch.run { try body(&transaction) }
            return (try transaction.preparedEvents(), result)
        }
    }

    /// Creates an empty transaction.
    func transaction() -> Transaction {
        let preview = TransactionPreview(views, catalogue, encoder, now: { self.now }) {
            drafts, transaction in
            try self.prepare(
                Array(transaction.drafts[drafts]),
                replacing: { transaction.replaced[drafts.lowerBound + $0] },
                asHistory: transaction.takesHistory, after: drafts.lowerBound)
        }
        return Transaction(by: incarnation, at: timestamp, preview)
    }

    // MARK: One committer

    /// Enqueues an append request and returns when its events are durable, or for `.relaxed` when they are in
    /// the views.
    ///
    /// - Parameters:
    ///   - drawingOnReserve: true to record the events even if the disk is full.
    ///   - prepare: called on the store's queue, returns the events; its error is rethrown, with nothing
    ///     recorded.
    /// - Throws: what `prepare` throws, and as `append(_:durability:)`.
    nonisolated(nonsending) func enqueueAppend(
        _ durability: Durability, drawingOnReserve: Bool = false,
        _ prepare: @escaping AppendRequest.Preparation
    ) async throws -> [Appended] {
        try await withCheckedThrowingContinuation { caller in
            let needsJob = inbox.enqueue(
                AppendRequest(
                    durability: durability, drawsOnReserve: drawingOnReserve, prepare: prepare,
                    caller: caller))
            writeWatch.noteWaiter()
            if needsJob { scheduleCommit() }
        }
    }

    /// Enqueues an append request that also returns a result.
    nonisolated(nonsending) func enqueueAppend<Result: Sendable>(
        _ durability: Durability, drawingOnReserve: Bool = false,
        _ prepare:
            @escaping @Sendable (isolated EventStore) throws -> (
                events: [PreparedEvent], result: Result
            )
    ) async throws -> (result: Result, appended: [Appended]) {
        let prepared = Mutex<Result?>(nil)
        let appended = try await enqueueAppend(durability, drawingOnReserve: drawingOnReserve) {
            store in
            let (events, result) = try prepare(store)
            prepared.withLock { $0 = result }
            return events
        }
        guard let result = prepared.withLock({ $0 }) else {
            preconditionFailure("a caller was resumed before its request was prepared")
        }
        return (result, appended)
    }

    private nonisolated func scheduleCommit() {
        executor.schedule { self.assumeIsolated { $0.commitInbox() } }
    }

    /// Commits the queued requests, at most 16 commits in a row; then the store's other jobs run. If
    /// several callers shared a commit, waits briefly for their next requests.
    private func commitInbox() {
        let last = commitCount + Self.commitsMax
        for _ in 0..<Self.commitsMax {
            var count = 0
            while count < Self.requestsMax, commitCount < last, let request = inbox.dequeue() {
                count += 1
                process(request)
            }
            let waiters = pending.waiterCount
            if waiters > 0 { try? flush() }
            guard waiters > 1, commitCount < last, inbox.waitForRequests(count: waiters) else {
                break
            }
        }
        if inbox.endJob() { scheduleCommit() }
    }

    private func process(_ request: AppendRequest) {
        do {
            let prepared = try request.prepare(self)
            guard !prepared.isEmpty else { return request.caller.resume(returning: []) }
            let (results, waits) = try admit(
                prepared, request.durability, drawingOnReserve: request.drawsOnReserve)
            guard waits else { return request.caller.resume(returning: results) }
            pending.addWaiter(request.caller, for: results)
        } catch { request.caller.resume(throwing: error) }
    }

    // MARK: Validate

    /// Checks that the store is open and not suspended.
    ///
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

    /// Validates drafts, and looks up those that the log already has.
    ///
    /// - Parameters:
    ///   - drafts: the events.
    ///   - replaced: the LWW timestamp of the value that a draft replaces, by the draft's index.
    ///   - isHistory: true for events that another log has recorded before. They keep their times, and
    ///     may have types that only a later release defines.
    ///   - earlier: the number of earlier events of the same transaction, for messages.
    func prepare(
        _ drafts: [EventDraft], replacing replaced: (_ index: Int) -> LWWTimestamp? = { _ in nil },
        asHistory isHistory: Bool = false, after earlier: Int = 0
    ) throws -> [PreparedEvent] {
        try checkOpen()
        let count = earlier + drafts.count
        let shares = drafts.parallelShares { [catalogue] share in
            Result { () throws(EventError) in
                try share.indices.map { (index) throws(EventError) in
                    do throws(EventError) {
                        return try CheckedDraft(share[index], by: catalogue)
                    } catch {
                        throw error.ofEvent(earlier + index, in: count)
                    }
                }
            }
        }
        var prepared: [PreparedEvent] = []
        prepared.reserveCapacity(drafts.count)
        for share in shares {
            for draft in try share.get() {
                do {
                    if let known = try known(draft.id, { draft.draft }) {
                        prepared.append(.known(known))
                        continue
                    }
                    if !isHistory {
                        if let time = draft.draft.time {
                            warnOfSecondsInTime(time, draft.draft.type)
                        }
                        try draft.checkIsNew(catalogue, views, now: now)
                    }
                } catch let error as EventError {
                    throw error.ofEvent(earlier + prepared.count, in: count)
                }
                let floors = [
                    replaced(prepared.count), isHistory ? nil : floor(of: draft),
                ]
                prepared.append(.new(draft, replacing: floors.compactMap(\.self).max()))
            }
        }
        return prepared
    }

    /// The newest LWW timestamp in the lane of a change that brings no time, as far as a view knows it.
    private func floor(of draft: CheckedDraft) -> LWWTimestamp? {
        guard draft.draft.time == nil, draft.type.action != nil else { return nil }
        return views.floor(ofLane: draft.lane)
    }

    /// The recorded event with an id; nil if the id is new.
    ///
    /// - Parameter draft: returns the content; called only if the id is known.
    /// - Throws: `EventError` (`idReused`) if the recorded event has different content; `LogError`.
    func known(_ id: UUID, _ draft: () -> EventDraft) throws -> Appended? {
        let recordedEvent: Event
        if let event = pending.event(id) {
            recordedEvent = event
        } else if let line = try log.line(id: id.integer) {
            recordedEvent = try LogReader.event(
                line.bytes.span.bytes, catalogue, directory: log.directory)
        } else if let removed = try log.removed(id: id.integer) {
            guard draft().isContent(of: removed.hashes) else {
                throw EventError.idReused(id, at: removed.position)
            }
            return Appended(id: id, position: removed.position, isNew: false)
        } else {
            return nil
        }
        var recorded = recordedEvent.content
        try? catalogue.normalise(&recorded)
        guard recorded.isSameContent(as: draft()) else {
            throw EventError.idReused(id, at: recordedEvent.position, type: recordedEvent.type)
        }
        return Appended(id: id, position: recordedEvent.position, isNew: false)
    }

    // MARK: Encode

    /// Adds events to the next commit. Relaxed events are in the views on return.
    ///
    /// - Returns: the results, and true if the caller must wait for that commit.
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
        if !unrecordedRules.isEmpty { recordRules(for: batch.events) }
        if drawingOnReserve { pending.drawsOnReserve = true }
        let isEmpty = batch.events.isEmpty
        // A known event may be pending. Then this caller must wait for the same commit.
        let joinsPending = isEmpty && !pending.isEmpty
        if durability == .relaxed, pending.waiterCount == 0 {
            for event in batch.events { floor.include(event.time) }
            fold(batch.events[...])
            pending.append(batch, relaxed: true)
            signalChange()
            if pending.lines.bytes.count >= Self.relaxedBytesMax {
                // On a full disk they stay pending, until they fill a whole commit.
                do { try flush() } catch let error as LogError where error.code == .diskFull {}
            } else if !isEmpty {
                scheduleFlush(after: Self.relaxedDelay)
            }
            return (batch.results, false)
        }
        guard !isEmpty || joinsPending else { return (batch.results, false) }
        if pending.floorBefore == nil { pending.floorBefore = floor }
        for event in batch.events { floor.include(event.time) }
        pending.append(batch, relaxed: false)
        return (batch.results, true)
    }

    /// Encodes validated events as lines, with their positions.
    private func encode(_ prepared: [PreparedEvent]) throws -> Batch {
        var encoder = encoder
        for (index, event) in prepared.enumerated() {
            do throws(EventError) {
                try encoder.assignPosition(to: event, now: { now })
            } catch {
                throw error.ofEvent(index, in: prepared.count)
            }
        }
        return try encoder.batch()
    }

    /// An encoder that begins after the last pending event.
    private var encoder: BatchEncoder {
        let next = Position(log.next.rawValue + UInt64(pending.events.count))
        return BatchEncoder(catalogue, by: log.incarnation, at: next, floor)
    }

    // MARK: Append, sync, project, publish

    /// Writes and syncs all pending events. On return they are on the disk and in the views.
    ///
    /// - Throws: `LogError`; all waiting durable appends then fail with the same error.
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
            // Relaxed events are in the views already. A log that is still usable has recorded nothing, so they
            // stay pending.
            let isUsable = (try? log.requireUsable()) != nil
            pending = isUsable ? batch.keepRelaxed() : PendingAppends()
            if let before = batch.floorBefore { floor = before }
            if !pending.isEmpty { scheduleFlush(after: Self.relaxedDelay) }
            batch.resumeWaiters(throwing: error)
            throw error
        }
        instruments.count(.committedEvents, batch.events.count)
        instruments.count(.committedBytes, batch.lines.bytes.count)
        fold(batch.events.dropFirst(batch.relaxedCount))
        for event in batch.events { checkpointing.countTail(event) }
        rebuildViewsIfStale()
        batch.resumeWaiters()
        signalChange()
        checkpointIfDue()
        scanForGarbageIfSealed()
    }

    /// Folds the events of a commit into the views. Logs a warning if that takes long: every append waits meanwhile.
    private func fold(_ events: ArraySlice<Event>) {
        let time = views.fold(events)
        warnOfUnreadableEvents()
        guard time.total >= Self.foldDelayMin + Self.foldDelayPerEvent * events.count else {
            return
        }
        instruments.logger.warning(
            "folding a commit took long, and appends wait for it",
            metadata: [
                "duration_ns": "\(Int64(time.total / .nanoseconds(1)))",
                "events": "\(events.count)",
                "view": "\(time.slowest)",
                "view_duration_ns": "\(Int64(time.longest / .nanoseconds(1)))",
            ])
    }

    /// Flushes as `flush()`, and checks that no write or sync has failed before.
    ///
    /// - Throws: `LogError`; `indeterminate` if it is unknown which bytes are on the disk.
    public func requireFlushed() throws {
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
