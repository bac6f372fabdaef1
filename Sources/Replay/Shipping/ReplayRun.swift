// One run of the replayer: asks ReplayState for the next action, performs it, records the outcome. All I/O is
// here; all decisions are in ReplayState. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging
import Telemetry

/// The loop of a run. Signals (an answer, a timer, a commit, a trigger) arrive through one mailbox and are
/// handled one after the other.
struct ReplayRun {
    private let replayer: Replayer
    private let end: Replayer.End
    /// Why the resolver left a conflict. Later answers replace the report's message, but not this one.
    private var resolverMessage: String?
    private let progress: (@Sendable (SyncReport) -> Void)?
    private var state: ReplayState
    private var report = SyncReport()
    /// The position up to which the outbox has been loaded into the state.
    private var loadedPosition = Position.zero
    /// The number of events of the outbox after `loadedPosition`.
    private var unloadedCount = 0
    /// The last decision that the state has taken into account.
    private var lastDecision = Position.zero
    /// The offset of the server's clock, as measured in this run.
    private var clockOffset: Int64?
    private var token: AccessToken?
    private var sentTokens = SentTokens()
    private let mail: AsyncStream<Signal>.Continuation
    private var mailbox: AsyncStream<Signal>.Iterator
    private var timers = 0
    /// The time of the next periodic read.
    private var readAt: Int64?
    private var readPlannedAt = Int64.min
    private var pausedFor: (pause: ReplayState.Pause, until: Int64)?
    /// A cursor that is not recorded yet: pages without a new event are recorded when reading ends.
    private var cursor: String?
    /// The stream of new events; nil if the run follows none.
    private var follower: Follower?
    /// The number of pushed events since the cursor was recorded.
    private var pushedSinceRecord = 0
    /// The recovery from a restore of the server, until a page with events is recorded after it.
    private var recovery: LossRecovery?
    private var recoveriesBegun = 0
    /// The comparison with the server and the account that the log has synced with.
    private var peer: PeerCheck
    /// Why the last request failed; nil after a success.
    private var failure: SyncStatus.Obstacle?
    /// What the run waits for, if something is in the way.
    private var obstacle: SyncStatus.Obstacle?
    /// When the run sends or reads next without a signal, if that is planned.
    private var nextAttempt: Int64?
    /// False until the network's state and the rules are known.
    private var knowsConditions: Bool
    /// The number of the account's events that are still to be read, by the server's last answer.
    private var behind: Int?
    /// Whether this run has set `behind`.
    private var knowsBehind = false
    /// The device's time of the last success.
    private var lastSuccess: Int64?

    private enum Signal: Sendable {
        case answered(Exchange)
        case failed(any Error)
        case timer(Int)
        /// A wait was interrupted, or the store was closed: the run ends.
        case stopped
        case committed
        case trigger(Replayer.Trigger)
        case stream(Follower.Signal)
    }

    private struct Exchange: Sendable {
        var number: Int
        var answer: ReplayState.Answer
        /// The verdicts of the answer, if it has any: parsed in the request's task, not in the loop.
        var verdicts: [Verdict]?
        /// True if the transport's timeout ended the request.
        var hasTimedOut: Bool
        var sent: Int64
        var received: Int64
    }

    /// The result of receiving a page.
    private struct ReceivedPage {
        /// The number of its elements.
        let count: Int
        let next: String?
        /// Whether it had an event that the log did not have.
        let hasNew: Bool
    }

    /// The longest wait in a run until nothing moves.
    private static let waitMaxMilliseconds: Int64 = 5_000
    /// The time after which a paused run tries again.
    private static let pauseMilliseconds: Int64 = 60_000
    /// The number of pushed events that the log had already after which the cursor is recorded.
    private static let pushedWithoutRecordMax = 500
    /// The number of recoveries that a run begins.
    private static let recoveriesMax = 3

    init(
        _ replayer: Replayer, until end: Replayer.End, under conditions: ReplayState.Conditions,
        progress: (@Sendable (SyncReport) -> Void)?
    ) {
        self.replayer = replayer
        self.end = end
        self.progress = progress
        peer = PeerCheck(
            replayer.store.syncPeer, address: replayer.transport.serverAddress)
        state = ReplayState(
            requestsMax: replayer.options.requestsMax,
            resolvesConflicts: replayer.options.resolver != nil)
        state.set(conditions)
        knowsConditions = conditions.isReachable
        let (stream, mail) = AsyncStream.makeStream(of: Signal.self)
        self.mail = mail
        mailbox = stream.makeAsyncIterator()
        if isLive, replayer.options.reads, replayer.options.follows,
            let transport = replayer.transport as? any FollowingTransport
        {
            follower = Follower(
                transport, replayer.instruments,
                pollMilliseconds: pollMilliseconds ?? StreamSchedule.pollMilliseconds
            ) { mail.yield(.stream($0)) }
        }
    }

