// Compaction of a store: called by the app, or automatic. The store's queue only captures states and
// waits; the work runs on another thread, and only the swap of a segment takes the log's lock.
// Spec/format/compaction.md.

import Foundation
import LogFormat
import LogStorage
import Telemetry

/// The compactions of a store: the running one, the policy, the listeners.
struct CompactionControl {
    /// The running compaction, which clears this at its end.
    var running: Task<Void, Never>?
    var stop: CancellationFlag?
    /// Records summaries before each compaction, so that more events can be removed.
    var prepare: (@Sendable (EventStore) async throws -> Void)?
    var policy: CompactionPolicy?
    /// The number of sealed segments, and the bytes of the log, at the last scan for garbage.
    var sealedAtScan = 0
    var bytesAtScan = 0
    /// The running scan and the compaction that follows it. It clears this at its end.
    var scan: Task<Void, Never>?
    /// The result of a scan, while compaction waits until the device is idle.
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

    mutating func finishReports() {
        for listener in reports.values { listener.finish() }
        reports = [:]
    }
}

extension EventStore {
    /// The size from which `compact()` seals the live segment, so that its events can be removed too.
    /// Sealing smaller ones would only make many segments.
    private static let sealedBytesMin = 1024 * 1024
    /// The sealed segments that a log may have, besides one for each `eventsPerSegment` recorded events, for
    /// `compact(sealing: true)` to seal a smaller one. Segments are never joined.
    private static let sealedSegmentsMax: UInt64 = 64
    private static let eventsPerSegment: UInt64 = 1_024

    /// The size from which a compaction seals the live segment.
    private func sealedBytesMin(_ sealing: Bool) -> Int {
        let segmentsMax = Self.sealedSegmentsMax + log.next.rawValue / Self.eventsPerSegment
        return sealing && UInt64(log.sealedCount) < segmentsMax ? 1 : Self.sealedBytesMin
    }

    // MARK: Called by the app

