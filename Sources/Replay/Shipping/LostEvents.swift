// Finds the events that a restored server may lack, and drives their recovery. Between the session and
// LossRecovery. Spec/protocol/replay.md, RPL-14.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import SyncWire

/// The events of a log that a restored server may lack.
enum LostEvents {
    /// The time before that of the restored state from which on events are shipped: the clocks of the device
    /// and the server differ.
    private static let marginMilliseconds: Int64 = 3_600_000

    /// Finds the events that the log has exchanged with the server since the time of the restored state: own ones
    /// by the records of the answers, others by their place in the log. Folded records name older events, too.
    ///
    /// - Returns: the events, and the number of lines that compaction has removed: positions without a line.
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes of the log); memory for a position and an id for each event.
    static func find(
        in store: EventStore, after restore: ServerRestore
    ) async throws -> (items: [LossRecovery.Item], compacted: Int) {
        let time =
            restore.otherServer == nil
            ? Timestamp(milliseconds: restore.time).milliseconds - marginMilliseconds : .min
        try await store.flush()
        var settled: [ClosedRange<UInt64>] = []
        // The record of a page is the last line of its commit, so the events of the first page come before it.
        var lastOwnBefore = Position.zero
        var isAfter = false
        for try await event in store.recordedEvents() where event.isOwn {
            if event.time.milliseconds >= time { isAfter = true }
            guard isAfter else {
                lastOwnBefore = event.position
                continue
            }
            settled += exchanged(in: event)
        }
        var exchanged = PositionSet()
        for range in settled.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            let lower = max(range.lowerBound, (exchanged.runs.last?.upperBound ?? 0) + 1)
            if lower <= range.upperBound { exchanged.append(lower...range.upperBound) }
        }
        let retracted = Set(await store.durableState.retracted)
        var items: [LossRecovery.Item] = []
        var (lines, last) = (0, Position.zero)
        for try await event in store.recordedEvents() {
            let position = event.position
            lines += 1
            last = position
            let isExchanged =
                event.isOwn
                ? event.action != nil
                    && exchanged.intersects(position.rawValue...position.rawValue)
                // A type that does not leave the device has no action.
                : position > lastOwnBefore && (event.action != nil || !event.isKnownType)
            guard isExchanged, !retracted.contains(position) else { continue }
            items.append(
                LossRecovery.Item(
                    position: position, id: event.id, lane: event.lane.hashValue,
                    lineBytes: event.lineBytes))
        }
        return (items, Int(last.rawValue) - lines)
    }

    /// The positions that a record of the log names as those of events that the server has.
    private static func exchanged(in event: Event) -> [ClosedRange<UInt64>] {
        let json = event.content.json ?? []
        if event.type == SyncSettled.type, let record = try? SyncSettled(json: json),
            Outbox.isOwn(record, event)
        {
            return record.applied + record.duplicate
        }
        if event.type == EventsReinstated.type, let record = try? EventsReinstated(json: json),
            record.by == event.source
        {
            return record.events.map { $0.position.rawValue...$0.position.rawValue }
        }
        return []
    }
}

/// The recovery of a store that its last run has begun, so that the next one continues it. Kept in memory.
enum LossRecoveries: TransientState {
    typealias Key = ServerRestore
    typealias Value = LossRecovery
}

/// The recovery of a run.
struct RecoveryDriver {
    /// The next step of a recovery.
    enum Step {
        /// Send this batch, and pass its answer to `handleAnswer`.
        case send(batch: [UInt8])
        /// Wait as after this answer.
        case wait(ReplayState.Answer)
        /// End the reading, for this reason.
        case end(String)
        /// Read from the first page.
        case readFromStart
        /// The recovery was completed now: read from the first page. With the number of lines that compaction has
        /// removed, if the server may lack everything.
        case complete(compacted: Int)
        /// The run is cancelled.
        case cancelled
    }

    let store: EventStore
    /// Whether the run ships.
    let ships: Bool
    /// The recovery, until a page with events is recorded after it.
    private var recovery: LossRecovery?
    private var begun = 0

    /// The number of recoveries that a run begins.
    private static let begunMax = 3

    init(_ store: EventStore, ships: Bool) {
        self.store = store
        self.ships = ships
    }

    /// Begins or continues the recovery from a restore.
    ///
    /// - Throws: `LogError`.
    mutating func nextStep(from restore: ServerRestore) async throws -> Step {
        guard ships else {
            return .end(
                "the server was restored, or is another one than before; a run that ships is "
                    + "needed before the next read")
        }
        if recovery?.restore != restore, let obstacle = try await begin(from: restore) {
            return obstacle
        }
        guard var recovery else { return .cancelled }
        guard !recovery.isComplete else { return .readFromStart }
        // Otherwise the change would copy the events.
        self.recovery = nil
        defer { self.recovery = recovery }
        while true {
            switch recovery.nextAction() {
            case .send(let positions):
                do {
                    return .send(batch: try await store.jsonArray(of: positions))
                } catch let error as LogError where error.code == .corrupt {
                    guard let missing = error.positions?.lowerBound, recovery.leaveOut(missing)
                    else { throw error }
                }
            case .wait(let answer): return .wait(answer)
            case .postponed:
                return .end(
                    "the server was restored and asks to send some events that it lacks again later"
                )
            case .complete: return .complete(compacted: recovery.compacted)
            }
        }
    }

    /// Continues the recovery that an earlier run has begun, or begins one. Servers that disagree would have each
    /// other's recovery begin anew without end, so the number is limited.
    private mutating func begin(from restore: ServerRestore) async throws -> Step? {
        let kept = store.transient(LossRecoveries.self)
        recovery = kept[restore]
        // A recovery from another restore is out of date.
        kept.update(Array(kept.values.keys)) { _ in nil }
        guard recovery == nil else { return nil }
        guard begun < Self.begunMax else {
            return .end(
                "the server names a different restore, or a different database, each time")
        }
        begun += 1
        let (items, compacted) = try await LostEvents.find(in: store, after: restore)
        // A scan that is cancelled ends early.
        guard !Task.isCancelled else { return .cancelled }
        recovery = LossRecovery(
            from: restore, items, compacted: restore.otherServer == nil ? 0 : compacted)
        return nil
    }

    /// Handles the answer to a batch; nil if there is no recovery.
    mutating func handleAnswer(
        _ answer: ReplayState.Answer, with verdicts: [Verdict]?
    ) -> LossRecovery.Effect? {
        recovery?.handleAnswer(answer, with: verdicts)
    }

    /// Whether the last batch failed, and its events are searched for the reason.
    var isSearching: Bool { recovery?.isSearching ?? false }

    /// Returns the outcomes since the last call.
    mutating func takeCounts() -> LossRecovery.Counts {
        recovery?.takeCounts() ?? LossRecovery.Counts()
    }

    /// The recorded cursor is one since the restore.
    mutating func cursorRecorded() {
        if recovery?.isComplete == true { recovery = nil }
    }

    /// Keeps the recovery for the next run. Without a name, another restore to the same time would look the same.
    func keep() {
        guard let recovery, recovery.restore.isNamed else { return }
        store.transient(LossRecoveries.self).update(recovery.restore) { _ in recovery }
    }
}
