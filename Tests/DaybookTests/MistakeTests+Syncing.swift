// Mistakes with syncing: errors before anything is sent, and the report after a failure of the network or a
// server that does not answer as a sync server does.

import Daybook
import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

extension Mistake {
    static let ofSyncing: [Mistake] = [
        Mistake("another scheme", "TransportError.badEndpoint", "not an http or https URL") { _ in
            try await sync(to: "ftp://example.org")
        },
        Mistake("an endpoint without a host", "TransportError.badEndpoint", "not an http or https")
        {
            _ in
            try await sync(to: "/v1/events")
        },
        Mistake("a password in the endpoint", "TransportError.badEndpoint", "a password; use") {
            _ in
            try await sync(to: "https://me:secret@example.org")
        },
        Mistake("a token over http", "TransportError.tokenInClear", "sync.example.org") { _ in
            try await sync(to: "http://sync.example.org")
        },
        Mistake("a header of the library", "TransportError.reservedHeader", "Authorization: ") {
            _ in
            try await sync(
                to: "https://example.org", HTTPOptions(headers: ["Authorization": "Bearer t"]))
        },
        Mistake("a header of two lines", "TransportError.badHeader", "X-App: a value may") { _ in
            try await sync(to: "https://example.org", HTTPOptions(headers: ["X-App": "a\nb"]))
        },
        Mistake("a SOCKS proxy", "TransportError.badProxy", "not http://host:port") { _ in
            var http = HTTPOptions()
            http.proxy = HTTPProxy(try url("socks5://127.0.0.1:1080"))
            try await sync(to: "https://example.org", http)
        },
        Mistake("an empty key of Supabase", "TransportError.badToken", "it is empty") { _ in
            _ = try SupabaseTransport(project: url("https://p.supabase.co"), apiKey: "")
        },
        Mistake("a server in memory that is off", "Unreachable", "is not reachable") { _ in
            let server = InMemorySyncServer()
            server.isReachable = false
            _ = try await server.send(.read(after: nil), token: nil)
        },
        Mistake("a sync after close()", "LogError.closed", "The store at /log is closed") { _ in
            let store = try await store()
            try await store.close()
            try await store.sync(over: InMemorySyncServer())
        },
        Mistake("a sync of the shared store", "EventError.refused", "is shared by all accounts") {
            _ in
            try await sharedStore().sync(over: InMemorySyncServer())
        },
        Mistake("a shipped event in the shared store", "EventError.refused", "is shipped to") { _ in
            try await sharedStore().append(Trip(name: "a"))
        },
        Mistake("a retry of what does not wait", "DecisionError.notInOutbox", "no event with") {
            _ in
            try await store().outbox.retry(UUID())
        },
        Mistake("a retry of what may be sent", "DecisionError.notHeld", "on its way to") { _ in
            let store = try await store()
            let trip = try await store.append(Trip(name: "a"))
            try await store.outbox.retry(trip.id)
        },
    ]

    private static func sync(to address: String, _ http: HTTPOptions = HTTPOptions()) async throws {
        try await store().sync(
            to: url(address), credentials: BearerToken("t"), http: http,
            until: Date(timeIntervalSinceNow: 5))
    }

    private static func sharedStore() async throws -> EventStore {
        try await EventStore.openShared(
            at: URL(filePath: "/log"), rules: rules, environment: .inMemory())
    }
}

