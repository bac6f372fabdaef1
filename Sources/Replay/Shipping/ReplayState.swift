// What the replayer knows and decides: a value without clock, network or randomness of its own.
// Inputs go in (the outbox, answers, tokens, conditions, the time), `next` says what has to be done.
// The rows of the decision table in Spec/protocol/replay.md bear the same labels: V for verdicts, W for whole
// answers, G for reads, T for tokens, C for conditions.

import DequeModule
import EventSourcing
import Foundation
import LogFormat

/// The state of one log's exchange with its server.
///
/// Invariants: events of a lane are in one request at most, are sent in order, and none while an
/// earlier one of the lane is held; nothing leaves the state but by a record that the log keeps.
public struct ReplayState: Sendable {
    /// What to do next.
    public enum Action: Hashable, Sendable {
        /// Send this, and hand the answer with the same number to `take`.
        case send(Request, number: Int)
        /// Nothing can be done before this time, in milliseconds since 1970, unless an answer or
        /// another input comes.
        case wait(until: Int64)
        /// Get a token (`Credentials.token`), then call one of the token inputs.
        case getToken
        /// Get a new token (`Credentials.refresh`), then call one of the token inputs.
        case refreshToken
        /// Nothing can be done until a request is answered, or it is this time, if there is one.
        case busy(until: Int64?)
        /// Nothing can be done until somebody changes something.
        case paused(Pause)
        /// There is nothing to do.
        case idle
    }

    /// A request.
    public enum Request: Hashable, Sendable {
        /// Ship these events in this order.
        case append([ReplayItem])
        /// Read the account's events behind a cursor.
        case read(after: String?)
    }

    /// Why nothing is done although there is something to do.
    public enum Pause: Hashable, Sendable {
        /// The server refuses the token, and no new one is to be had.
        case unauthorized
        /// The server's answers say that the endpoint is wrong.
        case endpoint(status: Int)
        /// The transport refuses to send: no answer of the server would change that.
        case refused(TransportError)
        /// There is no network.
        case offline
        /// The conditions do not allow it: syncing is off, or this network is not to be used.
        case notAllowed

        /// What keeps the pipeline from going on.
        var words: String {
            switch self {
            case .unauthorized:
                "the server wants a token that it accepts: log in again, or check the credentials"
            case .endpoint(403):
                "the server answers 403: check that the token's account may use this endpoint"
            case .endpoint(let status): "the server answers \(status): check the endpoint"
            case .refused(let error): error.description
            case .offline: "there is no network"
            case .notAllowed: "syncing is not allowed now"
            }
        }
    }

    /// What the world allows.
    public struct Conditions: Hashable, Sendable {
        /// Whether there is a network.
        public var isReachable = true
        /// Whether anything may be done without being asked for.
        public var isAllowed = true
        /// Whether what others have recorded may be read without being asked for: on a network that
        /// is paid by volume, perhaps not.
        public var mayRead = true

        /// Everything is allowed.
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
        /// No complete answer came; the reason in words.
        case failure(String)
        /// The transport refuses to send, or refuses the answer.
        case refused(TransportError)
    }

    /// What an answer did.
    public struct Outcome: Sendable {
        /// What the server has now. The log must remember it.
        public var applied: [Position] = []
        /// What the server had already. The log must remember that, too.
        public var duplicate: [Position] = []
        /// What the log must remember of events that were not settled.
        public var entries: [SyncSettled.Entry] = []
        /// Events in conflict, with what the server holds instead.
        public var conflicts: [(item: ReplayItem, current: JSONValue?)] = []
        /// The names under which another log writes as well.
        public var forked: Set<UUID> = []
        /// A page that was read: to be recorded, then `pageRecorded` or `pageRefused`.
        public var page: Page?
        /// Something to tell the person in charge.
        public var message: String?
        /// Whether the answer is certainly the server's: its clock counts then.
        public var isServers = false