    private var store: EventStore { replayer.store }

    /// The time between two reads while no stream is open, in milliseconds.
    private var pollMilliseconds: Int64? {
        if let interval = replayer.options.readInterval {
            return Int64(interval / .milliseconds(1))
        }
        return follower == nil ? nil : StreamSchedule.pollMilliseconds
    }

    private var isLive: Bool { if case .never = end { true } else { false } }

    // MARK: The loop

    mutating func run(_ triggers: AsyncStream<Replayer.Trigger>?) async throws -> SyncReport {
        let senders = await listen(to: triggers)
        let result: Result<SyncReport, any Error>
        do { result = .success(try await loop()) } catch { result = .failure(error) }
        // No request may still be under way when the next run begins.
        for task in senders + requests.values { task.cancel() }
        prefetched?.lines.cancel()
        await follower?.finish()
        for task in requests.values { await task.value }
        _ = await prefetched?.lines.result
        mail.finish()
        // Without a name, another restore to the same time would look the same.
        if let recovery, recovery.restore.isNamed {
            store.transient(LossRecoveries.self).update(recovery.restore) { _ in recovery }
        }
        SyncActivity.end(in: store, endReason(of: result))
        return try result.get()
    }

    private mutating func loop() async throws -> SyncReport {
        if replayer.options.reads || peer.isSuspect { startReading() }
        state.setClock(offset: await store.clockOffset)
        while !Task.isCancelled {
            // A suspended store records nothing, so its stream must not stay open.
            if isLive { try await store.checkOpen() }
            loadOutbox()
            let now = store.deviceNow
            if case .at(let time) = end, now >= time.milliseconds { break }
            // Before the time at which it was planned, the clock has stepped back.
            if let readAt, readAt <= now || now < readPlannedAt {
                startReading()
            }
            try await follow(now)
            let goesOn: Bool
            switch state.next(now: now) {
            case .send(let request, let number):
                send(request, number)
                goesOn = true
            case .getToken:
                let credentials = replayer.credentials
                await acquireToken(now) { (try await credentials.token(), true) }
                goesOn = true
            case .refreshToken:
                let (credentials, old) = (replayer.credentials, token)
                await acquireToken(now) {
                    let new = try await credentials.refresh(old)
                    return (new, new != nil && new != old)
                }
                goesOn = true
            case .busy(let time):
                (obstacle, nextAttempt) = (failure, nil)
                await prefetchBatch()
                goesOn = try await wait(until: isLive ? time : nil, now)
            case .wait(let time):
                let read = isLive && state.mayRead ? readAt : nil
                (obstacle, nextAttempt) = (failure ?? .postponed, min(time, read ?? time))
                // A lane may wait for an hour; a periodic read does not wait for it.
                let due = isLive ? min(time, nextRead ?? time) : time
                goesOn = try await waitIfAllowed(until: max(due, now + 1), now)
            case .paused(let pause):
                (obstacle, nextAttempt) = (knowsConditions ? .init(pause) : nil, nil)
                goesOn = try await wait(in: pause, now)
            case .idle:
                (obstacle, nextAttempt) = (failure, isLive && state.mayRead ? readAt : nil)
                let outcome = state.resolveSuspect()
                if !outcome.entries.isEmpty { try await recordOutcome(outcome) }
                // With a message, the state is paused now.
                goesOn =
                    outcome.message != nil
                    ? true
                    : isLive ? try await wait(until: nextRead, now) : false
            }
            guard goesOn else { break }
        }
        state.releaseSuspect()
        if unloadedCount > 0 { loadOutbox(all: true) }
        try await recordCursor()
        updateReport()
        report.held = state.heldCount
        report.underWay = []
        if case .at = end, report.message == nil, pending > report.held {
            report.message = "the deadline has passed before all events were sent"
        }
        do {
            try await store.flush()
        } catch let error as LogError where error.code == .diskFull {
            report.message = "the disk is full; records are written when there is free space"
        }
        return report
    }

    /// Starts the tasks that forward signals. Every run gets the closing of the store; a run without end
    /// gets commits and triggers, too.
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

