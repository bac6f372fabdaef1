// Ships events to the API that an app already has: one request for each. The run makes batches of one event, keeps
// their order, waits, parks and records, as with every transport; this one only builds requests and reads answers.
// Spec/protocol/requests.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import SyncWire

/// The transport to an app's own API.
///
/// ```swift
/// let transport = try RequestTransport(
///     store, api: "habits", at: URL(string: "https://api.example.com/v1")!,
///     promise: .once(keysKeptFor: .seconds(86_400)))
/// try await store.sync(over: transport, credentials: credentials)
/// ```
///
/// The requests are declared with the rules of the event types. A request is built once, before its first attempt,
/// and recorded in the log; every further attempt, also after a restart, sends the same bytes.
public struct RequestTransport: Transport {
    /// The codes of events that are parked without an answer of the API.
    public enum Code {
        /// The request could not be built, or not be recorded.
        public static let noRequest = FailureCode.noRequest
        /// The API may have forgotten the key, and there is no `confirm`. A retry by decision sends the change.
        public static let keyExpired = FailureCode.keyExpired
        /// What the answer teaches cannot be recorded. A retry by decision gets the answer again while the API keeps
        /// the key; an API without keys applies the change again.
        public static let unusableAnswer = FailureCode.unusableAnswer
    }

    let store: EventStore
    let api: String
    private let base: String
    let origin: HTTPOrigin
    let account: String?
    private let key: RequestKey
    private let promise: RequestPromise
    let evidence: APIEvidence
    let client: any APIClient
    private let bulk: BulkSender?
    private let gzipFrom: Int?
    /// What is read from the API.
    let sources: [PullSource]
    let verdict: @Sendable (APIAnswer) throws -> APIVerdict?

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - store: the store whose events are sent.
    ///   - api: the name of the API, which the log remembers. Another address with the same name is the same API; a
    ///     log that has sent events to an API with another name sends none here.
    ///   - base: the address below which the paths of the requests are: `https://api.example.com/v1`.
    ///   - account: the account of the credentials; nil for that of the log. The log remembers it, and another one
    ///     is refused.
    ///   - key: where a request has its key, the event's id.
    ///   - promise: how often a change takes effect.
    ///   - evidence: what shows that an answer comes from the API.
    ///   - bulk: the API's endpoint for several changes at once, if it has one.
    ///   - gzipFrom: the size in bytes from which a body is sent in gzip, which the API must accept; nil to send all as
    ///     they are.
    ///   - sources: what is read from the API, in this order.
    ///   - http: headers, certificate, proxy and limits.
    ///   - client: sends the requests; nil for the library's, with `http`.
    ///   - verdict: what an answer says of a change; nil for that of Spec/protocol/requests.md. It gets no page in HTML,
    ///     unless that has the header of `evidence`.
    /// - Throws: `EventError` (`refused`) for a shipped type without a request, naming it, for the type of a source
    ///   that has an action or no rule, and for an empty name; `TransportError` as `HTTPTransport`.
    public init(
        _ store: EventStore, api: String, at base: URL, account: String? = nil,
        key: RequestKey = .idempotencyKey, promise: RequestPromise,
        evidence: APIEvidence = .json, bulk: BulkEndpoint? = nil, gzipFrom: Int? = nil,
        reading sources: [PullSource] = [], http: HTTPOptions = HTTPOptions(),
        client: (any APIClient)? = nil,
        verdict: @escaping @Sendable (APIAnswer) throws -> APIVerdict? = { _ in nil }
    ) throws {
        guard 1...SyncPeer.nameBytesMax ~= api.utf8.count else {
            throw EventError(
                .refused, "the name of the API has no bytes, or more than \(SyncPeer.nameBytesMax)")
        }
        for type in store.catalogue.types {
            guard let rule = store.catalogue[type], let action = rule.action,
                rule.request == nil, store.catalogue.newestType(of: type) == type
            else { continue }
            throw EventError(
                .refused,
                "the event type \(type) has the action \(action) and no request; declare one with "
                    + "its rule, or leave the action out to keep the type on the device")
        }
        try Self.check(sources, store)
        self.store = store
        self.api = api
        self.sources = sources
        self.account = account ?? store.account
        self.key = key
        self.promise = promise
        self.evidence = evidence
        self.bulk = bulk.map(BulkSender.init)
        self.gzipFrom = gzipFrom
        self.verdict = verdict
        origin = try HTTPOrigin(endpoint: base)
        guard base.query == nil, base.fragment == nil else {
            throw TransportError(
                .badEndpoint, location: origin.host,
                "the address of the API has a query; put it into the requests")
        }
        let address = base.absoluteString
        self.base = address.hasSuffix("/") ? address : address + "/"
        if let client {
            self.client = client
        } else {
            let bounded = BoundedHTTPClient(forSyncing: http)
            try bounded.check()
            self.client = bounded
        }
    }

