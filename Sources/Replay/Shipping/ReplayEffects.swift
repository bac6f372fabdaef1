// Performs the effects of the machines on the store and the stream, and folds what happened into the report. Part
// of ReplaySession. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging

/// The exchange of a run, apart from its requests: the machines, and what their effects are performed on.
struct ReplayEffects {
    /// A batch to send beside those of the outbox.
    typealias Outgoing = (number: Int, request: TransportRequest)

    let replayer: Replayer
    let records: ExchangeRecords
    private let progressHandler: (@Sendable (SyncReport) -> Void)?
    var state: ReplayState
    var progress: SyncProgress
    var stream: StreamDriver?
    var recovery: RecoveryDriver
    /// The comparison with the server and the account that the log has synced with.
    var peer: PeerCheck
    /// What the run knows of the read of an app's own API.
    var statesRead = StatesRead()
    /// The server's clock, by the record and the answers of this run.
    private var clock = ServerClock(offset: 0)
    private(set) var token: AccessToken?
    private(set) var sentTokens = SentTokens()
    let isLive: Bool
    var store: EventStore { replayer.store }

    init(
        _ replayer: Replayer, under conditions: ReplayState.Conditions, isLive: Bool,
        progress: (@Sendable (SyncReport) -> Void)?
    ) {
        self.replayer = replayer
        self.isLive = isLive
        records = ExchangeRecords(replayer)
        progressHandler = progress
        state = ReplayState(
            requestsMax: replayer.options.requestsMax,
            // A read of the API shows the state that has won; the change is not sent for it.
            resolvesConflicts: replayer.options.resolver != nil && replayer.sources.isEmpty,
            eventsMax: replayer.transport.eventsMax)
        state.readsAlone = !replayer.sources.isEmpty
        state.set(conditions)
        peer = PeerCheck(replayer.store.syncPeer, address: replayer.transport.serverAddress)
        recovery = RecoveryDriver(replayer.store, ships: replayer.options.ships)
        self.progress = SyncProgress(replayer.store)
    }

    /// - Parameter all: false to load only as many events as can change the next batch.
    mutating func loadOutbox(all: Bool = false) {
        guard replayer.options.ships, !peer.holdsOutbox else { return }
        state.sending.queue.load(
            store.view(Outbox.self), clockOffset: state.token.clockOffset, all: all)
    }

    /// Uses a new token, or none.
    mutating func use(_ new: AccessToken?) {
        token = new
        if let new { sentTokens.insert(new.value) }
        state.tokenChanged(
            expiresAt: new?.expiresAt?.milliseconds, now: store.deviceNow,
            isRenewed: new.map(RenewedTokens(store).contains) ?? false)
    }

    /// Handles that a renewal has brought no other token.
    mutating func renewalRefused() {
        // Changes are sent with it all the same (READ-7).
        guard statesRead.refusal == .renewing else { return state.tokenRefused() }
        use(token)
    }

    /// Sets the clock to what the store knows of it.
    mutating func startClock() async {
        clock = ServerClock(
            offset: await store.clockOffset, candidate: store.view(Outbox.self).clockCandidate)
        state.setClock(offset: clock.offset)
    }

    mutating func finish(_ end: Replayer.End) async throws -> SyncReport {
        state.releaseSuspect()
        loadOutbox(all: true)
        try await recordCursor()
        let held = state.heldCount
        if case .at = end, snapshot().message == nil, pending > held {
            progress.fold(
                .message("the deadline has passed before all events were sent", .outOfTime))
        }
        try await flush()
        progress.fold(.held(held))
        return snapshot()
    }

    /// Makes the records durable, as far as the disk has space.
    private mutating func flush() async throws {
        do {
            try await store.flush()
        } catch let error as LogError where error.code == .diskFull {
            progress.fold(
                .message(
                    "the disk is full; records are written when there is free space", .diskFull))
        }
    }

    // MARK: Answers

    /// Handles the answer to a request.
    ///
    /// - Returns: a batch to send, after a restore of the server.
    mutating func handle(_ exchange: RequestTask.Exchange) async throws -> Outgoing? {
        guard exchange.number != state.recoveryNumber else {
            handleRecoveryAnswer(exchange)
            return nil
        }
        let exchange = vetted(exchange)
        // The server's message may contain a token, which must not be recorded.
        let effects = state.handleAnswer(
            exchange.answer, with: exchange.verdicts.map(sentTokens.masked), to: exchange.number,
            now: exchange.received, random: store.randomFraction())
        let message = effects.message.map(sentTokens.masked)
        let isServers = exchange.answer.isServers
        // The transport's own answer does not end what the server's last one has shown.
        if isServers || message != nil {
            progress.fold(.answered(exchange.answer, message: message))
        }
        if let message { replayer.logger.debug("\(message)") }
        if progress.report.refusal != nil { try await recordCursor() }
        var outgoing: Outgoing?
        for effect in effects { outgoing = try await perform(effect, exchange) ?? outgoing }
        foldEnd(of: exchange, hasPage: effects.page != nil)
        publishReport()
        return outgoing
    }

