// What counts as an answer of an app's own API, and what the transport decides itself. Spec/protocol/requests.md.

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

@Suite struct RequestAnswerTests {
    private static let token = "t0ken-3q2-7w"

    // MARK: The transport's own answers

    @Test(.verifies("REQ-10", "RPL-17"))
    func `what the transport decides itself does not show that the API can be reached`()
        async throws
    {
        let api = NotesAPI { _ in .lostRequest }
        let device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        for note in 0..<10 { try await device.store.append(MemoPinned(note: "\(note)")) }
        let report = try await device.run()
        #expect(report.applied == 10)
        #expect(report.pending == 1)
        #expect(report.rejected == 0)
        #expect(report.message != nil)
        #expect(try await !device.transport().send(.read(after: nil), token: nil).isServers)
    }

    /// A rule whose request needs the number of the note `a`.
    private static func waitingRules(_ builds: @escaping @Sendable () -> Void) -> [EventRule] {
        noteRules().filter { $0.type != LineAdded.type } + [
            .of(LineAdded.self, action: "ADD_LINE") { line, context in
                builds()
                guard let number = context.view(MemoNumbers.self).numbers["a"] else {
                    throw RequestNotReady("the note a has no number yet")
                }
                return try APIRequest(.post, "notes", "\(number)", "lines", json: Line(text: "x"))
            }
        ]
    }

    @Test(.verifies("REQ-2"))
    func `a request that waits for another answer costs no retries, and few attempts`()
        async throws
    {
        let builds = Mutex(0)
        let rules = Self.waitingRules { builds.withLock { $0 += 1 } }
        let api = NotesAPI()
        let device = try await NotesDevice(api, rules: rules)
        try await device.store.append(LineAdded(note: "b", text: "one"))
        for _ in 0..<20 {
            #expect(try await device.run().pending == 1)
            device.clock.advance(by: .seconds(3_600))
        }
        #expect(device.firstEntry?.retryCount == 0)
        #expect(device.firstEntry?.parking == nil)
        let message = OutboxCommands(device.store).entries.first?.errorMessage
        #expect(message?.contains("has no number yet") == true)
        let clock = device.clock
        builds.withLock { $0 = 0 }
        let end = Timestamp(milliseconds: clock.milliseconds + 3_600_000)
        _ = try await Replayer(device.store, transport: device.transport()) {
            // The deadline of a request, which has its answer at once.
            guard $0 < .seconds(1_000) else { return try await Task.sleep(for: $0) }
            clock.advance(by: $0)
        }.run(until: .at(end))
        #expect(builds.withLock { $0 } < 400)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        #expect(try await device.run().pending == 0)
        #expect(api.notes == ["a": ["one", "x"]])
    }

    @Test(.verifies("REQ-1"))
    func `a change whose rule a later release has is sent by that release`() async throws {
        let api = NotesAPI()
        var device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        try await device.store.append(LineAdded(note: "a", text: "two"))
        try await device.reopen(rules: noteRules().filter { $0.type != LineAdded.type })
        #expect(try await device.run().pending == 1)
        #expect(device.firstEntry?.parking == nil)
        try await device.reopen()
        #expect(try await device.run().pending == 0)
        #expect(api.notes == ["a": ["one", "two"]])
    }

    @Test(
        .verifies("REQ-9", "RPL-17"),
        arguments: [
            APIAnswer(status: 401), APIAnswer(status: 429, headers: ["Retry-After": "90"]),
        ])
    func `a run tries the others once although the API asks to wait after one change`(
        answer: APIAnswer
    ) async throws {
        let isOut = Mutex(false)
        let count = Mutex(0)
        let api = NotesAPI { request in
            count.withLock { $0 += 1 }
            let fails = request.body.contains("poison") || isOut.withLock { $0 }
            return fails ? .instead(answer) : .answered
        }
        let device = try await NotesDevice(api)
        for note in ["a", "b", "c"] {
            let text = note == "a" ? "poison" : "one"
            try await device.store.append(MemoAdded(note: note, text: text))
        }
        #expect(try await device.run().applied == 2)
        // An outage costs one request more.
        isOut.withLock { $0 = true }
        for note in ["d", "e", "f"] {
            try await device.store.append(MemoAdded(note: note, text: "one"))
        }
        count.withLock { $0 = 0 }
        #expect(try await device.run().pending == 4)
        #expect(count.withLock { $0 } <= 4)
    }

    // MARK: Once

    @Test(.verifies("REQ-5", "PRK-1"))
    func `a retry by the user after the API has forgotten the key asks first`() async throws {
        let isRefused = Mutex(true)
        let api = NotesAPI { _ in
            isRefused.withLock { $0 } ? .instead(.json(422, "{}")) : .answered
        }
        var device = try await NotesDevice(api)
        device.promise = .once(
            keysKeptFor: .seconds(3_600),
            confirm: Confirmation { _ in
                try APIRequest(
                    .get, "notes", query: [URLQueryItem(name: "client", value: "a")],
                    json: Line(text: ""))
            })
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        #expect(try await device.run().rejected == 1)
        isRefused.withLock { $0 = false }
        device.clock.advance(by: .seconds(30 * 3_600))
        let entry = try #require(device.firstEntry)
        try await OutboxCommands(device.store).retry(entry.id)
        #expect(try await device.run().pending == 0)
        #expect(api.requests.map(\.method) == [.get, .post])
    }

