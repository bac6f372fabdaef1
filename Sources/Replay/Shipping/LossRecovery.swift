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
///
/// The read before each batch was answered well, so a batch that fails is halved until the failing event is alone:
/// the endpoint is the reason only if several lone events fail in a row.
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
        /// The batch was refused or failed, and the next one is smaller; or its only event was.
        case refused
        /// The answer is not about the events: it has the effect of that to a read, and the batch is sent again.
        case failed(ReplayState.Answer)
    }

    /// The outcomes of events.
    struct Counts: Hashable, Sendable {
        /// The number of events that the server lacked.
        var applied = 0
        /// The events that the server does not accept.
        var notAccepted: [Position] = []
    }

    let restore: ServerRestore
    /// The number of lines that compaction has removed, if the server may lack everything.
    let compacted: Int
    var counts = Counts()
    /// Whether all events have been answered.
    private(set) var isComplete = false
    var items: [Item]
    /// The events of the batch that is under way.
    private(set) var batch: [Item] = []
    /// The index of the first event of the next batch.
    var next = 0
    /// The events of the round that the server has answered `retry` or `unprocessed` to, and those after them
    /// in their lanes.
    var postponed: [Item] = []
    var postponedLanes: Set<Int> = []
    /// The longest wait in seconds that a verdict `retry` of the round asks for; nil without such a verdict.
    var requestedSeconds: Double?
    /// The events that were refused or have failed alone since a batch was processed. They count once another one is.
    var suspects: [Suspect] = []
    /// The number of failures of events that have failed alone in earlier rounds, although the endpoint was well.
    var failuresAlone: [Position: Int] = [:]
    /// The number of batches that failed since one was processed, and the number at which the next search begins.
    var failures = 0
    var searchAt = 0
    /// Whether the last batch failed, and its events are searched for the reason.
    var isSearching = false
    /// The complete answer to the last lone event that failed, if there was one.
    var lastReply: TransportReply?
    /// An event that the server has, and whether it is sent once more to show that the endpoint is well.
    var accepted: Item?
    var isComparing = false
    /// The number of rounds in a row in which every event was postponed.
    private var idleRounds = 0
    var eventsMax = Sending.batchEvents

    /// An event that was refused or has failed alone.
    struct Suspect: Hashable {
        let index: Int
        /// Whether it is sent again after all others: a lone request may have failed by chance.
        let isPostponed: Bool
    }

    init(from restore: ServerRestore, _ items: [Item], compacted: Int) {
        self.restore = restore
        self.compacted = compacted
        self.items = items
    }

    /// Returns the next action, without a batch under way.
    mutating func nextAction() -> Action {
        if hasManySuspects { return compare() }
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
        if isComparing, accepted?.position == position {
            (accepted, isComparing) = (nil, false)
            return true
        }
        guard let index = items[next...].firstIndex(where: { $0.position == position }) else {
            return false
        }
        items.remove(at: index)
        return true
    }

    /// Returns the outcomes since the last call.
    mutating func takeCounts() -> Counts {
        defer { counts = Counts() }
        return counts
    }

    mutating func postpone(_ item: Item) {
        postponed.append(item)
        postponedLanes.insert(item.lane)
    }

    /// Sends an event once more that the server has: it shows whether those that failed alone are the reason.
    private mutating func compare() -> Action {
        guard let accepted else {
            searchedInVain()
            return .wait(lastReply.map { .reply($0) } ?? .failure("no batch of events is accepted"))
        }
        isComparing = true
        batch = [accepted]
        return .send([accepted.position])
    }

    /// Ends a round, and begins the next one with the postponed events.
    ///
    /// - Returns: nil if the next round may begin at once.
    private mutating func endRound() -> Action? {
        if !suspects.isEmpty { return compare() }
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
        return seconds == nil && idleRounds == 0 && failuresAlone.isEmpty
            ? nil
            : .wait(.failure("some events are sent again: the server asks for it, or they failed"))
    }

    mutating func apply(_ verdicts: [Verdict]) {
        let verdicts = Dictionary(
            verdicts.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        for item in batch {
            let verdict = verdicts[item.id]
            switch verdict?.status {
            case .applied:
                counts.applied += 1
                accepted = item
            case .duplicate: accepted = item
            case .rejected, .conflict: counts.notAccepted.append(item.position)
            case .retry, .unprocessed, nil:
                if verdict?.status == .retry {
                    requestedSeconds = max(
                        requestedSeconds ?? 0, verdict?.retryAfterSeconds ?? 0)
                }
                postpone(item)
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
