// The state machine of the replayer: a value without clock, network or randomness of its own. Its inputs are
// the outbox, answers, tokens, conditions and the time; `next` returns the next action. Comments have the
// labels of the decision tables in Spec/protocol: V for verdicts, W for whole answers, G for reads and T for
// tokens (replay.md), C for conditions (triggers.md).

import DequeModule
import EventSourcing
import Foundation
import LogFormat

/// The state of one log's exchange with its server.
///
/// Invariants: the events of a lane are in at most one request and are sent in order; no event is sent while
/// an earlier one of its lane is held; an event leaves the state only by a record in the log.
public struct ReplayState: Sendable {
    /// The next action of the replayer.
    public enum Action: Hashable, Sendable {
        /// Send this request, and pass its answer to `handleAnswer` with the same number.
        case send(Request, number: Int)
        /// Wait until this time, in milliseconds since 1970, or for an input.
        case wait(until: Int64)
        /// Get a token (`Credentials.token`), then call one of the token inputs.
        case getToken
        /// Get a new token (`Credentials.refresh`), then call one of the token inputs.
        case refreshToken
        /// Wait for the answer to a request, or until this time, if there is one.
        case busy(until: Int64?)
        /// Wait until the reason of the pause has been removed.
        case paused(Pause)
        /// Nothing is left to do.
        case idle
    }

    /// A request to the server.
    public enum Request: Hashable, Sendable {
        /// Ship these events in this order.
        case append([ReplayItem])
        /// Read the account's events after a cursor; nil is the beginning.
        case read(after: String?)
    }

    /// The reason why the pipeline is paused although there is something to do.
    public enum Pause: Hashable, Sendable {
        /// The server refuses the token, and there is no new one.
        case unauthorized
        /// The status of the server's answers shows that the endpoint is wrong.
        case endpoint(status: Int)
        /// The transport refuses to send, so no answer of the server can end the pause.
        case refused(TransportError)
        /// There is no network.
        case offline
        /// The conditions do not allow it: syncing is off, or not allowed over this network.
        case notAllowed

        /// The reason, as a message.
        var message: String {
            switch self {
            case .unauthorized:
                "the server does not accept the token: log in again, or check the credentials"
            case .endpoint(413):
                "the server answers 413: check the endpoint, and the limit of a proxy for the size of a request"
            case .endpoint(403):
                "the server answers 403: check that the token's account may use this endpoint"
            case .endpoint(let status): "the server answers \(status): check the endpoint"
            case .refused(let error): error.description
            case .offline: "no network connection is reported"
            case .notAllowed: "syncing is not allowed now"
            }
        }
    }

    /// The network state and the rules under which a run works.
    public struct Conditions: Hashable, Sendable {
        /// Whether a network connection is reported.
        public var isReachable = true
        /// Whether the run may send requests without a demand of the app.
        public var isAllowed = true
        /// Whether the run may read other logs' events without a demand of the app. False on a metered
        /// network if the rules say so.
        public var mayRead = true

        /// Creates conditions; the defaults allow everything.
        public init(isReachable: Bool = true, isAllowed: Bool = true, mayRead: Bool = true) {
            self.isReachable = isReachable
            self.isAllowed = isAllowed
            self.mayRead = mayRead
        }
    }

    /// The answer to a request.
    public enum Answer: Sendable {
        /// A complete answer.
        case reply(TransportReply)
        /// No complete answer, with the reason.
        case failure(String)
        /// The transport refuses to send, or refuses the answer.
        case refused(TransportError)
    }

    /// The effect of an answer.
    public struct Outcome: Sendable {
        /// The events that the server has applied, to be recorded.
        public var applied: [Position] = []
        /// The events that the server already had, to be recorded.
        public var duplicate: [Position] = []
        /// The entries of the record for events that were not settled.
        public var entries: [SyncSettled.Entry] = []
        /// The events in conflict, each with the server's event.
        public var conflicts: [(item: ReplayItem, current: JSONValue?)] = []
        /// The incarnations with which another log writes, too.
        public var forked: Set<UUID> = []
        /// A page that was read, to be recorded. The caller then calls `pageRecorded` or `pageRefused`.
        public var page: Page?
        /// A message for the report.
        public var message: String?
        /// True if the answer is known to come from the sync server, so that its clock may be used.
        public var isServers = false
        /// The restore of the server. The caller ships a batch of the events that the server may lack. After the
        /// last one it calls `readFromStart`.
        public var restore: ServerRestore?

