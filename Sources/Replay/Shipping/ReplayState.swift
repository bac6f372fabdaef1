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
    private var pipeline = Pipeline()
    private var token = TokenUse()
    private var sending: Sending
    /// The reading of the account's events.
    var reading = Reading()
    private var underWay: [Int: Request] = [:]
    private var lastNumber = 0
    /// The largest number of requests under way at the same time.
    private let requestsMax: Int
    /// The number of the batch of the recovery that is under way.
    private(set) var recoveryNumber: Int?

    /// Creates an empty state.
    ///
    /// - Parameters:
    ///   - requestsMax: the largest number of requests under way at the same time; less than 1 counts as 1.
    ///     Two of them never have events of one lane.
    ///   - resolvesConflicts: whether events in conflict are sent again, so that the server sends its event
    ///     and a resolver can decide.
    public init(requestsMax: Int = 1, resolvesConflicts: Bool = false, eventsMax: Int = 500) {
        self.requestsMax = max(1, requestsMax)
        sending = Sending(resolvesConflicts: resolvesConflicts, eventsLimit: eventsMax)
    }

    // MARK: The outbox

    /// Loads new events and decisions of the outbox.
    ///
    /// - Parameter all: false to load only as many events as can change the next batch.
    mutating func load(_ outbox: Outbox, all: Bool = false) {
        sending.queue.load(outbox, clockOffset: token.clockOffset, all: all)
    }

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

    /// Whether a request is unanswered.
    public var isBusy: Bool { !underWay.isEmpty }

    /// Whether an unanswered request is a read.
    func isRead(_ number: Int) -> Bool {
        if case .read = underWay[number] { true } else { false }
    }

    /// The ids of the events in unanswered requests. O(events).
    var idsUnderWay: Set<UUID> {
        underWay.values.reduce(into: []) { ids, request in
            if case .append(let items) = request { ids.formUnion(items.lazy.map(\.id)) }
        }
    }

    /// Whether a lane's conflict may be resolved once more in this run.
    func mayResolve(_ item: ReplayItem) -> Bool {
        sending.queue.resolutions.mayResolve(item.laneID)
    }

    /// Counts a resolution of the conflict of an event's lane.
    mutating func conflictResolved(_ item: ReplayItem) {
        sending.queue.resolutions.resolved(item.laneID)
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

    // MARK: Conditions and tokens

    /// C1, C2: sets the conditions. If the network comes back, the backoff ends.
    public mutating func set(_ conditions: Conditions) { pipeline.handle(.conditions(conditions)) }

    /// Whether pages may be read (C3, C4).
    package var mayRead: Bool { pipeline.mayRead }

    /// Whether a stream of the account's events may be open.
    package var mayFollow: Bool { pipeline.mayFollow && token.isUsable }

    /// C4: ends all waits and allows requests, whatever `isAllowed` and `mayRead` say, until nothing is left
    /// to do. Without a network no request is sent.
    public mutating func demand() {
        resume()
        pipeline.handle(.demand)
        _ = sending.handle(.demand)
    }

    /// Ends a pause and the backoff.
    public mutating func resume() {
        pipeline.handle(.resume)
        _ = token.handle(.resumed)
    }

    /// T1: handles a new token, or that none is needed.
    ///
    /// - Parameters:
    ///   - expiresAt: the token's end by the server's clock, in milliseconds since 1970.
    ///   - now: the device's time.
    ///   - isRenewed: true if an earlier renewal has returned the token.
    public mutating func tokenChanged(
        expiresAt: Int64? = nil, now: Int64 = 0, isRenewed: Bool = false
    ) {
        _ = token.handle(
            .received(
                expiresAt: expiresAt, now: now, lastRequest: lastNumber, isRenewed: isRenewed))
        pipeline.handle(.tokenChanged)
    }

    /// Whether a token is being renewed because it has ended by the clock, which may be wrong.
    func isRenewingEndedToken(now: Int64) -> Bool { token.isRenewingEndedToken(now: now) }

    /// T3: pauses, because the issuer refuses a new token.
    public mutating func tokenRefused() {
        _ = token.handle(.refusedByIssuer)
        pipeline.handle(.pause(.unauthorized))
    }

    /// T4: handles a token request that failed. No retry is counted; the pipeline backs off.
    public mutating func tokenFailed(_ reason: String, now: Int64, random: Double) -> [Effect] {
        guard token.handle(.failed(now: now)).isEmpty else {
            return backOff(Moment(now: now, random: random), reason)
        }
        return [.report(reason)]
    }

    /// Sets the offset of the server's clock, server time − device time, in milliseconds.
    public mutating func setClock(offset: Int64) { _ = token.handle(.clock(offset: offset)) }

    // MARK: The next action

    /// Returns the next action. After `send`, the caller must call `handleAnswer`; it may send other requests
    /// before.
    public mutating func next(now: Int64) -> Action {
        sending.releaseDueLanes(now: now)
        pipeline.limitWaits(now: now)
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
        guard underWay.count < requestsMax, recoveryNumber == nil else { return busy(now) }
        guard !sending.isBisecting || !isBusy else { return busy(now) }
        if let items = sending.dequeueBatch() { return send(.append(items)) }
        // A page may have events that are being sent, so a read is under way alone.
        guard reading.isReading, mayRead, !isBusy else {
            return isBusy ? busy(now) : next(now: now)
        }
        return send(.read(after: reading.cursor))
    }

    /// The action while requests are unanswered. It has a time if another request may be sent then.
    private func busy(_ now: Int64) -> Action {
        guard underWay.count < requestsMax, !sending.isBisecting, recoveryNumber == nil else {
            return .busy(until: nil)
        }
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

    // MARK: The answer

    /// Handles the answer to a request.
    ///
    /// - Parameters:
    ///   - answer: the answer, or the reason why there is none.
    ///   - verdicts: the verdicts of the answer, if the caller has parsed them already.
    ///   - number: the number of the request.
    ///   - now: the time, in milliseconds since 1970.
    ///   - random: a random number between 0 and 1, for the backoff.
    /// - Returns: the effects, to be performed in this order.
    public mutating func handleAnswer(
        _ answer: Answer, with verdicts: [Verdict]? = nil, to number: Int, now: Int64,
        random: Double
    ) -> [Effect] {
        guard let request = underWay.removeValue(forKey: number) else {
            preconditionFailure("there is no request \(number) under way")
        }
        if number == recoveryNumber { recoveryNumber = nil }
        let (row, moment) = (AnswerRow(answer), Moment(now: now, random: random))
        switch request {
        case .append(let items):
            let effects = handle(row, verdicts, to: items, number, moment)
            let hasVerdicts = effects.settlement.isServers
            sending.release(items, hasVerdicts: hasVerdicts)
            guard !hasVerdicts else { return effects }
            return effects + [.noteAttempt(items)]
        case .read(let cursor):
            return handle(row, toReadAfter: cursor, number, moment)
        }
    }

    private mutating func handle(
        _ row: AnswerRow, _ verdicts: [Verdict]?, to items: [ReplayItem], _ number: Int,
        _ moment: Moment
    ) -> [Effect] {
        switch row {
        case .complete(let reply):
            guard let verdicts = verdicts ?? Verdict.parse(reply.body) else {  // W7
                return backOff(
                    moment,
                    "the answer does not come from a sync server: this network may require a login, "
                        + "or the endpoint may be wrong")
            }
            return perform(sending.handle(.verdicts(verdicts, items, moment)), moment)
        case .tooLarge(let reply):
            return perform(sending.handle(.tooLarge(items, reply, isAlone: !isBusy)))
        case .malformed(let reply):
            return perform(sending.handle(.malformed(items, reply, isAlone: !isBusy)))
        case .wrongEndpoint(let reply): return pause(.endpoint(status: reply.status))
        case .failed(let reply):
            return backOff(
                moment,
                "the server answers \(reply.status); events that it did not accept are sent again later"
            )
        case .unauthorized, .wait, .unanswered, .refused: return handle(row, number, moment)
        }
    }

    private mutating func handle(
        _ row: AnswerRow, toReadAfter cursor: String?, _ number: Int, _ moment: Moment
    ) -> [Effect] {
        switch row {
        case .complete(let reply):  // G1
            succeeded()
            return [.recordPage(Page(body: reply.body, after: cursor, next: reply.next))]
        case .tooLarge(let reply), .malformed(let reply), .wrongEndpoint(let reply):
            return reading.handleRefusal(reply, to: cursor).map {
                switch $0 {
                case .report(let message): .report(message)
                case .recover(let restore): .recover(restore)
                }
            }
        case .failed(let reply):
            return backOff(
                moment, "the server answers \(reply.status); its events are read later")
        case .unauthorized, .wait, .unanswered, .refused: return handle(row, number, moment)
        }
    }

    /// The rows that hold for batches and for reads.
    private mutating func handle(_ row: AnswerRow, _ number: Int, _ moment: Moment) -> [Effect] {
        switch row {
        case .unauthorized:  // W1
            guard !token.handle(.unauthorized(request: number)).isEmpty else { return [] }
            return pause(.unauthorized)
        case .wait(let seconds):  // W5
            pipeline.handle(.asked(seconds: seconds, moment))
            _ = sending.handle(.interrupted)
            return [
                .report("the server asks to wait \(Pipeline.wait(asked: seconds) / 1_000) s")
            ]
        case .unanswered(let reason): return backOff(moment, reason)  // W7
        case .refused(let error):  // W8
            _ = sending.handle(.interrupted)
            // The next attempt asks for the token again: it may be another one by then.
            _ = token.handle(.forgotten)
            return pause(.refused(error))
        case .complete, .tooLarge, .malformed, .wrongEndpoint, .failed: return []
        }
    }

    private mutating func perform(
        _ effects: [Sending.Effect], _ moment: Moment = Moment(now: 0, random: 0)
    ) -> [Effect] {
        effects.flatMap { effect -> [Effect] in
            switch effect {
            case .record(let settlement): return [.record(settlement)]
            case .resolve(let item, let current): return [.resolve(item, current: current)]
            case .succeeded:
                succeeded()
                return []
            case .failed(let reason): return backOff(moment, reason)
            case .pause(let status): return pause(.endpoint(status: status))
            }
        }
    }

    /// An answer counts, or a page was read.
    private mutating func succeeded() {
        pipeline.handle(.succeeded)
        _ = token.handle(.accepted)
    }

    private mutating func pause(_ pause: Pause) -> [Effect] {
        pipeline.handle(.pause(pause))
        return [.report(pause.message)]
    }

    /// W6, W7, T4: makes the whole pipeline wait. No retry is counted.
    private mutating func backOff(_ moment: Moment, _ reason: String) -> [Effect] {
        // The events of the parts are still in their lanes.
        _ = sending.handle(.interrupted)
        pipeline.handle(.failed(moment))
        return [.report(reason)]
    }
}
