// The machine that ships the outbox: it alone knows what is queued, under way and held. V1 to V5, W2 and W3 of
// Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// The events to send, lane by lane.
///
/// | state of a lane | next | by |
/// |---|---|---|
/// | ready | under way | its events are in a batch |
/// | under way | ready | an answer without a verdict for the lane; V1; V5 |
/// | under way | waiting | V4 |
/// | under way | held | V2, V3, W2 and W3 of a lone event |
/// | waiting | ready | the time has come; a demand, for an exhausted event |
/// | held | ready | a decision; a suspect that is released |
///
/// Invariants: the events of a lane are in at most one request and are sent in order; no event is sent while an
/// earlier one of its lane is held; an event leaves the queue only by a record in the log.
struct Sending: Sendable {
    enum Input {
        /// The verdicts of a batch.
        case verdicts([Verdict], [ReplayItem], ReplayState.Moment)
        /// W2: the batch is too large. `isAlone`: no other request is under way.
        case tooLarge([ReplayItem], TransportReply, isAlone: Bool)
        /// W3: the batch is refused as malformed.
        case malformed([ReplayItem], TransportReply, isAlone: Bool)
        /// W5 to W8, T4: nothing is sent for now.
        case interrupted
        /// Nothing else is left to send or to wait for.
        case exhausted
        /// C4: the app asks for an exchange.
        case demand
        case runEnded
    }

    enum Effect {
        case record(ReplayState.Settlement)
        case resolve(ReplayItem, current: JSONValue?)
        /// The answer counts.
        case succeeded
        /// The answer processed no event.
        case failed(reason: String)
        /// The endpoint is wrong.
        case pause(status: Int)
    }

    /// What is queued, lane by lane.
    var queue: OutboxQueue
    private var bisection = Bisection()
    /// The largest number of events that the transport takes.
    private let eventsLimit: Int
    private var eventsMax: Int

    /// The largest number of events in a batch.
    static let batchEvents = WireLimits.events
    /// The largest size of the lines of a batch in bytes.
    static let batchBytes = WireLimits.lineBytes

    init(resolvesConflicts: Bool, eventsLimit: Int = Self.batchEvents) {
        queue = OutboxQueue(resolvesConflicts: resolvesConflicts)
        self.eventsLimit = min(max(1, eventsLimit), Self.batchEvents)
        eventsMax = self.eventsLimit
    }

    // MARK: Batches

    /// Whether events may be sent now.
    var isReady: Bool { queue.lanes.isReady || bisection.hasParts }

    /// Whether parts of a refused batch are left: one request at a time is under way then.
    var isBisecting: Bool { bisection.hasParts }

    /// Whether a lane is ready, apart from parts.
    var hasReadyLanes: Bool { queue.lanes.isReady }

    /// The time at which the next waiting lane is released.
    var nextDue: Int64? { queue.lanes.nextDue }

    /// Whether a lane waits after a retry and is not exhausted.
    var isBackingOff: Bool { queue.lanes.isBackingOff }

    /// Releases the lanes whose wait is over. A wait of more than the longest one was set before the clock
    /// stepped back.
    mutating func releaseDueLanes(now: Int64) {
        queue.lanes.releaseDueLanes(now: now, latest: now + Pipeline.retryAfterMax)
    }

    /// The next events to send: of a refused batch those that are still next in their lanes, else of the ready
    /// lanes. Nil if there are none.
    mutating func dequeueBatch() -> [ReplayItem]? {
        while let part = bisection.popPart() {
            let items = queue.lanes.dequeueAgain(part)
            if !items.isEmpty { return items }
        }
        let items = queue.lanes.dequeueBatch(eventsMax: eventsMax, bytesMax: Self.batchBytes)
        return items.isEmpty ? nil : items
    }

    /// Makes the lanes of an answered request ready again unless they are held.
    ///
    /// - Parameter hasVerdicts: whether the answer says something of the events.
    mutating func release(_ items: [ReplayItem], hasVerdicts: Bool) {
        // REQ-9: a lone event that fails again and again would go before all others.
        if !hasVerdicts, eventsLimit == 1 {
            for item in items { queue.lanes.moveLaneToEnd(of: item) }
        }
        queue.lanes.releaseItems(items)
    }