        /// The settled positions, each with its status.
        package var settled: [Position: Verdict.Status] {
            var settled: [Position: Verdict.Status] = [:]
            for position in applied { settled[position] = .applied }
            for position in duplicate { settled[position] = .duplicate }
            return settled
        }
    }

    /// A page of the account's events.
    public struct Page: Hashable, Sendable {
        /// A JSON array.
        public var body: [UInt8]
        /// The cursor with which the page was read.
        public var after: String?
        /// The cursor of the next page.
        public var next: String?
    }

    private enum TokenState {
        case unknown
        case usable
        case refused
    }

    var lanes = LaneSet()
    private var underWay: [Int: Request] = [:]
    private var lastNumber = 0
    /// The largest number of requests under way at the same time.
    private let requestsMax: Int
    private let resolvesConflicts: Bool
    /// The next batch, dequeued while other requests are under way.
    private var prefetched: [ReplayItem] = []
    /// The parts of a refused batch that are still to be sent, in order.
    private var parts: Deque<[ReplayItem]> = []
    /// A single event that was refused as malformed. It is parked once another event is accepted.
    private var suspect: (item: ReplayItem, reply: TransportReply)?
    private var batchEventsMax = Self.batchEvents
    private var failures = 0
    /// The end of the pipeline's own backoff.
    private var backoffEnd = Int64.min
    /// The end of the wait that the server has asked for.
    private var askedToWaitUntil = Int64.min
    private var pause: Pause?
    private var conditions = Conditions()
    /// True after `demand()` until nothing is left to do: requests are sent although the conditions do not
    /// allow them.
    private var isDemanded = false
    private var reading: Reading?
    /// The number of the batch of the recovery that is under way.
    private(set) var recoveryNumber: Int?

    private struct Reading {
        var cursor: String?
        /// True if the server refused the cursor and reading began again at the beginning.
        var isRestarted = false
        /// XXH64 hashes of the `next` cursors since the last page with a new event. A collision only ends
        /// reading early.
        var staleCursors: Set<UInt64> = []
    }

    /// The number of resolutions of each lane's conflict since an event of the lane was settled.
    private var resolutions: [EntityID: Int] = [:]

    private var token = TokenState.unknown
    /// True if the token was renewed after a refusal and the server has not accepted it yet.
    private var isTokenNew = false
    private var tokenExpiresAt: Int64?
    /// The time of the next renewal, by the server's clock.
    private var tokenRenewAt: Int64?
    /// The time at which the token was received, by the device's clock. A correction of the clock does not
    /// change it.
    private var tokenReceivedAt: Int64 = 0
    /// The earliest time of the next renewal after one that failed, by the device's clock.
    private var renewalNotBefore = Int64.min
    /// True from the request for a new token until it succeeds or fails.
    private var isRenewing = false
    /// True if a renewal has returned the token, so that its end is not a reason for another one.
    private var isTokenRenewed = false
    /// Server time − device time, in milliseconds.
    private var clockOffset: Int64 = 0
    /// The number of the last request that was sent with an older token.
    private var tokenSince = 0

    /// The largest number of events in a batch.
    static let batchEvents = 500
    /// The largest size of the lines of a batch in bytes.
    static let batchBytes = 1024 * 1024
    /// The number of ready lanes above which more events do not change the next batches: a prefetched batch
    /// and the one after it are full.
    private static let lanesEnough = 2 * batchEvents
    /// The waits between attempts.
    private static let backoff = RetryBackoff()
    /// The longest time between two attempts, in milliseconds.
    static let backoffMax = milliseconds(backoff.longest)
    /// The longest wait that a server may ask for, in milliseconds.
    static let retryAfterMax = milliseconds(backoff.longestAsked)
    /// The number of pages in a row without a new event after which reading ends until the next read. Such
    /// pages are legitimate: the server sends what this log has shipped, up to 500 events a page.
    static let stalePagesMax = 10_000
    /// The largest number of resolutions of a lane's conflict in a run while no event of the lane is settled.
    static let resolutionsMax = 3

