// Performs what concerns the account's events: pages, the stream, the recovery from a restore. Part of
// ReplaySession. Spec/protocol/replay.md, push.md.

import EventSourcing
import Foundation
import LogFormat
import Logging
import SyncWire

extension ReplayEffects {
    // MARK: Pages

    mutating func recordPage(_ page: ReplayState.Page) async throws {
        guard replayer.options.reads else {
            // The read has shown the server.
            state.pageRefused()
            state.reading.caughtUp()
            return try await recordCursor()
        }
        guard let content = try await receive(page) else {
            peer.dropNews()
            state.pageRefused()
            return progress.fold(.message("the answer is not a page of events"))
        }
        // A page that leads to itself would never end.
        let isLast = content.count == 0 || content.next == nil || content.next == page.after
        progress.fold(
            .message(state.pageRecorded(page, isLast: isLast, hasNew: content.hasNew)))
        if isLast {
            state.reading.caughtUp()
            try await recordCursor()
        }
        if content.count > 0, state.reading.unrecordedCursor == nil { recovery.cursorRecorded() }
    }

    private mutating func receive(
        _ page: ReplayState.Page
    ) async throws -> ExchangeRecords.ReceivedPage? {
        guard
            let content = try await records.record(
                page, without: sentTokens, &state.reading, &peer)
        else { return nil }
        fold(content.facts)
        if content.hasSettled, replayer.options.ships { state.reload(store.view(Outbox.self)) }
        return content
    }

    /// Records the cursor and the peer, as far as they are not recorded.
    mutating func recordCursor() async throws {
        try await records.recordCursor(&state.reading, &peer)
    }

    mutating func startReading() {
        if let time = readsWaitUntil {
            return state.reading.plan(at: time, now: store.deviceNow)
        }
        state.reading.start(
            after: store.view(Outbox.self).cursor, nextIn: pollMilliseconds, now: store.deviceNow)
    }

    /// The time between two reads while no stream is open, in milliseconds.
    var pollMilliseconds: Int64? {
        replayer.options.readMilliseconds
            ?? (stream == nil ? nil : StreamSchedule.pollMilliseconds)
    }

    // MARK: Triggers

    mutating func handle(_ trigger: Replayer.Trigger) {
        switch trigger {
        case .conditions(let conditions):
            state.set(conditions)
            guard stream != nil else { return }
            handleStream(.networkChanged)
            startReading()
        case .now:
            state.demand()
            // The system may have closed the connection while the app was suspended.
            handleStream(.closed)
            guard replayer.options.reads else { return }
            // The read at which the wait of a refused stream ends stays planned.
            let planned = stream == nil ? nil : state.reading.nextRead
            startReading()
            if let planned, let next = state.reading.nextRead {
                state.reading.plan(at: min(planned, next), now: store.deviceNow)
            }
        }
    }

    // MARK: Following

    /// PUSH-10 to PUSH-16: records pushed events, and opens a stream once all events are read.
    mutating func follow() async throws {
        guard stream != nil else { return }
        guard state.mayFollow else {
            if stream?.connection == .pushed { startReading() }
            return handleStream(.closed)
        }
        handleStream(.time)
        // A request under way may have sent events that were pushed.
        while !state.isBusy, !Task.isCancelled, let page = stream?.dequeuePage() {
            guard try await recordPushed(page) else { break }
        }
        if !state.reading.isBehind { handleStream(.wanted) }
    }

    mutating func handleStream(_ input: Following.Input) {
        guard stream != nil else { return }
        let moment = ReplayState.Moment(now: store.deviceNow, random: store.randomFraction())
        let (cursor, token) = (cursor, token?.value)
        var account: String?
        if case .wanted = input {
            do {
                account = try PeerCheck.account(
                    of: store, over: replayer.transport, token: token)
            } catch {
                // The next read is refused as well, and says so.
                return
            }
        }
        let effects =
            stream?.handle(input, after: cursor, token: token, account: account, moment) ?? []
        for effect in effects {
            switch effect {
            case .read(let time):
                state.reading.plan(at: time, now: moment.now)
                state.reading.fellBehind()
            case .cancelReads: state.reading.plan(at: nil, now: moment.now)
            case .open, .close: break
            }
        }
    }

    /// The log's cursor.
    private var cursor: String? {
        state.reading.unrecordedCursor ?? store.view(Outbox.self).cursor
    }

    /// Records a page of pushed events, if it continues where the log ends. Otherwise ends the stream and
    /// reads: a page was recorded meanwhile, or the page cannot be used.
    ///
    /// - Returns: whether the page was recorded.
    private mutating func recordPushed(_ page: ReplayState.Page) async throws -> Bool {
        guard page.after == cursor, let content = try await receive(page) else {
            handleStream(.unusable)
            return false
        }
        if state.reading.countPushed(content.count) {
            try await recordCursor()
        }
        progress.fold(.succeeded(at: store.deviceNow))
        publishReport()
        return true
    }

    // MARK: Recovery

    /// G7: ships the next batch of events that the restored server may lack. After the last one, reads from the
    /// first page: the cursor counts events that the server does not have.
    mutating func recover(from restore: ServerRestore) async throws -> Outgoing? {
        // The next read is answered in the same way, with no batch of the outbox under way.
        guard !state.isBusy else { return nil }
        progress.fold(.behind(nil))
        let step = try await recovery.nextStep(from: restore)
        progress.fold(.recovered(recovery.takeCounts()))
        switch step {
        case .send(let batch): return (state.registerRecovery(), .append(batch: batch))
        case .wait(let answer):
            recoveryFailed(answer, to: state.registerRecovery(), at: store.deviceNow)
        case .end(let message):
            state.pageRefused()
            progress.fold(.message(message))
        case .readFromStart: readFromStart()
        case .complete(let compacted):
            progress.fold(.restored(restore, compacted: compacted))
            let text = "\(progress.report.shippedAgain.counted("event")) shipped again"
            replayer.logger.notice("the server was restored or is another one; \(text)")
            readFromStart()
            if let other = peer.takeOther() {
                try await records.record(other, next: nil, &peer)
            }
        case .cancelled: break
        }
        return nil
    }

    private mutating func readFromStart() {
        state.readFromStart()
        handleStream(.networkChanged)
    }

    mutating func handleRecoveryAnswer(_ exchange: RequestTask.Exchange) {
        switch recovery.handleAnswer(exchange.answer, with: exchange.verdicts) {
        case nil, .refused: state.recoveryRefused()
        case .processed:
            state.recoveryProcessed()
            progress.fold(.message(nil))
            progress.fold(.succeeded(at: exchange.received))
        case .failed(let answer):
            recoveryFailed(answer, to: exchange.number, at: exchange.received)
            progress.fold(.failed)
        }
        progress.fold(.recovered(recovery.takeCounts()))
        publishReport()
    }

    private mutating func recoveryFailed(
        _ answer: ReplayState.Answer, to number: Int, at time: Int64
    ) {
        let effects = state.handleAnswer(
            answer, to: number, now: time, random: store.randomFraction())
        let message = effects.message.map {
            "the server was restored, and a batch of events that it lacks failed: \(sentTokens.masked($0))"
        }
        progress.fold(.answered(answer, message: message))
    }
}
