// The replies of RequestTransport: the verdict on an answer of the API, and its own answers. REQ-7 and REQ-8 of
// Spec/protocol/requests.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

extension RequestTransport {
    /// The reply with the verdict on an answer.
    ///
    /// - Parameter known: the verdict, if it does not depend on the answer.
    func reply(
        to answer: APIAnswer, _ known: APIVerdict?, _ context: RequestContext, _ rule: EventRequest
    ) throws -> TransportReply {
        let result: APIVerdict
        do { result = try known ?? verdict(on: answer, context, rule) } catch {
            // A change that may be applied is not sent again because the app cannot read the answer.
            guard 200..<300 ~= answer.status, !answer.isHTML else { return try passOn(answer) }
            return reply(
                .rejected(
                    code: Code.unusableAnswer, detail: "the answer cannot be used: \(error)"),
                context)
        }
        switch result {
        case .applied, .duplicate:
            do {
                var reply = reply(result, context)
                reply.learned = try rule.learn(answer, context).map(draft)
                // A cache may answer a question, with an old date.
                if !answer.isConfirmation {
                    reply.date = answer[header: "Date"].flatMap(HTTPDate.parse)
                }
                return reply
            } catch {
                return reply(
                    .rejected(
                        code: Code.unusableAnswer,
                        detail: "the server has applied it, and its answer cannot be used: \(error)"
                    ),
                    context)
            }
        case .nothing: return try passOn(answer)
        case .rejected, .conflict, .retry: return reply(result, context)
        }
    }

    /// The verdict on an answer: the word of the type, of the transport, or the table. Neither function gets a page of
    /// a captive portal, whose status would say something of the change.
    private func verdict(
        on answer: APIAnswer, _ context: RequestContext, _ rule: EventRequest
    ) throws -> APIVerdict {
        guard evidence.admits(answer) else { return .nothing }
        return try rule.verdict(answer, context) ?? verdict(answer)
            ?? APIVerdict.standard(for: answer, evidence: evidence)
    }

    /// An event that an answer teaches, checked: after the verdict is recorded it would be lost.
    private func draft(_ payload: any EventPayload) throws -> EventDraft {
        var draft = try EventDraft(payload, id: store.newID())
        if let state = payload as? any APIState {
            draft = try EventDraft(state: state)
            draft.stateMark?.isTaught = true
        }
        var checked = draft
        try store.catalogue.normalise(&checked)
        return draft
    }

    /// The answer as the reply to the whole request: the run waits, renews the token or sets the event aside.
    private func passOn(_ answer: APIAnswer) throws(TransportError) -> TransportReply {
        guard [401, 413, 429].contains(answer.status) || answer.status >= 500,
            answer.status != 413 || !answer.isHTML
        else {
            // The run would take others for the end of all requests, or for an answer about the event.
            throw TransportError(
                .malformedReply, location: origin.host,
                "the answer \(answer.status) says nothing of the change: it may come from a proxy, "
                    + "this network may require a login, or the account may not do this")
        }
        return withPeer(
            TransportReply(
                status: answer.status, body: answer.body,
                retryAfterSeconds: answer.retryAfterSeconds))
    }

    func reply(_ verdict: APIVerdict, _ context: RequestContext) -> TransportReply {
        var result = Verdict(id: context.event.id, status: .applied)
        switch verdict {
        case .applied, .nothing: break
        case .duplicate: result.status = .duplicate
        case .rejected(let code, let detail):
            (result.status, result.code, result.detail) = (.rejected, code, detail)
        case .conflict(let code, let detail):
            (result.status, result.code, result.detail) = (.conflict, code, detail)
        case .retry(let seconds):
            let seconds = seconds.flatMap { $0.isFinite ? $0 : nil }
            (result.status, result.retryAfterSeconds) = (.retry, seconds)
        }
        return withPeer(TransportReply(status: 200, body: Verdict.reply([result])))
    }

    /// The reply for an event that is sent later, without a cost for its retries.
    func postpone(_ context: RequestContext, _ reason: String) -> TransportReply {
        var result = Verdict(id: context.event.id, status: .retry)
        result.detail = reason
        return ownReply(TransportReply(status: 200, body: Verdict.reply([result])))
    }

    /// A reply without an answer of the API.
    func ownReply(_ reply: TransportReply) -> TransportReply {
        var reply = withPeer(reply)
        reply.isServers = false
        return reply
    }

    /// The reply with the names of the API and the account, which the log remembers.
    func withPeer(_ reply: TransportReply) -> TransportReply {
        var reply = reply
        reply.server = api
        reply.account = account
        return reply
    }
}