    private mutating func foldEnd(of exchange: RequestTask.Exchange, hasPage: Bool) {
        guard case .reply(let reply) = exchange.answer, reply.status == 200, reply.isServers else {
            return progress.fold(.failed)
        }
        if hasPage, progress.report.message == nil {
            progress.fold(.behind(state.reading.isBehind ? reply.remaining : 0))
        }
        progress.fold(.ended(at: exchange.received))
    }

    /// The exchange, with the effect of another server or account.
    private mutating func vetted(_ exchange: RequestTask.Exchange) -> RequestTask.Exchange {
        var exchange = exchange
        let wasSuspect = peer.isSuspect
        peer.setRecorded(store.syncPeer)
        exchange.answer = peer.vet(exchange.answer, isRead: state.isRead(exchange.number)) {
            [sentTokens] in !sentTokens.isFound(inCursor: $0)
        }
        if peer.isSuspect, !wasSuspect { startReading() }
        if statesRead.vet(
            &exchange.answer,
            isRead: !replayer.sources.isEmpty && state.isRead(exchange.number),
            with: token?.value)
        {
            // The next request asks for the token again: the user may have signed in anew.
            state.forgetToken()
        }
        return exchange
    }

    /// Performs an effect of an answer.
    @discardableResult
    mutating func perform(
        _ effect: ReplayState.Effect, _ exchange: RequestTask.Exchange? = nil
    ) async throws -> Outgoing? {
        switch effect {
        case .report: break
        case .record(let settlement):
            let hasVerdicts = settlement.hasVerdicts
            let clock = hasVerdicts ? await measureClock(exchange) : nil
            // Before the verdicts: events that are settled belong to a known peer.
            if hasVerdicts { try await recordCursor() }
            let learned = hasVerdicts ? exchange?.answer.learned ?? [] : []
            fold(
                try await records.record(
                    sentTokens.masked(settlement), clock: clock, learned: learned,
                    without: sentTokens))
            if case .reply(let reply)? = exchange?.answer, reply.needsDurableRecord {
                try await flush()
            }
            if hasVerdicts { records.dropSettledAttempts() }
            if hasVerdicts, statesRead.isAgain { readStatesAgain() }
            if !learned.isEmpty { reloadIfUnsettled(settlement) }
        case .noteAttempt(let items):
            await records.noteAttempt(
                with: items, progress.report.message, at: exchange?.received ?? store.deviceNow)
        case .resolve(let item, let current):
            fold(try await records.record(current: current))
            guard replayer.sources.isEmpty else {
                readStatesAgain()
                return nil
            }
            guard
                let fact = try await records.resolve(
                    lane: item.lane, isAllowed: state.mayResolve(item))
            else { return nil }
            if case .resolved = fact { state.conflictResolved(item) }
            progress.fold(fact)
        case .recordPage(let page):
            if let exchange, let states = exchange.answer.states {
                try await record(states, page, through: exchange.through)
            } else {
                try await recordPage(page)
            }
        case .recover(let restore): return try await recover(from: restore)
        }
        return nil
    }

    /// Loads the outbox anew if events of an answer are still there, because what it teaches was refused (REQ-8).
    private mutating func reloadIfUnsettled(_ settlement: ReplayState.Settlement) {
        let outbox = store.view(Outbox.self)
        let settled = settlement.applied + settlement.duplicate
        if !outbox.unsettledPositions(among: settled).isEmpty { state.reload(outbox) }
    }

    /// CLOCK-1: only a reply with verdicts is known to come from the sync server: a captive portal sends a date,
    /// too.
    ///
    /// - Returns: the clock; nil if the exchange does not measure it.
    private mutating func measureClock(_ exchange: RequestTask.Exchange?) async -> ServerClock? {
        guard let exchange, case .reply(let reply) = exchange.answer, let date = reply.date,
            let offset = ServerClock.offset(
                serverDate: date, sent: exchange.sent, received: exchange.received)
        else { return nil }
        clock.handleOffset(offset)
        await store.setClockOffset(clock.offset)
        state.setClock(offset: clock.offset)
        return clock
    }

    // MARK: The report

    /// The number of unsettled events, held ones included.
    private var pending: Int { replayer.options.ships ? store.view(Outbox.self).count : 0 }

    /// How the run learns of new events.
    var connection: SyncStatus.Connection {
        stream?.connection ?? (isLive && pollMilliseconds != nil ? .polled : .onDemand)
    }

    mutating func fold(_ facts: [SyncProgress.Fact]) {
        for fact in facts { progress.fold(fact) }
    }

    private func snapshot(underWay: Set<UUID> = []) -> SyncReport {
        progress.snapshot(pending: pending, isBehind: state.reading.isBehind, underWay: underWay)
    }

    /// Passes the report to the caller.
    func publishReport() { progressHandler?(snapshot(underWay: state.idsUnderWay)) }
}
