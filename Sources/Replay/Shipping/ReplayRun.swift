// One run of the replayer: asks ReplayState what to do, does it, records what came of it. Everything
// that touches the world is here; every decision is there. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging
import Telemetry

/// The loop of a run. What happens elsewhere (an answer, a timer, a commit, a trigger) comes in
/// through one mailbox, one after the other.
struct ReplayRun {
    private let replayer: Replayer
    private let end: Replayer.End
    private let progress: (@Sendable (SyncReport) -> Void)?
    private var state: ReplayState
    private var report = SyncReport()
    /// How far the outbox has been taken over.
    private var seen = Position.zero
    /// How many of its events lie behind that.
    private var rest = 0
    private var decided = Position.zero
    /// How far the clock is off, as this run has found.
    private var clockOffset: Int64?
    private var token: AccessToken?
    private var sentTokens = SentTokens()
    private let mail: AsyncStream<Happening>.Continuation
    private var mailbox: AsyncStream<Happening>.Iterator
    private var timers = 0
    /// When reading is due by itself.
    private var readAt: Int64?
    private var pausedFor: (pause: ReplayState.Pause, until: Int64)?
    /// Records of pages that brought nothing new wait until reading ends.
    private var cursor: String?

    private enum Happening: Sendable {
        case answered(Exchange)
        case failed(any Error)
        case timer(Int)
        /// A wait was broken off: the run ends.
        case stopped
        case committed
        case trigger(Replayer.Trigger)
    }

    private struct Exchange: Sendable {
        var number: Int
        var answer: ReplayState.Answer
        /// Those of the answer, if it has some: read here, beside the loop.
        var verdicts: [Verdict]?
        /// The server was silent until the transport gave it up.
        var hasTimedOut: Bool
        var sent: Int64
        var received: Int64
    }

    /// How long a run with an end waits for something that would let it go on.
    private static let patienceMilliseconds: Int64 = 5_000
    /// How long a pause lasts before it is looked whether its reason has gone.
    private static let pauseMilliseconds: Int64 = 60_000

    init(
        _ replayer: Replayer, until end: Replayer.End, under conditions: ReplayState.Conditions,
        progress: (@Sendable (SyncReport) -> Void)?
    ) {
        self.replayer = replayer
        self.end = end
        self.progress = progress
        state = ReplayState(
            requestsMax: replayer.options.requestsMax,
            resolvesConflicts: replayer.options.resolver != nil)
        state.set(conditions)
        let (stream, mail) = AsyncStream.makeStream(of: Happening.self)
        self.mail = mail
        mailbox = stream.makeAsyncIterator()
    }

    private var store: EventStore { replayer.store }

    private var readIntervalMilliseconds: Int64 {
        Int64((replayer.options.readInterval ?? .zero) / .milliseconds(1))
    }

    private var isLive: Bool { if case .never = end { true } else { false } }

    // MARK: The loop

    mutating func run(_ triggers: AsyncStream<Replayer.Trigger>?) async throws -> SyncReport {
        let senders = await listen(to: triggers)
        let result: Result<SyncReport, any Error>
        do { result = .success(try await loop()) } catch { result = .failure(error) }
        // Nothing goes on behind the back of the next run.
        for task in senders + requests.values { task.cancel() }
        chosen?.lines.cancel()
        for task in requests.values { await task.value }
        _ = await chosen?.lines.result
        mail.finish()
        return try result.get()
    }