        /// What was settled, and how.
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
        /// The cursor that it was read behind.
        public var after: String?
        /// The cursor of the next one.
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
    /// Requests that are under way at the same time at most.
    private let requestsMax: Int
    private let resolvesConflicts: Bool
    /// The batch that goes next, chosen while others are under way.
    private var ahead: [ReplayItem] = []
    /// Parts of a refused batch that are still to be tried, in order.
    private var parts: Deque<[ReplayItem]> = []
    /// A lone event that was refused as malformed; parked once something else gets through.
    private var suspect: (item: ReplayItem, status: Int)?
    private var batchEventsMax = Self.batchEvents
    private var failures = 0
    /// The end of the pipeline's own backoff …
    private var backoffEnd = Int64.min
    /// … and of what the server has asked for.
    private var askedToWaitUntil = Int64.min
    private var pause: Pause?
    private var conditions = Conditions()
    /// Somebody has asked for all of it: what is not allowed otherwise is, until nothing is left.
    private var isDemanded = false
    private var reading: Reading?

    private struct Reading {
        var cursor: String?
        /// The cursor was refused, and reading begins again at the beginning.
        var isRestarted = false
        /// XXH64 hashes of the cursors that were named since the last page with a new event. A
        /// server that makes two of them equal only ends its own reading.
        var staleCursors: Set<UInt64> = []
    }

    /// How often each lane's conflict was resolved since an event of it was settled.
    private var resolutions: [EntityID: Int] = [:]

    private var token = TokenState.unknown
    /// Whether the token was renewed and nothing has shown yet that the server takes it.
    private var isTokenNew = false
    private var tokenExpiresAt: Int64?
    /// When to renew it, by the server's clock.
    private var tokenRenewAt: Int64?
    /// When the token came, by the device's clock. A correction of the clock does not change it.
    private var tokenReceivedAt: Int64 = 0
    /// No earlier renewal, after one that failed; by the device's clock.
    private var renewalNotBefore = Int64.min
    /// True from the request for a new token until there is one, or none is to be had.
    private var isRenewing = false
    /// Milliseconds to add to the device's clock to get the server's.
    private var clockOffset: Int64 = 0
    /// Requests up to this number carried an older token.
    private var tokenSince = 0

    /// Events in a batch at most.
    static let batchEvents = 500
    /// Bytes of lines in a batch at most.
    static let batchBytes = 1024 * 1024
    /// With so many lanes that can send, no batch would look different if more were known: one that
    /// is chosen ahead and the one behind it find as many events as they can hold.
    private static let lanesEnough = 2 * batchEvents
    /// The times between attempts.
    private static let backoff = RetryBackoff()
    /// The longest time between two attempts, in milliseconds.
    static let backoffMax = milliseconds(backoff.longest)
    /// The longest time for which a server may make the pipeline wait, in milliseconds.
    static let retryAfterMax = milliseconds(backoff.longestAsked)
    /// Pages in a row without a new event, after which reading ends for this time. They are
    /// legitimate: the server hands out what this log has shipped, up to 500 events a page.
    static let stalePagesMax = 10_000
    /// How often a lane's conflict is resolved in a run while no event of it is settled.
    static let resolutionsMax = 3

    /// An empty state.
    ///
    /// - Parameters:
    ///   - requestsMax: requests that may be under way at the same time; less than 1 counts as 1. They
    ///     never hold events of one lane.
    ///   - resolvesConflicts: whether events in conflict are sent once more, so that the server says
    ///     what it holds instead, and somebody is there to resolve it.
    public init(requestsMax: Int = 1, resolvesConflicts: Bool = false) {
        self.requestsMax = max(1, requestsMax)
        self.resolvesConflicts = resolvesConflicts
    }

    // MARK: The outbox

    /// Whether more of the outbox has to be added before `next`, if there is more. What waits behind
    /// enough others changes nothing, unless some of these have to stand behind it.
    package var wantsMore: Bool {
        lanes.readyCount < Self.lanesEnough || lanes.hasStragglers
    }