/// A reply that is not a sync server's, and a part of the report's message.
struct WrongAnswer: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// A part of the sentence.
    let text: String
    let answer: LocalServer.Answer
    /// The kind of the failure.
    let failure: SyncFailure
    /// The client's timeout; short where the server never answers.
    let timeoutSeconds: Double

    private init(
        _ name: String, _ failure: SyncFailure, _ text: String, _ answer: LocalServer.Answer,
        timeoutSeconds: Double = 60
    ) {
        (testDescription, self.failure, self.text, self.answer) = (name, failure, text, answer)
        self.timeoutSeconds = timeoutSeconds
    }

    static let all: [WrongAnswer] = [
        WrongAnswer(
            "the login page of a network", .failed, "this network may require a login",
            .reply(200, headers: [("Content-Type", "text/html")], body: Array("<html>".utf8))),
        WrongAnswer(
            "another path", .wrongEndpoint, "the server answers 404: check the endpoint",
            .reply(404)),
        WrongAnswer(
            "a server that has moved", .wrongEndpoint, "the server answers 301: check the endpoint",
            .reply(301)),
        WrongAnswer(
            "no token, or one that has expired", .unauthorized,
            "log in again, or check the credentials", .reply(401)),
        WrongAnswer(
            "a user without permission", .wrongEndpoint, "check that the token's account may use",
            .reply(403)),
        WrongAnswer(
            "too many requests", .failed, "the server asks to wait 120 s",
            .reply(429, headers: [("Retry-After", "120")])),
        WrongAnswer("a server that fails", .failed, "the server answers 500", .reply(500)),
        WrongAnswer("a busy server", .failed, "the server answers 503", .reply(503)),
        WrongAnswer("a server that hangs up", .failed, "no answer: 127.0.0.1: ", .hangUp),
        WrongAnswer(
            "a silent server", .failed, "no answer: 127.0.0.1: ", .script { $0.waitForEnd() },
            timeoutSeconds: 1),
    ]
}

/// Signals that a request was made, and never answers it.
private struct SilentTransport: Transport {
    let asked: AsyncStream<Void>.Continuation

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        asked.yield()
        // Until it is cancelled.
        try await Task.sleep(for: .hours(1))
        throw CancellationError()
    }
}

extension MistakeTests {
    /// A failure of the network throws nothing: the report has the reason, and the events stay in the outbox.
    @Test(arguments: WrongAnswer.all)
    func `a failure of the network or the server is in the report`(
        _ wrong: WrongAnswer
    ) async throws {
        let server = try LocalServer { _ in wrong.answer }
        let store = try await Mistake.storeWithTrip()
        let report = try await store.sync(
            to: Mistake.url(server.base), http: HTTPOptions(timeoutSeconds: wrong.timeoutSeconds))
        #expect(report.message?.contains(wrong.text) == true, "\(report.message ?? "nothing")")
        #expect(report.failure == wrong.failure)
        #expect(report.applied == 0)
        #expect(report.pending == 1)
        #expect(!server.requests.isEmpty)
        try await store.close()
    }

