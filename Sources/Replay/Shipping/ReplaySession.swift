// A run of the replayer: owns the mailbox, asks the machines for the next action and performs their effects. It
// decides nothing. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging

/// The loop of a run.
struct ReplaySession {
    private let replayer: Replayer
    private let requests: RequestTask
    private var exchange: ReplayEffects
    private var mailbox: RunMailbox
    private var waits: RunWaits
    private var tasks: [Int: Task<Void, Never>] = [:]
    /// The number of events that are set aside and were not answered in time.
    private var timeoutsAlone = 0
    private var store: EventStore { replayer.store }

    init(
        _ replayer: Replayer, until end: Replayer.End, under conditions: ReplayState.Conditions,
        progress: (@Sendable (SyncReport) -> Void)?
    ) {
        self.replayer = replayer
        requests = RequestTask(replayer: replayer, end: end)
        mailbox = RunMailbox(sleep: replayer.sleep)
        waits = RunWaits(until: end, knowsConditions: conditions.isReachable)
        exchange = ReplayEffects(
            replayer, under: conditions, isLive: waits.isLive, progress: progress)
        guard waits.isLive else { return }
        exchange.stream = StreamDriver(replayer) { [mail = mailbox.mail] in
            mail.yield(.stream($0))
        }
    }

    mutating func run(_ triggers: AsyncStream<Replayer.Trigger>?) async throws -> SyncReport {
        await mailbox.listen(to: store, triggers, isLive: waits.isLive)
        let result: Result<SyncReport, any Error>
        do { result = .success(try await loop()) } catch { result = .failure(error) }
        // No request may still be under way when the next run begins.
        mailbox.stopListening()
        for task in tasks.values { task.cancel() }
        await exchange.stream?.finish()
        for task in tasks.values { await task.value }
        mailbox.close()
        exchange.recovery.keep()
        SyncActivity.end(in: store, exchange.progress.endReason(of: result))
        return try result.get()
    }

    private mutating func loop() async throws -> SyncReport {
        if replayer.options.reads || exchange.peer.isSuspect { exchange.startReading() }
        await exchange.startClock()
        while !Task.isCancelled {
            // A suspended store records nothing, so its stream must not stay open.
            if waits.isLive { try await store.checkOpen() }
            exchange.loadOutbox()
            let now = store.deviceNow
            if waits.isOver(now: now) { break }
            if exchange.state.reading.isDue(now: now) { exchange.startReading() }
            try await exchange.follow()
            guard try await perform(exchange.state.next(now: now), now) else { break }
        }
        return try await exchange.finish(waits.end)
    }

    // MARK: Actions

    /// - Returns: false if the run is to end.
    private mutating func perform(
        _ action: ReplayState.Action, _ now: Int64
    ) async throws -> Bool {
        switch action {
        case .send(let request, let number): send(request, number)
        case .getToken, .refreshToken: await acquireToken(action, now)
        case .wait, .busy, .paused, .idle:
            let reads = RunWaits.Reads(
                planned: exchange.state.reading.nextRead, deadline: exchange.stream?.deadline,
                mayRead: exchange.state.mayRead)
            let (step, obstacle, time) = waits.step(
                for: action, reads, failure: exchange.progress.failure, now: now)
            exchange.progress.fold(.waiting(obstacle, nextAttempt: time))
            if case .idle = action {
                let effects = exchange.state.resolveSuspect()
                for effect in effects { try await exchange.perform(effect) }
                // With a message, the state is paused now.
                if effects.message != nil { return true }
            }
            if case .paused(let pause) = action { report(pause) }
            switch step {
            case .end: return exchange.state.probeBeforeEnd(now: now)
            case .resume: exchange.state.resume()
            case .wait(let time): return try await wait(until: time, now)
            }
        }
        return true
    }