    /// Loads new events of the outbox into the state.
    ///
    /// - Parameter all: false to load only as many as can change the next batch.
    private mutating func loadOutbox(all: Bool = false) {
        guard replayer.options.ships else { return }
        let outbox = store.view(Outbox.self)
        guard !peer.holdsOutbox else {
            unloadedCount = outbox.count
            return
        }
        // Before the first load, the state has no event that a decision could have changed.
        if outbox.lastDecision > lastDecision, loadedPosition > .zero {
            state.decided(outbox.entries)
            loadedPosition = outbox.through
        } else if loadedPosition < outbox.through {
            state.advanceNewestPosition(to: outbox.through)
            var entries = outbox.entries(from: loadedPosition.next).makeIterator()
            while all || state.wantsMore {
                guard let entry = entries.next() else {
                    loadedPosition = outbox.through
                    break
                }
                state.enqueue(entry)
                loadedPosition = entry.position
            }
        }
        lastDecision = outbox.lastDecision
        unloadedCount = loadedPosition < outbox.through ? max(0, outbox.count - state.count) : 0
    }

    /// The number of unsettled events, held ones included.
    private var pending: Int { state.count + unloadedCount }

    private mutating func startReading() {
        report.isBehind = true
        state.read(after: cursor ?? store.view(Outbox.self).cursor)
        planRead(at: pollMilliseconds.map { store.deviceNow + $0 })
    }

    private mutating func planRead(at time: Int64?) {
        (readAt, readPlannedAt) = (time, store.deviceNow)
    }

    /// The time at which the run reads without a signal, or gives up opening a stream.
    private var nextRead: Int64? {
        // Without the permission to read, a timer would wake the run for nothing.
        [state.mayRead ? readAt : nil, follower?.deadline].compactMap(\.self).min()
    }

    // MARK: Following

    /// PUSH-10 to PUSH-16: records pushed events, and opens a stream once all events are read.
    private mutating func follow(_ now: Int64) async throws {
        guard follower != nil else { return }
        guard state.mayFollow else {
            if follower?.connection == .pushed { startReading() }
            follower?.close()
            return
        }
        let random = store.randomFraction()
        if let time = follower?.endIfWithheld(now: now, random: random) {
            streamEnded(readingAt: time)
        }
        // A request under way may have sent events that were pushed.
        while !state.isBusy, !Task.isCancelled, let page = follower?.dequeuePage() {
            guard try await recordPushed(page) else { break }
        }
        if !report.isBehind, follower?.mayOpen(now: now) == true {
            let (cursor, token) = (cursor ?? store.view(Outbox.self).cursor, token?.value)
            let account = store.account ?? peer.current.account
            follower?.account = account
            follower?.open(after: cursor, token: token, now: now)
        }
    }

    private mutating func streamEnded(readingAt time: Int64) {
        planRead(at: time)
        // No stream is opened before everything was read.
        report.isBehind = true
    }

    private mutating func handleStream(_ signal: Follower.Signal) {
        let (now, random) = (store.deviceNow, store.randomFraction())
        if let time = follower?.handle(signal, now: now, random: random) {
            streamEnded(readingAt: time)
        } else if case .opened = signal, follower?.connection == .pushed {
            planRead(at: nil)
        }
    }

    /// Records a page of pushed events, if it continues where the log ends. Otherwise ends the stream and
    /// reads: a page was recorded meanwhile, or the page cannot be used.
    ///
    /// - Returns: whether the page was recorded.
    private mutating func recordPushed(_ page: ReplayState.Page) async throws -> Bool {
        guard page.after == cursor ?? store.view(Outbox.self).cursor,
            let content = try await receive(page)
        else {
            let (now, random) = (store.deviceNow, store.randomFraction())
            if let time = follower?.endUnusable(now: now, random: random) {
                streamEnded(readingAt: time)
            }
            return false
        }
        pushedSinceRecord += content.count
        if cursor == nil { pushedSinceRecord = 0 }
        if pushedSinceRecord >= Self.pushedWithoutRecordMax {
            try await recordCursor()
            pushedSinceRecord = 0
        }
        succeeded(at: store.deviceNow)
        publishReport()
        return true
    }

    // MARK: Waiting