    /// Creates an empty state.
    ///
    /// - Parameters:
    ///   - requestsMax: the largest number of requests under way at the same time; less than 1 counts as 1.
    ///     Two of them never have events of one lane.
    ///   - resolvesConflicts: whether events in conflict are sent again, so that the server sends its event
    ///     and a resolver can decide.
    public init(requestsMax: Int = 1, resolvesConflicts: Bool = false) {
        self.requestsMax = max(1, requestsMax)
        self.resolvesConflicts = resolvesConflicts
    }

    // MARK: The outbox

    /// Whether the caller must enqueue more of the outbox, if there is more, before `next`. With enough ready
    /// lanes, later events change no batch, unless a lane was deferred: it comes after them.
    package var wantsMore: Bool {
        lanes.readyCount < Self.lanesEnough || lanes.hasDeferredLanes
    }

    /// Sets the newest position of the outbox, whose event need not be enqueued yet.
    package mutating func advanceNewestPosition(to position: Position) {
        lanes.advanceNewestPosition(to: position)
    }

    /// Appends an event of the outbox to its lane; positions must ascend.
    public mutating func enqueue(_ entry: OutboxEntry) {
        lanes.enqueue(entry, hold: initialHold(for: entry))
    }

    /// Replaces all events by those of the outbox after a decision was recorded. O(outbox).
    public mutating func decided(_ entries: some Sequence<OutboxEntry>) {
        dropPrefetchedBatch()
        lanes.replace(by: entries.map { ($0, initialHold(for: $0)) })
    }

    private func initialHold(for entry: OutboxEntry) -> LaneSet.Hold {
        switch entry.status {
        case .pending: return .none
        case .failed:
            return entry.nextAttemptAt.map { .until($0.milliseconds - clockOffset) } ?? .forever
        case .conflict:
            return resolvesConflicts && mayResolve(EntityID(entry.lane)) ? .none : .forever
        }
    }

    /// The number of enqueued events, held ones included. O(1).
    public var count: Int { lanes.count }

    /// The number of events in lanes that are held by a parked event or a conflict. O(lanes).
    public var heldCount: Int { lanes.heldCount }

    /// Whether a request is unanswered.
    public var isBusy: Bool { !underWay.isEmpty }

    // MARK: Reading

    /// Starts to read the events of the account's other logs from a cursor; nil is the beginning. Does
    /// nothing if they are being read already.
    public mutating func read(after cursor: String?) {
        if reading == nil { reading = Reading(cursor: cursor) }
    }

