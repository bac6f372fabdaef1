// Compaction of a store: by the app's word, or by itself. The store's queue only captures states and
// waits; the work is done elsewhere, and only the swap of a segment takes the log's lock.
// Spec/format/compaction.md.

import Foundation
import LogFormat
import LogStorage
import Telemetry

/// What a store knows of its compactions.
struct CompactionControl {
    /// The one that runs; it clears this when it ends.
    var running: Task<Void, Never>?
    var stop: StopSign?
    /// What is recorded before, so that more can go.
    var prepare: (@Sendable (EventStore) async throws -> Void)?
    var policy: CompactionPolicy?
    /// Segments that were sealed, and bytes the log had, when garbage was looked for last.
    var sealedAtLook = 0
    var bytesAtLook = 0
    /// The look, and what follows from it; it clears this when it ends.
    var look: Task<Void, Never>?
    /// What a look found, while compaction waits until the device is idle.
    var due: GarbageEstimate?
    private var reports: [UUID: AsyncStream<MaintenanceReport>.Continuation] = [:]

    mutating func addListener(_ continuation: AsyncStream<MaintenanceReport>.Continuation) -> UUID {
        let id = UUID()
        reports[id] = continuation
        return id
    }

    mutating func removeListener(_ id: UUID) { reports[id] = nil }

    func report(_ report: MaintenanceReport) {
        for listener in reports.values { listener.yield(report) }
    }

    mutating func endReports() {
        for listener in reports.values { listener.finish() }
        reports = [:]
    }
}

extension EventStore {
    /// A live segment of this size is sealed by `compact()`, so that its events can go, too. Sealing
    /// smaller ones would only make many segments.
    private static let sealedBytesMin = 1024 * 1024

    // MARK: By the app's word

    /// Takes out of the log what nothing needs any more: values that were replaced, records that
    /// were summed up. Views stay as they are, whatever is recorded later. Ids stay known for 90
    /// days. Events that an app's own view takes in stay, unless the view is a `CompactableView` or
    /// `allowsCompaction`; the report says how many.
    ///
    /// Stores the views' states first. Appends go on meanwhile. One compaction runs at a time; others
    /// wait. Cancelling the task ends it before the next frame, with the segments done so far
    /// compacted.
    ///
    /// - Parameters:
    ///   - dryRun: only says what would go; changes nothing.
    ///   - progress: called now and then with the number of events judged so far and their total.
    /// - Returns: what was freed, what was kept, and why.
    /// - Throws: `LogError`: `diskFull`, `corrupt`, `io`, `closed`, `suspended`; `CancellationError`.
    ///   The segment at work is then as it was.
    /// - Complexity: O(bytes of the log), in memory for a few frames, the ids of one segment and a
    ///   copy of the views' states.
    @discardableResult
    public func compact(
        dryRun: Bool = false,
        progress: (@Sendable (_ judged: Int, _ total: Int) -> Void)? = nil
    ) async throws -> CompactionReport {
        let stop = StopSign()
        return try await withTaskCancellationHandler {
            // Others may begin one while this waits for one to end.
            while let running = compaction.running { await running.value }
            try checkOpen()
            try Task.checkCancellation()
            let work = Task {
                defer {
                    compaction.running = nil
                    compaction.stop = nil
                }
                if dryRun { return try await survey(stop) }
                let report = try await instruments.measure(.compaction) {
                    try await compact(stop, progress)
                }
                instruments.count(.removedEvents, report.removed)
                instruments.count(.removedBytes, report.freedBytes)
                return report
            }
            compaction.running = Task { _ = await work.result }
            compaction.stop = stop
            return try await work.value
        } onCancel: {
            stop.set()
        }
    }

    /// Does something before every compaction: records what sums up others, so that they can go.
    package func prepareCompaction(_ body: @escaping @Sendable (EventStore) async throws -> Void) {
        compaction.prepare = body
    }

    private func compact(
        _ stop: StopSign, _ progress: (@Sendable (Int, Int) -> Void)?
    ) async throws -> CompactionReport {
        do {
            try await compaction.prepare?(self)
        } catch let error as LogError where error.code == .diskFull {}
        if log.liveBytes >= Self.sealedBytesMin {
            try flush()
            try log.roll()
        }
        let run = CompactionRun(
            log: log, catalogue: catalogue, environment: environment, horizon: try await horizon(),
            stop: stop, progress: progress)
        return try await BlockingWork.run(.utility) { try run.run() }
    }

