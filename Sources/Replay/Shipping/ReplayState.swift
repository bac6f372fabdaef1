// What the replayer knows and decides: a value without clock, network or randomness of its own.
// Inputs go in through `add`, `next` and `take`; what has to be done comes out. The rows of the
// decision table in Spec/replay.md bear the same labels (V… for verdicts, W… for whole answers).

import DequeModule
import EventSourcing
import Foundation
import HeapModule
import LogFormat

/// The state of shipping one log's outbox.
///
/// Invariants: at most one batch is under way; events of a lane are sent in order and none while an
/// earlier one of the lane is held; nothing leaves the state but by a record that the log keeps.
public struct ReplayState: Sendable {
    /// What to do next.
    public enum Action: Hashable, Sendable {
        /// Send these events in this order, and hand the answer to `take`.
        case send([Item])
        /// Nothing can be sent before this time, in milliseconds since 1970.
        case wait(until: Int64)
        /// Get a new token, then call `tokenChanged` or `tokenRefused`.
        case refreshToken
        /// Nothing can be sent until somebody changes something.
        case paused(Pause)
        /// There is nothing to send.
        case idle
    }

    /// One event to send.
    public struct Item: Hashable, Sendable {
        /// The event.
        public let id: UUID
        /// Its place, by which its line is found.
        public let position: Position
        let lane: EntityID
        let lineBytes: Int
        var retryCount: Int
    }

    /// Why nothing is sent although there is something to send.
    public enum Pause: Hashable, Sendable {
        /// The server refuses the token, and no new one is to be had.
        case unauthorized
        /// The server's answers say that the endpoint is wrong.
        case endpoint(status: Int)
    }

    /// The answer to a batch.
    public enum Answer: Sendable {
        /// A complete answer.
        case reply(TransportReply)
        /// No complete answer came; the reason in words.
        case failure(String)
    }

    /// What an answer did.
    public struct Outcome: Sendable {
        /// What the log must remember; ranges are not filled in.
        public var settled: [Position: Verdict.Status] = [:]
        /// What the log must remember of events that were not settled.
        public var entries: [SyncSettled.Entry] = []
        /// Whether another log writes under this one's name.
        public var isForked = false
        /// Something to tell the person in charge.
        public var message: String?
    }

    private struct Lane {
        var queue: Deque<Item> = []
        var hold = Hold.none
        /// The position under which the lane stands in `ready`, if it does.
        var readyAt: Position?
    }

    private enum Hold: Hashable {
        case none
        case until(Int64)
        case forever
    }

    private struct Ready: Comparable {
        var position: Position
        var lane: EntityID
        static func < (lhs: Ready, rhs: Ready) -> Bool { lhs.position < rhs.position }
    }

    private struct Waiting: Comparable {
        var time: Int64
        var lane: EntityID
        static func < (lhs: Waiting, rhs: Waiting) -> Bool { lhs.time < rhs.time }
    }

    private var lanes: [EntityID: Lane] = [:]
    private var ready = Heap<Ready>()
    private var waiting = Heap<Waiting>()
    private var underWay: [Item] = []
    /// Parts of a refused batch that are still to be tried, in order.
    private var parts: Deque<[Item]> = []
    /// A lone event that was refused as malformed; parked once something else gets through.
    private var suspect: (item: Item, status: Int)?
    private var batchEventsMax = Self.batchEvents
    private var failures = 0
    private var notBefore: Int64 = 0
    private var pause: Pause?
    private var tokenState = TokenState.usable

    private enum TokenState {
        case usable
        case refused
        case refreshed
    }

    /// Events in a batch at most.
    static let batchEvents = 500
    /// Bytes of lines in a batch at most.
    static let batchBytes = 1024 * 1024
    /// `retry` verdicts that an event survives; with the last it is parked.
    static let retriesMax = 5
    /// Full-jitter backoff: a random time up to this, doubled with every failure …
    static let backoffFirst: Int64 = 500
    /// … and never more than this.
    static let backoffMax: Int64 = 60_000
    /// The longest time a server may make the pipeline wait.
    static let retryAfterMax: Int64 = 3_600_000

    /// An empty state.
    public init() {}

    // MARK: The outbox changed

