// A run whose transport refuses, whose server is silent, or whose store is
// closed: it ends soon, with a typed reason, and settles nothing.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite(.timeLimit(.minutes(10))) struct RefusalTests {
    private func store(account: String? = nil) async throws -> EventStore {
        let store = try await EventStore.open(
            at: "/log", account: account, catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        for city in 0..<3 { try await store.append(CitySaved(userId: "u", cityId: "\(city)")) }
        return store
    }

    private func endpoint(_ server: LocalServer) throws -> URL {
        try #require(URL(string: server.base + "/v1/events"))
    }

    /// Applies everything, for one account.
    private static func server(of account: String) throws -> LocalServer {
        try LocalServer { request in
            let headers = [(AccountHeader.name, AccountHeader.value(for: account))]
            guard request.method == "POST" else {
                let link = ("Link", "</v1/events?after=1>; rel=\"next\"")
                return .reply(200, headers: headers + [link], body: Array("[]".utf8))
            }
            guard case .array(let events)? = try? JSONValue(request.body.span.bytes) else {
                return .reply(400)
            }
            let verdicts = events.map { event in
                guard case .object(let event) = event, let id = event["id"]?.stringValue else {
                    return "{}"
                }
                return #"{"id":"\#(id)","status":"applied"}"#
            }
            return .reply(
                200, headers: headers,
                body: Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8))
        }
    }

    @Test(.verifies("SYNC-47", "SYNC-49"), arguments: ["ana", "Zoë 100%/é\u{301}\n", "%41"])
    func `a log is shipped with a token of its own account`(account: String) async throws {
        let store = try await store(account: account)
        let server = try Self.server(of: account)
        let report = try await Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server)),
            credentials: BearerToken("t")
        ).run()
        #expect(report.applied == 3)
        #expect(report.pending == 0)
        #expect(report.refusal == nil)
        #expect(Set(server.requests.map(\.method)) == ["POST", "GET"])
        for request in server.requests {
            let value = try #require(request.values("Daybook-Account").first)
            #expect(value.utf8.allSatisfy { 0x21...0x7E ~= $0 })
            #expect(AccountHeader.account(of: value) == account)
        }
        try await store.close()
    }

    @Test(.verifies("SYNC-49", "RPL-13"), arguments: ["ana", "User-456", "user-456\u{301}", ""])
    func `a token of another account stops the run, and nothing of the reply is used`(
        other: String
    ) async throws {
        let store = try await store(account: "user-456")
        let server = try Self.server(of: other)
        let replayer = Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server)),
            credentials: BearerToken("t"))
        let report = try await replayer.run()
        #expect(report.refusal?.code == .wrongAccount)
        #expect(report.message?.contains("user-456") == true)
        #expect(report.applied == 0)
        #expect(report.rejected == 0)
        #expect(report.received == 0)
        #expect(report.pending == 3)
        #expect(report.held == 0)
        #expect(store.view(Outbox.self).cursor == nil)
        #expect(server.requests.count <= 2)
        try await store.close()
    }

    @Test(.verifies("SYNC-49"))
    func `an account with another name on the server is sent with that name, or not checked`()
        async throws
    {
        let server = try Self.server(of: "auth-7")
        for (check, sent) in [
            (AccountCheck.named("auth-7"), ["auth-7"]), (.off, []),
        ] as [(AccountCheck, [String])] {
            let store = try await store(account: "user-456")
            let report = try await Replayer(
                store, transport: HTTPTransport(endpoint: try endpoint(server), account: check),
                credentials: BearerToken("t")
            ).run()
            #expect(report.applied == 3)
            #expect(server.requests.last?.values("Daybook-Account") == sent)
            try await store.close()
        }
    }

    @Test(.verifies("SYNC-51", "RPL-16"))
    func `events of no known account are sent once the token's account has adopted them`()
        async throws
    {
        let server = try Self.server(of: "ana")
        let store = try await store()
        let replayer = Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server)),
            credentials: BearerToken("t"))
        let report = try await replayer.run()
        #expect(report.refusal?.code == .accountNeeded)
        #expect(report.pending == 3)
        #expect(server.requests.last?.values("Daybook-Account") == ["*"])
        #expect(store.syncPeer.refusal == "account-needed")
        try await store.adoptUnsentEvents()
        #expect(try await replayer.run().applied == 3)
        #expect(store.syncPeer.account == "ana")
        #expect(store.syncPeer.refusal == nil)
        #expect(server.requests.last?.values("Daybook-Account") == ["ana"])
        try await store.close()
    }

    @Test(.verifies("RPL-13"), arguments: ["", "a b", "a\r\nX: y", "xyzzy-ä"])
    func `a token that cannot be sent stops the run at once and is not shown`(
        token: String
    ) async throws {
        let store = try await store()
        let server = try LocalServer { _ in .reply(500) }
        let report = try await Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server)),
            credentials: BearerToken(token),
            sleep: { _ in
                Issue.record("it waits")
                throw CancellationError()
            }
        ).run()
        #expect(report.refusal?.code == .badToken)
        #expect(report.message?.contains("xyzzy") == false)
        #expect(report.pending == 3)
        #expect(server.requests.isEmpty)
        try await store.close()
    }

    @Test(.verifies("RPL-13"))
    func `after a token that cannot be sent, the next one is requested`() async throws {
        struct Tokens: Credentials {
            let asked = CallCounter()
            func token() -> AccessToken? { AccessToken(asked.next() == 1 ? "a b" : "good") }
            func refresh(_ old: AccessToken?) -> AccessToken? { nil }
        }
        let store = try await store(account: "any")
        let server = try Self.server(of: "any")
        let (triggers, trigger) = AsyncStream.makeStream(of: Replayer.Trigger.self)
        let replayer = Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server)), credentials: Tokens())
        let run = Task {
            try await replayer.run(until: .never, triggers: triggers) { report in
                if report.refusal != nil { trigger.yield(.now) }
            }
        }
        try await eventually("events in the outbox", is: 0) { store.view(Outbox.self).count }
        run.cancel()
        #expect(try await run.value.applied == 3)
        try await store.close()
    }

    final class CallCounter: Sendable {
        private let count = Mutex(0)
        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    @Test(.verifies("RPL-13"), arguments: ["file:///etc/passwd", "ftp://127.0.0.1/", "v1/events"])
    func `an endpoint that cannot be used is an error at once`(text: String) async throws {
        let store = try await store(account: "any")
        let url = try #require(URL(string: text))
        for end in [Replayer.End.whenNothingMoves, .never] {
            let error = await #expect(throws: TransportError.self) {
                try await Replayer(store, transport: HTTPTransport(endpoint: url)).run(until: end)
            }
            #expect(error?.code == .badEndpoint)
        }
        let clear = try #require(URL(string: "http://daybook.invalid/v1/events"))
        let error = await #expect(throws: TransportError.self) {
            try await Replayer(
                store, transport: HTTPTransport(endpoint: clear), credentials: BearerToken("t")
            ).run()
        }
        #expect(error?.code == .tokenInClear)
        // The claim is released: the next run can exchange the store's events.
        let server = try Self.server(of: "any")
        let report = try await Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server))
        ).run()
        #expect(report.applied == 3)
        #expect(!report.isElsewhere)
        try await store.close()
    }

    @Test(.verifies("RPL-12", "RPL-7"))
    func `a run with an end waits for a silent server twice: with a batch and a read`() async throws
    {
        let store = try await store()
        let server = try LocalServer { _ in .script { $0.waitForEnd() } }
        let report = try await Replayer(
            store,
            transport: HTTPTransport(endpoint: try endpoint(server), timeoutSeconds: 0.3),
            sleep: { _ in
                Issue.record("it waits for another try")
                throw CancellationError()
            }
        ).run()
        #expect(report.pending == 3)
        #expect(report.isBehind)
        #expect(report.message?.contains("in time") == true)
        // The server may handle the request only after the client's timeout.
        try await eventually("requests", is: 2) { server.requests.count }
        #expect(server.requests.last?.method == "GET")
        try await store.close()
    }

    @Test(.verifies("RPL-12"), arguments: [true, false])
    func `closing the store ends a run whose server is silent`(hasDeadline: Bool) async throws {
        let store = try await store()
        let server = try LocalServer { _ in .script { $0.waitForEnd() } }
        let replayer = Replayer(
            store, transport: HTTPTransport(endpoint: try endpoint(server), timeoutSeconds: 100_000)
        )
        let end = Replayer.End.at(Timestamp(Date(timeIntervalSinceNow: 100_000)))
        let run = Task { try await replayer.run(until: hasDeadline ? end : .whenNothingMoves) }
        try await eventually("requests", is: 1) { server.requests.count }
        try await store.close()
        let error = await #expect(throws: LogError.self) { try await run.value }
        #expect(error?.code == .closed)
    }
}
