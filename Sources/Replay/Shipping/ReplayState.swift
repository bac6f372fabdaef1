// The machines of a run together: a value without clock, network or randomness of its own. Its inputs are the
// outbox, answers, tokens, conditions and the time; `next` returns the next action. Comments have the labels of
// the decision tables in Spec/protocol: V for verdicts, W for whole answers, G for reads and T for tokens
// (replay.md), C for conditions (triggers.md).

import EventSourcing
import Foundation
import LogFormat
import SyncWire

/// The state of one log's exchange with its server.
///
/// Each input goes to the machine that it concerns: `Sending`, `Reading`, `TokenUse` or `Pipeline`. This type knows
/// only the requests under way.
public struct ReplayState: Sendable {
    var pipeline = Pipeline()
    var token = TokenUse()
    var sending: Sending
    /// The reading of the account's events.
    var reading = Reading()
    var underWay: [Int: Request] = [:]
    private(set) var lastNumber = 0
    /// The largest number of requests under way at the same time.
    private let requestsMax: Int
    /// Whether no change is sent while a read is under way.
    var readsAlone = false
    /// Whether the read under way was not due.
    var isProbing = false
    /// Whether a read was sent because the run was about to end.
    private var hasProbed = false
    /// The number of the batch of the recovery that is under way.
    var recoveryNumber: Int?

    /// Creates an empty state.
    ///
    /// - Parameters:
    ///   - requestsMax: the largest number of requests under way at the same time; less than 1 counts as 1.
    ///     Two of them never have events of one lane.
    ///   - resolvesConflicts: whether events in conflict are sent again, so that the server sends its event
    ///     and a resolver can decide.
    ///   - eventsMax: the largest number of events in a batch.
    public init(requestsMax: Int = 1, resolvesConflicts: Bool = false, eventsMax: Int = 500) {
        self.requestsMax = max(1, requestsMax)
        sending = Sending(resolvesConflicts: resolvesConflicts, eventsLimit: eventsMax)
    }

    // MARK: The outbox

    /// Loads the whole outbox anew, after events of it were settled by a page. O(outbox).
    mutating func reload(_ outbox: Outbox) {
        sending.queue.reload(outbox, clockOffset: token.clockOffset)
    }

    /// Whether the caller must enqueue more of the outbox, if there is more, before `next`.
    package var wantsMore: Bool { sending.queue.wantsMore }

    /// Sets the newest position of the outbox, whose event need not be enqueued yet.
    package mutating func advanceNewestPosition(to position: Position) {
        sending.queue.lanes.advanceNewestPosition(to: position)
    }

    /// Appends an event of the outbox to its lane; positions must ascend.
    public mutating func enqueue(_ entry: OutboxEntry) {
        sending.queue.append(entry, clockOffset: token.clockOffset)
    }

    /// Replaces all events by those of the outbox after a decision was recorded. O(outbox).
    public mutating func decided(_ entries: some Sequence<OutboxEntry>) {
        sending.queue.replace(by: entries, clockOffset: token.clockOffset)
    }

    /// The number of enqueued events, held ones included. O(1).
    public var count: Int { sending.queue.lanes.count }

    /// The number of events in lanes that are held by a parked event or a conflict. O(lanes).
    public var heldCount: Int { sending.queue.lanes.heldCount }

    /// Whether parts of a refused or failed batch are left.
    var isSearching: Bool { sending.isBisecting }

    /// Whether a request is unanswered.
    public var isBusy: Bool { !underWay.isEmpty }

    /// Whether an unanswered request is a read.
    func isRead(_ number: Int) -> Bool {
        if case .read = underWay[number] { true } else { false }
    }

    /// The number of failures alone of the event of a request, if it is sent alone because it may be the reason: the
    /// answer says nothing of the endpoint. Nil for any other request.
    func failuresAlone(of number: Int) -> Int? {
        guard case .append(let items) = underWay[number], let item = items.first, item.isAlone
        else { return nil }
        return item.failuresAlone
    }

    /// The ids of the events in unanswered requests. O(events).
    var idsUnderWay: Set<UUID> {
        underWay.values.reduce(into: []) { ids, request in
            if case .append(let items) = request { ids.formUnion(items.lazy.map(\.id)) }
        }
    }

    /// Whether a lane's conflict may be resolved once more in this run.
    func mayResolve(_ item: ReplayItem) -> Bool { mayResolve(item.laneID) }

    /// Whether a lane's conflict may be resolved once more in this run.
    func mayResolve(_ lane: EntityID) -> Bool { sending.queue.resolutions.mayResolve(lane) }

    /// Counts a resolution of the conflict of an event's lane.
    mutating func conflictResolved(_ item: ReplayItem) { conflictResolved(item.laneID) }

    /// Counts a resolution of a lane's conflict.
    mutating func conflictResolved(_ lane: EntityID) {
        sending.queue.resolutions.resolved(lane)
    }

    /// Decides on the suspect when no other event is left to send (W3).
    public mutating func resolveSuspect() -> [Effect] { perform(sending.handle(.exhausted)) }

    /// Releases the lane of an unconfirmed suspect at the end of a run: the next run sends it again.
    public mutating func releaseSuspect() { _ = sending.handle(.runEnded) }

    // MARK: Reading

