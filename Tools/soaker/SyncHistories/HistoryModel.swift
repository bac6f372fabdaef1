// What a history knows: which events the app has recorded, which of them must be on the disk, and what
// the client was told about each. Checks the log and the server against it. Used by History.

import DaybookOffline
import Foundation

/// The events of a history as they should be.
struct HistoryModel {
    /// One event of the app.
    struct Known: Hashable {
        var id: UUID
        var lane: String
        var json: [UInt8]
        var isTick: Bool
    }

    /// What the client was told about an event.
    struct Told {
        var retries = 0
        /// Rejected, or refused alone.
        var isRefused = false
        var isConflict = false
    }

    /// An event as the server holds it.
    struct Held {
        var order: Int
        var draft: EventDraft
        var source: UUID?
        var sequence: UInt64?
    }

    /// A type that the app's first version does not know, and its second one ships.
    static let tickType = "com.example.tick"
    /// Whether the app is of its second version.
    var shipsTicks = false
    /// By position: what the log holds, or should unless it was relaxed.
    var events: [Position: Known] = [:]
    /// Positions up to this one must survive everything.
    var durable = Position.zero
    /// A batch whose append has not returned: there is all of it, or nothing.
    var inFlight: [Known] = []
    /// Events of lives that were given up when an old image came back, and that are not in the log.
    var abandoned: [UUID: Known] = [:]
    /// What another device has sent.
    var foreign: Set<UUID> = []
    /// What the client was told.
    var told: [UUID: Told] = [:]

    /// Whether an event goes to the server.
    func isShipped(_ known: Known) -> Bool { shipsTicks || !known.isTick }

    /// Takes in what a reopened log holds.
    ///
    /// - Parameters:
    ///   - next: the log's next position.
    ///   - lines: its events.
    ///   - compacted: positions up to this one may be missing.
    mutating func reopen(_ lines: [Event], next: Position, compacted: Position) throws {
        guard durable < next else {
            throw HistoryFailure(
                "I1: position \(durable) was acknowledged; the log ends at \(next)")
        }
        events = events.filter { $0.key < next }
        var found: [UUID] = []
        var seen: Set<Position> = []
        for event in lines {
            seen.insert(event.position)
            if let known = events[event.position] {
                guard known.id == event.id, known.json == event.content.json ?? [] else {
                    throw HistoryFailure("I3: \(event.position) holds another event")
                }
            } else if let known = inFlight.first(where: { $0.id == event.id }) {
                found.append(known.id)
                events[event.position] = known
            } else if !event.isOwn,
                foreign.contains(event.id) || abandoned[event.id] != nil
            {
                // What the server holds instead of one of ours came with its answer: another
                // device's, or one of a life that was given up.
                continue
            } else if event.type != SyncSettled.type {
                throw HistoryFailure("I3: \(event.position) was never recorded: \(event.type)")
            }
        }
        guard found.isEmpty || found == inFlight.map(\.id) else {
            throw HistoryFailure("I4: \(found.count) of a batch of \(inFlight.count) came back")
        }
        for (position, known) in events where !seen.contains(position) {
            // Compaction takes out nothing that no version of the app has a rule for.
            guard position <= compacted, isShipped(known) else {
                throw HistoryFailure("I2: \(position) is missing")
            }
        }
        inFlight = []
        for known in events.values { abandoned[known.id] = nil }
        durable = Position(next.rawValue - 1)
    }