    /// Waits until a time that the state has named, if that is before the end of the run.
    ///
    /// - Returns: false if the run is to end.
    private mutating func waitIfAllowed(until time: Int64, _ now: Int64) async throws -> Bool {
        switch end {
        case .whenNothingMoves:
            guard time - now <= Self.waitMaxMilliseconds else { return false }
        case .at(let end):
            guard time < end.milliseconds else { return false }
        case .never: break
        }
        return try await wait(until: time, now)
    }

    /// Waits for a signal while the state is paused. If the server or the transport is the reason, the run
    /// also tries again after `pauseMilliseconds`. Without a network, or where syncing is not allowed, no
    /// timer runs.
    ///
    /// - Returns: false if the run is to end.
    private mutating func wait(in pause: ReplayState.Pause, _ now: Int64) async throws -> Bool {
        if case .refused(let error) = pause { report.refusal = error }
        let isNews = report.message != pause.message
        report.message = pause.message
        switch pause {
        case .offline, .notAllowed:
            // Not published: at the start the network's state is not known yet.
            return isLive ? try await wait(until: nil, now) : false
        case .unauthorized, .endpoint, .refused:
            if isNews {
                replayer.logger.debug("\(pause.message)")
                publishReport()
            }
            // A commit does not restart the wait.
            if pausedFor?.pause != pause || (pausedFor?.until ?? 0) > now + Self.pauseMilliseconds {
                pausedFor = (pause, now + Self.pauseMilliseconds)
            }
            let time = pausedFor?.until ?? now
            nextAttempt = time
            if time > now {
                guard try await waitIfAllowed(until: time, now) else { return false }
            }
            if store.deviceNow >= time {
                pausedFor = nil
                state.resume()
            }
            return true
        }
    }

    /// Waits for a signal, or until a time.
    ///
    /// - Returns: false if the run is to end.
    private mutating func wait(until time: Int64?, _ now: Int64) async throws -> Bool {
        publishActivity()
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
        while let signal = await mailbox.next() {
            switch signal {
            case .timer(let number):
                // The timer of an earlier wait may have fired before it was cancelled.
                if number == timers { return true }
                continue
            case .stopped: return false
            case .failed(let error): throw error
            case .committed: return true
            case .trigger(let trigger):
                handleTrigger(trigger)
                return true
            case .stream(let signal):
                handleStream(signal)
                return true
            case .answered(let exchange):
                try await handleExchange(exchange)
                // The next request may time out, too: a run until nothing moves does not wait twice.
                if case .whenNothingMoves = end, exchange.hasTimedOut { return false }
                return true
            }
        }
        return false
    }

    private mutating func handleTrigger(_ trigger: Replayer.Trigger) {
        switch trigger {
        case .conditions(let conditions):
            knowsConditions = true
            state.set(conditions)
            guard follower != nil else { return }
            // A connection of the network before would be silent.
            follower?.networkChanged()
            startReading()
        case .now:
            state.demand()
            // The system may have closed the connection while the app was suspended.
            follower?.close()
            guard replayer.options.reads else { return }
            let planned = readAt
            startReading()
            // The read at which the wait of a refused stream ends stays planned.
            if follower != nil, let planned, let readAt { planRead(at: min(planned, readAt)) }
        }
    }

    // MARK: Tokens

    private mutating func acquireToken(
        _ now: Int64,
        _ get: @escaping @Sendable () async throws -> (AccessToken?, isUsable: Bool)
    ) async {
        do {
            let (new, isUsable) = try await Self.withDeadline(replayer, end, get)
            guard isUsable else {
                state.tokenRefused()
                return
            }
            token = new
            if let new { sentTokens.insert(new.value) }
            state.tokenChanged(expiresAt: new?.expiresAt?.milliseconds, now: store.deviceNow)
        } catch {
            let outcome = state.tokenFailed(
                "no token: \(Self.message(of: error))", now: now, random: store.randomFraction())
            report.message = outcome.message
            failed(outcome.message)
            publishReport()
        }
    }

    // MARK: Exchanges

    private var requests: [Int: Task<Void, Never>] = [:]
    /// The events of each unanswered request.
    private var sent: [Int: [ReplayItem]] = [:]

    /// The prefetched batch: its positions and the task that reads its lines.
    private var prefetched: (positions: [Position], lines: Task<[UInt8], any Error>)?

    /// Starts to read the lines of the next batch while other requests are under way.
    private mutating func prefetchBatch() async {
        guard let items = state.prefetchBatch() else { return }
        // At most one task reads lines at a time.
        _ = await prefetched?.lines.result
        prefetched = (items.map(\.position), read(items))
    }

