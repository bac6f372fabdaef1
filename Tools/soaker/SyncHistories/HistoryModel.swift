// The model of a history: the events that the app has recorded, those that must be durable, and the server's
// answers to each. Checks the log and the server.

import DaybookOffline
import Foundation

/// The expected events of a history.
struct HistoryModel {
    /// One event of the app.
    struct RecordedEvent: Hashable {
        var id: UUID
        var lane: String
        var json: [UInt8]
        var isTick: Bool
    }

    /// The server's answers to an event.
    struct Answers {
        var retries = 0
        /// Whether it was rejected, or refused alone in a request.
        var isRefused = false
        var isConflict = false
        /// The number of requests with it alone that brought no verdict.
        var failuresAlone = 0
    }

    /// An event of the server.
    struct ServerEvent {
        var order: Int
        var draft: EventDraft
        var source: UUID?
        var sequence: UInt64?
    }

    /// A type that the app's first version does not know, and its second version ships.
    static let tickType = "com.example.tick"
    /// Whether the app has been upgraded to its second version.
    var shipsTicks = false
    /// The recorded events by position. Relaxed ones may be lost.
    var events: [Position: RecordedEvent] = [:]
    /// The last position that must survive every death.
    var durable = Position.zero
    /// The batch whose append has not returned: all of it is recorded, or nothing.
    var inFlight: [RecordedEvent] = []
    /// Events that were lost when an old image was restored, and are not in the log.
    var abandoned: [UUID: RecordedEvent] = [:]
    /// The ids of events that another device has sent.
    var foreign: Set<UUID> = []
    /// The server's answers by event.
    var answers: [UUID: Answers] = [:]

    /// Whether an event is shipped.
    func isShipped(_ event: RecordedEvent) -> Bool { shipsTicks || !event.isTick }

    /// Checks the events of a reopened log, and drops relaxed events that were lost.
    ///
    /// - Parameters:
    ///   - next: the log's next position.
    ///   - lines: its events.
    ///   - compacted: the last position that compaction may have removed.
    mutating func checkReopened(_ lines: [Event], next: Position, compacted: Position) throws {
        guard durable < next else {
            throw HistoryFailure(
                "I1: position \(durable) was acknowledged; the log's next position is \(next)")
        }
        events = events.filter { $0.key < next }
        var recoveredInFlight: [UUID] = []
        var positions: Set<Position> = []
        for event in lines {
            positions.insert(event.position)
            if let recorded = events[event.position] {
                guard recorded.id == event.id, recorded.json == event.content.json ?? [] else {
                    throw HistoryFailure("I3: position \(event.position) has another event")
                }
            } else if let recorded = inFlight.first(where: { $0.id == event.id }) {
                recoveredInFlight.append(recorded.id)
                events[event.position] = recorded
            } else if !event.isOwn,
                foreign.contains(event.id) || abandoned[event.id] != nil
            {
                // The server's reply contained the event that it has instead of one of this log: another
                // device's event, or an abandoned one.
                continue
            } else if event.type != SyncSettled.type {
                throw HistoryFailure(
                    "I3: the event at \(event.position) was never recorded: \(event.type)")
            }
        }
        guard recoveredInFlight.isEmpty || recoveredInFlight == inFlight.map(\.id) else {
            throw HistoryFailure(
                "I4: \(recoveredInFlight.count) of a batch of \(inFlight.count) were recovered")
        }
        for (position, event) in events where !positions.contains(position) {
            // Compaction removes no event of a type without a rule.
            guard position <= compacted, isShipped(event) else {
                throw HistoryFailure("I2: the event at \(position) is missing")
            }
        }
        inFlight = []
        for event in events.values { abandoned[event.id] = nil }
        durable = Position(next.rawValue - 1)
    }

    /// Compares the server's events with the log: I10, and the order of lanes.
    ///
    /// - Parameter unsettled: the outbox by position.
    func checkServer(_ server: [UUID: ServerEvent], unsettled: [Position: OutboxEntry]) throws {
        for (position, event) in events where isShipped(event) && unsettled[position] == nil {
            guard let stored = server[event.id] else {
                throw HistoryFailure(
                    "I10: the event at \(position) is settled, but the server does not have it")
            }
            guard stored.draft.json ?? [] == event.json else {
                throw HistoryFailure(
                    "I10: the event at \(position) is settled, but the server has other data")
            }
        }
        var own: [UUID: Position] = [:]
        for (position, event) in events { own[event.id] = position }
        for id in server.keys where own[id] == nil {
            guard abandoned[id] != nil || foreign.contains(id) else {
                throw HistoryFailure("I1: the server has the event \(id), which the log has lost")
            }
        }
        var last: [String: Int] = [:]
        var missingLanes: Set<String> = []
        for (_, event) in events.sorted(by: { $0.key < $1.key }) where isShipped(event) {
            guard let stored = server[event.id], !foreign.contains(event.id) else {
                missingLanes.insert(event.lane)
                continue
            }
            guard !missingLanes.contains(event.lane), last[event.lane] ?? -1 < stored.order else {
                throw HistoryFailure(
                    "the event \(event.id) overtook earlier ones of lane \(event.lane)")
            }
            last[event.lane] = stored.order
        }
        try checkOutbox(unsettled)
    }