    /// The outbox reaches up to a position, whether all of it was added yet or not.
    package mutating func outboxReaches(_ position: Position) { lanes.reaches(position) }

    /// Takes in an event of the outbox; positions must rise.
    public mutating func add(_ entry: OutboxEntry) {
        lanes.enqueue(entry, hold: hold(for: entry))
    }

    /// Somebody has decided on events that were held: takes over the whole outbox. O(outbox).
    public mutating func decided(_ entries: some Sequence<OutboxEntry>) {
        dropAhead()
        lanes.replace(by: entries.map { ($0, hold(for: $0)) })
    }

    private func hold(for entry: OutboxEntry) -> LaneSet.Hold {
        switch entry.status {
        case .pending: return .none
        case .failed:
            return entry.nextAttemptAt.map { .until($0.milliseconds - clockOffset) } ?? .forever
        case .conflict:
            return resolvesConflicts && mayResolve(EntityID(entry.lane)) ? .none : .forever
        }
    }

    /// How many events wait, held ones included. O(lanes).
    public var count: Int { lanes.count }

    /// The number of events in lanes that are held by something parked or in conflict. O(lanes).
    public var heldCount: Int { lanes.heldCount }

    /// Whether a request was not answered yet.
    public var isBusy: Bool { !underWay.isEmpty }

    // MARK: Reading

    /// What other logs of the account have recorded is to be read, from a cursor on; nil is the
    /// beginning. If it is being read already, nothing changes.
    public mutating func read(after cursor: String?) {
        if reading == nil { reading = Reading(cursor: cursor) }
    }

    /// A page is in the log: reading goes on after it, unless it was the last. G6: reading also ends
    /// where pages without new events lead in a circle, or there are too many of them in a row.
    ///
    /// - Parameters:
    ///   - page: what was recorded.
    ///   - isLast: whether it was empty, or leads nowhere.
    ///   - hasNew: whether it had an event that the log did not have.
    /// - Returns: why reading ends by G6; nil if it does not.
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
        guard isFirst else { return "the server's pages of events lead in a circle" }
        guard following.staleCursors.count <= Self.stalePagesMax else {
            return "the server's last \(Self.stalePagesMax) pages of events held no new one"
        }
        reading = following
        return nil
    }

    /// G4: what came is no page: nothing of it was recorded, and reading ends for this time.
    public mutating func pageRefused() { reading = nil }

    // MARK: Conflicts

    /// A resolver has decided the conflict of an event's lane.
    mutating func conflictResolved(_ item: ReplayItem) {
        resolutions[item.laneID, default: 0] += 1
    }

    /// Whether the conflict of an event's lane may be resolved once more in this run. A server that
    /// answers every resolution with a conflict would get new events without end.
    func mayResolve(_ item: ReplayItem) -> Bool { mayResolve(item.laneID) }

    private func mayResolve(_ lane: EntityID) -> Bool {
        resolutions[lane, default: 0] < Self.resolutionsMax
    }

    // MARK: Conditions

    /// C1, C2: what the world allows has changed. When the network comes back, what waited for it
    /// is tried at once.
    public mutating func set(_ conditions: Conditions) {
        if conditions.isReachable, !self.conditions.isReachable {
            backoffEnd = .min
            failures = 0
        }
        self.conditions = conditions
    }

    /// C4: somebody asks for everything that can be done, without waiting any longer. What is not
    /// allowed by itself is allowed until nothing is left to do; without network, nothing is.
    public mutating func demand() {
        resume()
        lanes.releaseExhausted()
        isDemanded = true
    }

    /// Somebody has looked into the reason of a pause, or wants no more waiting.
    public mutating func resume() {
        pause = nil
        backoffEnd = .min
        if token == .refused { token = .unknown }
    }

    // MARK: The token