    private mutating func loop() async throws -> SyncReport {
        if replayer.options.reads { startReading() }
        state.setClock(offset: await store.clockOffset)
        while !Task.isCancelled {
            takeOutbox()
            let now = store.deviceNow
            if case .at(let time) = end, now >= time.milliseconds { break }
            if let readAt, readAt <= now || readAt > now + readIntervalMilliseconds {
                startReading()
            }
            let goesOn: Bool
            switch state.next(now: now) {
            case .send(let request, let number):
                send(request, number)
                goesOn = true
            case .getToken:
                let credentials = replayer.credentials
                await takeToken(now) { (try await credentials.token(), true) }
                goesOn = true
            case .refreshToken:
                let (credentials, old) = (replayer.credentials, token)
                await takeToken(now) {
                    let new = try await credentials.refresh(old)
                    return (new, new != nil && new != old)
                }
                goesOn = true
            case .busy(let time):
                await chooseAhead()
                goesOn = try await wait(until: isLive ? time : nil, now)
            case .wait(let time):
                // A lane may wait for an hour: reading does not wait with it.
                let due = isLive ? min(time, readAt ?? time) : time
                goesOn = try await mayWait(until: max(due, now + 1), now)
            case .paused(let pause):
                goesOn = try await wait(in: pause, now)
            case .idle:
                let outcome = state.confirmSuspect()
                if !outcome.entries.isEmpty { try await record(outcome) }
                goesOn = isLive ? try await wait(until: readAt, now) : false
            }
            guard goesOn else { break }
        }
        state.releaseSuspect()
        if rest > 0 { takeOutbox(whole: true) }
        try await recordCursor()
        report.pending = pending
        report.held = state.heldCount
        report.underWay = []
        do {
            try await store.flush()
        } catch let error as LogError where error.code == .diskFull {
            report.message = "the disk is full; what waits is written when there is room"
        }
        return report
    }

    /// Every run hears that the store is closed; one without end also of commits and triggers.
    private func listen(to triggers: AsyncStream<Replayer.Trigger>?) async -> [Task<Void, Never>] {
        var senders: [Task<Void, Never>] = []
        let commits = await store.commits()
        senders.append(
            Task { [mail, isLive] in
                for await _ in commits where isLive { mail.yield(.committed) }
                // The store was closed.
                mail.yield(.stopped)
            })
        if let triggers {
            senders.append(
                Task { [mail] in for await trigger in triggers { mail.yield(.trigger(trigger)) } })
        }
        return senders
    }

    /// Takes over what is new in the outbox.
    ///
    /// - Parameter whole: whether all of it; otherwise as much as can make a difference now.
    private mutating func takeOutbox(whole: Bool = false) {
        guard replayer.options.ships else { return }
        let outbox = store.view(Outbox.self)
        // At the first look nothing was taken over that a decision could have changed.
        if outbox.lastDecision > decided, seen > .zero {
            state.decided(outbox.entries)
            seen = outbox.through
        } else if seen < outbox.through {
            state.outboxReaches(outbox.through)
            var entries = outbox.entries(from: seen.next).makeIterator()
            while whole || state.wantsMore {
                guard let entry = entries.next() else {
                    seen = outbox.through
                    break
                }
                state.add(entry)
                seen = entry.position
            }
        }
        decided = outbox.lastDecision
        rest = seen < outbox.through ? max(0, outbox.count - state.count) : 0
    }

    /// How many events wait to be sent, held ones included.
    private var pending: Int { state.count + rest }

    private mutating func startReading() {
        report.isBehind = true
        state.read(after: cursor ?? store.view(Outbox.self).cursor)
        readAt =
            replayer.options.readInterval == nil
            ? nil : store.deviceNow + readIntervalMilliseconds
    }

    // MARK: Waiting

    /// Waits for a time that the state has named, if the end of the run allows for it.
    private mutating func mayWait(until time: Int64, _ now: Int64) async throws -> Bool {
        switch end {
        case .whenNothingMoves:
            guard time - now <= Self.patienceMilliseconds else { return false }
        case .at(let end):
            guard time < end.milliseconds else { return false }
        case .never: break
        }
        return try await wait(until: time, now)
    }