    /// Continues reading after a page that was recorded, unless it was the last. G6: reading also ends if
    /// pages without new events form a cycle, or too many of them come in a row.
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
        guard !isLast, let next = page.next else {
            reading = nil
            return nil
        }
        var following = reading ?? Reading()
        following.cursor = next
        if hasNew { following.staleCursors = [] }
        let hash = XXH64.hash(Array(next.utf8).span.bytes)
        let isFirst = following.staleCursors.insert(hash).inserted
        reading = nil
        guard isFirst else { return "the server's pages of events form a cycle" }
        guard following.staleCursors.count <= Self.stalePagesMax else {
            return "the server's last \(Self.stalePagesMax) pages of events have no new event"
        }
        reading = following
        return nil
    }

    /// G4: ends reading until the next read, because the answer is not a page. Nothing of it was recorded.
    public mutating func pageRefused() { reading = nil }

    /// G7: reads from the first page, because the server was restored.
    public mutating func readFromStart() { reading = Reading(cursor: nil, isRestarted: true) }

    /// G7: registers a batch of the recovery as a request. It is under way alone, as a read is. The caller then
    /// calls `recoveryProcessed` or `recoveryRefused`, or passes the answer to `handleAnswer`, which handles it as
    /// that to a read.
    mutating func registerRecovery() -> Int {
        let (_, number) = registerRequest(.read(after: nil))
        recoveryNumber = number
        return number
    }

    /// G7: the events of a batch of the recovery have verdicts.
    mutating func recoveryProcessed() {
        recoveryRefused()
        failures = 0
        isTokenNew = false
    }

    /// G7: a batch of the recovery was refused because of its events.
    mutating func recoveryRefused() {
        if let recoveryNumber { underWay[recoveryNumber] = nil }
        recoveryNumber = nil
    }

    // MARK: Conflicts

    /// Counts a resolution of the conflict of an event's lane.
    mutating func conflictResolved(_ item: ReplayItem) {
        resolutions[item.laneID, default: 0] += 1
    }

    /// Whether the conflict of an event's lane may be resolved once more in this run. Without a limit, a
    /// server that answers every resolution with a conflict would get new events without end.
    func mayResolve(_ item: ReplayItem) -> Bool { mayResolve(item.laneID) }

    private func mayResolve(_ lane: EntityID) -> Bool {
        resolutions[lane, default: 0] < Self.resolutionsMax
    }

    // MARK: Conditions

    /// C1, C2: sets the conditions. If the network comes back, the backoff ends.
    public mutating func set(_ conditions: Conditions) {
        if conditions.isReachable, !self.conditions.isReachable {
            backoffEnd = .min
            failures = 0
        }
        self.conditions = conditions
    }

    /// Whether pages may be read (C3, C4).
    package var mayRead: Bool { conditions.mayRead || isDemanded }

    /// Whether a stream of the account's events may be open.
    package var mayFollow: Bool {
        pause == nil && conditions.isReachable && conditions.isAllowed && conditions.mayRead
            && token == .usable
    }

    /// C4: ends all waits and allows requests, whatever `isAllowed` and `mayRead` say, until nothing is left
    /// to do. Without a network no request is sent.
    public mutating func demand() {
        resume()
        lanes.releaseExhausted()
        isDemanded = true
    }

    /// Ends a pause and the backoff.
    public mutating func resume() {
        pause = nil
        backoffEnd = .min
        if token == .refused { token = .unknown }
    }

    // MARK: The token

    /// T1: handles a new token, or that none is needed.
    ///
    /// - Parameters:
    ///   - expiresAt: the token's end by the server's clock, in milliseconds since 1970.
    ///   - now: the device's time.
    ///   - isRenewed: true if an earlier renewal has returned the token.
    public mutating func tokenChanged(
        expiresAt: Int64? = nil, now: Int64 = 0, isRenewed: Bool = false
    ) {
        isTokenRenewed = isRenewed || isRenewing || token == .refused
        isTokenNew = token == .refused
        token = .usable
        tokenSince = lastNumber
        tokenExpiresAt = expiresAt
        tokenReceivedAt = now
        renewalNotBefore = .min
        isRenewing = false
        scheduleRenewal()
        if pause == .unauthorized { pause = nil }
    }

    /// Whether a token is being renewed because it has ended by the clock, which may be wrong. If the issuer
    /// has no other one, it is sent, and the server decides.
    func isRenewingEndedToken(now: Int64) -> Bool {
        isRenewing && (tokenExpiresAt.map { $0 <= now + clockOffset } ?? false)
    }

    /// T3: pauses, because the issuer refuses a new token.
    public mutating func tokenRefused() {
        token = .unknown
        isRenewing = false
        pause = .unauthorized
    }

    /// T4: handles a token request that failed. No retry is counted; the pipeline backs off.
    public mutating func tokenFailed(
        _ reason: String, now: Int64, random: Double
    ) -> Outcome {
        let serverNow = now + clockOffset
        isRenewing = false
        if token == .usable, let end = tokenExpiresAt, end > serverNow {
            // The current token is still valid.
            renewalNotBefore = now + min(TokenRenewal.retryMilliseconds, end - serverNow)
            tokenRenewAt = renewalNotBefore + clockOffset
            return Outcome(message: reason)
        }
        return backOff(now, random, reason)
    }

    /// Sets the offset of the server's clock, server time − device time, in milliseconds.
    public mutating func setClock(offset: Int64) {
        clockOffset = offset
        if !isRenewing { scheduleRenewal() }
    }

    private mutating func scheduleRenewal() {
        tokenRenewAt = tokenExpiresAt.flatMap {
            TokenRenewal.time(
                ofTokenUntil: $0, received: tokenReceivedAt + clockOffset,
                isRenewed: isTokenRenewed)
        }
        guard renewalNotBefore > .min, let planned = tokenRenewAt else { return }
        tokenRenewAt = max(planned, renewalNotBefore + clockOffset)
    }

    // MARK: The next action

    /// Returns the next action. After `send`, the caller must call `handleAnswer`; it may send other requests
    /// before.
    public mutating func next(now: Int64) -> Action {
        // A wait that ends later than these limits was set before the clock stepped back.
        lanes.releaseDueLanes(now: now, latest: now + Self.retryAfterMax)
        backoffEnd = min(backoffEnd, now + Self.backoffMax)
        askedToWaitUntil = min(askedToWaitUntil, now + Self.retryAfterMax)
        let hasWork =
            lanes.isReady || !prefetched.isEmpty || !parts.isEmpty || (reading != nil && mayRead)
        guard hasWork else {
            if isBusy { return busy(now) }
            // An exhausted event may wait for ever, so the demand does not wait for it.
            if isDemanded, !lanes.isBackingOff { isDemanded = false }
            return lanes.nextDue.map { .wait(until: max($0, notBefore)) } ?? .idle
        }
        if let pause { return isBusy ? busy(now) : .paused(pause) }
        guard conditions.isReachable else { return isBusy ? busy(now) : .paused(.offline) }  // C1
        guard conditions.isAllowed || isDemanded else {
            return isBusy ? busy(now) : .paused(.notAllowed)
        }  // C2
        guard notBefore <= now else {
            return isBusy ? busy(now) : .wait(until: notBefore)
        }
        switch token {
        case .unknown: return .getToken
        case .refused: return .refreshToken  // T2
        case .usable:
            if let tokenRenewAt, tokenRenewAt <= now + clockOffset {
                self.tokenRenewAt = nil
                isRenewing = true
                return .refreshToken
            }
        }
        guard underWay.count < requestsMax, recoveryNumber == nil else { return busy(now) }
        // During a bisection, only one request is under way at a time.
        guard parts.isEmpty || !isBusy else { return busy(now) }
        guard let items = nextPart() ?? nextBatch() else {
            // A page may have events that are being sent, so a read is under way alone.
            guard let reading, mayRead, !isBusy else { return isBusy ? busy(now) : next(now: now) }
            return send(.read(after: reading.cursor))
        }
        return send(.append(items))
    }

    /// The earliest time of the next request.
    private var notBefore: Int64 { max(backoffEnd, askedToWaitUntil) }

    /// The action while requests are unanswered. It has a time if another request may be sent then.
    private func busy(_ now: Int64) -> Action {
        guard underWay.count < requestsMax, parts.isEmpty, recoveryNumber == nil else {
            return .busy(until: nil)
        }
        let time = max(notBefore, lanes.isReady ? .min : lanes.nextDue ?? .min)
        return .busy(until: time > now ? time : nil)
    }

    private mutating func send(_ request: Request) -> Action {
        let (request, number) = registerRequest(request)
        return .send(request, number: number)
    }

    private mutating func registerRequest(_ request: Request) -> (request: Request, number: Int) {
        lastNumber += 1
        underWay[lastNumber] = request
        return (request, lastNumber)
    }

    /// The next part of a refused batch, without events that are not next in their lane any more.
    private mutating func nextPart() -> [ReplayItem]? {
        while let part = parts.popFirst() {
            let items = lanes.dequeueAgain(part)
            if !items.isEmpty { return items }
        }
        return nil
    }

    private mutating func nextBatch() -> [ReplayItem]? {
        if !prefetched.isEmpty {
            defer { prefetched = [] }
            return prefetched
        }
        let items = lanes.dequeueBatch(eventsMax: batchEventsMax, bytesMax: Self.batchBytes)
        return items.isEmpty ? nil : items
    }

    // MARK: Prefetching

    /// Dequeues the next batch while the largest number of requests is under way, so that its lines can be
    /// read meanwhile. It is sent after the next answer; an answer without verdicts, or a decision, drops it.
    /// With one request at a time nothing is prefetched.
    ///
    /// - Returns: nil if a batch is prefetched already, or if the batch would not be full.
    package mutating func prefetchBatch() -> [ReplayItem]? {
        guard requestsMax > 1, underWay.count >= requestsMax, prefetched.isEmpty, parts.isEmpty,
            suspect == nil, lanes.readyCount >= batchEventsMax, let items = nextBatch()
        else { return nil }
        prefetched = items
        return items
    }

    /// Returns the prefetched batch as a request, if it may be sent now. `next` would return it, too, but
    /// possibly after another action.
    package mutating func sendPrefetchedBatch(now: Int64) -> (request: Request, number: Int)? {
        let isRenewalDue = tokenRenewAt.map { $0 <= now + clockOffset } ?? false
        guard !prefetched.isEmpty, pause == nil, conditions.isReachable,
            conditions.isAllowed || isDemanded, notBefore <= now,
            token == .usable, !isRenewalDue, underWay.count < requestsMax, let items = nextBatch()
        else { return nil }
        return registerRequest(.append(items))
    }

    /// Whether there is a prefetched batch that was not sent yet.
    package var hasPrefetchedBatch: Bool { !prefetched.isEmpty }

    /// Drops the prefetched batch and makes its lanes ready again.
    private mutating func dropPrefetchedBatch() {
        lanes.releaseItems(prefetched)
        prefetched = []
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
    /// - Returns: the outcome, to be recorded, with a message for the report.
    public mutating func handleAnswer(
        _ answer: Answer, with verdicts: [Verdict]? = nil, to number: Int, now: Int64,
        random: Double
    ) -> Outcome {
        guard let request = underWay.removeValue(forKey: number) else {
            preconditionFailure("there is no request \(number) under way")
        }
        if number == recoveryNumber { recoveryNumber = nil }
        defer { if case .append(let items) = request { lanes.releaseItems(items) } }
        switch answer {
        case .failure(let reason):  // W7
            return backOff(now, random, reason)
        case .refused(let error):  // W8
            dropPrefetchedBatch()
            parts = []
            pause = .refused(error)
            // The next attempt asks for the token again: it may be another one by then.
            token = .unknown
            return Outcome(message: error.description)
        case .reply(let reply):
            // The prefetched batch may violate what the answer changes, such as the size of a batch.
            if reply.status != 200 { dropPrefetchedBatch() }
            return handleReply(reply, verdicts, to: request, number, now, random)
        }
    }

    private mutating func handleReply(
        _ reply: TransportReply, _ verdicts: [Verdict]?, to request: Request, _ number: Int,
        _ now: Int64, _ random: Double
    ) -> Outcome {
        switch (reply.status, request) {
        case (200, .append(let items)):
            guard let verdicts = verdicts ?? Verdict.parse(reply.body) else {  // W7
                return backOff(
                    now, random,
                    "the answer does not come from a sync server: this network may require a login, "
                        + "or the endpoint may be wrong")
            }
            return applyVerdicts(verdicts, items, now, random)
        case (200, .read(let cursor)):  // G1
            failures = 0
            isTokenNew = false
            return Outcome(page: Page(body: reply.body, after: cursor, next: reply.next))
        case (401, _):  // W1
            // The request was sent with an older token, so the current one is not refused.
            guard number > tokenSince else { return Outcome() }
            guard isTokenNew else {
                token = .refused
                return Outcome()
            }
            isTokenNew = false
            tokenRefused()
            return Outcome(message: pause?.message)
        case (413, .append(let items)):  // W2
            guard items.count == 1 else {
                batchEventsMax = max(1, items.count / 2)
                return Outcome()
            }
            return reply.isHTML ? bisect(items, reply) : park(items[0], refusedBy: reply)
        case (400, .append(let items)), (422, .append(let items)):  // W3
            return bisect(items, reply)
        case (400, .read(let cursor))  // G7
        where reply.restore != nil && cursor != nil && reading?.isRestarted == false:
            return Outcome(restore: reply.restore)
        case (400..<500, .read(let cursor))  // G2
        where [400, 404, 410, 422].contains(reply.status) && cursor != nil
            && reading?.isRestarted == false:
            reading = Reading(cursor: nil, isRestarted: true)
            return Outcome(message: "the server does not know the cursor; reading from the start")
        case (429, _), (503, _):  // W5
            guard let seconds = reply.retryAfterSeconds else {
                return backOff(now, random, Self.failureMessage(reply.status, request))
            }
            let delay = Self.delay(seconds)
            askedToWaitUntil = max(askedToWaitUntil, now + delay)
            // Backs off as well: `Retry-After: 0` would cause a busy loop.
            _ = backOff(now, random, "")
            return Outcome(message: "the server asks to wait \(delay / 1_000) s")
        case (300..<500, .read):  // G3
            reading = nil
            return Outcome(
                message: "the server's events cannot be read: "
                    + "\(Pause.endpoint(status: reply.status).message)")
        case (300..<500, .append):  // W4
            pause = .endpoint(status: reply.status)
            return Outcome(message: pause?.message)
        default:  // W6
            return backOff(now, random, Self.failureMessage(reply.status, request))
        }
    }

    private static func failureMessage(_ status: Int, _ request: Request) -> String {
        if case .append = request {
            "the server answers \(status); events that it did not accept are sent again later"
        } else {
            "the server answers \(status); its events are read later"
        }
    }

    /// W6, W7, T4: makes the whole pipeline wait. No retry is counted.
    private mutating func backOff(
        _ now: Int64, _ random: Double, _ reason: String
    ) -> Outcome {
        // The events of the parts and of the prefetched batch are still in their lanes.
        parts = []
        dropPrefetchedBatch()
        backoffEnd = max(backoffEnd, now + Self.backoff(failures, random))
        failures += 1
        return Outcome(message: reason)
    }

    /// The wait that a server has asked for, within its limit, in milliseconds.
    private static func delay(_ seconds: Double) -> Int64 {
        milliseconds(backoff.delay(asked: seconds))
    }

    /// The wait after `failures` earlier failures in a row and one more, in milliseconds.
    private static func backoff(_ failures: Int, _ random: Double) -> Int64 {
        milliseconds(backoff.delay(afterFailures: failures + 1, random: random))
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(duration / .milliseconds(1))
    }

    // MARK: Refused as malformed

    /// W3: halves a refused batch until the refused event is the only one.
    private mutating func bisect(_ items: [ReplayItem], _ reply: TransportReply) -> Outcome {
        if items.count > 1 {
            let middle = items.count / 2
            parts.prepend(Array(items[middle...]))
            parts.prepend(Array(items[..<middle]))
            return Outcome()
        }
        let item = items[0]
        if let suspect, suspect.item.laneID != item.laneID {
            // Single events of two lanes were refused in a row: the endpoint is the likelier cause.
            self.suspect = nil
            lanes.releaseLane(of: suspect.item)
            lanes.deferLane(of: suspect.item)
            return blameEndpoint(item, reply)
        }
        lanes.holdLane(of: item)
        suspect = (item, reply)
        guard !lanes.isReady, parts.isEmpty else { return Outcome() }
        // The answer to another request may show that the endpoint is right.
        guard !reply.isHTML || underWay.isEmpty else { return Outcome() }
        return resolveSuspect()
    }

    /// Decides on the suspect when no other event is left to send: parks it, unless its refusal was a page in
    /// HTML. A sync server sends none, so the endpoint is the likelier cause.
    public mutating func resolveSuspect() -> Outcome {
        guard let suspect, suspect.reply.isHTML else { return parkSuspect() }
        self.suspect = nil
        lanes.releaseLane(of: suspect.item)
        return blameEndpoint(suspect.item, suspect.reply)
    }

    private mutating func parkSuspect() -> Outcome {
        guard let suspect else { return Outcome() }
        self.suspect = nil
        return park(suspect.item, refusedBy: suspect.reply)
    }

    /// Pauses. If the event is the cause after all, other events go first the next time and are accepted.
    private mutating func blameEndpoint(_ item: ReplayItem, _ reply: TransportReply) -> Outcome {
        lanes.deferLane(of: item)
        parts = []
        pause = .endpoint(status: reply.status)
        return Outcome(message: pause?.message)
    }

    /// Releases the lane of an unconfirmed suspect at the end of a run: the next run sends it again.
    public mutating func releaseSuspect() {
        guard let suspect else { return }
        self.suspect = nil
        lanes.releaseLane(of: suspect.item)
    }

    private mutating func park(_ item: ReplayItem, refusedBy reply: TransportReply) -> Outcome {
        park(
            item, "http_\(reply.status)",
            reply.status == 413 ? "too large" : "the server calls it malformed")
    }

    private mutating func park(_ item: ReplayItem, _ code: String, _ detail: String) -> Outcome {
        // A decision may have removed the event meanwhile.
        guard lanes.isFirst(item) else { return Outcome() }
        lanes.holdLane(of: item)
        return Outcome(
            entries: [
                SyncSettled.Entry(
                    position: item.position.rawValue, id: item.id, outcome: .parked,
                    retryCount: item.retryCount, code: code, detail: detail,
                    isFinal: item.retryCount == Retries.max)
            ])
    }

    // MARK: Verdicts

    private mutating func applyVerdicts(
        _ verdicts: [Verdict], _ items: [ReplayItem], _ now: Int64, _ random: Double
    ) -> Outcome {
        // The usual case, without a dictionary.
        let isInOrder =
            verdicts.count == items.count
            && items.indices.allSatisfy { verdicts[$0].id == items[$0].id }
        /// The index of each event's verdict.
        var places: [UUID: Int] = [:]
        if !isInOrder {
            for (place, verdict) in verdicts.enumerated() { places[verdict.id] = place }
        }
        var outcome = Outcome()
        var stopped: Set<EntityID> = []
        for (index, item) in items.enumerated() {
            guard stopped.isEmpty || !stopped.contains(item.laneID),
                let place = isInOrder ? index : places[item.id]
            else {
                // V5, and any verdict after the lane was stopped.
                stopped.insert(item.laneID)
                continue
            }
            // Read in place: most verdicts need not be copied.
            switch verdicts[place].status {
            case .applied, .duplicate:  // V1
                if verdicts[place].status == .applied {
                    outcome.applied.append(item.position)
                } else {
                    outcome.duplicate.append(item.position)
                }
                lanes.removeSettled(item)
                if !resolutions.isEmpty { resolutions[item.laneID] = nil }
                if verdicts[place].code == "source_fork" {
                    outcome.forked.insert(item.source)
                }
            case .rejected:  // V2
                stopped.insert(item.laneID)
                let verdict = verdicts[place]
                outcome.entries +=
                    park(
                        item, verdict.code ?? "rejected", verdict.detail ?? "rejected"
                    ).entries
            case .conflict:  // V3
                stopped.insert(item.laneID)
                guard lanes.isFirst(item) else { continue }
                lanes.holdLane(of: item)
                let verdict = verdicts[place]
                outcome.conflicts.append((item, verdict.current))
                outcome.entries.append(
                    SyncSettled.Entry(
                        position: item.position.rawValue, id: item.id, outcome: .conflict,
                        retryCount: item.retryCount, code: verdict.code, detail: verdict.detail,
                        current: verdict.currentID))
            case .retry:  // V4
                stopped.insert(item.laneID)
                guard lanes.isFirst(item) else { continue }
                outcome.entries.append(charge(item, verdicts[place], now, random))
            case .unprocessed:  // V5
                stopped.insert(item.laneID)
            }
        }
        guard !outcome.applied.isEmpty || !outcome.duplicate.isEmpty || !outcome.entries.isEmpty
        else {
            return backOff(now, random, "the server processed no event")
        }
        outcome.isServers = true
        failures = 0
        isTokenNew = false
        batchEventsMax = min(Self.batchEvents, batchEventsMax * 2)
        outcome.entries += parkSuspect().entries
        return outcome
    }

    /// V4: counts the retry and holds the lane. The fifth retry exhausts the event (PRK-4).
    private mutating func charge(
        _ item: ReplayItem, _ verdict: Verdict, _ now: Int64, _ random: Double
    ) -> SyncSettled.Entry {
        let before = lanes.retryCount(of: item)
        let count = min(before + 1, Retries.max)
        let isExhausted = count == Retries.max
        let asked = verdict.retryAfterSeconds.map(Self.delay) ?? 0
        let delay =
            isExhausted
            ? max(asked, Retries.exhaustedDelay(of: item.id))
            : asked > 0 ? asked : Self.backoff(before, random)
        lanes.holdLane(of: item, until: now + delay, retryCount: count)
        return SyncSettled.Entry(
            position: item.position.rawValue, id: item.id,
            outcome: isExhausted ? .parked : .retry, retryCount: count, code: verdict.code,
            detail: verdict.detail)
    }
}