    /// T1: there is a token, or none is needed.
    ///
    /// - Parameters:
    ///   - expiresAt: when it ends by the server's clock, in milliseconds since 1970.
    ///   - now: the device's time.
    public mutating func tokenChanged(expiresAt: Int64? = nil, now: Int64 = 0) {
        isTokenNew = token == .refused
        token = .usable
        tokenSince = lastNumber
        tokenExpiresAt = expiresAt
        tokenReceivedAt = now
        renewalNotBefore = .min
        isRenewing = false
        planRenewal()
        if pause == .unauthorized { pause = nil }
    }

    /// T3: no new token is to be had.
    public mutating func tokenRefused() {
        token = .unknown
        isRenewing = false
        pause = .unauthorized
    }

    /// T4: a token could not be had just now. Nothing is charged; the pipeline backs off.
    public mutating func tokenFailed(
        _ reason: String, now: Int64, random: Double
    ) -> Outcome {
        let serverNow = now + clockOffset
        isRenewing = false
        if token == .usable, let end = tokenExpiresAt, end > serverNow {
            // The present one still serves.
            renewalNotBefore = now + min(TokenRenewal.retryMilliseconds, end - serverNow)
            tokenRenewAt = renewalNotBefore + clockOffset
            return Outcome(message: reason)
        }
        return backOff(now, random, reason)
    }

    /// The server's clock is known better.
    public mutating func setClock(offset: Int64) {
        clockOffset = offset
        if !isRenewing { planRenewal() }
    }

    private mutating func planRenewal() {
        tokenRenewAt = tokenExpiresAt.flatMap {
            TokenRenewal.time(ofTokenUntil: $0, received: tokenReceivedAt + clockOffset)
        }
        guard renewalNotBefore > .min, let planned = tokenRenewAt else { return }
        tokenRenewAt = max(planned, renewalNotBefore + clockOffset)
    }

    // MARK: What to do