    /// The host of the API, with its port unless that is the scheme's default.
    public var serverAddress: String? { origin.address }

    /// The account of the credentials.
    public func knownAccount(ofLog account: String?, token: String?) -> String? { self.account }

    /// One: the record of an answer is not to wait for other answers, and a later request of the lane may need
    /// what the answer teaches.
    public var eventsMax: Int { 1 }

    /// Whether something is read from the API.
    public var hasPages: Bool { !sources.isEmpty }

    // MARK: One event

    /// Sends the request for the first event of a batch, for the account of the log.
    ///
    /// - Throws: `TransportError` (`accountNeeded`) if there is a token and the log has events of no known account:
    ///   the API is not asked whose token it is. What `send(_:token:)` throws.
    public func send(
        _ request: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply {
        if token != nil, account == "" { throw TransportError.account("", at: origin.host) }
        return try await send(request, token: token)
    }

    /// Sends the request for the first event of a batch, or for a page of a source. An event without a request, one
    /// whose request cannot be built, and a page of a transport without sources need none: these answers are not the
    /// API's.
    ///
    /// - Throws: `TransportError`: `otherAPI`; what the client throws; `malformedReply` for an answer that is not
    ///   known to be the API's. `LogError` if the request cannot be recorded.
    public func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        try checkAPI()
        guard case .append(let batch) = request else {
            guard case .read(let cursor) = request, hasPages else {
                return ownReply(TransportReply(status: 200, body: Array("[]".utf8)))
            }
            return try await read(after: cursor, token)
        }
        let context = RequestContext(try event(of: batch), store)
        guard let rule = store.catalogue[context.event.type]?.request as? EventRequest else {
            // A release that has the rule has recorded it.
            let type = context.event.type
            return postpone(context, "this release of the app has no rule for the type \(type)")
        }
        switch try await step(for: context, rule, token) {
        case .verdict(let verdict): return ownReply(reply(verdict, context))
        case .wait(let reason): return postpone(context, reason)
        case .answered(let answer, let verdict):
            return try reply(to: answer, verdict, context, rule)
        case .send(let built):
            switch try await send(built, context, mayRepeat: promise(rule).isOnce, token) {
            case .answered(let answer):
                return try durableReply(to: answer, context, rule)
            case .unanswered(let answer): return try reply(to: answer, .nothing, context, rule)
            case .later(let reason): return postpone(context, reason)
            case .alone:
                let answer = try await client.answer(
                    to: makeHTTPRequest(built, mayRepeat: promise(rule).isOnce), token: token)
                return try durableReply(to: answer, context, rule)
            }
        }
    }

    /// The reply to an answer. A verdict that a kill took away would double a change at an API without keys.
    private func durableReply(
        to answer: APIAnswer, _ context: RequestContext, _ rule: EventRequest
    ) throws -> TransportReply {
        var reply = try reply(to: answer, nil, context, rule)
        reply.needsDurableRecord = !promise(rule).isOnce && promise(rule).confirmation == nil
        return reply
    }

    /// Sends a request in a bulk, if it goes into one.
    private func send(
        _ built: BuiltRequest, _ context: RequestContext, mayRepeat: Bool, _ token: String?
    ) async throws -> BulkSender.Result {
        // Where no key is honoured, a bulk of unknown outcome could double all its changes.
        guard let bulk, mayRepeat, let group = bulk.endpoint.group(built) else { return .alone }
        let kind = BulkSender.Kind(group: group, token: token)
        return try await bulk.send(built, for: context.event.id, in: kind, evidence: evidence) {
            var request = try $0.buildRequest(with: .inRequest, for: context.event.id)
            request.isCompressed = isCompressed(request)
            return try await client.answer(
                to: makeHTTPRequest(request, mayRepeat: mayRepeat), token: token)
        }
    }

    private func isCompressed(_ request: BuiltRequest) -> Bool {
        guard let gzipFrom, let body = request.body, body.count >= gzipFrom else { return false }
        // The app may have encoded the body itself.
        return !request.headers.keys.contains { $0.lowercased() == "content-encoding" }
    }

    /// The next step for an event.
    private enum Step {
        /// Send this request.
        case send(BuiltRequest)
        /// No request is needed, or none can be sent.
        case verdict(APIVerdict)
        /// The request cannot be built yet.
        case wait(reason: String)
        /// A confirmation was answered.
        case answered(APIAnswer, APIVerdict)
    }