    /// Removes events that no view needs: replaced values, summarised records. Views do not change,
    /// whatever is recorded later. Removed ids stay known for 90 days. Events that an app's own view
    /// folds are kept, unless the view is a `CompactableView` or `allowsCompaction`; the report has
    /// their number.
    ///
    /// Stores the views' states first, and seals a live segment of 1 MiB or more if an event in it can be
    /// removed. On a full disk it uses the log's reserve file. Appends continue meanwhile. One compaction
    /// runs at a time; others wait. Cancelling the task ends it before the next frame; finished segments
    /// stay compacted.
    ///
    /// - Parameters:
    ///   - dryRun: true to report what would be removed, and change nothing.
    ///   - sealing: true to seal a smaller live segment as well, so that lines which no view needs are gone on
    ///     return, such as those of a person to be erased. Each call that removes something from the live segment then
    ///     adds a segment, as long as the log has fewer than 64 and one for each 1,024 recorded events; with
    ///     more, the smaller live segment stays, and the report has its events as `liveSegment`.
    ///   - kept: called for each event that stays, in order, with the reason, on another thread. With it, the
    ///     log is read once more.
    ///   - progress: called from time to time with the number of events classified so far and their total.
    /// - Returns: the events and bytes removed, and the events kept, by reason.
    /// - Throws: `LogError`: `diskFull`, `corrupt`, `io`, `closed`, `suspended`; `CancellationError`.
    ///   The segment being compacted is then unchanged.
    /// - Complexity: O(bytes of the log), in memory for a few frames, the ids of one segment and a
    ///   copy of the views' states.
    @discardableResult
    public func compact(
        dryRun: Bool = false, sealing: Bool = false,
        kept: (@Sendable (_ event: Event, _ reason: KeptReason) -> Void)? = nil,
        progress: (@Sendable (_ classified: Int, _ total: Int) -> Void)? = nil
    ) async throws -> CompactionReport {
        let stop = CancellationFlag()
        return try await withTaskCancellationHandler {
            // Another task may start one when the running one ends.
            while let running = compaction.running { await running.value }
            try checkOpen()
            try Task.checkCancellation()
            let work = Task {
                defer {
                    compaction.running = nil
                    compaction.stop = nil
                }
                if dryRun { return try await survey(stop, sealing, kept) }
                let report = try await instruments.measure(.compaction) {
                    try await compact(stop, sealing, kept, progress)
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

    /// Sets a closure that runs before every compaction. It records summaries, so that the events they
    /// replace can be removed.
    package func prepareCompaction(_ body: @escaping @Sendable (EventStore) async throws -> Void) {
        compaction.prepare = body
    }

    private func compact(
        _ stop: CancellationFlag, _ sealing: Bool, _ kept: (@Sendable (Event, KeptReason) -> Void)?,
        _ progress: (@Sendable (Int, Int) -> Void)?
    ) async throws -> CompactionReport {
        defer { log.refillReserve() }
        do {
            try await compaction.prepare?(self)
        } catch let error as LogError where error.code == .diskFull {}
        let run = CompactionRun(
            log: log, catalogue: catalogue, environment: environment,
            horizon: try await horizon(stop),
            sealedBytesMin: sealedBytesMin(sealing), stop: stop, kept: kept, progress: progress)
        return try await BlockingWork.run(.utility) { try run.run() }
    }

    /// The states by which events are classified. If the stored states do not reach the end of the log,
    /// both checkpoints are written again.
    private func horizon(_ stop: CancellationFlag) async throws -> CompactionHorizon {
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
            for _ in 0..<2 {
                if stop.isSet { throw CancellationError() }
                do { try await checkpoint() } catch let error as LogError
                    where error.code == .diskFull && log.releaseReserve()
                { try await checkpoint() }
            }
        } catch let error as LogError where error.code == .diskFull {
            return horizon
        }
        if stop.isSet { throw CancellationError() }
        return try await stored()
    }

    private func survey(
        _ stop: CancellationFlag, _ sealing: Bool, _ kept: (@Sendable (Event, KeptReason) -> Void)?
    ) async throws -> CompactionReport {
        let horizon = CompactionHorizon.present(
            views, at: lastDurable, unknown: unknownStates, needs: needs)
        let survey = CompactionSurvey(
            LogReader(directory, fileSystem: environment.fileSystem), horizon, catalogue: catalogue,
            isLiveSealed: log.liveBytes >= sealedBytesMin(sealing))
        let now = environment.now()
        return try await BlockingWork.run(.utility) {
            var report = try survey.report(now: now, kept: kept) { _ in
                if stop.isSet { throw CancellationError() }
            }
            report.heldBackBy = horizon.heldBackBy
            return report
        }
    }

    /// Cancels the running scan and compaction, and waits for their end.
    func stopCompaction() async {
        await cancelScan()
        while let running = compaction.running {
            compaction.stop?.set()
            await running.value
        }
    }

    // MARK: Automatic

    /// Sets when the store compacts automatically; nil turns it off. It is off until the first call;
    /// `open(at:)` of Daybook makes one.
    ///
    /// - Throws: `EventError` (`refused`) for a number that is out of range; the old policy stays.
    public func setCompactionPolicy(_ policy: CompactionPolicy?) async throws(EventError) {
        try policy?.check()
        compaction.policy = policy
        await cancelScan()
        compaction.bytesAtScan = 0
        scanForGarbage()
    }

    /// The reports of automatic compaction from now on. Ends when the store is closed.
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

    /// Scans again if a segment was sealed since the last scan.
    func scanForGarbageIfSealed() {
        guard compaction.policy != nil, log.sealedCount != compaction.sealedAtScan else { return }
        scanForGarbage()
    }

    private func scanForGarbage() {
        guard let policy = compaction.policy, compaction.scan == nil, !isClosed, !isSuspended
        else { return }
        compaction.sealedAtScan = log.sealedCount
        guard log.sealedCount > 0 || log.liveBytes >= Self.sealedBytesMin else { return }
        compaction.due = nil
        compaction.scan = Task { [weak self, sleep = environment.sleep] in
            while await self?.maintain(policy) == false {
                do { try await sleep(policy.idlePause) } catch { break }
            }
            await self?.clearScan()
        }
    }

    private func clearScan() {
        compaction.scan = nil
        // A segment may have been sealed during the scan.
        scanForGarbageIfSealed()
    }

    private func cancelScan() async {
        while let scan = compaction.scan {
            scan.cancel()
            await scan.value
        }
    }

    /// Scans for garbage and compacts if there is enough. An error is reported and does not affect
    /// appends.
    ///
    /// - Returns: false if it must be called again after the policy's `idlePause`.
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
            compaction.bytesAtScan = report.bytesAfter
            compaction.report(.compacted(report))
        } catch is CancellationError {
        } catch {
            compaction.report(.failed(error))
        }
        return true
    }

    private func estimateGarbage() async throws -> GarbageEstimate? {
        let scan = GarbageScan(
            log: log, catalogue: catalogue, environment: environment,
            horizon: .present(views, at: lastDurable, unknown: unknownStates, needs: needs),
            sealedCount: log.sealedCount,
            liveBytes: log.liveBytes,
            bytesMin: compaction.bytesAtScan + compaction.bytesAtScan / 4)
        let estimate = try await BlockingWork.run(.utility) { try scan.run() }
        if let estimate { compaction.bytesAtScan = estimate.bytes }
        return estimate
    }
}
