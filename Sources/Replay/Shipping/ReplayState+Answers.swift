// The rows of an answer as inputs of the machines. W1 to W8, G1 to G7 and N1 to N6 of Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

extension ReplayState {
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
            let hasVerdicts = effects.settlement.hasVerdicts
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
                let reason =
                    "the answer does not come from a sync server: this network may require a login, "
                    + "or the endpoint may be wrong"
                return fail(items, Refusal(noVerdicts: reason), moment)
            }
            return perform(
                sending.handle(.verdicts(verdicts, items, isServers: reply.isServers, moment)),
                moment)
        case .tooLarge(let reply):
            return perform(sending.handle(.tooLarge(items, reply, isAlone: !isBusy)), moment)
        case .malformed(let reply):
            return perform(sending.handle(.malformed(items, reply, isAlone: !isBusy)), moment)
        case .wrongEndpoint(let reply):
            let pause = Pause.endpoint(status: reply.status)
            return fail(
                items, Refusal(status: reply.status, .pause(pause), message: pause.message), moment)
        case .failed(let reply):
            let reason =
                "the server answers \(reply.status); events that it did not accept are sent again later"
            return fail(
                items, Refusal(status: reply.status, .backOff, message: reason), moment)
        case .wait(let seconds, let status):
            return fail(
                items,
                Refusal(
                    status: status, .wait(seconds: seconds), message: Self.waitMessage(seconds)),
                moment)
        case .unanswered(let reason): return fail(items, Refusal(noAnswer: reason), moment)
        case .unauthorized: return handleUnauthorized(items, number, moment)
        case .refused: return handle(row, number, moment)
        }
    }

    /// W1. If the server has accepted the token, and a batch is searched for the reason of a failure, the events are
    /// the reason and not the token. An event that is set aside waits again (PRK-5) if another request is left to
    /// show whether the token is the reason: at the beginning of a run no token is accepted yet, and after each pause
    /// this event would go before reads and new events. If none is left, the token is renewed at its next trial: the
    /// server may accept another one by then.
    private mutating func handleUnauthorized(
        _ items: [ReplayItem], _ number: Int, _ moment: Moment
    ) -> [Effect] {
        func refusal(_ consequence: Refusal.Consequence) -> Refusal {
            Refusal(status: 401, consequence, message: Pause.unauthorized.message)
        }
        let isSetAside = items.first.map { $0.failuresAlone > 0 } ?? false
        let hasOthers = sending.hasReadyLanes || (reading.isReading && mayRead)
        let isEventsFault = token.isAccepted && sending.isTrial(items)
        guard !isEventsFault, !(isSetAside && hasOthers) else {
            if isSetAside { _ = token.handle(.doubted) }
            return fail(items, refusal(.pause(.unauthorized)), moment)
        }
        // Of two requests with one token, the second refusal is no second failure.
        let isNews = token.isUsed(by: number)
        let isPause = !token.handle(.unauthorized(request: number)).isEmpty
        guard isNews, isPause || !sending.isTrial(items) else { return [] }
        guard isSetAside || !sending.isTrial(items) else { return pause(.unauthorized) }
        return fail(items, refusal(isPause ? .pause(.unauthorized) : .renewToken), moment)
    }

    /// W1, W4 to W7: the events may be the reason, or the endpoint.
    private mutating func fail(
        _ items: [ReplayItem], _ refusal: Refusal, _ moment: Moment
    ) -> [Effect] {
        let effects = perform(sending.handle(.failed(items, refusal, moment)), moment)
        return effects.message == nil && refusal.consequence != .renewToken
            ? effects + [.report(refusal.message)] : effects
    }

    private mutating func handle(
        _ row: AnswerRow, toReadAfter cursor: String?, _ number: Int, _ moment: Moment
    ) -> [Effect] {
        guard case .complete(let reply) = row, reply.isPage else {
            _ = sending.handle(.read(isPage: false))
            let effects = handleReadFailure(row, cursor, number, moment)
            // A recovery ends with the same read (G7).
            let isRecovery = effects.contains { if case .recover = $0 { true } else { false } }
            if isProbing, !isRecovery { reading.end() }
            isProbing = false
            return effects
        }
        isProbing = false
        if reply.isServers { succeeded() }  // G1
        return perform(sending.handle(.read(isPage: reply.isServers)), moment) + [
            .recordPage(Page(body: reply.body, after: cursor, next: reply.next))
        ]
    }

    private mutating func handleReadFailure(
        _ row: AnswerRow, _ cursor: String?, _ number: Int, _ moment: Moment
    ) -> [Effect] {
        switch row {
        case .complete(let reply):  // G4
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
        case .wait(let seconds, _): return wait(seconds, moment, isRead: true)  // W5
        case .unanswered(let reason): return backOff(moment, reason)  // W7
        case .refused(let error):  // W8
            _ = sending.handle(.interrupted)
            // The next attempt asks for the token again: it may be another one by then.
            _ = token.handle(.forgotten)
            return pause(.refused(error))
        case .complete, .tooLarge, .malformed, .wrongEndpoint, .failed: return []
        }
    }

    mutating func perform(
        _ effects: [Sending.Effect], _ moment: Moment = Moment(now: 0, random: 0)
    ) -> [Effect] {
        effects.flatMap { effect -> [Effect] in
            switch effect {
            case .record(let settlement): return [.record(settlement)]
            case .resolve(let item, let current): return [.resolve(item, current: current)]
            case .succeeded:
                succeeded()
                return []
            case .wait(let refusal): return wait(after: refusal, moment)
            case .delay(let seconds):
                pipeline.handle(.delayed(seconds: seconds, moment))
                return []
            case .search:
                pipeline.handle(.search)
                return []
            case .report(let message): return [.report(message)]
            case .pause(let status): return pause(.endpoint(status: status))
            }
        }
    }

    private mutating func wait(after refusal: Refusal, _ moment: Moment) -> [Effect] {
        switch refusal.consequence {
        // A token that was accepted before is renewed first.
        case .pause(.unauthorized) where token.isUsable:
            return token.handle(.unauthorized(request: lastNumber)).isEmpty
                ? [.report(refusal.message)] : pause(.unauthorized)
        case .pause(let reason): return pause(reason)
        case .wait(let seconds): return wait(seconds, moment, isRead: false)
        case .backOff: return backOff(moment, refusal.message)
        case .renewToken: return []
        }
    }

    /// W5.
    private mutating func wait(
        _ seconds: Double, _ moment: Moment, isRead: Bool
    ) -> [Effect] {
        pipeline.handle(.asked(seconds: seconds, moment, isRead: isRead))
        _ = sending.handle(.interrupted)
        return [.report(Self.waitMessage(seconds))]
    }

    private static func waitMessage(_ seconds: Double) -> String {
        "the server asks to wait \(Pipeline.wait(asked: seconds) / 1_000) s"
    }

    /// An answer counts, or a page was read.
    mutating func succeeded() {
        pipeline.handle(.succeeded)
        _ = token.handle(.accepted)
    }

    private mutating func pause(_ pause: Pause) -> [Effect] {
        pipeline.handle(.pause(pause))
        return [.report(pause.message)]
    }

    /// W6, W7, T4: makes the whole pipeline wait. No retry is counted.
    mutating func backOff(_ moment: Moment, _ reason: String) -> [Effect] {
        // The events of the parts are still in their lanes.
        _ = sending.handle(.interrupted)
        pipeline.handle(.failed(moment))
        return [.report(reason)]
    }
}
