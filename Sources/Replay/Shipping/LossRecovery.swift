// Ships again the events that a restored server lacks. Between ReplayRun and the transport.
// Spec/protocol/replay.md, RPL-14.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension SyncReport {
    /// Adds the numbers of a recovery.
    mutating func addRecoveryCounts(_ counts: LossRecovery.Counts) {
        shippedAgain += counts.applied
        notAccepted += counts.notAccepted
    }
}

/// The recovery of a store that its last run has begun, so that the next one continues it. Kept in memory.
enum LossRecoveries: TransientState {
    typealias Key = ServerRestore
    typealias Value = LossRecovery
}

/// The events of a log that a restored server may lack, shipped again batch by batch.
struct LossRecovery: Hashable, Sendable {
    /// The next action of the recovery.
    enum Action: Sendable {
        /// Send this batch, and pass its answer to `handleAnswer`.
        case send(batch: [UInt8])
        /// Wait as after this answer: the server has postponed events.
        case wait(ReplayState.Answer)
        /// All events have been answered.
        case complete
        /// The server has postponed all events that are left, several times in a row.
        case postponed
    }

    private struct Item: Hashable {
        let position: Position
        let id: UUID
        /// A hash of the lane. A collision only postpones an event.
        let lane: Int
        let lineBytes: Int
    }

    /// The effect of an answer.
    enum Effect: Sendable {
        /// The events of the batch have verdicts.
        case processed
        /// The batch was refused, and the next one is smaller; or its only event was.
        case refused
        /// The answer is not about the events: it has the effect of that to a read, and the batch is sent again.
        case failed(ReplayState.Answer)
    }

    /// Numbers of events.
    struct Counts: Hashable, Sendable {
        /// Events that the server lacked.
        var applied = 0
        /// Events that the server does not accept.
        var notAccepted = 0
    }

    let restore: ServerRestore
    private var counts = Counts()
    /// The number of lines that compaction has removed, if the server may lack everything.
    private(set) var compacted = 0
    /// Whether all events have been answered.
    private(set) var isComplete = false
    private var items: [Item]
    /// The events of the batch that is under way.
    private var batch: [Item] = []
    /// The index of the first event of the next batch.
    private var next = 0
    /// The events of the round that the server has answered `retry` or `unprocessed` to, and those after them
    /// in their lanes.
    private var postponed: [Item] = []
    private var postponedLanes: Set<Int> = []
    /// The longest wait in seconds that a verdict `retry` of the round asks for; nil without such a verdict.
    private var requestedSeconds: Double?
    /// The index of an event that was refused alone. It counts once another batch is processed.
    private var suspect: Int?
    /// The number of rounds in a row in which every event was postponed.
    private var idleRounds = 0
    private var eventsMax = ReplayState.batchEvents

    /// The time before that of the restored state from which on events are shipped: the clocks of the device
    /// and the server differ.
    private static let marginMilliseconds: Int64 = 3_600_000

    /// Finds the events that the log has exchanged with the server since the time of the restored state.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes of the log); memory for a position and an id for each event.
    init(_ store: EventStore, after restore: ServerRestore) async throws {
        self.restore = restore
        let time = Timestamp(milliseconds: restore.time).milliseconds - Self.marginMilliseconds
        items = try await Self.items(store, since: restore.otherServer == nil ? time : .min)
        if restore.otherServer != nil {
            compacted = try await Self.compactedLines(of: store)
        }
    }

    /// The events that were exchanged since a time: own ones by the records of the answers, others by their
    /// place in the log. Folded records name older events, too.
    private static func items(_ store: EventStore, since time: Int64) async throws -> [Item] {
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
        var items: [Item] = []
        for try await event in store.recordedEvents() {
            let position = event.position
            let isExchanged =
                event.isOwn
                ? event.action != nil
                    && exchanged.intersects(position.rawValue...position.rawValue)
                // A type that does not leave the device has no action.
                : position > lastOwnBefore && (event.action != nil || !event.isKnownType)
            guard isExchanged, !retracted.contains(position) else { continue }
            items.append(
                Item(
                    position: position, id: event.id, lane: event.lane.hashValue,
                    lineBytes: event.lineBytes))
        }
        return items
    }

