// The machine that ships again the events that a restored server lacks. Spec/protocol/replay.md, RPL-14.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// The events of a log that a restored server may lack, shipped again batch by batch.
///
/// | state | next | by |
/// |---|---|---|
/// | between batches | a batch is under way | events are left in the round |
/// | a batch is under way | between batches | its answer |
/// | between batches | waiting | the round had a `retry`, or postponed every event |
/// | waiting | between batches | the wait is over |
/// | between batches | complete | no event is left or postponed |
struct LossRecovery: Hashable, Sendable {
    /// The next action of the recovery.
    enum Action: Sendable {
        /// Send the events at these positions, and pass the answer to `handleAnswer`.
        case send([Position])
        /// Wait as after this answer: the server has postponed events.
        case wait(ReplayState.Answer)
        /// All events have been answered.
        case complete
        /// The server has postponed all events that are left, several times in a row.
        case postponed
    }

    /// An event that the server may lack.
    struct Item: Hashable {
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
    /// The number of lines that compaction has removed, if the server may lack everything.
    let compacted: Int
    private var counts = Counts()
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
    private var eventsMax = Sending.batchEvents

    init(from restore: ServerRestore, _ items: [Item], compacted: Int) {
        self.restore = restore
        self.compacted = compacted
        self.items = items
    }

    /// Returns the next action, without a batch under way.
    mutating func nextAction() -> Action {
        while true {
            skipPostponedLanes()
            if next == items.count {
                if let end = endRound() { return end }
                continue
            }
            batch = Array(nextBatch())
            return .send(batch.map(\.position))
        }
    }

    /// Leaves out an event of the batch that compaction has removed meanwhile: no view needs it.
    ///
    /// - Returns: false if the batch does not have it.
    mutating func leaveOut(_ position: Position) -> Bool {
        guard let index = items[next...].firstIndex(where: { $0.position == position }) else {
            return false
        }
        items.remove(at: index)
        return true
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
        eventsMax = min(Sending.batchEvents, eventsMax * 2)
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
        eventsMax = Sending.batchEvents
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
            return bytes <= Sending.batchBytes && !postponedLanes.contains(item.lane)
        }
        return batch.isEmpty ? items[next...].prefix(1) : batch
    }
}