    private mutating func report(_ pause: ReplayState.Pause) {
        if case .refused(let error) = pause { exchange.progress.fold(.refused(error)) }
        let isNews = exchange.progress.report.message != pause.message
        exchange.progress.fold(.message(pause.message, SyncFailure(pause)))
        // Without a network or a permission nothing is published: at the start neither is known yet.
        guard isNews, pause != .offline, pause != .notAllowed else { return }
        replayer.logger.debug("\(pause.message)")
        exchange.publishReport()
    }

    private mutating func acquireToken(_ action: ReplayState.Action, _ now: Int64) async {
        let (credentials, old, renewed) = (
            replayer.credentials, exchange.token, RenewedTokens(store)
        )
        let keepsOld = exchange.state.isRenewingEndedToken(now: now)
        do {
            let new = try await requests.withDeadline {
                guard action == .refreshToken else { return try await credentials.token() }
                let new = try await credentials.refresh(old)
                renewed.insert(old, new)
                return keepsOld ? new ?? old : new
            }
            guard action == .getToken || keepsOld || (new != nil && new != old) else {
                return exchange.renewalRefused()
            }
            exchange.use(new)
        } catch {
            let reason = "no token: \(RequestTask.message(of: error))"
            let effects = exchange.state.tokenFailed(
                reason, now: now, random: store.randomFraction())
            exchange.progress.fold(.message(effects.message))
            exchange.progress.fold(.failed)
            exchange.publishReport()
        }
    }

    private mutating func send(_ request: ReplayState.Request, _ number: Int) {
        switch request {
        case .append(let items):
            exchange.publishReport()
            let (positions, bytes) = (items.map(\.position), items.reduce(0) { $0 + $1.lineBytes })
            send(number) { [store] in
                .append(batch: try await store.jsonArray(of: positions, bytes: bytes))
            }
        case .read(let cursor): send(number) { .read(after: cursor) }
        }
    }

    /// Sends a request in a task of its own. The answer comes through the mailbox.
    private mutating func send(
        _ number: Int, isOffer: Bool = false,
        _ call: @escaping @Sendable () async throws -> TransportRequest
    ) {
        tasks[number] = Task { [requests, mail = mailbox.mail, token = exchange.token?.value] in
            do {
                let answer = try await requests.exchange(
                    try await call(), number, token: token, isOffer: isOffer)
                mail.yield(.answered(answer))
            } catch {
                mail.yield(.failed(error))
            }
        }
    }

    // MARK: Signals

    /// Waits for a signal, or until a time.
    ///
    /// - Returns: false if the run is to end.
    private mutating func wait(until time: Int64?, _ now: Int64) async throws -> Bool {
        exchange.progress.publish(
            in: store, connection: exchange.connection, isExchanging: exchange.state.isBusy)
        switch await mailbox.next(until: time, now: now) {
        case nil, .stopped: return false
        case .failed(let error): throw error
        case .committed, .timer: break
        case .trigger(let trigger):
            if case .conditions = trigger { waits.knowsConditions = true }
            exchange.handle(trigger)
        case .stream(let signal): exchange.handleStream(.signal(signal))
        case .answered(let answer):
            tasks[answer.number] = nil
            // A part of a search, also the last one, or an event that is sent alone; of those that are set aside only
            // the first, since each costs a time-out.
            var isTrial = exchange.state.isSearching
            if let failures = exchange.state.failuresAlone(of: answer.number) {
                if answer.hasTimedOut, failures > 0 { timeoutsAlone += 1 }
                isTrial = isTrial || failures == 0 || timeoutsAlone < 2
            }
            if let (number, request) = try await exchange.handle(answer) {
                send(number, isOffer: true) { request }
            }
            let isSearched =
                isTrial || exchange.state.isSearching || exchange.recovery.isSearching
            if answer.hasTimedOut, !isSearched, waits.endsAfterTimeout {
                return exchange.state.probeBeforeEnd(now: store.deviceNow)
            }
        }
        return true
    }
}