    /// Takes in an event of the outbox; positions must rise.
    public mutating func add(_ entry: OutboxEntry) {
        let item = Item(
            id: entry.id, position: entry.position, lane: EntityID(entry.lane),
            lineBytes: entry.lineBytes, retryCount: entry.retryCount)
        var lane = lanes.removeValue(forKey: item.lane) ?? Lane()
        lane.queue.append(item)
        if entry.status != .pending { lane.hold = .forever }
        offer(&lane, item.lane)
        lanes[item.lane] = lane
    }

    /// Puts a lane among those that can send, if it can.
    private mutating func offer(_ lane: inout Lane, _ name: EntityID) {
        guard lane.hold == .none, lane.readyAt == nil, let first = lane.queue.first else { return }
        lane.readyAt = first.position
        ready.insert(Ready(position: first.position, lane: name))
    }

    // MARK: What to do

    /// Decides what to do at a time. After `send`, `take` must follow.
    public mutating func next(now: Int64) -> Action {
        precondition(underWay.isEmpty, "a batch is under way")
        if let pause { return .paused(pause) }
        if tokenState == .refused { return .refreshToken }
        while let first = waiting.min, first.time <= now {
            let due = waiting.removeMin()
            guard var lane = lanes.removeValue(forKey: due.lane) else { continue }
            if lane.hold == .until(due.time) {
                lane.hold = .none
                offer(&lane, due.lane)
            }
            lanes[due.lane] = lane
        }
        guard !ready.isEmpty || !parts.isEmpty else {
            return waiting.min.map { .wait(until: max($0.time, notBefore)) } ?? .idle
        }
        guard notBefore <= now else { return .wait(until: notBefore) }
        let items = nextPart() ?? nextBatch()
        guard !items.isEmpty else { return next(now: now) }
        underWay = items
        return .send(items)
    }

    /// What is left to try of a refused batch: only events that are next in their lane by now.
    private mutating func nextPart() -> [Item]? {
        while let part = parts.popFirst() {
            var taken: [EntityID: Int] = [:]
            let items = part.filter { item in
                let index = taken[item.lane, default: 0]
                guard let lane = lanes[item.lane], lane.hold == .none,
                    index < lane.queue.count, lane.queue[index].position == item.position
                else { return false }
                taken[item.lane] = index + 1
                return true
            }
            if !items.isEmpty { return items }
        }
        return nil
    }

    /// The oldest events of all lanes that can send, as many as a batch takes.
    private mutating func nextBatch() -> [Item] {
        var items: [Item] = []
        var bytes = 0
        var taken: [EntityID: Int] = [:]
        while items.count < batchEventsMax, let next = ready.min {
            guard var lane = lanes[next.lane], lane.hold == .none,
                lane.readyAt == next.position
            else {
                ready.removeMin()
                continue
            }
            let index = taken[next.lane, default: 0]
            let item = lane.queue[index]
            guard items.isEmpty || bytes + item.lineBytes + 1 <= Self.batchBytes else { break }
            ready.removeMin()
            items.append(item)
            bytes += item.lineBytes + 1
            taken[next.lane] = index + 1
            if index + 1 < lane.queue.count {
                lane.readyAt = lane.queue[index + 1].position
                ready.insert(Ready(position: lane.queue[index + 1].position, lane: next.lane))
            } else {
                lane.readyAt = nil
            }
            lanes[next.lane] = lane
        }
        return items
    }

    /// How many events wait, held ones included.
    public var count: Int { lanes.values.reduce(0) { $0 + $1.queue.count } }

    /// How many events wait in lanes that only a person's decision sets free.
    public var heldCount: Int {
        lanes.values.reduce(0) { $0 + ($1.hold == .forever ? $1.queue.count : 0) }
    }

    // MARK: The token

    /// A new token is there.
    public mutating func tokenChanged() {
        tokenState = .refreshed
        if pause == .unauthorized { pause = nil }
    }

    /// No new token is to be had.
    public mutating func tokenRefused() {
        tokenState = .usable
        pause = .unauthorized
    }

    /// Somebody has looked into the reason of a pause.
    public mutating func resume() {
        pause = nil
        tokenState = .usable
    }

    // MARK: The answer