    private func step(
        for context: RequestContext, _ rule: EventRequest, _ token: String?
    ) async throws -> Step {
        guard let earlier = store.view(Outbox.self).request(of: context.event) else {
            return try await firstStep(for: context, rule)
        }
        let request = try await recorded(earlier)
        let promise = promise(rule)
        let now = Timestamp(milliseconds: await store.now)
        guard !promise.isKeyKept(since: earlier.since, now: now) else { return .send(request) }
        guard let confirmation = promise.confirmation else {
            return .verdict(.rejected(code: Code.keyExpired, detail: Self.keyExpired))
        }
        let question: BuiltRequest
        do {
            question = try confirmation.request(context).buildRequest(
                with: .inRequest, for: context.event.id)
        } catch { return Self.step(after: error) }
        var answer = try await client.answer(
            to: makeHTTPRequest(question, mayRepeat: true), token: token)
        answer.isConfirmation = true
        guard let isApplied = try confirmation.isApplied(answer, evidence) else {
            return .answered(answer, .nothing)
        }
        guard !isApplied else { return .answered(answer, .duplicate) }
        // The API keeps the key from now on.
        if promise.isOnce { try await record(request, for: context.event) }
        return .send(request)
    }

    private func firstStep(
        for context: RequestContext, _ rule: EventRequest
    ) async throws -> Step {
        do {
            guard
                var request = try rule.build(context)?.buildRequest(
                    with: key, for: context.event.id)
            else { return .verdict(.applied) }
            request.isCompressed = isCompressed(request)
            try await record(request, for: context.event)
            return .send(request)
        } catch let error as LogError {
            throw error
        } catch { return Self.step(after: error) }
    }

    private static let keyExpired =
        "it was sent before, and the server may have forgotten that: sending it again could apply it twice"

    /// The step for an event whose request cannot be built.
    private static func step(after error: any Error) -> Step {
        if let error = error as? RequestNotReady { return .wait(reason: error.description) }
        let detail = "there is no request for it: \(error)"
        return .verdict(.rejected(code: Code.noRequest, detail: detail))
    }

    private func promise(_ rule: EventRequest) -> RequestPromise { rule.promise ?? promise }

    /// Records a request before it is sent. Durable on return.
    private func record(_ request: BuiltRequest, for event: Event) async throws {
        try await store.recordDurably(
            SyncRequested(
                by: store.incarnation, position: event.position, id: event.id, request: request))
    }

    /// The recorded request. O(frame).
    private func recorded(_ request: RecordedRequest) async throws -> BuiltRequest {
        guard let event = try await store.event(at: request.position) else {
            throw LogError(
                .corrupt, path: store.directory, positions: request.position...request.position,
                "the outbox names a request that the log does not have")
        }
        return try SyncRequested(json: event.content.json ?? []).request
    }

    func makeHTTPRequest(
        _ built: BuiltRequest, mayRepeat: Bool
    ) throws -> BoundedHTTPRequest {
        guard let url = URL(string: base + built.target), HTTPOrigin(url) == origin else {
            throw TransportError(.badEndpoint, location: origin.host, "the path is no path of it")
        }
        var request = BoundedHTTPRequest(url)
        request.method = built.method
        request.body = built.body
        request.isSentOnce = !mayRepeat
        for (name, value) in built.headers.sorted(by: { $0.key < $1.key }) {
            request.set(name, value)
        }
        if built.isCompressed, let body = built.body {
            request.body = GzipEncoder.compress(body)
            request.set("Content-Encoding", "gzip")
        }
        return request
    }

    /// The first event of a batch, in its newest form.
    private func event(of batch: [UInt8]) throws -> Event {
        var first: Range<Int>?
        var scanner = JSONScanner()
        try scanner.elements(batch.span.bytes) { (scanner) throws(JSONError) in
            let element = try scanner.value(batch.span.bytes, depth: 1)
            first = first ?? element
        }
        let line = Array(batch[first ?? 0..<0])
        let event = try LogReader.event(
            line.span.bytes, store.catalogue, directory: store.directory)
        return store.catalogue.newestForm(of: event)
    }

    /// The log remembers the API: its events are there.
    private func checkAPI() throws(TransportError) {
        let peer = store.syncPeer
        let isSame =
            peer.server.map { $0.utf8.elementsEqual(api.utf8) }
            ?? peer.address.map { $0 == serverAddress } ?? true
        guard isSame else {
            throw TransportError(
                .otherAPI, location: origin.host,
                "the log has sent its events to \(peer.server ?? peer.address ?? "another API")")
        }
    }
}
