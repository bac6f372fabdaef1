// Changes that are sent in one request, and bodies in gzip. Spec/protocol/requests.md, REQ-11 and REQ-12.

import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite struct BulkRequestTests {
    /// The API: it answers each change of a bulk, and each change that is sent by itself.
    private final class BulkAPI: APIClient {
        struct Received: Equatable {
            var target: String
            var texts: [String]
        }
        let received = Mutex<[Received]>([])
        private let answer: @Sendable ([String], Bool) throws -> APIAnswer

        init(_ answer: @escaping @Sendable (_ texts: [String], _ isBulk: Bool) throws -> APIAnswer)
        {
            self.answer = answer
        }

        func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
            let isBulk = request.url.lastPathComponent == "batch"
            let body = Data(request.body ?? [])
            let texts =
                isBulk
                ? try JSONDecoder().decode([Line].self, from: body).map(\.text)
                : [try JSONDecoder().decode(Line.self, from: body).text]
            received.withLock {
                $0.append(Received(target: request.url.lastPathComponent, texts: texts.sorted()))
            }
            return try answer(texts, isBulk)
        }
    }

    private static let endpoint = BulkEndpoint { requests in
        try APIRequest(
            .post, "batch",
            json: requests.map { try JSONDecoder().decode(Line.self, from: Data($0.body ?? [])) })
    } answers: { answer, _ in
        try answer.decode([Int].self).map { $0 == 0 ? nil : .json($0, #"{"number":1}"#) }
    }

    /// Adds three notes and sends them at once.
    private func ship(
        _ api: BulkAPI, runs: Int = 1,
        verdict: @escaping @Sendable (APIAnswer) throws -> APIVerdict? = { _ in nil }
    ) async throws -> (report: SyncReport, received: [BulkAPI.Received], store: EventStore) {
        let device = try await NotesDevice(NotesAPI())
        for text in ["a", "b", "c"] {
            try await device.store.append(MemoAdded(note: text, text: text))
        }
        var options = Replayer.Options()
        options.requestsMax = 3
        let transport = try RequestTransport(
            device.store, api: "notes", at: try #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), bulk: Self.endpoint, client: api, verdict: verdict)
        let clock = device.clock
        var report: SyncReport?
        for _ in 0..<runs {
            report = try await Replayer(device.store, transport: transport, options: options) {
                clock.advance(by: $0)
            }.run()
            clock.advance(by: .seconds(3_700))
        }
        return (try #require(report), api.received.withLock { $0 }, device.store)
    }

    @Test(.verifies("REQ-11"))
    func `each change of a bulk has its own verdict`() async throws {
        let api = BulkAPI { texts, isBulk in
            let statuses = texts.map { $0 == "b" ? 422 : 201 }
            return isBulk ? .json(200, "\(statuses)") : .json(statuses[0], #"{"number":1}"#)
        }
        let (report, received, store) = try await ship(api)
        #expect(received.contains { $0.target == "batch" && $0.texts.count > 1 })
        #expect((report.applied, report.rejected) == (2, 1))
        #expect(store.outbox.entries.map(\.code) == ["http_422"])
    }

    @Test(.verifies("REQ-11"))
    func `a bulk that is refused as a whole is sent change by change`() async throws {
        let api = BulkAPI { texts, isBulk in
            texts.contains("b")
                ? .json(422, #"{"detail":"b"}"#)
                : isBulk ? .json(200, "\(texts.map { _ in 201 })") : .json(201, #"{"number":1}"#)
        }
        let (report, _, store) = try await ship(api)
        #expect((report.applied, report.rejected) == (2, 1))
        #expect(store.outbox.entries.map(\.code) == ["http_422"])
    }

    @Test(.verifies("REQ-11"), arguments: [400, 409, 413, 503])
    func `an answer to the whole bulk is no verdict on one of its changes`(
        _ status: Int
    ) async throws {
        let api = BulkAPI { _, isBulk in
            isBulk
                ? APIAnswer(
                    status: status, headers: ["Content-Type": "text/plain"], body: Array("no".utf8))
                : .json(201, #"{"number":1}"#)
        }
        // The app takes every conflict for a change that is there.
        let (_, received, store) = try await ship(api, runs: 3) { answer in
            answer.status >= 400 ? .duplicate : nil
        }
        #expect(store.view(Outbox.self).count == 0)
        #expect(received.contains { $0.target == "batch" })
        let single = received.filter { $0.target == "notes" }.flatMap(\.texts)
        #expect(single.sorted() == ["a", "b", "c"])
    }

    @Test(.verifies("REQ-11"))
    func `after a failed bulk, and for a change that was not processed, requests are sent alone`()
        async throws
    {
        let isFirst = Mutex(true)
        let api = BulkAPI { texts, isBulk in
            guard isBulk else { return .json(201, #"{"number":1}"#) }
            guard
                isFirst.withLock({
                    let first = $0; $0 = false; return first
                })
            else {
                return .json(200, "\(texts.map { _ in 201 })")
            }
            throw NotesAPI.Lost()
        }
        let (report, received, store) = try await ship(api, runs: 3)
        #expect(store.view(Outbox.self).count == 0)
        #expect(report.pending == 0)
        #expect(received.count { $0.target == "batch" } == 1)
        let unprocessed = BulkAPI { texts, isBulk in
            isBulk
                ? .json(200, "\(texts.map { $0 == "a" ? 0 : 201 })") : .json(201, #"{"number":1}"#)
        }
        let (_, again, other) = try await ship(unprocessed, runs: 2)
        #expect(other.view(Outbox.self).count == 0)
        #expect(again.contains(BulkAPI.Received(target: "notes", texts: ["a"])))
    }

    @Test(.verifies("REQ-11"))
    func `after an answer that cannot be read each change is sent by itself`() async throws {
        let api = BulkAPI { _, isBulk in
            .json(isBulk ? 200 : 201, isBulk ? "[201]" : #"{"number":1}"#)
        }
        let (_, received, store) = try await ship(api)
        let inBulks = received.filter { $0.target == "batch" }.flatMap(\.texts)
        let alone = received.filter { $0.target == "notes" }.flatMap(\.texts)
        #expect(inBulks.count > 1)
        #expect(Set(inBulks).isSubset(of: alone))
        #expect(alone.count == Set(alone).count)
        #expect(store.view(Outbox.self).count == 0)
    }

    @Test(.verifies("OUT-12", "REQ-12"))
    func `a body in gzip is what other programs read, and the same for ever`() async throws {
        var random = SeededRandom(seed: 1)
        let bodies: [[UInt8]] = [
            [], Array("a".utf8), Array("{\"text\":\"x\"}".utf8),
            Array(String(repeating: "{\"text\":\"note\"},", count: 9_000).utf8),
            (0..<70_000).map { _ in UInt8.random(in: 0...255, using: &random) },
            (0..<70_000).map { _ in UInt8.random(in: 0...3, using: &random) },
        ]
        for body in bodies {
            let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).gz")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data(GzipEncoder.compress(body)).write(to: file)
            let gzip = Process()
            gzip.executableURL = URL(filePath: "/usr/bin/env")
            gzip.arguments = ["gzip", "-dc", file.path]
            let output = Pipe()
            gzip.standardOutput = output
            try gzip.run()
            let plain = try output.fileHandleForReading.readToEnd() ?? Data()
            gzip.waitUntilExit()
            #expect(gzip.terminationStatus == 0)
            #expect(Array(plain) == body)
        }
        #expect(GzipEncoder.compress(bodies[3]).count < bodies[3].count / 20)
        let encoded = Data(GzipEncoder.compress(Array("{\"a\":1},{\"a\":1}".utf8)))
        #expect(encoded.base64EncodedString() == "H4sIAAAAAAAA/6tWSlSyMqzVgdIAqF+oLQ8AAAA=")
    }

    @Test(.verifies("OUT-12", "REQ-12"))
    func `a request from a size on is sent in gzip, and recorded plain`() async throws {
        let sent = Mutex<[BoundedHTTPRequest]>([])
        struct Client: APIClient {
            let receive: @Sendable (BoundedHTTPRequest) -> Void
            func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
                receive(request)
                return .json(201, #"{"number":1}"#)
            }
        }
        let device = try await NotesDevice(NotesAPI())
        try await device.store.append(MemoAdded(note: "short", text: "x"))
        let long = String(repeating: "long ", count: 100)
        try await device.store.append(MemoAdded(note: "long", text: long))
        let transport = try RequestTransport(
            device.store, api: "notes", at: try #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), gzipFrom: 100,
            client: Client { request in sent.withLock { $0.append(request) } })
        try await device.run(over: transport)
        let requests = sent.withLock { $0 }
        let (short, compressed) = (try #require(requests.first), try #require(requests.last))
        #expect(!short.fields.contains { $0.name == "Content-Encoding" })
        #expect(compressed.fields.contains { $0 == ("Content-Encoding", "gzip") })
        let records = try device.log().filter { $0.type == SyncRequested.type }
            .map { try SyncRequested(json: $0.content.json ?? []) }
        #expect(records.map(\.request.isCompressed) == [false, true])
        #expect(compressed.body == records.last?.request.body.map(GzipEncoder.compress))
    }
}
