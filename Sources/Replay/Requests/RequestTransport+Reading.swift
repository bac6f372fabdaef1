// Reads a page of an app's own API. What is no page of the list ends the read of the source and nothing else: changes are
// sent as before. Spec/protocol/reading.md, READ-2.

import EventSourcing
import Foundation
import LogFormat

extension RequestTransport {
    /// Checks that what is read stays on the device.
    ///
    /// - Throws: `EventError` (`refused`).
    static func check(_ sources: [PullSource], _ store: EventStore) throws(EventError) {
        var types: Set<String> = []
        for source in sources {
            guard let rule = store.catalogue[source.type], rule.action == nil,
                rule.payload is any APIState.Type
            else {
                throw EventError(
                    .refused,
                    "the type \(source.type), which is read from the API, needs a rule without an action: "
                        + "give the store .of(\(source.type.split(separator: ".").last ?? "").self)"
                )
            }
            guard types.insert(source.type).inserted else {
                throw EventError(.refused, "two sources have the type \(source.type)")
            }
        }
    }

    /// The cursor of a text.
    func cursor(_ text: String?) -> PullCursor { PullCursor(text, api: api, account: account) }

    /// Sends the request for a page.
    ///
    /// - Throws: `TransportError` if nothing can ever be sent; `CancellationError`.
    func read(after text: String?, _ token: String?) async throws -> TransportReply {
        let cursor = cursor(text)
        guard sources.indices.contains(cursor.source) else {
            return reply(.failed("no such source"))
        }
        let source = sources[cursor.source]
        let tag = source.tag(cursor, store.view(Outbox.self).lastRecord)
        let request: BoundedHTTPRequest
        do {
            var built = try source.request(source.position(cursor)).buildRequest(
                with: .inRequest, for: EventDraft.noBase)
            if let tag { built.headers["If-None-Match"] = tag }
            request = try makeHTTPRequest(built, mayRepeat: true)
        } catch { return reply(.failed("there is no request: \(error)")) }
        let answer: APIAnswer
        do {
            answer = try await client.answer(to: request, token: token)
        } catch let error as TransportError where error.isMisuse || !error.isTransient {
            throw error
        } catch let error as CancellationError { throw error } catch {
            return reply(
                .failed("no answer: \(RequestTask.message(of: error))", isUnreachable: true))
        }
        guard answer.status != 401 else {
            return withPeer(TransportReply(status: 401, body: answer.body))
        }
        return reply(page(of: answer, source, hasTag: tag != nil))
    }

    /// The page that an answer shows.
    private func page(of answer: APIAnswer, _ source: PullSource, hasTag: Bool) -> StatePage {
        if answer.status == 304, hasTag { return StatePage(kind: .notModified) }
        guard [200, 206].contains(answer.status) else {
            var page = StatePage.failed(
                "the API answers \(answer.status)", retryAfterSeconds: answer.retryAfterSeconds)
            page.refusesCursor = [400, 404, 410, 422].contains(answer.status)
            return page
        }
        guard answer.isJSON, evidence.isFound(in: answer), answer.hasWholeBody else {
            return .failed(
                "the answer is not the API's list: it may come from a proxy, or this network may require a login"
            )
        }
        do { return try StatePage(answer, source, PullContext(store)) } catch {
            return .failed("\(error)")
        }
    }

    private func reply(_ page: StatePage) -> TransportReply {
        var reply = withPeer(TransportReply(status: 200, body: Array("[]".utf8)))
        if case .failed = page.kind { reply.isServers = false }
        reply.states = page
        return reply
    }
}

extension PullSource {
    /// Where the page of a cursor begins.
    func position(_ cursor: PullCursor) -> PullPosition {
        if let page = cursor.page { return PullPosition(text: page) }
        let recorded = cursor.sources[name]
        switch form {
        case .everything: return PullPosition(text: nil)
        case .cursor: return PullPosition(text: recorded)
        case .since(let overlap):
            guard let number = recorded.flatMap({ Int64($0) }) else {
                return PullPosition(text: nil)
            }
            let (earlier, overflows) = number.subtractingReportingOverflow(max(0, overlap))
            return PullPosition(text: "\(overflows ? Int64.min : earlier)")
        }
    }
}

extension APIAnswer {
    /// False if the body is shorter or longer than the header `Content-Length` says.
    fileprivate var hasWholeBody: Bool {
        guard self[header: "Content-Encoding"] == nil,
            let length = self[header: "Content-Length"].flatMap({ Int($0) })
        else { return true }
        return length == body.count
    }
}
