// A recognisable secret passes through everything that could show it: transports, credentials,
// stores, the replayer, a server that refuses it, repeats it and sends invalid answers. Then all
// output and all files are searched for it.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// Collects all log lines, at every level.
private final class Records: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func add(_ line: String) { lines.withLock { $0.append(line) } }

    var logger: Logger { Logger(label: "test") { _ in Handler(records: self) } }

    private struct Handler: LogHandler {
        let records: Records
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            records.add("\(event.message) \(metadata) \(event.metadata ?? [:])")
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct SecrecyTests {
    private static let secret = "xyzzy-3q2-7w-xyzzy"

    /// Everything that a program could print of a value.
    private static func words(_ value: Any) -> String {
        var text = String(describing: value) + String(reflecting: value)
        dump(value, to: &text)
        if let error = value as? any Error {
            text += error.localizedDescription + String(describing: error as NSError)
            text += String(describing: (error as NSError).userInfo)
        }
        return text
    }

    private static func expectSilence(
        _ value: Any, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(!words(value).contains(secret), sourceLocation: sourceLocation)
        #expect(
            !words(value).contains(Data(secret.utf8).base64EncodedString()),
            sourceLocation: sourceLocation)
    }

    private static func error(_ body: () async throws -> Void) async -> (any Error)? {
        do { try await body() } catch { return error }
        return nil
    }

    /// The answers of a hostile server, one after the other.
    private static let answers: [LocalServer.Answer] = [
        .reply(401, body: Array(#"{"error":{"code":"unauthorized"}}"#.utf8)),
        .reply(401, body: Array("who is \(secret)?".utf8)),
        .reply(500, headers: [("X-Token", secret)], body: Array("no such token: \(secret)".utf8)),
        .reply(200, body: Array("<html>Bearer \(secret)</html>".utf8)),
        .reply(200, body: Array(#"{"verdicts":[{"id":"\#(secret)"}]}"#.utf8)),
        .reply(200, body: Array(#"{"verdicts":"#.utf8)),
        .reply(302, headers: [("Location", "http://127.0.0.1:1/?\(secret)")]),
        .reply(503, headers: [("Retry-After", secret)]),
        .raw(Array("HTTP/1.1 200 \(secret)\r\nContent-Length: 9\r\n\r\n\(secret)".utf8)),
        .raw(Array("\(secret)\r\n\r\n".utf8)),
        .hangUp,
    ]

    @Test(.verifies("SEC-1"))
    func `whatever the server answers, the token appears nowhere`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let records = Records()
        let store = try await EventStore.open(
            at: folder.log, catalogue: OfflineModel.catalogue, views: [Outbox.self])
        try await store.append(CitySaved(userId: "u", cityId: "lisbon"))
        let secrets = InMemorySecretStore()
        let asked = Mutex(0)
        let credentials = RefreshingCredentials(store: secrets) { _ in
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            return AccessToken("\(Self.secret)-\(number)")
        }
        try await credentials.set(AccessToken(Self.secret))
        for answer in Self.answers {
            let server = try LocalServer { _ in answer }
            let endpoint = try #require(URL(string: server.base + "/v1/events"))
            let transport = try HTTPTransport(
                endpoint: endpoint, timeoutSeconds: 5, headers: ["X-Proxy": Self.secret])
            let replayer = Replayer(
                store, transport: transport, credentials: credentials, logger: records.logger,
                sleep: { _ in throw CancellationError() })
            let report = try await replayer.run()
            Self.expectSilence(report)
            Self.expectSilence(transport)
            Self.expectSilence(credentials)
            #expect(server.requests.contains { !$0.values("Authorization").isEmpty })
        }
        #expect(asked.withLock { $0 } > 0)
        try await store.close()
        #expect(!records.all.isEmpty)
        for line in records.all { #expect(!line.contains(Self.secret)) }
        let files = try folder.image()
        for (name, bytes) in files {
            #expect(Array(bytes).firstRange(of: Array(Self.secret.utf8)) == nil, "\(name)")
        }
        #expect(files.count > 1)
        // Compressed blocks are decompressed and searched, too.
        let again = try await EventStore.open(
            at: folder.log, catalogue: OfflineModel.catalogue, views: [Outbox.self])
        var position: UInt64 = 1
        while let event = try await again.event(at: Position(position)) {
            Self.expectSilence(event)
            position += 1
        }
        #expect(position > 1)
        try await again.close()
        // It is in its store and nowhere else.
        #expect(secrets.values.count == 1)
    }

    /// As in `"no TOKEN\u{301}"`: a text that does not contain the token as a `String` does.
    @Test(
        .verifies("SEC-1"),
        arguments: ["", "\u{301}", "\u{FE0F}", "\u{200D}", "\u{20DD}", "\u{1F3FD}"])
    func `a verdict that repeats the token is recorded without it`(mark: String) async throws {
        struct Chatty: Transport {
            let mark: String
            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                guard case .append(let batch) = request,
                    case .array(let events) = try JSONValue(batch.span.bytes),
                    case .object(let event)? = events.first, let id = event["id"]?.stringValue
                else { return TransportReply(status: 200, body: Array("[]".utf8)) }
                let token = (token ?? "") + mark
                let verdict =
                    #"{"id":"\#(id)","status":"rejected","code":"\#(token)","detail":"no \#(token)"}"#
                return TransportReply(
                    status: 200, body: Array("{\"verdicts\":[\(verdict)]}".utf8))
            }
        }
        let store = try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        let report = try await Replayer(
            store, transport: Chatty(mark: mark), credentials: BearerToken(Self.secret)
        ).run()
        #expect(report.rejected == 1)
        let entry = try #require(store.view(Outbox.self).entries.first { _ in true })
        #expect(entry.errorMessage == "no …" + mark)
        try await Self.expectSilence(of: store)
        try await store.close()
    }

    /// Searches the bytes of all events, ignoring case, with escapes decoded.
    private static func expectSilence(
        of store: EventStore, _ secret: String = secret,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        var position = Position.zero.next
        while let event = try await store.event(at: position) {
            var text = String(reflecting: event)
            if let json = event.content.json {
                text += String(decoding: json, as: UTF8.self)
                text += String(reflecting: try JSONValue(json.span.bytes))
            }
            #expect(
                Array(text.lowercased().utf8).firstRange(of: Array(secret.utf8)) == nil,
                "position \(position)", sourceLocation: sourceLocation)
            position = position.next
        }
        #expect(position.rawValue > 1)
    }

    /// Answers events with a conflict and reads with one page, both made of the token.
    private struct Repeating: Transport {
        var current = #"{"id":"\#(UUID(integer: 1).text)"}"#
        var events: [String] = []
        var next: String?

        static func event(_ data: String, id: String = UUID().text) -> String {
            """
            {"specversion":"1.0","id":"\(id)","type":"com.example.x","sequence":"1",\
            "source":"urn:uuid:\(UUID().text)","subject":"s","data":{"x":"\(data)"}}
            """
        }

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            guard case .append(let batch) = request else {
                let page = "[\(events.joined(separator: ","))]"
                return TransportReply(status: 200, body: Array(page.utf8), next: next)
            }
            guard case .array(let events) = try JSONValue(batch.span.bytes),
                case .object(let event)? = events.first, let id = event["id"]?.stringValue
            else { return TransportReply(status: 400) }
            let verdict = #"{"id":"\#(id)","status":"conflict","current":\#(current)}"#
            return TransportReply(status: 200, body: Array("{\"verdicts\":[\(verdict)]}".utf8))
        }
    }

    private func report(
        _ transport: Repeating, token: String = secret
    ) async throws -> SyncReport {
        let store = try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        let report = try await Replayer(
            store, transport: transport, credentials: BearerToken(token)
        ).run()
        try await Self.expectSilence(of: store, token.lowercased())
        try await store.close()
        return report
    }

    @Test(.verifies("SEC-1"))
    func `an event of a page that contains the token is skipped, however it is escaped`()
        async throws
    {
        let escaped = Self.secret.utf8.map { "\\u00" + String($0, radix: 16) }.joined()
        let report = try await report(
            Repeating(events: [
                Repeating.event("before"), Repeating.event(Self.secret),
                Repeating.event("no \(Self.secret)\u{301}"), Repeating.event("\\n" + escaped),
                Repeating.event("after"),
            ]))
        #expect(report.received == 2)
        #expect(report.unusable == 3)
    }

    @Test(.verifies("SEC-1"))
    func `a page whose cursor contains the token is refused`() async throws {
        for cursor in [Self.secret, Self.secret + "\u{301}", "%78" + Self.secret.dropFirst()] {
            let report = try await report(
                Repeating(events: [Repeating.event("x")], next: "/v1/events?after=" + cursor))
            #expect(report.received == 0)
            #expect(report.isBehind)
            #expect(report.message?.contains("not a page") == true)
        }
    }

    @Test(.verifies("SEC-1"))
    func `the server's event in a conflict is dropped if it contains the token`() async throws {
        let event = Repeating.event(Self.secret)
        #expect(try await report(Repeating(current: event)).conflict == 1)
        // A token that is a UUID is found in upper case, too.
        let token = UUID().text
        let named = Repeating(
            current: Repeating.event("x", id: token.uppercased()),
            events: [Repeating.event("x", id: token.uppercased())])
        #expect(try await report(named, token: token).unusable == 1)
    }

    @Test(.verifies("SEC-1")) func `no error of a transport contains a token or a header's value`()
        async throws
    {
        let secret = Self.secret
        var errors: [any Error] = []
        for answer in Self.answers {
            let server = try LocalServer { _ in answer }
            let url = try #require(URL(string: server.base))
            let transports: [any Transport] = [
                try HTTPTransport(endpoint: url, headers: ["X-Key": secret]),
                try SupabaseTransport(project: url, apiKey: secret, headers: ["X-Key": secret]),
            ]
            for transport in transports {
                Self.expectSilence(transport)
                for call in [TransportRequest.append(batch: Array("[]".utf8)), .read(after: nil)] {
                    if let error = await Self.error({
                        _ = try await transport.send(call, token: secret)
                    }) {
                        errors.append(error)
                    }
                }
            }
            #expect(server.requests.count == 4)
        }
        let nobody = try #require(URL(string: "http://127.0.0.1:1/v1/events"))
        let transport = try HTTPTransport(endpoint: nobody, headers: ["X-Key": secret])
        for (cursor, token) in [
            (nil, secret), (nil, secret + "\r\n"), ("http://\(secret)@127.0.0.1:1/", secret),
            ("https://\(secret).example/", secret), ("//127.0.0.2/?\(secret)", secret),
        ] as [(String?, String)] {
            let error = await Self.error {
                _ = try await transport.send(.read(after: cursor), token: token)
            }
            errors.append(try #require(error))
        }
        for headers in [
            ["X": secret + "\n"], ["Authorization": secret], ["X y": secret],
            ["X": secret, "x": secret],
        ] {
            let error = await Self.error {
                _ = try HTTPTransport(endpoint: nobody, headers: headers)
            }
            errors.append(try #require(error))
        }
        let key = await Self.error {
            _ = try SupabaseTransport(project: nobody, apiKey: secret + " ")
        }
        errors.append(try #require(key))
        #expect(errors.count > 15)
        for error in errors { Self.expectSilence(error) }
    }

    @Test(.verifies("SEC-1")) func `descriptions of values with a secret do not show it`()
        async throws
    {
        let token = AccessToken(Self.secret)
        let certificate = ClientCertificate(
            pkcs12: Array(Self.secret.utf8), password: Self.secret)
        let secrets = InMemorySecretStore()
        try secrets.write(Array("{\"\(Self.secret)".utf8), for: ClientCertificate.defaultName)
        try secrets.write(Array("{\"\(Self.secret)".utf8), for: "daybook.token")
        let damaged = await Self.error { _ = try await ClientCertificate.load(from: secrets) }
        Self.expectSilence(try #require(damaged))
        let credentials = RefreshingCredentials(store: secrets) { _ in token }
        #expect(try await credentials.token() == nil)
        Self.expectSilence(try #require(await credentials.storeFailure))
        let all: [Any] = [
            token, certificate, [token], Optional(token) as Any, ["k": certificate],
            BearerToken(Self.secret), (token, certificate),
        ]
        for value in all { Self.expectSilence(value) }
        #if !canImport(Security)
            let server = try TLSServer()
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            let error = await Self.error {
                _ = try await HTTPTransport(endpoint: url, headers: [:], certificate: certificate)
                    .send(.read(after: nil), token: nil)
            }
            Self.expectSilence(try #require(error))
        #endif
    }
}