    /// Checks a batch before it is sent: of each lane it must have the oldest pending events, in order.
    func checkBatch(_ batch: [UUID], unsettled: [OutboxEntry]) throws {
        var pending: [String: [UUID]] = [:]
        for entry in unsettled { pending[entry.lane, default: []].append(entry.id) }
        let lanes = Dictionary(uniqueKeysWithValues: unsettled.map { ($0.id, $0.lane) })
        var sent: [String: [UUID]] = [:]
        for id in batch {
            guard let lane = lanes[id] else {
                throw HistoryFailure("the event \(id) is sent, but is not in the outbox")
            }
            sent[lane, default: []].append(id)
        }
        for (lane, ids) in sent where !(pending[lane] ?? []).starts(with: ids) {
            throw HistoryFailure("a batch has events of lane \(lane) before earlier ones")
        }
        for entry in unsettled
        where entry.status == .conflict || entry.parking == .rejected {
            guard sent[entry.lane] == nil else {
                throw HistoryFailure("events of the held lane \(entry.lane) are sent")
            }
        }
        for entry in unsettled where entry.parking == .setAside && batch.contains(entry.id) {
            guard batch.count == 1 else {
                throw HistoryFailure(
                    "the event \(entry.id), which is set aside, is sent with others")
            }
        }
    }

    /// Checks that every charged retry, every parked event and every conflict follows from an answer.
    private func checkOutbox(_ unsettled: [Position: OutboxEntry]) throws {
        for (position, entry) in unsettled {
            guard let event = events[position], event.id == entry.id, isShipped(event) else {
                throw HistoryFailure(
                    "the outbox has position \(position), which was never recorded")
            }
            let answers = answers[entry.id] ?? Answers()
            guard entry.retryCount <= answers.retries else {
                throw HistoryFailure(
                    "the event at \(position) was charged \(entry.retryCount) retries; the server "
                        + "answered `retry` \(answers.retries) times")
            }
            switch entry.status {
            case .pending: break
            case .failed:
                let isRight =
                    switch entry.parking {
                    case .exhausted: entry.retryCount == 5
                    case .setAside: answers.failuresAlone >= 2
                    case .rejected, nil: answers.isRefused
                    }
                guard isRight else {
                    throw HistoryFailure("the event at \(position) is parked without a reason")
                }
            case .conflict:
                guard answers.isConflict else {
                    throw HistoryFailure(
                        "the event at \(position) is in conflict without a verdict")
                }
            }
        }
    }

    /// RPL-17: notes that a batch brought no verdict.
    mutating func recordFailure(of batch: [UUID]) {
        if batch.count == 1 { answers[batch[0], default: Answers()].failuresAlone += 1 }
    }

    /// I12: checks that only parked and conflicting events are pending, and later ones of their lanes.
    func checkAllPendingAreHeld(_ unsettled: [OutboxEntry]) throws {
        var heldLanes: Set<String> = []
        for entry in unsettled {
            guard entry.parking != .setAside else {
                throw HistoryFailure(
                    "I12: the event at \(entry.position) is set aside, although every request succeeds"
                )
            }
            if entry.status != .pending { heldLanes.insert(entry.lane) }
            guard heldLanes.contains(entry.lane) else {
                throw HistoryFailure(
                    "I12: the event at \(entry.position) is pending without a reason")
            }
        }
    }

    /// Records the reply to a batch.
    mutating func recordReply(_ reply: TransportReply, to batch: [UUID]) {
        if [400, 413, 422].contains(reply.status), batch.count == 1 {
            answers[batch[0], default: Answers()].isRefused = true
        }
        guard reply.status == 200, let verdicts = Verdict.parse(reply.body),
            verdicts.contains(where: { $0.status != .unprocessed && batch.contains($0.id) })
        else { return recordFailure(of: batch) }
        for verdict in verdicts {
            switch verdict.status {
            case .retry: answers[verdict.id, default: Answers()].retries += 1
            case .rejected: answers[verdict.id, default: Answers()].isRefused = true
            case .conflict: answers[verdict.id, default: Answers()].isConflict = true
            default: break
            }
        }
    }
}
