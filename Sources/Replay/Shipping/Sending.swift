// The machine that ships the outbox: it alone knows what is queued, under way and held. W2 to W7 of
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
/// | under way | waiting | V4; N3, N5 |
/// | under way | held | V2, V3, W2 and W3 of a lone event |
/// | waiting | ready | the time has come; a demand, for an exhausted event |
/// | held | ready | a decision; a suspect that is released |
///
/// Invariants: the events of a lane are in at most one request and are sent in order; no event is sent while an
/// earlier one of its lane is held; an event leaves the queue only by a record in the log.
struct Sending: Sendable {
    enum Input {
        /// The verdicts of a batch. `isServers`: the server has given them, and not the transport.
        case verdicts([Verdict], [ReplayItem], isServers: Bool, ReplayState.Moment)
        /// W2: the batch is too large. `isAlone`: no other request is under way.
        case tooLarge([ReplayItem], TransportReply, isAlone: Bool)
        /// W3: the batch is refused as malformed.
        case malformed([ReplayItem], TransportReply, isAlone: Bool)
        /// W1, W4 to W7: the events may be the reason, or the endpoint.
        case failed([ReplayItem], Refusal, ReplayState.Moment)
        /// A page was read, or a read failed.
        case read(isPage: Bool)
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
        /// W1, W4 to W7: wait as after a failure of the endpoint.
        case wait(Refusal)
        /// N2: the server asks to wait, and the events are the reason.
        case delay(seconds: Double)
        /// N2: a failed batch is searched; the pipeline goes on.
        case search
        /// REQ-2, N5: why an event waits.
        case report(String)
        /// The endpoint is wrong.
        case pause(status: Int)
    }

    /// What is queued, lane by lane.
    var queue: OutboxQueue
    var bisection = Bisection()
    var narrowing = Narrowing()
    /// The largest number of events that the transport takes.
    let eventsLimit: Int
    var eventsMax: Int
    /// How often each event's request could not be built yet, since the server's last answer that counts (REQ-2).
    var postponements: [UUID: Int] = [:]

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
    var isReady: Bool { queue.lanes.isReady || isBisecting }

    /// Whether parts of a refused or failed batch are left: one request at a time is under way then.
    var isBisecting: Bool { bisection.hasParts || narrowing.isSearching }

    /// Whether a failure of these events says more of them than of the endpoint, which has accepted others.
    func isTrial(_ items: [ReplayItem]) -> Bool {
        narrowing.isPartUnderWay || items.first?.isAlone == true
            || narrowing.failures > 1 && narrowing.isProven(items)
    }

    /// Whether a read, if one is due, goes before the next batch.
    var readsFirst: Bool { narrowing.readsFirst }

    /// Whether a read is due for its answer alone.
    var wantsProbe: Bool { narrowing.wantsProbe }

    /// Whether a lane is ready, apart from parts.
    var hasReadyLanes: Bool { queue.lanes.isReady }

    /// The time at which the next waiting lane is released.
    var nextDue: Int64? { queue.lanes.nextDue }

    /// REQ-9: whether events of other lanes are ready after one that was sent without others has failed.
    var hasOthers: Bool {
        eventsLimit == 1 && narrowing.failures > 0 && queue.lanes.readyCount > 1
    }

    /// Whether a lane waits after a retry and is not exhausted.
    var isBackingOff: Bool { queue.lanes.isBackingOff }

    /// Releases the lanes whose wait is over. A wait of more than the longest one was set before the clock
    /// stepped back.
    mutating func releaseDueLanes(now: Int64) {
        queue.lanes.releaseDueLanes(now: now, latest: now + Pipeline.retryAfterMax)
    }

    /// The next events to send: of a refused or failed batch those that are still next in their lanes, else of the
    /// ready lanes. Nil if there are none.
    mutating func dequeueBatch() -> [ReplayItem]? {
        if !narrowing.failed.contains(where: { queue.lanes.isQueued($0) }) {
            narrowing.forgetFailures()
        }
        while let part = bisection.popPart() {
            let items = queue.lanes.dequeueAgain(part)
            if !items.isEmpty { return items }
        }
        while let part = narrowing.nextPart() {
            let items = queue.lanes.dequeueAgain(part)
            if !items.isEmpty { return items }
            narrowing.partSkipped()
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
        narrowing.partEnded()
    }

    // MARK: Answers

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .verdicts(let verdicts, let items, let isServers, let moment):
            return apply(verdicts, items, isServers: isServers, moment)
        case .tooLarge(let items, let reply, let isAlone):
            _ = narrowing.handle(.aborted)
            guard items.count == 1 else {
                eventsMax = max(1, items.count / 2)
                return []
            }
            // A page in HTML is no answer of a sync server.
            return reply.isHTML ? narrow(items, reply, isAlone) : park(items[0], reply)
        case .malformed(let items, let reply, let isAlone):
            _ = narrowing.handle(.aborted)
            return narrow(items, reply, isAlone)
        case .failed(let items, let refusal, let moment):
            return perform(narrowing.handle(.failed(items, refusal)), moment)
        case .read(let isPage):
            let wasSearching = narrowing.isSearching
            _ = narrowing.handle(isPage ? .pageRead : .readFailed)
            return narrowing.isSearching && !wasSearching ? [.search] : []
        case .interrupted: return perform(bisection.handle(.interrupted))
        case .exhausted: return perform(bisection.handle(.exhausted))
        case .runEnded: return perform(bisection.handle(.runEnded))
        case .demand:
            queue.lanes.releaseParked(all: true)
            return []
        }
    }
}