    /// Waits until somebody has changed something; a run with a far end, or without one, looks again
    /// now and then whether the server's mind has changed. Without network, or where it must not be
    /// used, no timer runs.
    private mutating func wait(in pause: ReplayState.Pause, _ now: Int64) async throws -> Bool {
        report.message = pause.words
        if case .refused(let error) = pause { report.refusal = error }
        switch pause {
        case .offline, .notAllowed:
            return isLive ? try await wait(until: nil, now) : false
        case .unauthorized, .endpoint, .refused:
            // Commits do not begin the minute anew.
            if pausedFor?.pause != pause || (pausedFor?.until ?? 0) > now + Self.pauseMilliseconds {
                pausedFor = (pause, now + Self.pauseMilliseconds)
            }
            let time = pausedFor?.until ?? now
            if time > now {
                guard try await mayWait(until: time, now) else { return false }
            }
            if store.deviceNow >= time {
                pausedFor = nil
                state.resume()
            }
            return true
        }
    }

    /// Waits until something happens, or until a time.
    ///
    /// - Returns: false if the run is to end.
    private mutating func wait(until time: Int64?, _ now: Int64) async throws -> Bool {
        var timer: Task<Void, Never>?
        timers += 1
        if let time {
            let (mail, sleep, number) = (mail, replayer.sleep, timers)
            let delay = max(1, time - now)
            timer = Task {
                do {
                    try await sleep(.milliseconds(delay))
                    mail.yield(.timer(number))
                } catch {
                    if !Task.isCancelled { mail.yield(.stopped) }
                }
            }
        }
        defer { timer?.cancel() }
        while let happening = await mailbox.next() {
            switch happening {
            case .timer(let number):
                // One that was cancelled may have gone off all the same.
                if number == timers { return true }
                continue
            case .stopped: return false
            case .failed(let error): throw error
            case .committed: return true
            case .trigger(let trigger):
                take(trigger)
                return true
            case .answered(let exchange):
                try await take(exchange)
                // The server may be silent as long again: a run with an end does not wait for it twice.
                if case .whenNothingMoves = end, exchange.hasTimedOut { return false }
                return true
            }
        }
        return false
    }

    private mutating func take(_ trigger: Replayer.Trigger) {
        switch trigger {
        case .conditions(let conditions): state.set(conditions)
        case .now:
            state.demand()
            if replayer.options.reads { startReading() }
        }
    }

    // MARK: Tokens

    private mutating func takeToken(
        _ now: Int64,
        _ get: @escaping @Sendable () async throws -> (AccessToken?, isUsable: Bool)
    ) async {
        do {
            let (new, isUsable) = try await Self.inTime(replayer, end, get)
            guard isUsable else {
                state.tokenRefused()
                return
            }
            token = new
            if let new { sentTokens.insert(new.value) }
            state.tokenChanged(expiresAt: new?.expiresAt?.milliseconds, now: store.deviceNow)
        } catch {
            let outcome = state.tokenFailed(
                "no token: \(Self.words(error))", now: now, random: store.randomFraction())
            report.message = outcome.message
        }
    }

    // MARK: Exchanges

    private var requests: [Int: Task<Void, Never>] = [:]
    /// The events of each request that was not answered yet.
    private var sent: [Int: [ReplayItem]] = [:]

    /// The lines of the batch that was chosen ahead.
    private var chosen: (positions: [Position], lines: Task<[UInt8], any Error>)?

    /// Lets the lines of the next batch be read while others are under way.
    private mutating func chooseAhead() async {
        guard let items = state.chooseAhead() else { return }
        // What was chosen before and did not go is read to its end.
        _ = await chosen?.lines.result
        chosen = (items.map(\.position), read(items))
    }

    private func read(_ items: [ReplayItem]) -> Task<[UInt8], any Error> {
        let positions = items.map(\.position)
        let bytes = items.reduce(0) { $0 + $1.lineBytes }
        return Task { [store] in try await store.jsonArray(of: positions, bytes: bytes) }
    }

    /// Sends what was chosen ahead, unless somebody has decided something since or the run is over.
    private mutating func sendAhead() {
        if case .at(let time) = end, store.deviceNow >= time.milliseconds { return }
        guard !Task.isCancelled, store.view(Outbox.self).lastDecision == decided,
            let (request, number) = state.sendAhead(now: store.deviceNow)
        else { return }
        send(request, number)
    }