    /// Starts to read the events of the account's other logs from a cursor; nil is the beginning. Does
    /// nothing if they are being read already.
    public mutating func read(after cursor: String?) { reading.begin(after: cursor) }

    /// Continues reading after a page that was recorded, unless it was the last.
    ///
    /// - Parameters:
    ///   - page: the recorded page.
    ///   - isLast: whether it was empty, or has no next page.
    ///   - hasNew: whether it had an event that the log did not have.
    /// - Returns: the reason why reading ends by G6; nil if it does not.
    @discardableResult
    public mutating func pageRecorded(
        _ page: Page, isLast: Bool, hasNew: Bool = true
    ) -> String? {
        reading.pageRecorded(next: page.next, isLast: isLast, hasNew: hasNew)
    }

    /// G4: ends reading until the next read, because the answer is not a page. Nothing of it was recorded.
    public mutating func pageRefused() { reading.end() }

    /// G7: reads from the first page, because the server was restored.
    public mutating func readFromStart() { reading.readFromStart() }

    /// G7: registers a batch of the recovery as a request. It is under way alone, as a read is. The caller then
    /// calls `recoveryProcessed` or `recoveryRefused`, or passes the answer to `handleAnswer`, which handles it as
    /// that to a read.
    mutating func registerRecovery() -> Int {
        let number = register(.read(after: nil))
        recoveryNumber = number
        return number
    }

    /// G7: the events of a batch of the recovery have verdicts.
    mutating func recoveryProcessed() {
        recoveryRefused()
        succeeded()
    }

    /// G7: a batch of the recovery was refused because of its events.
    mutating func recoveryRefused() {
        if let recoveryNumber { underWay[recoveryNumber] = nil }
        recoveryNumber = nil
    }

    // MARK: The next action

    /// Returns the next action. After `send`, the caller must call `handleAnswer`; it may send other requests
    /// before.
    public mutating func next(now: Int64) -> Action {
        sending.releaseDueLanes(now: now)
        pipeline.limitWaits(now: now)
        if let action = readFirst(now: now) { return action }
        guard sending.isReady || (reading.isReading && mayRead) else {
            if isBusy { return busy(now) }
            // An exhausted event may wait for ever, so the demand does not wait for it.
            if pipeline.isFulfillingDemand, !sending.isBackingOff { pipeline.handle(.done) }
            return sending.nextDue.map { .wait(until: max($0, pipeline.notBefore)) } ?? .idle
        }
        if let obstacle = pipeline.obstacle { return isBusy ? busy(now) : .paused(obstacle) }
        guard pipeline.notBefore <= now else {
            return isBusy ? busy(now) : .wait(until: pipeline.notBefore)
        }
        if let action = token.actionNeeded(now: now) { return action }
        guard underWay.count < requestsMax, recoveryNumber == nil, !isReadingFirst else {
            return busy(now)
        }
        guard !sending.isBisecting || !isBusy else { return busy(now) }
        if let items = sending.dequeueBatch() { return send(.append(items)) }
        // A page may have events that are being sent, so a read is under way alone.
        guard reading.isReading, mayRead, !isBusy else {
            return isBusy ? busy(now) : next(now: now)
        }
        return send(.read(after: reading.cursor))
    }

    /// N1: after a failed batch, a read that is due goes first, whatever failed. If none is, and events can be searched,
    /// a read shows whether the endpoint is well.
    private mutating func readFirst(now: Int64) -> Action? {
        guard sending.readsFirst, !isBusy, pipeline.mayReadFirst(now: now) else { return nil }
        if !reading.isReading {
            guard sending.wantsProbe, !sending.isBisecting else { return nil }
            reading.begin(after: sending.queue.cursor)
            isProbing = true
        }
        return token.actionNeeded(now: now) ?? send(.read(after: reading.cursor))
    }

    /// N1: whether a read is under way whose answer decides how the failed batch is sent again.
    ///
    /// READ-7: a change that is sent beside a read of an app's own API would be undone by the older page.
    private var isReadingFirst: Bool {
        (sending.readsFirst || readsAlone) && underWay.keys.contains(where: isRead)
    }

    /// N1: whether a read, or the next event if each is sent without others, is sent before a run ends that waits or
    /// pauses after a failed batch. Once in a run.
    mutating func probeBeforeEnd(now: Int64) -> Bool {
        guard !hasProbed, !isBusy else { return false }
        let hasOthers = sending.hasOthers
        guard
            hasOthers
                || pipeline.mayProbe(now: now)
                    && sending.narrowing.probeNow(isReadDue: reading.isReading)
        else { return false }
        hasProbed = true
        resume()
        pipeline.handle(hasOthers ? .othersTried : .probe)
        return true
    }

    /// The action while requests are unanswered. It has a time if another request may be sent then.
    private func busy(_ now: Int64) -> Action {
        guard underWay.count < requestsMax, !sending.isBisecting, recoveryNumber == nil,
            !isReadingFirst
        else { return .busy(until: nil) }
        let due = sending.hasReadyLanes ? .min : sending.nextDue ?? .min
        let time = max(pipeline.notBefore, due)
        return .busy(until: time > now ? time : nil)
    }

    private mutating func send(_ request: Request) -> Action {
        .send(request, number: register(request))
    }

    private mutating func register(_ request: Request) -> Int {
        lastNumber += 1
        underWay[lastNumber] = request
        return lastNumber
    }
}