    private func read(_ items: [ReplayItem]) -> Task<[UInt8], any Error> {
        let positions = items.map(\.position)
        let bytes = items.reduce(0) { $0 + $1.lineBytes }
        return Task { [store] in try await store.jsonArray(of: positions, bytes: bytes) }
    }

    /// Sends the prefetched batch, unless a decision was recorded since or the run is over.
    private mutating func sendPrefetchedBatch() {
        if case .at(let time) = end, store.deviceNow >= time.milliseconds { return }
        guard !Task.isCancelled, store.view(Outbox.self).lastDecision == lastDecision,
            let (request, number) = state.sendPrefetchedBatch(now: store.deviceNow)
        else { return }
        send(request, number)
    }

    /// The task that reads the lines of a batch: the prefetched one, or a new one.
    private mutating func lines(of items: [ReplayItem]) -> Task<[UInt8], any Error> {
        guard let prefetched, prefetched.positions == items.map(\.position) else {
            return read(items)
        }
        self.prefetched = nil
        return prefetched.lines
    }

    private mutating func send(_ request: ReplayState.Request, _ number: Int) {
        if case .append(let items) = request { sent[number] = items }
        if progress != nil, let items = sent[number] {
            report.underWay.formUnion(items.lazy.map(\.id))
            publishReport()
        }
        let call: @Sendable () async throws -> TransportRequest
        switch request {
        case .append(let items):
            let lines = lines(of: items)
            call = { .append(batch: try await lines.value) }
        case .read(let cursor): call = { .read(after: cursor) }
        }
        send(number, call)
    }