    /// The number of lines that compaction has removed: positions without a line.
    private static func compactedLines(of store: EventStore) async throws -> Int {
        var lines = 0
        var last = Position.zero
        for try await event in store.recordedEvents() {
            lines += 1
            last = event.position
        }
        return Int(last.rawValue) - lines
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

    /// Returns the next action, without a batch under way.
    ///
    /// - Throws: `LogError`.
    mutating func next(_ store: EventStore) async throws -> Action {
        while true {
            skipPostponedLanes()
            if next == items.count {
                if let end = endRound() { return end }
                continue
            }
            batch = Array(nextBatch())
            let range = next..<(next + batch.count)
            let lines = try await lines(of: &batch, store)
            if batch.count < range.count { items.replaceSubrange(range, with: batch) }
            if !batch.isEmpty { return .send(batch: lines) }
        }
    }

    /// Returns the numbers since the last call.
    mutating func takeCounts() -> Counts {
        defer { counts = Counts() }
        return counts
    }

    /// Handles the answer to the batch.
    ///
    /// - Parameter verdicts: the verdicts of the answer, if it has any.
    mutating func handleAnswer(
        _ answer: ReplayState.Answer, with verdicts: [Verdict]?
    ) -> Effect {
        guard case .reply(let reply) = answer else { return .failed(answer) }
        if [400, 413, 422].contains(reply.status) { return refuse(reply) }
        guard reply.status == 200 else { return .failed(answer) }
        guard let verdicts else {
            return .failed(.failure("the answer does not come from a sync server"))
        }
        settleSuspect()
        eventsMax = min(ReplayState.batchEvents, eventsMax * 2)
        next += batch.count
        apply(verdicts)
        return .processed
    }

    /// Halves a refused batch until the refused event is alone. Two lone refusals in a row, or a page in HTML, are
    /// those of the endpoint and not of the events.
    private mutating func refuse(_ reply: TransportReply) -> Effect {
        if batch.count > 1 {
            eventsMax = batch.count / 2
            return .refused
        }
        eventsMax = ReplayState.batchEvents
        guard suspect == nil, !reply.isHTML else {
            if let suspect {
                next = suspect
                // They are skipped again.
                postponed.removeAll { $0.position > items[suspect].position }
            }
            suspect = nil
            return .failed(.reply(reply))
        }
        suspect = next
        next += 1
        return .refused
    }

    private mutating func settleSuspect() {
        if suspect != nil { counts.notAccepted += 1 }
        suspect = nil
    }

    /// Ends a round, and begins the next one with the postponed events.
    ///
    /// - Returns: nil if the next round may begin at once.
    private mutating func endRound() -> Action? {
        settleSuspect()
        guard !postponed.isEmpty else {
            isComplete = true
            return .complete
        }
        let seconds = requestedSeconds
        idleRounds = postponed.count == items.count ? idleRounds + 1 : 0
        (items, next, postponed, postponedLanes) = (postponed, 0, [], [])
        requestedSeconds = nil
        guard idleRounds < Retries.max else {
            idleRounds = 0
            return .postponed
        }
        if let seconds, seconds > 0 {
            return .wait(.reply(TransportReply(status: 503, retryAfterSeconds: seconds)))
        }
        return seconds == nil && idleRounds == 0
            ? nil
            : .wait(.failure("the server has asked to send some events again later"))
    }

    private mutating func apply(_ verdicts: [Verdict]) {
        let verdicts = Dictionary(
            verdicts.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        for item in batch {
            let verdict = verdicts[item.id]
            switch verdict?.status {
            case .applied: counts.applied += 1
            case .duplicate: break
            case .rejected, .conflict: counts.notAccepted += 1
            case .retry, .unprocessed, nil:
                if verdict?.status == .retry {
                    requestedSeconds = max(
                        requestedSeconds ?? 0, verdict?.retryAfterSeconds ?? 0)
                }
                postponed.append(item)
                postponedLanes.insert(item.lane)
            }
        }
    }

    /// Postpones the next events whose lanes have a postponed event.
    private mutating func skipPostponedLanes() {
        while next < items.count, postponedLanes.contains(items[next].lane) {
            postponed.append(items[next])
            next += 1
        }
    }

    /// The next events, up to one whose lane has a postponed event.
    private func nextBatch() -> ArraySlice<Item> {
        var bytes = 0
        let batch = items[next...].prefix(eventsMax).prefix { item in
            bytes += item.lineBytes + 1
            return bytes <= ReplayState.batchBytes && !postponedLanes.contains(item.lane)
        }
        return batch.isEmpty ? items[next...].prefix(1) : batch
    }

    /// The lines of a batch as a JSON array, without the events that compaction has removed meanwhile: no view
    /// needs them.
    private func lines(
        of batch: inout [Item], _ store: EventStore
    ) async throws -> [UInt8] {
        while true {
            do {
                return try await store.jsonArray(of: batch.map(\.position))
            } catch let error as LogError where error.code == .corrupt {
                guard let missing = error.positions?.lowerBound,
                    let index = batch.firstIndex(where: { $0.position == missing })
                else { throw error }
                batch.remove(at: index)
            }
        }
    }
}
