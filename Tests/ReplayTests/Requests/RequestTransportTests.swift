// Requests to an app's own API: each change takes effect once, whatever answers are lost and whenever the app is
// killed. Spec/protocol/requests.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import RequestHistories
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite struct RequestTransportTests {
    // MARK: Declaring

    @Test(.verifies("REQ-1"))
    func `a shipped type without a request is refused by name, and one that needs none is settled`()
        async throws
    {
        let api = NotesAPI()
        var device = try await NotesDevice(api)
        try await device.store.append(MemoPinned(note: "a"))
        #expect(try await device.run().applied == 1)
        #expect(api.requests.isEmpty)
        try await device.reopen(rules: noteRules() + [.of(Orphan.self, action: "ORPHAN")])
        let error = #expect(throws: EventError.self) { try device.transport() }
        #expect(error?.code == .refused)
        #expect(error?.detail.contains(Orphan.type) == true)
    }

    private struct Orphan: EventPayload, Codable {
        static let type = "com.example.orphan"
    }

    @Test(.verifies("OUT-13", "REQ-2"))
    func `a request has the event's id as its key, and nothing in it can become another path`()
        throws
    {
        let id = try #require(UUID(uuidString: "8E03978E-40D5-43DD-BC93-6894A57F9324"))
        let request = try APIRequest(
            .put, "notes", "a/b c", query: [URLQueryItem(name: "q", value: "1&2")],
            headers: ["If-Match": "\"7\""], json: Line(text: "x"))
        let built = try request.buildRequest(with: .idempotencyKey, for: id)
        #expect(built.target == "notes/a%2Fb%20c?q=1%262")
        #expect(built.headers["Idempotency-Key"] == "8e03978e-40d5-43dd-bc93-6894a57f9324")
        #expect(built.headers["If-Match"] == "\"7\"")
        #expect(built.headers["Content-Type"] == "application/json")
        let quoted = try request.buildRequest(
            with: .header("Idempotency-Key", isQuoted: true), for: id)
        #expect(quoted.headers["Idempotency-Key"] == "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"")
        let member = try request.buildRequest(with: .member("request_id"), for: id)
        #expect(
            String(decoding: member.body ?? [], as: UTF8.self)
                == #"{"text":"x","request_id":"8e03978e-40d5-43dd-bc93-6894a57f9324"}"#)
        for path in ["..", ".", ""] {
            #expect(throws: EventError.self) {
                try APIRequest(.get, "notes", path).buildRequest(with: .inRequest, for: id)
            }
        }
        for header in ["Authorization", "Cookie"] {
            #expect(throws: TransportError.self) {
                try APIRequest(.get, "notes", headers: [header: "x"]).buildRequest(
                    with: .inRequest, for: id)
            }
        }
    }

    // MARK: Once

    @Test(.verifies("OUT-12", "REQ-3"))
    func `a later attempt sends the recorded bytes, also after an update of the app`() async throws
    {
        let count = Mutex(0)
        let api = NotesAPI { _ in
            count.withLock {
                $0 += 1; return $0 == 1 ? .lostAnswer : .answered
            }
        }
        var device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        let records = try device.log().filter { $0.type == SyncRequested.type }
        #expect(records.isEmpty)
        try await device.run()
        try await device.reopen(rules: noteRules(suffix: " (2.0)"))
        try await device.store.append(LineAdded(note: "a", text: "two"))
        #expect(try await device.run().pending == 0)
        #expect(api.violations == [])
        #expect(api.notes == ["a": ["one", "two (2.0)"]])
        #expect(api.applied == 2)
    }

    @Test(.verifies("OUT-12"))
    func `a request is recorded until its event is settled, and compaction keeps it so long`()
        async throws
    {
        let api = NotesAPI { $0.body.contains("two") ? .lostAnswer : .answered }
        var device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        try await device.store.append(LineAdded(note: "a", text: "two"))
        try await device.run()
        for note in 0..<40 { try await device.store.append(MemoPinned(note: "\(note)")) }
        try await device.store.compact()
        let kept = try device.log().filter { $0.type == SyncRequested.type }
        let record = try #require(
            try kept.last.map { try SyncRequested(json: $0.content.json ?? []) })
        #expect(record.request.target == "notes/1/lines")
        #expect(record.request.body == Array(#"{"text":"two"}"#.utf8))
        #expect(device.store.view(Outbox.self).requests.count == 1)
        try await device.reopen()
        #expect(device.store.view(Outbox.self).requests.count == 1)
        let outbox = device.store.view(Outbox.self)
        let state = try #require(outbox.encodedState())
        #expect(try Outbox(encodedState: state).requests == outbox.requests)
    }

    @Test(.verifies("OUT-12"))
    func `a record of a request with an encoding that is not known, or of no body, is malformed`()
        throws
    {
        var request = BuiltRequest(.post, "notes", headers: [:], body: Array("{}".utf8))
        request.isCompressed = true
        let position = Position(1)
        let json = String(
            decoding: SyncRequested(by: UUID(), position: position, id: UUID(), request: request)
                .json(), as: UTF8.self)
        #expect(try SyncRequested(json: Array(json.utf8)).request == request)
        for broken in [
            json.replacing(#""encoding":"gzip""#, with: #""encoding":"br""#),
            json.replacing(#""encoding":"gzip""#, with: #""encoding":1"#),
            json.replacing(#","body":"{}""#, with: ""),
        ] {
            try #require(broken != json)
            let error = #expect(throws: EventError.self) {
                try SyncRequested(json: Array(broken.utf8))
            }
            #expect(error?.code == .invalidData)
        }
    }

    @Test(.verifies("REQ-5"))
    func `after the time that keys are kept, a change is sent only if the API does not have it`()
        async throws
    {
        for (isThere, parked) in [(true, false), (false, false), (false, true)] {
            let isLost = Mutex(true)
            let api = NotesAPI { request in
                guard isLost.withLock({ $0 }), request.method == .post else { return .answered }
                return isThere ? .lostAnswer : .lostRequest
            }
            var device = try await NotesDevice(api)
            device.promise = .once(
                keysKeptFor: .seconds(3_600),
                confirm: parked
                    ? nil
                    : Confirmation { context in
                        let note = try context.event.payload(as: MemoAdded.self).note
                        return try APIRequest(
                            .get, "notes", query: [URLQueryItem(name: "client", value: note)],
                            json: Line(text: ""))
                    })
            try await device.store.append(MemoAdded(note: "a", text: "one"))
            #expect(try await device.run().pending == 1)
            isLost.withLock { $0 = false }
            api.forgetKeys()
            device.clock.advance(by: .seconds(3_601))
            try await device.reopen()
            #expect(try await device.run().pending == (parked ? 1 : 0))
            if parked {
                let entry = try #require(device.store.view(Outbox.self).entries.first { _ in true })
                #expect(entry.code == RequestTransport.Code.keyExpired)
                #expect(entry.parking == .rejected)
                #expect(api.applied == 0)
                // The user decides to send it all the same.
                try await OutboxCommands(device.store).retry(entry.id)
                #expect(try await device.run().pending == 0)
            }
            #expect(api.notes == ["a": ["one"]])
            #expect(api.applied == 1)
            #expect(device.store.view(MemoNumbers.self).numbers == ["a": 1])
        }
    }

    @Test(.verifies("REQ-5"))
    func
        `an API without keys gets a change twice only if its answer was lost and nothing is asked`()
        async throws
    {
        for asks in [true, false] {
            let count = Mutex(0)
            let api = NotesAPI(honoursKeys: false) { request in
                guard request.method == .post else { return .answered }
                return count.withLock {
                    $0 += 1; return $0 == 2 ? .lostAnswer : .answered
                }
            }
            var device = try await NotesDevice(api)
            device.promise = .atLeastOnce(
                confirm: asks
                    ? Confirmation(
                        { _ in APIRequest(.get, "notes", "1") }, isApplied: { _ in true })
                    : nil)
            try await device.store.append(MemoAdded(note: "a", text: "one"))
            try await device.store.append(LineAdded(note: "a", text: "two"))
            #expect(try await device.run().pending == 0)
            #expect(api.notes["a"] == (asks ? ["one", "two"] : ["one", "two", "two"]))
            #expect(api.requests.allSatisfy { $0.isSentOnce || $0.method == .get })
        }
    }

    @Test(.verifies("REQ-5"))
    func `while the disk is full an API without keys gets nothing whose answer could be lost`()
        async throws
    {
        let isLost = Mutex(true)
        let api = NotesAPI(honoursKeys: false) { _ in
            isLost.withLock { $0 } ? .lostRequest : .answered
        }
        var device = try await NotesDevice(api)
        device.promise = .atLeastOnce()
        for note in ["a", "b"] {
            try await device.store.append(MemoAdded(note: note, text: "one"))
        }
        #expect(try await device.run().pending == 2)
        isLost.withLock { $0 = false }
        device.files.setQuota(device.files.usedBytes)
        let store = device.store
        await #expect {
            // The log's reserve, too.
            while true {
                try await store.record(MemoNumbered(note: "\(UUID())", number: 1))
                try await store.flush()
            }
        } throws: { ($0 as? LogError)?.code == .diskFull }
        let report = try await device.run()
        #expect(api.applied == 0)
        #expect(report.message?.contains("full") == true)
        device.files.setQuota(nil)
        device.clock.advance(by: .seconds(3_600))
        #expect(try await device.run().pending == 0)
        #expect(api.applied == 2)
    }

    // MARK: Answers

    @Test(.verifies("REQ-7"))
    func `an answer is final only if it comes from the API and says something of the change`()
        async throws
    {
        let json = #"{"detail":"too long"}"#
        let rows: [(APIAnswer, APIVerdict)] = [
            (.json(200, "{}"), .applied), (.json(201, "{}"), .applied),
            (APIAnswer(status: 204), .applied), (.page(200), .nothing),
            (.json(400, json), .rejected(code: "http_400", detail: "too long")),
            (.json(404, json), .rejected(code: "http_404", detail: "too long")),
            (.json(410, json), .rejected(code: "http_410", detail: "too long")),
            (.json(422, json), .rejected(code: "http_422", detail: "too long")),
            (.json(422, "no"), .rejected(code: "http_422", detail: nil)),
            (.json(415, json), .rejected(code: "http_415", detail: "too long")),
            (
                .json(422, #"{"title":"t","error":"e","message":"m"}"#),
                .rejected(code: "http_422", detail: "m")
            ),
            (
                .json(422, #"{"title":"t","error":"e","message":1}"#),
                .rejected(code: "http_422", detail: "e")
            ),
            (.json(422, #"{"title":"t"}"#), .rejected(code: "http_422", detail: "t")),
            (
                APIAnswer(status: 409, headers: ["Retry-After": "7"]), .retry(afterSeconds: 7)
            ),
            (.page(400), .nothing), (.page(404), .nothing), (.page(422), .nothing),
            (APIAnswer(status: 404), .nothing), (APIAnswer(status: 415), .nothing),
            (.json(409, json), .retry(afterSeconds: nil)),
            (.json(412, json), .conflict(code: "http_412", detail: "too long")),
        ]
        for (answer, verdict) in rows {
            #expect(APIVerdict.standard(for: answer, evidence: .json) == verdict, "\(answer)")
        }
        for status in [301, 302, 304, 401, 403, 407, 408, 413, 425, 429, 500, 502, 503, 504, 511] {
            let verdict = APIVerdict.standard(for: .json(status, json), evidence: .json)
            #expect(verdict == .nothing, "\(status)")
        }
        let evidence = APIEvidence.header("X-Notes")
        let named = APIAnswer(status: 404, headers: ["x-notes": "1"])
        #expect(
            APIVerdict.standard(for: named, evidence: evidence)
                == .rejected(code: "http_404", detail: nil))
        #expect(APIVerdict.standard(for: .json(404, json), evidence: evidence) == .nothing)
    }

    @Test(.verifies("REQ-7"))
    func `an answer that is not final parks nothing, and the change is sent later`() async throws {
        let answers: [APIAnswer] = [
            .page(200), .page(400), .page(404), .json(408, "{}"), .json(425, "{}"),
            .json(429, "{}"), .page(422), .json(500, "{}"), .page(502), .page(503),
            APIAnswer(status: 404),
        ]
        for answer in answers {
            let count = Mutex(0)
            let api = NotesAPI { _ in
                count.withLock {
                    $0 += 1; return $0 == 1 ? .instead(answer) : .answered
                }
            }
            let device = try await NotesDevice(api)
            try await device.store.append(MemoAdded(note: "a", text: "one"))
            let report = try await device.run()
            #expect(report.pending == 0, "\(answer)")
            #expect(report.rejected == 0, "\(answer)")
            #expect(api.applied == 1, "\(answer)")
        }
    }

    @Test(.verifies("REQ-7"))
    func `413 of the API parks the change, and that of a proxy does not`() async throws {
        for (answer, code) in [(APIAnswer.json(413, "{}"), "http_413"), (.page(413), nil)] {
            let api = NotesAPI { $0.body.contains("long") ? .instead(answer) : .answered }
            let device = try await NotesDevice(api)
            try await device.store.append(MemoAdded(note: "a", text: "long"))
            try await device.store.append(MemoAdded(note: "b", text: "short"))
            let report = try await device.run()
            #expect(report.applied == 1)
            // A page from a proxy says nothing: the change is set aside, and sent again.
            #expect((device.firstEntry?.parking == .rejected) == (code != nil))
            #expect((device.firstEntry?.code == "http_413") == (code != nil))
            #expect(api.notes == ["b": ["short"]])
        }
    }

    @Test(.verifies("REQ-7"))
    func `after 401 the change is sent with a new token`() async throws {
        struct Client: APIClient {
            let api: NotesAPI
            func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
                guard token == "new" else { return APIAnswer(status: 401) }
                return try await api.answer(to: request, token: token)
            }
        }
        struct Issuer: Credentials {
            func token() -> AccessToken? { AccessToken("old") }
            func refresh(_ old: AccessToken?) -> AccessToken? { AccessToken("new") }
        }
        let api = NotesAPI()
        let device = try await NotesDevice(api, account: "ana")
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        let transport = try RequestTransport(
            device.store, api: "notes", at: try #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), client: Client(api: api))
        #expect(try await device.run(over: transport, as: Issuer()).applied == 1)
        #expect(api.notes == ["a": ["one"]])
    }

    @Test(.verifies("REQ-7"))
    func `a refused change is parked with the API's reason, and others flow`() async throws {
        let api = NotesAPI()
        let device = try await NotesDevice(api)
        for note in ["a", "b"] {
            try await device.store.append(MemoAdded(note: note, text: "one"))
            let text = note == "a" ? "refused" : "two"
            try await device.store.append(LineAdded(note: note, text: text))
        }
        let report = try await device.run()
        #expect(report.applied == 3)
        #expect(report.held == 1)
        let entry = try #require(device.store.view(Outbox.self).entries.first { _ in true })
        #expect(entry.code == "http_422")
        #expect(entry.errorMessage == "it is refused")
        #expect(api.notes == ["a": ["one"], "b": ["one", "two"]])
    }

    @Test(.verifies("REQ-9"))
    func `a change on which the API fails holds no other, also after an outage`() async throws {
        let answers: [APIAnswer?] = [
            nil, .json(403, "{}"), .json(500, "{}"), .page(302), .json(418, "{}"),
        ]
        for answer in answers {
            let count = Mutex(0)
            let api = NotesAPI { request in
                let isOut = count.withLock {
                    $0 += 1; return $0 <= 3
                }
                guard isOut || request.body.contains("poison") else { return .answered }
                return answer.map { .instead($0) } ?? .lostRequest
            }
            let device = try await NotesDevice(api)
            for note in ["a", "b", "c"] {
                let text = note == "a" ? "poison" : "one"
                try await device.store.append(MemoAdded(note: note, text: text))
            }
            let report = try await device.run()
            #expect(report.applied == 2, "\(String(describing: answer))")
            #expect(report.pending == 1)
        }
    }

    // MARK: Learning

    @Test(.verifies("REQ-8"))
    func `what an answer teaches is recorded with its verdict, or the change is parked`()
        async throws
    {
        let isBad = Mutex(true)
        let api = NotesAPI { _ in
            isBad.withLock { $0 } ? .instead(.json(201, #"{"id":1}"#)) : .answered
        }
        var device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        #expect(try await device.run().held == 1)
        let entry = try #require(device.store.view(Outbox.self).entries.first { _ in true })
        #expect(entry.code == RequestTransport.Code.unusableAnswer)
        isBad.withLock { $0 = false }
        try await OutboxCommands(device.store).retry(entry.id)
        #expect(try await device.run().pending == 0)
        #expect(device.store.view(MemoNumbers.self).numbers == ["a": 1])
        try await device.store.flush()
        try await device.reopen()
        let types = try device.log().map(\.type)
        let settled = try #require(types.lastIndex(of: SyncSettled.type))
        #expect(types[settled + 1] == MemoNumbered.type)
    }

    @Test(.verifies("REQ-2"))
    func `a request that cannot be built parks its event with the reason`() async throws {
        let rules: [EventRule] = [
            .of(LineAdded.self, action: "ADD_LINE") { _, _ in throw Unbuildable() }
        ]
        let api = NotesAPI()
        let device = try await NotesDevice(api, rules: rules)
        try await device.store.append(LineAdded(note: "a", text: "one"))
        #expect(try await device.run().held == 1)
        let entry = try #require(device.store.view(Outbox.self).entries.first { _ in true })
        #expect(entry.code == RequestTransport.Code.noRequest)
        #expect(entry.errorMessage?.contains("Unbuildable") == true)
        #expect(api.requests.isEmpty)
    }

    private struct Unbuildable: Error {}

    // MARK: Whom

    @Test(.verifies("REQ-6"))
    func `a log sends nothing to an API with another name, and goes on at another address`()
        async throws
    {
        let api = NotesAPI()
        let device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        try await device.run()
        #expect(device.store.syncPeer.server == "notes")
        try await device.store.append(LineAdded(note: "a", text: "two"))
        let clock = device.clock
        let other = try await Replayer(device.store, transport: device.transport(api: "other")) {
            clock.advance(by: $0)
        }.run()
        #expect(other.pending == 1)
        #expect(other.refusal?.code == .otherAPI)
        #expect(api.applied == 1)
        let moved = try device.transport(at: "https://api2.example.com")
        let report = try await Replayer(device.store, transport: moved) {
            clock.advance(by: $0)
        }.run()
        #expect(report.pending == 0)
        #expect(api.applied == 2)
        #expect(device.store.syncPeer.address == "api2.example.com")
    }

    // MARK: The network

    @Test(.verifies("REQ-2"))
    func `the request on the wire has the method, the path, the headers and the body`()
        async throws
    {
        let server = try LocalServer { request in
            .reply(
                request.method == "DELETE" ? 204 : 201,
                headers: [("Content-Type", "application/json")],
                body: request.method == "DELETE" ? [] : Array(#"{"number":1}"#.utf8))
        }
        let clock = VirtualClock()
        let rules: [EventRule] = [
            .of(MemoAdded.self, action: "ADD_NOTE") { note, _ in
                try APIRequest(.put, "notes", note.note, json: Line(text: note.text))
            },
            .of(LineAdded.self, action: "ADD_LINE") { line, _ in
                APIRequest(.delete, "notes", line.note)
            },
        ]
        let store = try await EventStore.open(
            at: "/log", account: "ada", catalogue: EventCatalogue(rules), views: [Outbox.self],
            environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: 1))
        let added = try await store.append(MemoAdded(note: "a/b c", text: "one"))
        try await store.append(LineAdded(note: "a/b c", text: ""))
        let transport = try RequestTransport(
            store, api: "notes", at: try #require(URL(string: server.base + "/v1/")),
            promise: .once(keysKeptFor: nil))
        let report = try await Replayer(
            store, transport: transport, credentials: BearerToken("t0ken")
        ).run()
        #expect(report.applied == 2)
        let put = try #require(server.requests.first)
        #expect(put.method == "PUT")
        #expect(put.target == "/v1/notes/a%2Fb%20c")
        #expect(put.values("Idempotency-Key") == [added.id.text])
        #expect(put.values("Authorization") == ["Bearer t0ken"])
        #expect(put.text == #"{"text":"one"}"#)
        let delete = try #require(server.requests.last)
        #expect(delete.method == "DELETE")
        #expect(delete.body.isEmpty)
    }
}

extension NotesDevice {
    /// All events of the log.
    func log() throws -> [Event] {
        var events: [Event] = []
        try LogReader("/log", fileSystem: files).forEachEvent(catalogue: store.catalogue) {
            events.append($0)
            return true
        }
        return events
    }
}