    @Test(.verifies("REQ-5"))
    func `by default an empty list shows that a change is not there, and no body shows nothing`()
        throws
    {
        let question = Confirmation { _ in APIRequest(.get, "notes") }
        let rows: [(APIAnswer, Bool?)] = [
            (.json(200, "[]"), false), (.json(200, " [ ] "), false), (.json(200, "[1]"), true),
            (.json(200, "{}"), true), (APIAnswer(status: 204), nil), (.page(200), nil),
            (.json(404, "{}"), false), (.json(410, "{}"), false), (APIAnswer(status: 404), nil),
            (APIAnswer(status: 410), nil), (.json(500, "{}"), nil), (.json(422, "{}"), nil),
        ]
        for (answer, isThere) in rows {
            #expect(try question.isApplied(answer, .json) == isThere, "\(answer)")
        }
        let own = Confirmation({ _ in APIRequest(.get, "notes") }, isApplied: { _ in true })
        #expect(try own.isApplied(.page(200), .json) == nil)
    }

    @Test(.verifies("REQ-2"))
    func `no header of the app takes the place of the key`() throws {
        let id = UUID()
        let request = APIRequest(
            .post, "notes", headers: ["idempotency-key": "x", "If-Match": "7"])
        let headers = try request.buildRequest(with: .idempotencyKey, for: id).headers
        #expect(headers["Idempotency-Key"] == id.text)
        #expect(headers.keys.count { $0.lowercased() == "idempotency-key" } == 1)
        #expect(headers["If-Match"] == "7")
    }

    // MARK: Answers

    @Test(.verifies("REQ-7"))
    func `the app's functions get no page in HTML, but one that shows the API, and XML`()
        async throws
    {
        let seen = Mutex<[Int]>([])
        let answers: [APIAnswer] = [
            .page(409), .page(200),
            APIAnswer(
                status: 201, headers: ["Content-Type": "text/plain"], body: Array("<p>".utf8)),
            APIAnswer(
                status: 202, headers: ["Content-Type": "application/xml"], body: Array("<a/>".utf8)),
        ]
        let count = Mutex(0)
        let api = NotesAPI { _ in
            .instead(
                answers[
                    count.withLock {
                        $0 += 1; return min($0, answers.count) - 1
                    }])
        }
        let device = try await NotesDevice(api)
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        let transport = try device.transport { answer in
            seen.withLock { $0.append(answer.status) }
            return .rejected(code: "seen")
        }
        #expect(try await device.run(over: transport).held == 1)
        #expect(seen.withLock { $0 } == [202])
        let page = APIAnswer(
            status: 200, headers: ["Content-Type": "text/html", "X-Notes": "1"],
            body: Array("<p>".utf8))
        #expect(APIEvidence.header("x-notes").admits(page))
    }

    // MARK: Learning

    private struct Taught: EventPayload, Codable {
        static let type = "com.example.taught"
        var text: String
    }

    @Test(
        .verifies("REQ-8", "SEC-1"),
        arguments: [
            Taught(text: "Bearer \(token)"),
            Taught(text: String(repeating: "x", count: EventDraft.lineBytesMax)),
            SyncSettled(by: UUID()),
        ] as [any EventPayload])
    func `a change is parked if the log refuses what its answer teaches, also by a token in it`(
        taught: any EventPayload
    ) async throws {
        let isBad = Mutex(true)
        let rules: [EventRule] = [
            .of(MemoAdded.self, action: "ADD_NOTE") { note, _ in
                try APIRequest(.post, "notes", json: Line(text: note.text))
            } learning: { _, _ in
                isBad.withLock { $0 } ? [taught] : [Taught(text: "good")]
            },
            .of(Taught.self),
        ]
        let api = NotesAPI { _ in .instead(.json(201, "{}")) }
        let device = try await NotesDevice(api, rules: rules, account: "ada")
        try await device.store.append(MemoAdded(note: "a", text: "one"))
        let user = BearerToken(Self.token)
        let report = try await device.run(as: user)
        #expect(report.applied == 0)
        #expect(report.rejected == 1)
        #expect(report.held == 1)
        let entry = try #require(device.firstEntry)
        #expect(entry.code == RequestTransport.Code.unusableAnswer)
        #expect(try device.log().allSatisfy { $0.type != Taught.type })
        isBad.withLock { $0 = false }
        try await OutboxCommands(device.store).retry(entry.id)
        #expect(try await device.run(as: user).pending == 0)
        try await device.store.flush()
        #expect(try device.log().count { $0.type == Taught.type } == 1)
    }

    private struct Leak: LocalizedError {
        var errorDescription: String? { "cannot send Bearer \(token)" }
    }

    @Test(.verifies("SEC-1"))
    func `a change that is set aside has no token in its reason, nor has the report`() async throws
    {
        let api = NotesAPI { $0.body.contains("poison") ? .failed(Leak()) : .answered }
        let device = try await NotesDevice(api, account: "ada")
        for note in ["a", "b", "c"] {
            let text = note == "a" ? "poison" : "one"
            try await device.store.append(MemoAdded(note: note, text: text))
        }
        let report = try await device.run(as: BearerToken(Self.token))
        let entry = try #require(device.firstEntry)
        #expect(entry.parking == .setAside)
        #expect(entry.errorMessage?.contains("cannot send Bearer …") == true)
        #expect(!"\(report)".contains(Self.token))
        try await device.store.flush()
        let texts = try device.log().map { String(decoding: $0.content.json ?? [], as: UTF8.self) }
        #expect(!texts.contains { $0.contains(Self.token) })
    }
}