    @Test(arguments: ["127.0.0.1:1", "no-such-host.invalid"])
    func `a server that cannot be reached is named in the report`(address: String) async throws {
        let store = try await Mistake.storeWithTrip()
        let url = try Mistake.url("http://" + address)
        let report = try await store.sync(to: url, http: HTTPOptions(timeoutSeconds: 1))
        let host = try #require(url.host())
        #expect(
            report.message?.hasPrefix("no answer: \(host): ") == true,
            "\(report.message ?? "nothing")")
        #expect(report.applied == 0)
        #expect(report.pending == 1)
    }

    @Test(arguments: [
        ("two words", "a", TransportError.Code.badToken, SyncFailure.unauthorized),
        ("t", "b", .wrongAccount, .wrongAccount),
    ])
    func `a token that cannot be sent, or is another account's, is refused in the report`(
        token: String, account: String, code: TransportError.Code, failure: SyncFailure
    ) async throws {
        let server = try LocalServer { _ in .reply(200, headers: [("Daybook-Account", account)]) }
        let store = try await Mistake.storeWithTrip(account: "a")
        let report = try await store.sync(
            to: Mistake.url(server.base), credentials: BearerToken(token))
        let refusal = try #require(report.refusal)
        #expect(refusal.code == code)
        #expect(report.failure == failure)
        #expect(failure.remedy == .signIn)
        #expect(report.message == refusal.localizedDescription)
        #expect(refusal.recoverySuggestion?.isEmpty == false)
        #expect(report.applied == 0)
        #expect(report.pending == 1)
    }

    @Test func `an event that is too large for the server is parked, and the outbox says why`()
        async throws
    {
        let server = try LocalServer { _ in .reply(413) }
        let store = try await Mistake.storeWithTrip()
        let report = try await store.sync(to: Mistake.url(server.base))
        #expect(report.rejected == 1)
        #expect(report.held == 1)
        let entry = try #require(Array(store.outbox.entries).first)
        #expect(entry.parking == .rejected)
        #expect(entry.errorMessage == "too large")
    }

    @Test func `of two concurrent syncs, one ends at once and reports it`()
        async throws
    {
        let store = try await Mistake.storeWithTrip()
        let (requests, asked) = AsyncStream.makeStream(of: Void.self)
        let first = Task { try await store.sync(over: SilentTransport(asked: asked)) }
        for await _ in requests { break }
        let second = try await store.sync(over: InMemorySyncServer())
        #expect(second.isElsewhere)
        #expect(second.failure == .elsewhere)
        #expect(second.pending == 1)
        #expect(second.message == "another run exchanges this store's events")
        first.cancel()
        _ = await first.result
    }

    @Test(arguments: [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/events"),
        ("https://example.org/", "https://example.org/v1/events"),
        ("https://example.org/v1/events", "https://example.org/v1/events"),
        ("https://example.org/v1/events/", "https://example.org/v1/events"),
        ("https://example.org/sync", "https://example.org/sync"),
        ("https://example.org/?a=b", "https://example.org/?a=b"),
    ])
    func `a server's address without a path means its events`(address: String, events: String)
        throws
    {
        #expect(HTTPTransport.eventsURL(of: try Mistake.url(address)).absoluteString == events)
    }

    /// A run that only reads reports the same as one that ships.
    @Test func `an empty outbox does not hide a wrong endpoint`() async throws {
        let server = try LocalServer { _ in .reply(404) }
        let report = try await Mistake.store().sync(to: Mistake.url(server.base))
        #expect(report.message?.contains("the server answers 404: check the endpoint") == true)
    }

    @Test(arguments: ["", "/", "/rest/v1", "/rest/v1/", "/rest/v1/rpc", "/rest/v1/rpc/"])
    func `a project's address and those of its functions are equivalent`(path: String) async throws
    {
        let server = try LocalServer { _ in .reply(404) }
        let transport = try SupabaseTransport(
            project: Mistake.url(server.base + path), apiKey: "KEY")
        _ = try await transport.send(.append(batch: []), token: nil)
        #expect(server.requests.map(\.target) == ["/rest/v1/rpc/append_events"])
    }

    /// With no request allowed, a run would wait without end.
    @Test func `a sync with zero concurrent requests uses one`() async throws {
        let store = try await Mistake.storeWithTrip()
        var options = Replayer.Options()
        options.requestsMax = 0
        let report = try await Replayer(store, transport: InMemorySyncServer(), options: options)
            .run()
        #expect(report.applied == 1)
    }

    @Test(arguments: ["", "/", "/v1/events"])
    func `every call accepts the server's address and its endpoint`(path: String) async throws {
        let server = try LocalServer { _ in .reply(404) }
        let url = try Mistake.url(server.base + path)
        let model = try await OfflineStore.inMemory()
        try await model.cities.save("lisbon", by: "ada")
        let store = try await Mistake.storeWithTrip()
        try await model.sync(to: url)
        try await store.sync(to: url)
        try await store.sync(over: HTTPTransport(endpoint: url))
        try await store.sync(over: HTTPTransport(endpoint: url, http: HTTPOptions()))
        // Each run sends the event, and reads before it ends.
        #expect(server.requests.map(\.target) == Array(repeating: "/v1/events", count: 8))
    }
}