    // MARK: Answers

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .verdicts(let verdicts, let items, let moment):
            return apply(verdicts, items, moment)
        case .tooLarge(let items, let reply, let isAlone):
            guard items.count == 1 else {
                eventsMax = max(1, items.count / 2)
                return []
            }
            // A page in HTML is no answer of a sync server.
            return reply.isHTML ? narrow(items, reply, isAlone) : park(items[0], reply)
        case .malformed(let items, let reply, let isAlone): return narrow(items, reply, isAlone)
        case .interrupted: return perform(bisection.handle(.interrupted))
        case .exhausted: return perform(bisection.handle(.exhausted))
        case .runEnded: return perform(bisection.handle(.runEnded))
        case .demand:
            queue.lanes.releaseExhausted()
            return []
        }
    }

    private mutating func perform(_ effects: [Bisection.Effect]) -> [Effect] {
        effects.flatMap { effect -> [Effect] in
            switch effect {
            case .hold(let item): queue.lanes.holdLane(of: item)
            case .release(let item): queue.lanes.releaseLane(of: item)
            case .deferLane(let item): queue.lanes.deferLane(of: item)
            case .park(let item, let reply): return park(item, reply)
            case .pause(let status): return [.pause(status: status)]
            }
            return []
        }
    }

    /// W3. If no other event is left to send, the suspect is the cause, unless the answer to another request may
    /// still show that the endpoint is right.
    private mutating func narrow(
        _ items: [ReplayItem], _ reply: TransportReply, _ isAlone: Bool
    ) -> [Effect] {
        let effects = perform(bisection.handle(.refused(items, reply)))
        guard items.count == 1, effects.isEmpty, !isReady, !reply.isHTML || isAlone else {
            return effects
        }
        return handle(.exhausted)
    }

    private mutating func apply(
        _ verdicts: [Verdict], _ items: [ReplayItem], _ moment: ReplayState.Moment
    ) -> [Effect] {
        var settlement = ReplayState.Settlement()
        var conflicts: [Effect] = []
        AnsweredBatch(items, verdicts).forEach { item, place in
            switch verdicts[place].status {
            case .applied:
                settlement.applied.append(item.position)
                settle(item, verdicts[place].code, &settlement)
            case .duplicate:
                settlement.duplicate.append(item.position)
                settle(item, verdicts[place].code, &settlement)
            case .rejected:  // V2
                let (code, detail) = (verdicts[place].code, verdicts[place].detail)
                settlement.entries += park(item, code ?? "rejected", detail ?? "rejected")
            case .conflict:  // V3
                guard queue.lanes.isFirst(item) else { return }
                queue.lanes.holdLane(of: item)
                conflicts.append(.resolve(item, current: verdicts[place].current))
                settlement.entries.append(SyncSettled.Entry(conflict: verdicts[place], item))
            case .retry:  // V4
                guard queue.lanes.isFirst(item) else { return }
                settlement.entries.append(charge(item, verdicts[place], moment))
            case .unprocessed: break
            }
        }
        guard !settlement.isEmpty else {
            return [.failed(reason: "the server processed no event")]
        }
        eventsMax = min(eventsLimit, eventsMax * 2)
        for case .record(let parked) in perform(bisection.handle(.succeeded)) {
            settlement.entries += parked.entries
        }
        settlement.isServers = true
        return [.succeeded, .record(settlement)] + conflicts
    }

    /// V1: removes an event that the server has.
    private mutating func settle(
        _ item: ReplayItem, _ code: String?, _ settlement: inout ReplayState.Settlement
    ) {
        queue.lanes.removeSettled(item)
        queue.resolutions.settled(item)
        if code == Verdict.Code.sourceFork.rawValue { settlement.forked.insert(item.source) }
    }

    private mutating func park(_ item: ReplayItem, _ reply: TransportReply) -> [Effect] {
        var settlement = ReplayState.Settlement()
        settlement.entries = park(
            item, "http_\(reply.status)",
            reply.status == 413 ? "too large" : "the server calls it malformed")
        return settlement.isEmpty ? [] : [.record(settlement)]
    }

    private mutating func park(
        _ item: ReplayItem, _ code: String, _ detail: String
    ) -> [SyncSettled.Entry] {
        // A decision may have removed the event meanwhile.
        guard queue.lanes.isFirst(item) else { return [] }
        queue.lanes.holdLane(of: item)
        return [
            SyncSettled.Entry(
                position: item.position.rawValue, id: item.id, outcome: .parked,
                retryCount: item.retryCount, code: code, detail: detail,
                isFinal: item.retryCount == Retries.max)
        ]
    }

    /// V4: counts the retry and holds the lane. The fifth retry exhausts the event (PRK-4).
    private mutating func charge(
        _ item: ReplayItem, _ verdict: Verdict, _ moment: ReplayState.Moment
    ) -> SyncSettled.Entry {
        let before = queue.lanes.retryCount(of: item)
        let count = min(before + 1, Retries.max)
        let isExhausted = count == Retries.max
        let asked = verdict.retryAfterSeconds.map(Pipeline.wait(asked:)) ?? 0
        let delay =
            isExhausted
            ? max(asked, Retries.exhaustedDelay(of: item.id))
            : asked > 0 ? asked : Pipeline.wait(afterFailures: before, moment.random)
        queue.lanes.holdLane(of: item, until: moment.now + delay, retryCount: count)
        return SyncSettled.Entry(
            position: item.position.rawValue, id: item.id,
            outcome: isExhausted ? .parked : .retry, retryCount: count, code: verdict.code,
            detail: verdict.detail)
    }
}

extension SyncSettled.Entry {
    /// V3.
    fileprivate init(conflict verdict: Verdict, _ item: ReplayItem) {
        self.init(
            position: item.position.rawValue, id: item.id, outcome: .conflict,
            retryCount: item.retryCount, code: verdict.code, detail: verdict.detail,
            current: verdict.currentID)
    }
}