    /// Decides what to do at a time. After `send`, `take` must follow; meanwhile other requests may
    /// be sent.
    public mutating func next(now: Int64) -> Action {
        // No wait is longer than this: what ends later was set by a clock that has stepped back.
        lanes.release(now: now, latest: now + Self.retryAfterMax)
        backoffEnd = min(backoffEnd, now + Self.backoffMax)
        askedToWaitUntil = min(askedToWaitUntil, now + Self.retryAfterMax)
        let mayRead = conditions.mayRead || isDemanded  // C3
        let hasWork =
            lanes.isReady || !ahead.isEmpty || !parts.isEmpty || (reading != nil && mayRead)
        guard hasWork else {
            if isBusy { return busy(now) }
            // An exhausted event may wait for ever: it keeps no demand alive.
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
        guard underWay.count < requestsMax else { return busy(now) }
        // While the event that is to blame is looked for, requests go one after the other.
        guard parts.isEmpty || !isBusy else { return busy(now) }
        guard let items = nextPart() ?? nextBatch() else {
            // What is read may be what was just sent: one after the other.
            guard let reading, mayRead, !isBusy else { return isBusy ? busy(now) : next(now: now) }
            return send(.read(after: reading.cursor))
        }
        return send(.append(items))
    }

    /// When a request may be sent again.
    private var notBefore: Int64 { max(backoffEnd, askedToWaitUntil) }

    /// More requests may be sent before an answer comes, once a wait is over.
    private func busy(_ now: Int64) -> Action {
        guard underWay.count < requestsMax, parts.isEmpty else { return .busy(until: nil) }
        let time = max(notBefore, lanes.isReady ? .min : lanes.nextDue ?? .min)
        return .busy(until: time > now ? time : nil)
    }

    private mutating func send(_ request: Request) -> Action {
        let (request, number) = begin(request)
        return .send(request, number: number)
    }

    private mutating func begin(_ request: Request) -> (request: Request, number: Int) {
        lastNumber += 1
        underWay[lastNumber] = request
        return (request, lastNumber)
    }

    /// What is left to try of a refused batch: only events that are next in their lane by now.
    private mutating func nextPart() -> [ReplayItem]? {
        while let part = parts.popFirst() {
            let items = lanes.take(again: part)
            if !items.isEmpty { return items }
        }
        return nil
    }

    private mutating func nextBatch() -> [ReplayItem]? {
        if !ahead.isEmpty {
            defer { ahead = [] }
            return ahead
        }
        let items = lanes.takeBatch(eventsMax: batchEventsMax, bytesMax: Self.batchBytes)
        return items.isEmpty ? nil : items
    }

    // MARK: Choosing ahead

    /// Chooses the batch that goes next while as many requests are under way as may be, so that its
    /// lines can be read meanwhile. It goes as soon as there is room, unless an answer without
    /// verdicts, or somebody's decision, comes before. Where requests go one by one, so does all else.
    ///
    /// - Returns: nil where something was chosen, or what is to come could still join the batch.
    package mutating func chooseAhead() -> [ReplayItem]? {
        guard requestsMax > 1, underWay.count >= requestsMax, ahead.isEmpty, parts.isEmpty,
            suspect == nil, lanes.readyCount >= batchEventsMax, let items = nextBatch()
        else { return nil }
        ahead = items
        return items
    }

    /// Sends what was chosen ahead, if it may go now. `next` would do the same, but perhaps other
    /// things before.
    package mutating func sendAhead(now: Int64) -> (request: Request, number: Int)? {
        let isRenewalDue = tokenRenewAt.map { $0 <= now + clockOffset } ?? false
        guard !ahead.isEmpty, pause == nil, conditions.isReachable,
            conditions.isAllowed || isDemanded, notBefore <= now,
            token == .usable, !isRenewalDue, underWay.count < requestsMax, let items = nextBatch()
        else { return nil }
        return begin(.append(items))
    }

    /// Whether a batch was chosen that did not go yet.
    package var hasChosenAhead: Bool { !ahead.isEmpty }

    /// The lanes of what was chosen ahead can be chosen again.
    private mutating func dropAhead() {
        lanes.giveBack(ahead)
        ahead = []
    }

    // MARK: The answer

    /// Takes in the answer to a request.
    ///
    /// - Parameters:
    ///   - answer: what came back, or why nothing did.
    ///   - verdicts: those of the answer, where somebody has read them already.
    ///   - number: the request's.
    ///   - now: the time, in milliseconds since 1970.
    ///   - random: a random number between 0 and 1, for the backoff.
    /// - Returns: what is to be recorded, and words for whoever looks on.
    public mutating func take(
        _ answer: Answer, with verdicts: [Verdict]? = nil, to number: Int, now: Int64,
        random: Double
    ) -> Outcome {
        guard let request = underWay.removeValue(forKey: number) else {
            preconditionFailure("there is no request \(number) under way")
        }
        defer { if case .append(let items) = request { lanes.giveBack(items) } }
        switch answer {
        case .failure(let reason):  // W7
            return backOff(now, random, reason)
        case .refused(let error):  // W8
            dropAhead()
            parts = []
            pause = .refused(error)
            // By then there may be another token.
            token = .unknown
            return Outcome(message: error.description)
        case .reply(let reply):
            // What was chosen under other circumstances is chosen again.
            if reply.status != 200 { dropAhead() }
            return take(reply, verdicts, to: request, number, now, random)
        }
    }

    private mutating func take(
        _ reply: TransportReply, _ verdicts: [Verdict]?, to request: Request, _ number: Int,
        _ now: Int64, _ random: Double
    ) -> Outcome {
        switch (reply.status, request) {
        case (200, .append(let items)):
            guard let verdicts = verdicts ?? Verdict.parse(reply.body) else {  // W7
                return backOff(
                    now, random,
                    "the answer does not come from a sync server: this network may ask for a login "
                        + "first, or the endpoint may be wrong")
            }
            return take(verdicts, items, now, random)
        case (200, .read(let cursor)):  // G1
            failures = 0
            isTokenNew = false
            return Outcome(page: Page(body: reply.body, after: cursor, next: reply.next))
        case (401, _):  // W1
            // The answer to a request with an older token says nothing of this one.
            guard number > tokenSince else { return Outcome() }
            guard isTokenNew else {
                token = .refused
                return Outcome()
            }
            isTokenNew = false
            tokenRefused()
            return Outcome(message: pause?.words)
        case (413, .append(let items)):  // W2
            guard items.count > 1 else { return park(items[0], "http_413", "too large") }
            batchEventsMax = max(1, items.count / 2)
            return Outcome()
        case (400, .append(let items)), (422, .append(let items)):  // W3
            return bisect(items, reply.status)
        case (400..<500, .read(let cursor))  // G2
        where [400, 404, 410, 422].contains(reply.status) && cursor != nil
            && reading?.isRestarted == false:
            reading = Reading(cursor: nil, isRestarted: true)
            return Outcome(message: "the server does not know the place to read on; from the start")
        case (429, _), (503, _):  // W5
            guard let seconds = reply.retryAfterSeconds else {
                return backOff(now, random, "the server answers \(reply.status)")
            }
            let delay = Self.delay(seconds)
            askedToWaitUntil = max(askedToWaitUntil, now + delay)
            // A server that asks for no wait at all would be asked without end.
            _ = backOff(now, random, "")
            return Outcome(message: "the server asks to wait \(delay / 1_000) s")
        case (300..<500, .read):  // G3
            reading = nil
            return Outcome(
                message: "the server's events cannot be read: "
                    + "\(Pause.endpoint(status: reply.status).words)")
        case (300..<500, .append):  // W4
            pause = .endpoint(status: reply.status)
            return Outcome(message: pause?.words)
        default:  // W6
            return backOff(now, random, "the server answers \(reply.status)")
        }
    }

    /// W6, W7, T4: nothing is charged; the whole pipeline waits.
    private mutating func backOff(
        _ now: Int64, _ random: Double, _ reason: String
    ) -> Outcome {
        // What was still to be tried of a refused batch, or was chosen ahead, is found again
        // through its lanes.
        parts = []
        dropAhead()
        backoffEnd = max(backoffEnd, now + Self.backoff(failures, random))
        failures += 1
        return Outcome(message: reason)
    }

    /// The wait that a server asks for, in milliseconds.
    private static func delay(_ seconds: Double) -> Int64 {
        milliseconds(backoff.delay(asked: seconds))
    }

    /// The wait after one more than these failures in a row, in milliseconds.
    private static func backoff(_ failures: Int, _ random: Double) -> Int64 {
        milliseconds(backoff.delay(afterFailures: failures + 1, random: random))
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(duration / .milliseconds(1))
    }

    // MARK: Refused as malformed

    /// W3: halves a refused batch until the refused event is alone.
    private mutating func bisect(_ items: [ReplayItem], _ status: Int) -> Outcome {
        if items.count > 1 {
            let middle = items.count / 2
            parts.prepend(Array(items[middle...]))
            parts.prepend(Array(items[..<middle]))
            return Outcome()
        }
        let item = items[0]
        if let suspect, suspect.item.laneID != item.laneID {
            // Two different lanes refused in a row: it is not the events.
            self.suspect = nil
            lanes.free(suspect.item)
            // If it is the events after all, others go first the next time, and show it.
            lanes.putBehind(suspect.item)
            lanes.putBehind(item)
            parts = []
            pause = .endpoint(status: status)
            return Outcome(message: pause?.words)
        }
        lanes.hold(item)
        suspect = (item, status)
        guard !lanes.isReady, parts.isEmpty else { return Outcome() }
        return confirmSuspect()
    }

    /// Parks the lone refused event: something else got through, or nothing else is there.
    public mutating func confirmSuspect() -> Outcome {
        guard let suspect else { return Outcome() }
        self.suspect = nil
        return park(suspect.item, "http_\(suspect.status)", "the server calls it malformed")
    }

    /// Lets go of a lone refused event that nothing has confirmed: a run ends, and the next one will
    /// meet it again.
    public mutating func releaseSuspect() {
        guard let suspect else { return }
        self.suspect = nil
        lanes.free(suspect.item)
    }

    private mutating func park(_ item: ReplayItem, _ code: String, _ detail: String) -> Outcome {
        // Somebody may have decided on it meanwhile.
        guard lanes.isFirst(item) else { return Outcome() }
        lanes.hold(item)
        return Outcome(
            entries: [
                SyncSettled.Entry(
                    position: item.position.rawValue, id: item.id, outcome: .parked,
                    retryCount: item.retryCount, code: code, detail: detail,
                    isFinal: item.retryCount == Retries.max)
            ])
    }

    // MARK: Verdicts

    private mutating func take(
        _ verdicts: [Verdict], _ items: [ReplayItem], _ now: Int64, _ random: Double
    ) -> Outcome {
        // Mostly a server answers in the order in which it was asked.
        let isInOrder =
            verdicts.count == items.count && zip(verdicts, items).allSatisfy { $0.id == $1.id }
        var byID: [UUID: Verdict] = [:]
        if !isInOrder { for verdict in verdicts { byID[verdict.id] = verdict } }
        var outcome = Outcome()
        var stopped: Set<EntityID> = []
        for (index, item) in items.enumerated() {
            guard !stopped.contains(item.laneID),
                let verdict = isInOrder ? verdicts[index] : byID[item.id]
            else {
                // V5, and whatever a server answers behind a lane's stop.
                stopped.insert(item.laneID)
                continue
            }
            switch verdict.status {
            case .applied, .duplicate:  // V1
                if verdict.status == .applied {
                    outcome.applied.append(item.position)
                } else {
                    outcome.duplicate.append(item.position)
                }
                lanes.settle(item)
                resolutions[item.laneID] = nil
                if verdict.code == "source_fork" {
                    outcome.forked.insert(item.source)
                }
            case .rejected:  // V2
                stopped.insert(item.laneID)
                outcome.entries +=
                    park(
                        item, verdict.code ?? "rejected", verdict.detail ?? "rejected"
                    ).entries
            case .conflict:  // V3
                stopped.insert(item.laneID)
                guard lanes.isFirst(item) else { continue }
                lanes.hold(item)
                outcome.conflicts.append((item, verdict.current))
                outcome.entries.append(
                    SyncSettled.Entry(
                        position: item.position.rawValue, id: item.id, outcome: .conflict,
                        retryCount: item.retryCount, code: verdict.code, detail: verdict.detail,
                        current: verdict.currentID))
            case .retry:  // V4
                stopped.insert(item.laneID)
                guard lanes.isFirst(item) else { continue }
                outcome.entries.append(charge(item, verdict, now, random))
            case .unprocessed:  // V5
                stopped.insert(item.laneID)
            }
        }
        guard !outcome.applied.isEmpty || !outcome.duplicate.isEmpty || !outcome.entries.isEmpty
        else {
            return backOff(now, random, "the server looked at no event")
        }
        outcome.isServers = true
        failures = 0
        isTokenNew = false
        batchEventsMax = min(Self.batchEvents, batchEventsMax * 2)
        outcome.entries += confirmSuspect().entries
        return outcome
    }

    /// V4: backs the lane off and charges it. The fifth time exhausts the event (PRK-4).
    private mutating func charge(
        _ item: ReplayItem, _ verdict: Verdict, _ now: Int64, _ random: Double
    ) -> SyncSettled.Entry {
        let before = lanes.retryCount(of: item)
        let count = min(before + 1, Retries.max)
        let isExhausted = count == Retries.max
        let wish = verdict.retryAfterSeconds.map(Self.delay) ?? 0
        let delay =
            isExhausted
            ? max(wish, Retries.exhaustedDelay(of: item.id))
            : wish > 0 ? wish : Self.backoff(before, random)
        lanes.hold(item, until: now + delay, retryCount: count)
        return SyncSettled.Entry(
            position: item.position.rawValue, id: item.id,
            outcome: isExhausted ? .parked : .retry, retryCount: count, code: verdict.code,
            detail: verdict.detail)
    }
}