    /// Checks what the server holds against the log: I10, and the order of lanes.
    ///
    /// - Parameter unsettled: the outbox by position.
    func check(_ server: [UUID: Held], unsettled: [Position: OutboxEntry]) throws {
        for (position, known) in events where isShipped(known) && unsettled[position] == nil {
            guard let held = server[known.id] else {
                throw HistoryFailure(
                    "I10: \(position) is settled, and the server has no such event")
            }
            guard held.draft.json ?? [] == known.json else {
                throw HistoryFailure(
                    "I10: \(position) is settled, and the server has another event")
            }
        }
        var own: [UUID: Position] = [:]
        for (position, known) in events { own[known.id] = position }
        for id in server.keys where own[id] == nil {
            guard abandoned[id] != nil || foreign.contains(id) else {
                throw HistoryFailure("I1: the server has \(id), which the log has lost")
            }
        }
        var last: [String: Int] = [:]
        var missing: Set<String> = []
        for (_, known) in events.sorted(by: { $0.key < $1.key }) where isShipped(known) {
            guard let held = server[known.id], !foreign.contains(known.id) else {
                missing.insert(known.lane)
                continue
            }
            guard !missing.contains(known.lane), last[known.lane] ?? -1 < held.order else {
                throw HistoryFailure("\(known.id) has overtaken others of lane \(known.lane)")
            }
            last[known.lane] = held.order
        }
        try check(unsettled)
    }

    /// Checks a batch that is about to be sent: in each lane, the oldest events that wait, in order.
    func check(batch: [UUID], unsettled: [OutboxEntry]) throws {
        var waiting: [String: [UUID]] = [:]
        for entry in unsettled { waiting[entry.lane, default: []].append(entry.id) }
        let lanes = Dictionary(uniqueKeysWithValues: unsettled.map { ($0.id, $0.lane) })
        var sent: [String: [UUID]] = [:]
        for id in batch {
            guard let lane = lanes[id] else {
                throw HistoryFailure("\(id) is sent, and does not wait")
            }
            sent[lane, default: []].append(id)
        }
        for (lane, ids) in sent where !(waiting[lane] ?? []).starts(with: ids) {
            throw HistoryFailure("events of lane \(lane) overtake others on their way")
        }
        for entry in unsettled
        where entry.status != .pending && entry.parking != .exhausted && sent[entry.lane] != nil {
            throw HistoryFailure("lane \(entry.lane) is held, and sends")
        }
    }

    /// Every charge and every hold has its reason.
    private func check(_ unsettled: [Position: OutboxEntry]) throws {
        for (position, entry) in unsettled {
            guard let known = events[position], known.id == entry.id, isShipped(known) else {
                throw HistoryFailure("the outbox has \(position), which was never recorded")
            }
            let told = told[entry.id] ?? Told()
            guard entry.retryCount <= told.retries else {
                throw HistoryFailure(
                    "\(position) was charged \(entry.retryCount) times, for \(told.retries) retries"
                )
            }
            switch entry.status {
            case .pending: break
            case .failed:
                guard entry.parking == .exhausted ? entry.retryCount == 5 : told.isRefused else {
                    throw HistoryFailure("\(position) is parked for nothing")
                }
            case .conflict:
                guard told.isConflict else {
                    throw HistoryFailure("\(position) is in conflict with nothing")
                }
            }
        }
    }

    /// I12: nothing waits but what is parked or in conflict, and what comes after it in its lane.
    func checkNothingMoves(_ unsettled: [OutboxEntry]) throws {
        var held: Set<String> = []
        for entry in unsettled {
            if entry.status != .pending { held.insert(entry.lane) }
            guard held.contains(entry.lane) else {
                throw HistoryFailure("I12: \(entry.position) waits for nothing")
            }
        }
    }

    /// The client was given an answer to a batch.
    mutating func hear(_ reply: TransportReply, to batch: [UUID]) {
        if [400, 413, 422].contains(reply.status), batch.count == 1 {
            told[batch[0], default: Told()].isRefused = true
        }
        guard reply.status == 200 else { return }
        for verdict in Verdict.parse(reply.body) ?? [] {
            switch verdict.status {
            case .retry: told[verdict.id, default: Told()].retries += 1
            case .rejected: told[verdict.id, default: Told()].isRefused = true
            case .conflict: told[verdict.id, default: Told()].isConflict = true
            default: break
            }
        }
    }
}