    /// The lines of a batch, which are perhaps there already.
    private mutating func lines(of items: [ReplayItem]) -> Task<[UInt8], any Error> {
        guard let chosen, chosen.positions == items.map(\.position) else { return read(items) }
        self.chosen = nil
        return chosen.lines
    }

    private mutating func send(_ request: ReplayState.Request, _ number: Int) {
        if case .append(let items) = request { sent[number] = items }
        if let progress, let items = sent[number] {
            report.underWay.formUnion(items.lazy.map(\.id))
            report.pending = pending
            progress(report)
        }
        let call: @Sendable () async throws -> TransportRequest
        switch request {
        case .append(let items):
            let lines = lines(of: items)
            call = { .append(batch: try await lines.value) }
        case .read(let cursor): call = { .read(after: cursor) }
        }
        let (replayer, end, mail, token) = (replayer, end, mail, token?.value)
        requests[number] = Task {
            do {
                mail.yield(
                    .answered(
                        try await Self.exchange(try await call(), number, replayer, end, token)))
            } catch {
                mail.yield(.failed(error))
            }
        }
    }

    private static func exchange(
        _ call: TransportRequest, _ number: Int, _ replayer: Replayer, _ end: Replayer.End,
        _ token: String?
    ) async throws -> Exchange {
        let store = replayer.store
        let sent = store.deviceNow
        let answer: ReplayState.Answer
        var hasTimedOut = false
        do {
            answer = .reply(try await send(call, token, replayer, end))
        } catch let error as TransportError where error.code == .foreignPage {
            // The place on record is another server's: G2.
            answer = .reply(TransportReply(status: 400))
        } catch let error as TransportError where error.isMisuse {
            throw error
        } catch let error as TransportError where !error.isTransient {
            answer = .refused(error)
        } catch {
            hasTimedOut = (error as? TransportError)?.code == .timedOut
            answer = .failure("no answer: \(words(error))")
        }
        let received = store.deviceNow
        var verdicts: [Verdict]?
        if case .append = call, case .reply(let reply) = answer, reply.status == 200 {
            verdicts = Verdict.parse(reply.body)
        }
        return Exchange(
            number: number, answer: answer, verdicts: verdicts,
            hasTimedOut: hasTimedOut, sent: sent, received: received)
    }

    /// Sends a request; where the run ends at a time, no longer than until then.
    private static func send(
        _ call: TransportRequest, _ token: String?, _ replayer: Replayer, _ end: Replayer.End
    ) async throws -> TransportReply {
        let instruments = replayer.instruments
        let reply = try await instruments.measure(.syncRequest) {
            try await inTime(replayer, end) {
                try await replayer.transport.send(
                    call, token: token, account: replayer.store.account)
            }
        }
        if case .append(let batch) = call { instruments.count(.sentBytes, batch.count) }
        instruments.count(.receivedBytes, reply.body.count)
        return reply
    }