    /// The states to judge by. Where the stored ones do not reach the present, both checkpoints are
    /// written anew.
    private func horizon() async throws -> CompactionHorizon {
        let (log, views, needs, environment) = (log, views, needs, environment)
        func stored() async throws -> CompactionHorizon {
            try await BlockingWork.run(.utility) {
                try CompactionHorizon.stored(log, views, needs, environment)
            }
        }
        let present = lastDurable
        let horizon = try await stored()
        guard horizon.limit < present else { return horizon }
        do {
            for _ in 0..<2 { try await checkpoint() }
        } catch let error as LogError where error.code == .diskFull {
            return horizon
        }
        return try await stored()
    }

    private func survey(_ stop: StopSign) async throws -> CompactionReport {
        let horizon = CompactionHorizon.present(
            views, at: lastDurable, others: unknownStates, needs: needs)
        let survey = CompactionSurvey(
            LogReader(directory, fileSystem: environment.fileSystem), horizon, catalogue: catalogue,
            isLiveSealed: log.liveBytes >= Self.sealedBytesMin)
        let now = environment.now()
        return try await BlockingWork.run(.utility) {
            var report = try survey.report(now: now) { _ in
                if stop.isSet { throw CancellationError() }
            }
            report.heldBackBy = horizon.heldBackBy
            return report
        }
    }

    /// Ends what runs, and waits until it has ended.
    func stopCompaction() async {
        await endLook()
        while let running = compaction.running {
            compaction.stop?.set()
            await running.value
        }
    }

    // MARK: By itself

    /// Lets the store compact by itself, from now on; nil ends that. A store does nothing by itself
    /// before this is called; `open(at:)` of Daybook calls it.
    ///
    /// - Throws: `EventError` (`refused`) for a number that is out of range; the policy stays the old one.
    public func setCompactionPolicy(_ policy: CompactionPolicy?) async throws(EventError) {
        try policy?.check()
        compaction.policy = policy
        await endLook()
        compaction.bytesAtLook = 0
        lookForGarbage()
    }

    /// What the store does by itself from now on. Ends when the store is closed.
    public func maintenance() -> AsyncStream<MaintenanceReport> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MaintenanceReport.self, bufferingPolicy: .bufferingNewest(16))
        guard !isClosed else {
            continuation.finish()
            return stream
        }
        let id = compaction.addListener(continuation)
        continuation.onTermination = { [weak self] _ in
            Task { await self?.removeListener(id) }
        }
        return stream
    }

    private func removeListener(_ id: UUID) { compaction.removeListener(id) }

    /// Looks again when a segment was sealed.
    func lookForGarbageIfSealed() {
        guard compaction.policy != nil, log.sealedCount != compaction.sealedAtLook else { return }
        lookForGarbage()
    }

    private func lookForGarbage() {
        guard let policy = compaction.policy, compaction.look == nil, !isClosed, !isSuspended
        else { return }
        compaction.sealedAtLook = log.sealedCount
        guard log.sealedCount > 0 || log.liveBytes >= Self.sealedBytesMin else { return }
        compaction.due = nil
        compaction.look = Task { [weak self, sleep = environment.sleep] in
            while await self?.maintain(policy) == false {
                do { try await sleep(policy.idlePause) } catch { break }
            }
            await self?.clearLook()
        }
    }

    private func clearLook() {
        compaction.look = nil
        // A segment may have been sealed meanwhile.
        lookForGarbageIfSealed()
    }

    private func endLook() async {
        while let look = compaction.look {
            look.cancel()
            await look.value
        }
    }

    /// Looks for garbage and compacts if there is enough. Whatever fails, appends are not hurt.
    ///
    /// - Returns: false if it is to be called again in a while.
    private func maintain(_ policy: CompactionPolicy) async -> Bool {
        do {
            if compaction.due == nil {
                guard let estimate = try await estimateGarbage() else { return true }
                guard estimate.share >= policy.garbageShare,
                    estimate.garbageBytes >= policy.garbageBytesMin
                else {
                    compaction.report(.notWorthIt(estimate))
                    return true
                }
                compaction.due = estimate
                if !policy.isIdle() { compaction.report(.waitsForIdle(estimate)) }
            }
            guard policy.isIdle() else { return false }
            try Task.checkCancellation()
            let report = try await compact()
            compaction.bytesAtLook = report.bytesAfter
            compaction.report(.compacted(report))
        } catch is CancellationError {
        } catch {
            compaction.report(.failed(error))
        }
        return true
    }

    private func estimateGarbage() async throws -> GarbageEstimate? {
        let look = GarbageLook(
            log: log, catalogue: catalogue, environment: environment,
            horizon: .present(views, at: lastDurable, others: unknownStates, needs: needs),
            sealedCount: log.sealedCount,
            liveBytes: log.liveBytes,
            bytesMin: compaction.bytesAtLook + compaction.bytesAtLook / 4)
        let estimate = try await BlockingWork.run(.utility) { try look.run() }
        if let estimate { compaction.bytesAtLook = estimate.bytes }
        return estimate
    }
}