    /// Takes in the answer to the batch under way.
    ///
    /// - Parameters:
    ///   - answer: what came back, or why nothing did.
    ///   - now: the time, in milliseconds since 1970.
    ///   - random: a random number between 0 and 1, for the backoff.
    /// - Returns: what is to be recorded, and words for whoever looks on.
    public mutating func take(_ answer: Answer, now: Int64, random: Double) -> Outcome {
        let items = underWay
        underWay = []
        switch answer {
        case .failure(let reason):  // W7
            return backOff(items, now, random, reason)
        case .reply(let reply):
            return take(reply, items, now, random)
        }
    }

    private mutating func take(
        _ reply: TransportReply, _ items: [Item], _ now: Int64, _ random: Double
    ) -> Outcome {
        switch reply.status {
        case 200:
            guard let verdicts = Verdict.parse(reply.body) else {  // W7
                return backOff(items, now, random, "the answer is not a verdict reply")
            }
            return take(verdicts, items, now, random)
        case 401:  // W1
            giveBack(items)
            if tokenState == .refreshed {
                tokenState = .usable
                pause = .unauthorized
                return Outcome(message: "the server refuses the token (401)")
            }
            tokenState = .refused
            return Outcome()
        case 413:  // W2
            tokenState = .usable
            guard items.count > 1 else { return park(items[0], "http_413", "too large") }
            batchEventsMax = max(1, items.count / 2)
            giveBack(items)
            return Outcome()
        case 400, 422:  // W3
            tokenState = .usable
            return bisect(items, reply.status)
        case 429, 503:  // W5
            guard let seconds = reply.retryAfterSeconds else {
                return backOff(items, now, random, "the server answers \(reply.status)")
            }
            giveBack(items)
            let delay = Self.delay(seconds)
            notBefore = now + delay
            return Outcome(message: "the server asks to wait \(delay / 1_000) s")
        case 300..<500:  // W4
            giveBack(items)
            pause = .endpoint(status: reply.status)
            return Outcome(message: "the server answers \(reply.status): is the endpoint right?")
        default:  // W6
            return backOff(items, now, random, "the server answers \(reply.status)")
        }
    }

    /// Puts events back to where they were.
    private mutating func giveBack(_ items: [Item]) {
        offerLanes(of: items)
        // What was still to be tried of a refused batch is found again through its lanes.
        parts = []
    }

    /// Lets the lanes of a batch that has come back send again, and forgets those that are empty.
    private mutating func offerLanes(of items: [Item]) {
        for name in Set(items.map(\.lane)) {
            guard var lane = lanes.removeValue(forKey: name), !lane.queue.isEmpty else { continue }
            lane.readyAt = nil
            offer(&lane, name)
            lanes[name] = lane
        }
    }

    /// W6, W7: nothing is charged; the whole pipeline waits.
    private mutating func backOff(
        _ items: [Item], _ now: Int64, _ random: Double, _ reason: String
    ) -> Outcome {
        giveBack(items)
        notBefore = now + Self.backoff(failures, random)
        failures += 1
        return Outcome(message: reason)
    }

    /// A server's wish, whatever number it sent, in milliseconds from 0 to the longest time.
    private static func delay(_ seconds: Double) -> Int64 {
        guard seconds > 0 else { return 0 }
        return Int64(min(seconds * 1_000, Double(retryAfterMax)))
    }

    private static func backoff(_ failures: Int, _ random: Double) -> Int64 {
        let ceiling = min(backoffFirst << Int64(min(failures, 20)), backoffMax)
        return Int64(Double(ceiling) * random)
    }

    /// W3: halves a refused batch until the refused event is alone.
    private mutating func bisect(_ items: [Item], _ status: Int) -> Outcome {
        if items.count > 1 {
            offerLanes(of: items)
            let middle = items.count / 2
            parts.prepend(Array(items[middle...]))
            parts.prepend(Array(items[..<middle]))
            return Outcome()
        }
        let item = items[0]
        if let suspect, suspect.item.lane != item.lane {
            // Two different lanes refused in a row: it is not the events.
            self.suspect = nil
            release(suspect.item.lane)
            giveBack([item])
            pause = .endpoint(status: status)
            return Outcome(
                message: "the server refuses every event (\(status)): is the endpoint right?")
        }
        hold(item.lane)
        suspect = (item, status)
        guard ready.isEmpty, parts.isEmpty else { return Outcome() }
        return confirmSuspect()
    }