    /// Sends a request in a task of its own. The answer comes through the mailbox.
    private mutating func send(
        _ number: Int, _ call: @escaping @Sendable () async throws -> TransportRequest
    ) {
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
            // The recorded cursor is another server's. Handled as a refused cursor: G2.
            answer = .reply(TransportReply(status: 400))
        } catch let error as TransportError where error.isMisuse {
            throw error
        } catch let error as TransportError where !error.isTransient {
            answer = .refused(error)
        } catch {
            hasTimedOut = (error as? TransportError)?.code == .timedOut
            answer = .failure("no answer: \(message(of: error))")
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

    /// Sends a request. In a run that ends at a time, throws `timedOut` at that time.
    private static func send(
        _ call: TransportRequest, _ token: String?, _ replayer: Replayer, _ end: Replayer.End
    ) async throws -> TransportReply {
        let instruments = replayer.instruments
        let reply = try await instruments.measure(
            .syncRequest, failure: { $0.status == 200 ? nil : "http-\($0.status)" }
        ) {
            try await withDeadline(replayer, end) {
                try await replayer.send(call, token: token)
            }
        }
        if case .append(let batch) = call { instruments.count(.sentBytes, batch.count) }
        instruments.count(.receivedBytes, reply.body.count)
        return reply
    }

    /// Runs `body`. In a run that ends at a time, cancels it then and throws `timedOut`.
    private static func withDeadline<Value: Sendable>(
        _ replayer: Replayer, _ end: Replayer.End,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard case .at(let time) = end else { return try await body() }
        let remaining = max(0, time.milliseconds - replayer.store.deviceNow)
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await replayer.sleep(.milliseconds(remaining))
                throw TransportError(
                    .timedOut, location: "server", "the run ended before the server answered")
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    /// The system's description of an error. It never contains the request, which has a token.
    private static func message(of error: any Error) -> String {
        (error as NSError).localizedDescription
    }

    private mutating func handleExchange(_ exchange: Exchange) async throws {
        guard exchange.number != state.recoveryNumber else { return handleRecoveryAnswer(exchange) }
        requests[exchange.number] = nil
        let exchange = vetted(exchange)
        let items = sent.removeValue(forKey: exchange.number) ?? []
        if progress != nil { report.underWay.subtract(items.lazy.map(\.id)) }
        // The server's message may contain a token, which must not be recorded.
        let outcome = state.handleAnswer(
            exchange.answer, with: exchange.verdicts.map(sentTokens.masked), to: exchange.number,
            now: exchange.received, random: store.randomFraction())
        // Before the record is written, so that the next batch is sent meanwhile.
        sendPrefetchedBatch()
        // The state has dropped the batch: its lines, or the error from reading them, are not needed.
        if !state.hasPrefetchedBatch { prefetched = nil }
        if let message = outcome.message { replayer.logger.debug("\(message)") }
        report.message = outcome.message
        report.refusal = if case .refused(let error) = exchange.answer { error } else { nil }
        // Only a reply with verdicts is known to come from the sync server: a captive portal sends a date,
        // too.
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
        // Before the verdicts: events that are settled belong to a known peer.
        if outcome.isServers || report.refusal != nil { try await recordCursor() }
        try await recordOutcome(outcome, clock: clock)
        await recordAttempts(at: items, outcome, exchange.received)
        for (item, current) in outcome.conflicts {
            try await resolveConflict(of: item, current: current)
        }
        if let page = outcome.page { try await recordPage(page) }
        if let restore = outcome.restore { try await recoverLoss(from: restore) }
        if case .reply(let reply) = exchange.answer, reply.status == 200, report.message == nil {
            if outcome.page != nil {
                (behind, knowsBehind) = (report.isBehind ? reply.remaining : 0, true)
            }
            succeeded(at: exchange.received)
        } else {
            failed(report.message)
        }
        publishReport()
    }

    /// G7: ships the next batch of events that the restored server may lack. After the last one, reads from the
    /// first page: the cursor counts events that the server does not have.
    private mutating func recoverLoss(from restore: ServerRestore) async throws {
        // The next read is answered in the same way, with no batch of the outbox under way.
        guard !state.isBusy else { return }
        (behind, knowsBehind) = (nil, true)
        guard replayer.options.ships else {
            state.pageRefused()
            report.message =
                "the server was restored, or is another one than before; a run that ships is "
                + "needed before the next read"
            return
        }
        guard try await prepareRecovery(from: restore), var recovery else { return }
        guard !recovery.isComplete else { return readFromStart() }
        // Otherwise the change would copy the events.
        self.recovery = nil
        defer { self.recovery = recovery }
        let action = try await recovery.next(store)
        report.addRecoveryCounts(recovery.takeCounts())
        switch action {
        case .send(let batch):
            send(state.registerRecovery()) { .append(batch: batch) }
        case .wait(let answer):
            recoveryFailed(answer, to: state.registerRecovery(), at: store.deviceNow)
        case .postponed:
            state.pageRefused()
            report.message =
                "the server was restored and asks to send some events that it lacks again later"
        case .complete:
            report.add(restore)
            report.compacted += recovery.compacted
            let text = "\(report.shippedAgain.counted("event")) shipped again"
            replayer.logger.notice("the server was restored or is another one; \(text)")
            readFromStart()
            if let other = peer.takeOther() { try await record(other, next: nil) }
        }
    }

    /// Continues the recovery from a restore, or begins it.
    ///
    /// - Returns: false if the run is cancelled, or if too many were begun: servers that disagree would have each
    ///   other's recovery begin anew without end.
    private mutating func prepareRecovery(from restore: ServerRestore) async throws -> Bool {
        guard recovery?.restore != restore else { return true }
        let kept = store.transient(LossRecoveries.self)
        recovery = kept[restore]
        // A recovery from another restore is out of date.
        kept.update(Array(kept.values.keys)) { _ in nil }
        guard recovery == nil else { return true }
        guard recoveriesBegun < Self.recoveriesMax else {
            state.pageRefused()
            report.message =
                "the server names a different restore, or a different database, each time"
            return false
        }
        recoveriesBegun += 1
        let new = try await LossRecovery(store, after: restore)
        // A scan that is cancelled ends early.
        guard !Task.isCancelled else { return false }
        recovery = new
        return true
    }

    private mutating func handleRecoveryAnswer(_ exchange: Exchange) {
        requests[exchange.number] = nil
        switch recovery?.handleAnswer(exchange.answer, with: exchange.verdicts) {
        case nil, .refused: state.recoveryRefused()
        case .processed:
            state.recoveryProcessed()
            report.message = nil
            succeeded(at: exchange.received)
        case .failed(let answer):
            recoveryFailed(answer, to: exchange.number, at: exchange.received)
            failed(report.message)
        }
        if let counts = recovery?.takeCounts() { report.addRecoveryCounts(counts) }
        publishReport()
    }

    private mutating func recoveryFailed(
        _ answer: ReplayState.Answer, to number: Int, at time: Int64
    ) {
        let outcome = state.handleAnswer(
            answer, to: number, now: time, random: store.randomFraction())
        report.message = outcome.message.map {
            "the server was restored, and a batch of events that it lacks failed: \($0)"
        }
        report.refusal = if case .refused(let error) = answer { error } else { nil }
    }

    private mutating func readFromStart() {
        cursor = nil
        state.readFromStart()
        follower?.networkChanged()
    }

    // MARK: Status

    private mutating func succeeded(at time: Int64) {
        failure = nil
        lastSuccess = time
    }

    private mutating func failed(_ message: String?) {
        guard let message else { return }
        failure = SyncStatus.Obstacle(kind: .failed, message: message)
    }

    /// Publishes what the run does now: `EventStore.syncStatus`.
    private func publishActivity() {
        SyncActivity.update(in: store) {
            $0.connection =
                follower?.connection ?? (isLive && pollMilliseconds != nil ? .polled : .onDemand)
            $0.isExchanging = state.isBusy
            if knowsBehind { $0.behind = behind }
            if let lastSuccess { $0.lastSuccess = Timestamp(milliseconds: lastSuccess) }
            $0.nextAttempt = nextAttempt.map { Timestamp(milliseconds: $0) }
            $0.obstacle = obstacle
        }
    }

    /// The reason why the run has ended before everything was exchanged; nil if it was cancelled.
    private func endReason(
        of result: Result<SyncReport, any Error>
    ) -> SyncStatus.Obstacle? {
        switch result {
        case .success(let report):
            guard !Task.isCancelled else { return nil }
            return report.message.map { message in
                [obstacle, failure].compactMap(\.self).first { $0.message == message }
                    ?? SyncStatus.Obstacle(kind: .ended, message: message)
            }
        case .failure(is CancellationError): return nil
        case .failure(let error):
            return SyncStatus.Obstacle(kind: .ended, message: Self.message(of: error))
        }
    }

    private mutating func publishReport() {
        updateReport()
        progress?(report)
    }

    private mutating func updateReport() {
        report.pending = pending
        report.message = report.message ?? resolverMessage
    }

    /// Stores the attempt with each event of a request without verdicts, in memory (OUT-10). After a request
    /// with verdicts, drops the attempts with events that have left the outbox.
    private func recordAttempts(
        at items: [ReplayItem], _ outcome: ReplayState.Outcome, _ received: Int64
    ) async {
        let attempts = store.transient(SyncAttempts.self)
        if outcome.isServers {
            guard !attempts.isEmpty else { return }
            let outbox = store.view(Outbox.self)
            let settled = attempts.values.keys.filter { outbox.entry(at: $0) == nil }
            attempts.update(settled) { _ in nil }
        } else {
            let attempt = SyncAttempt(
                at: Timestamp(milliseconds: received + (await store.clockOffset)),
                message: outcome.message)
            attempts.update(items.lazy.map(\.position)) { _ in attempt }
        }
    }

    // MARK: Records

    private mutating func recordOutcome(
        _ outcome: ReplayState.Outcome, clock: Int64? = nil
    ) async throws {
        let settled = settledRecord(of: outcome, clock: clock)
        if !settled.isEmpty { try await store.record(settled) }
        if outcome.forked.contains(store.incarnation) { try await renewIncarnation() }
    }

    /// The record of an outcome. On return no snapshot of the outbox is referenced: otherwise the store
    /// would copy the whole outbox to fold the record.
    private mutating func settledRecord(
        of outcome: ReplayState.Outcome, clock: Int64?
    ) -> SyncSettled {
        var settled = SyncSettled(by: store.incarnation)
        let outbox = store.view(Outbox.self)
        // A page that was read meanwhile may have settled some of the events.
        let applied = outbox.unsettledPositions(among: outcome.applied)
        let duplicate = outbox.unsettledPositions(among: outcome.duplicate)
        settled.applied = outbox.ranges(of: applied)
        settled.duplicate = outbox.ranges(of: duplicate)
        // A conflict that is still unresolved is recorded already.
        settled.entries = outcome.entries.filter { entry in
            entry.outcome != .conflict
                || outbox.entry(at: Position(entry.position))?.status != .conflict
        }
        // An exhausted event that was tried again has been counted before.
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

    /// Gives the log a new incarnation, because another log writes with the same one.
    private mutating func renewIncarnation() async throws {
        try await store.mintIncarnation()
        report.tookNewName = true
        replayer.logger.debug(
            "another log writes with the same incarnation; this log has a new one now")
    }

    /// Records the server's event, asks the resolver, if there is one, and records its decision.
    private mutating func resolveConflict(of item: ReplayItem, current: JSONValue?) async throws {
        // The resolver, or the user later, needs the server's event to decide.
        if let event = EventStore.event(current) {
            let received = try await receive([event], recordingIfNew: [])
            report.received += received.new.count
            report.unusable += received.clashing.count
            report.refused += received.refused.count
            if received.isForked { try await renewIncarnation() }
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
                resolverMessage = nil
            }
        } catch let error as LogError {
            throw error
        } catch {
            resolverMessage = "a conflict could not be resolved: \(error)"
        }
    }

    // MARK: The peer

    /// The exchange, with the effect of another server or account.
    private mutating func vetted(_ exchange: Exchange) -> Exchange {
        var exchange = exchange
        let wasSuspect = peer.isSuspect
        exchange.answer = peer.vet(
            exchange.answer, isRead: sent[exchange.number] == nil
        ) { [sentTokens] in !sentTokens.isFound(inCursor: $0) }
        if peer.isSuspect, !wasSuspect { startReading() }
        return exchange
    }

    // MARK: Pages

    private mutating func recordPage(_ page: ReplayState.Page) async throws {
        guard replayer.options.reads else {
            // The read has shown the server.
            state.pageRefused()
            report.isBehind = false
            try await recordCursor()
            return
        }
        guard let content = try await receive(page) else {
            peer.dropNews()
            state.pageRefused()
            report.message = "the answer is not a page of events"
            return
        }
        // A page that leads to itself would never end.
        let isLast =
            content.count == 0 || content.next == nil || content.next == page.after
        report.message = state.pageRecorded(page, isLast: isLast, hasNew: content.hasNew)
        if isLast {
            report.isBehind = false
            try await recordCursor()
        }
        // The recorded cursor is one since the restore.
        if content.count > 0, cursor == nil, recovery?.isComplete == true { recovery = nil }
    }

    /// Records the events of a page.
    ///
    /// - Returns: nil if it is no page of events.
    private mutating func receive(_ page: ReplayState.Page) async throws -> ReceivedPage? {
        let hasTokenInCursor = page.next.map(sentTokens.isFound(inCursor:)) ?? false
        guard !hasTokenInCursor, let content = EventPage(page.body, without: sentTokens) else {
            return nil
        }
        report.unusable += content.unusable
        let next = page.next.flatMap { next in
            !next.isEmpty && next.utf8.count <= SyncPulled.cursorBytesMax ? next : nil
        }
        if !content.isEmpty, let next { cursor = next }
        var hasNew = false
        let parts = content.commits
        for (index, part) in parts.enumerated() {
            // The cursor is recorded in one commit with the last events before it.
            var drafts: [EventDraft] = []
            if index == parts.count - 1, let cursor {
                drafts = [
                    try EventDraft(
                        SyncPulled(by: store.incarnation, next: cursor, peer: peer.current),
                        id: store.newID())
                ]
            }
            let received = try await receive(part, recordingIfNew: drafts)
            if !drafts.isEmpty, !received.new.isEmpty {
                cursor = nil
                peer.didRecord(peer.current)
            }
            try await settleKnownEvents(received.known)
            if !received.new.isEmpty { hasNew = true }
            report.received += received.new.count
            report.unusable += received.clashing.count
            report.refused += received.refused.count
            if received.isForked { try await renewIncarnation() }
        }
        return ReceivedPage(
            count: content.events.count + content.unusable, next: next, hasNew: hasNew)
    }

    /// Records events in one commit, or one by one if one of them cannot be recorded.
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

    /// G5: settles own events that the server has sent: it has them, whatever it answered before.
    private mutating func settleKnownEvents(_ known: [Position]) async throws {
        let outbox = store.view(Outbox.self)
        let waiting = outbox.unsettledPositions(among: known)
        guard !waiting.isEmpty else { return }
        var settled = SyncSettled(by: store.incarnation)
        settled.duplicate = outbox.ranges(of: waiting)
        try await store.record(settled)
        report.duplicate += waiting.count
        guard replayer.options.ships else { return }
        state.decided(store.view(Outbox.self).entries)
        loadedPosition = store.view(Outbox.self).through
        unloadedCount = 0
    }

    /// Records the cursor after pages without a new event, and the peer that a reply has shown.
    private mutating func recordCursor() async throws {
        let recorded = store.view(Outbox.self).cursor
        let next = cursor ?? recorded
        cursor = nil
        guard next != recorded || peer.news != nil else { return }
        try await record(peer.current, next: next)
    }

    private mutating func record(_ current: SyncPeer, next: String?) async throws {
        try await store.record(SyncPulled(by: store.incarnation, next: next, peer: current))
        peer.didRecord(current)
    }
}