    /// Does something; where the run ends at a time, no longer than until then.
    private static func inTime<Value: Sendable>(
        _ replayer: Replayer, _ end: Replayer.End,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard case .at(let time) = end else { return try await body() }
        let rest = max(0, time.milliseconds - replayer.store.deviceNow)
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await replayer.sleep(.milliseconds(rest))
                throw TransportError(.timedOut, place: "server", "the time for this run is over")
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    /// What went wrong, in the system's words: never the request, which holds a token.
    private static func words(_ error: any Error) -> String {
        (error as NSError).localizedDescription
    }

    private mutating func take(_ exchange: Exchange) async throws {
        requests[exchange.number] = nil
        let items = sent.removeValue(forKey: exchange.number) ?? []
        if progress != nil { report.underWay.subtract(items.lazy.map(\.id)) }
        // A server that says a token in its reply must not get it into the log.
        let outcome = state.take(
            exchange.answer, with: exchange.verdicts?.map(sentTokens.masked), to: exchange.number,
            now: exchange.received, random: store.randomFraction())
        // What was settled is recorded while the next batch is on its way.
        sendAhead()
        // Lines of a choice that counts no more are not kept, nor the reason why they were not read.
        if !state.hasChosenAhead { chosen = nil }
        if let message = outcome.message { replayer.logger.debug("\(message)") }
        report.message = outcome.message
        report.refusal = if case .refused(let error) = exchange.answer { error } else { nil }
        // Only a reply with verdicts is certainly the server's: a captive portal has a clock, too.
        var clock: Int64?
        if outcome.isServers, case .reply(let reply) = exchange.answer, let date = reply.date {
            let offset = ServerClock.offset(
                serverDate: date, sent: exchange.sent, received: exchange.received)
            if offset != clockOffset { await store.setClockOffset(offset) }
            clockOffset = offset
            state.setClock(offset: offset)
            if ServerClock.isNews(offset, known: store.view(Outbox.self).clockOffset) {
                clock = offset
            }
        }
        try await record(outcome, clock: clock)
        await recordAttempts(at: items, outcome, exchange.received)
        for (item, current) in outcome.conflicts { try await resolve(item, current) }
        if let page = outcome.page { try await record(page) }
        report.pending = pending
        progress?(report)
    }

    /// Keeps in memory which events of a request got no verdict, and why (OUT-10). A record of a later
    /// time counts more. Events that have left the outbox are dropped.
    private func recordAttempts(
        at items: [ReplayItem], _ outcome: ReplayState.Outcome, _ received: Int64
    ) async {
        let attempts = store.transient(SyncAttempts.self)
        if outcome.isServers {
            guard !attempts.isEmpty else { return }
            let outbox = store.view(Outbox.self)
            let left = attempts.values.keys.filter { outbox.entry(at: $0) == nil }
            attempts.update(left) { _ in nil }
        } else {
            let attempt = SyncAttempt(
                at: Timestamp(milliseconds: received + (await store.clockOffset)),
                message: outcome.message)
            attempts.update(items.lazy.map(\.position)) { _ in attempt }
        }
    }

    // MARK: Records

    private mutating func record(
        _ outcome: ReplayState.Outcome, clock: Int64? = nil
    ) async throws {
        let settled = settled(outcome, clock: clock)
        if !settled.isEmpty { try await store.record(settled) }
        if outcome.forked.contains(store.incarnation) { try await takeNewName() }
    }

    /// The record of an outcome. On return no snapshot of the outbox is held: the store would copy
    /// all of it to fold the record.
    private mutating func settled(_ outcome: ReplayState.Outcome, clock: Int64?) -> SyncSettled {
        var settled = SyncSettled(by: store.incarnation)
        let outbox = store.view(Outbox.self)
        // A page that was read meanwhile may have settled some of it.
        let applied = outbox.held(outcome.applied)
        let duplicate = outbox.held(outcome.duplicate)
        settled.applied = outbox.ranges(of: applied)
        settled.duplicate = outbox.ranges(of: duplicate)
        // What is on record need not be said again: a conflict that nobody could resolve.
        settled.entries = outcome.entries.filter { entry in
            entry.outcome != .conflict
                || outbox.entry(at: Position(entry.position))?.status != .conflict
        }
        // An exhausted event that was tried again was parked before.
        report.rejected += outcome.entries.count { entry in
            entry.outcome == .parked
                && outbox.entry(at: Position(entry.position))?.status != .failed
        }
        settled.clockOffset = clock
        report.applied += applied.count
        report.duplicate += duplicate.count
        report.conflict += outcome.entries.count { $0.outcome == .conflict }
        return settled
    }

    /// Another log writes under this one's name: this one takes a new one.
    private mutating func takeNewName() async throws {
        try await store.mintIncarnation()
        report.tookNewName = true
        replayer.logger.debug("another log writes under this one's name; it takes a new one")
    }

    /// Asks the resolver, if there is one, and records what it says.
    private mutating func resolve(_ item: ReplayItem, _ current: JSONValue?) async throws {
        // Whoever decides, now or later, needs to see what the server holds.
        if let event = EventStore.event(current) {
            let received = try await receive([event], recordingIfNew: [])
            report.received += received.new.count
            report.refused += received.refused.count
        }
        guard let resolver = replayer.options.resolver,
            let conflict = try await store.conflict(in: item.lane)
        else { return }
        guard state.mayResolve(item) else {
            report.message =
                "the server answers every resolution with a new conflict; the next run tries again"
            return
        }
        do {
            let resolution = try await resolver.resolve(conflict)
            if try await store.resolve(conflict, resolution) {
                state.conflictResolved(item)
                report.resolved += 1
            }
        } catch let error as LogError {
            throw error
        } catch {
            report.message = "a conflict could not be resolved: \(error)"
        }
    }

    // MARK: Pages

    private mutating func record(_ page: ReplayState.Page) async throws {
        let hasTokenInCursor = page.next.map(sentTokens.isFound(inCursor:)) ?? false
        guard !hasTokenInCursor, let content = EventPage(page.body, without: sentTokens) else {
            state.pageRefused()
            report.message = "the answer is not a page of events"
            return
        }
        report.unusable += content.unusable
        let next = page.next.flatMap { next in
            !next.isEmpty && next.utf8.count <= SyncPulled.cursorBytesMax ? next : nil
        }
        // A page that leads to itself would never end.
        let isLast = content.isEmpty || next == nil || next == page.after
        if !content.isEmpty, let next { cursor = next }
        var hasNew = false
        let parts = content.commits
        for (index, part) in parts.enumerated() {
            // The place where reading goes on is recorded with the last events before it.
            var drafts: [EventDraft] = []
            if index == parts.count - 1, let cursor {
                drafts = [
                    try EventDraft(
                        SyncPulled(by: store.incarnation, next: cursor), id: store.newID())
                ]
            }
            let received = try await receive(part, recordingIfNew: drafts)
            if !drafts.isEmpty, !received.new.isEmpty { cursor = nil }
            try await settle(received.known)
            if !received.new.isEmpty { hasNew = true }
            report.received += received.new.count
            report.unusable += received.clashing.count
            report.refused += received.refused.count
            if received.isForked { try await takeNewName() }
        }
        report.message = state.pageRecorded(page, isLast: isLast, hasNew: hasNew)
        guard isLast else { return }
        report.isBehind = false
        try await recordCursor()
    }

    /// Records events together, or one by one where one of them cannot be recorded.
    private mutating func receive(
        _ events: ArraySlice<ForeignEvent>, recordingIfNew drafts: [EventDraft]
    ) async throws -> Received {
        do {
            return try await store.receive(Array(events), recordingIfNew: drafts)
        } catch is EventError where events.count == 1 {
            report.unusable += 1
            return Received()
        } catch is EventError {
            var received = Received()
            for (index, event) in events.enumerated() {
                let part = try await receive(
                    [event], recordingIfNew: index == events.count - 1 ? drafts : [])
                received.new += part.new
                received.known += part.known
                received.clashing += part.clashing
                received.refused += part.refused
                received.isForked = received.isForked || part.isForked
            }
            return received
        }
    }

    /// G5: what the server hands out, it has: it need not be sent, whatever has been said of it.
    private mutating func settle(_ known: [Position]) async throws {
        let outbox = store.view(Outbox.self)
        let waiting = outbox.held(known)
        guard !waiting.isEmpty else { return }
        var settled = SyncSettled(by: store.incarnation)
        settled.duplicate = outbox.ranges(of: waiting)
        try await store.record(settled)
        report.duplicate += waiting.count
        guard replayer.options.ships else { return }
        state.decided(store.view(Outbox.self).entries)
        seen = store.view(Outbox.self).through
        rest = 0
    }

    /// Records how far has been read, where the last pages brought nothing new.
    private mutating func recordCursor() async throws {
        guard let cursor else { return }
        self.cursor = nil
        guard cursor != store.view(Outbox.self).cursor else { return }
        try await store.record(SyncPulled(by: store.incarnation, next: cursor))
    }
}