    /// Parks the lone refused event: something else got through, or nothing else is there.
    public mutating func confirmSuspect() -> Outcome {
        guard let suspect else { return Outcome() }
        self.suspect = nil
        return park(suspect.item, "http_\(suspect.status)", "the server calls it malformed")
    }

    /// Lets go of a lone refused event that nothing has confirmed: a run ends, and the next one will
    /// find out.
    mutating func releaseSuspect() {
        guard let suspect else { return }
        self.suspect = nil
        release(suspect.item.lane)
    }

    private mutating func park(_ item: Item, _ code: String, _ detail: String) -> Outcome {
        hold(item.lane)
        return Outcome(
            entries: [
                SyncSettled.Entry(
                    position: item.position.rawValue, id: item.id, outcome: .parked,
                    retryCount: item.retryCount, code: code, detail: detail)
            ])
    }

    private mutating func hold(_ lane: EntityID) {
        lanes[lane]?.hold = .forever
        lanes[lane]?.readyAt = nil
    }

    private mutating func release(_ name: EntityID) {
        guard var lane = lanes.removeValue(forKey: name) else { return }
        lane.hold = .none
        offer(&lane, name)
        lanes[name] = lane
    }

    private mutating func take(
        _ verdicts: [Verdict], _ items: [Item], _ now: Int64, _ random: Double
    ) -> Outcome {
        var byID: [UUID: Verdict] = [:]
        for verdict in verdicts { byID[verdict.id] = verdict }
        var outcome = Outcome()
        var stopped: Set<EntityID> = []
        for item in items {
            guard !stopped.contains(item.lane), let verdict = byID[item.id] else {
                // V5, and whatever a server answers behind a lane's stop.
                stopped.insert(item.lane)
                continue
            }
            switch verdict.status {
            case .applied, .duplicate:  // V1
                outcome.settled[item.position] = verdict.status
                lanes[item.lane]?.queue.removeFirst()
                if verdict.code == "source_fork" {
                    outcome.isForked = true
                    outcome.message =
                        "another log writes under this one's name; this one takes a new name"
                }
            case .rejected:  // V2
                stopped.insert(item.lane)
                outcome.entries +=
                    park(
                        item, verdict.code ?? "rejected", verdict.detail ?? "rejected"
                    ).entries
            case .conflict:  // V3
                stopped.insert(item.lane)
                hold(item.lane)
                outcome.entries.append(
                    SyncSettled.Entry(
                        position: item.position.rawValue, id: item.id, outcome: .conflict,
                        retryCount: item.retryCount, code: verdict.code, detail: verdict.detail))
            case .retry:  // V4
                stopped.insert(item.lane)
                outcome.entries.append(charge(item, verdict, now, random))
            case .unprocessed:  // V5
                stopped.insert(item.lane)
            }
        }
        guard !outcome.settled.isEmpty || !outcome.entries.isEmpty else {
            return backOff(items, now, random, "the server looked at no event")
        }
        failures = 0
        tokenState = .usable
        batchEventsMax = min(Self.batchEvents, batchEventsMax * 2)
        outcome.entries += confirmSuspect().entries
        offerLanes(of: items)
        return outcome
    }

    /// V4: backs the lane off and charges it; the fifth time parks.
    private mutating func charge(
        _ item: Item, _ verdict: Verdict, _ now: Int64, _ random: Double
    ) -> SyncSettled.Entry {
        let count = item.retryCount + 1
        let isLast = count >= Self.retriesMax
        if isLast {
            hold(item.lane)
        } else {
            let wish = verdict.retryAfterSeconds.map(Self.delay) ?? 0
            let delay = wish > 0 ? wish : Self.backoff(item.retryCount, random)
            lanes[item.lane]?.queue[0].retryCount = count
            lanes[item.lane]?.hold = .until(now + delay)
            waiting.insert(Waiting(time: now + delay, lane: item.lane))
        }
        return SyncSettled.Entry(
            position: item.position.rawValue, id: item.id, outcome: isLast ? .parked : .retry,
            retryCount: count, code: verdict.code, detail: verdict.detail)
    }
}
