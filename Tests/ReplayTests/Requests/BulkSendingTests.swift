// Bulk requests whose tasks are cancelled or overtake each other, or that cannot be built.
// Spec/protocol/requests.md, REQ-11.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite struct BulkSendingTests {
    /// Holds one task until it is opened, or the task is cancelled.
    private struct Gate {
        private let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation
        init() { (stream, continuation) = AsyncStream.makeStream() }
        func open() { continuation.yield() }
        func wait() async { for await _ in stream { return } }
    }

    /// An API that answers each bulk when its gate is opened.
    private final class GatedAPI: APIClient {
        let gates: [Gate]
        private let answers: [[Int]]
        private let received = Mutex<[[String]]>([])
        var requests: [[String]] { received.withLock { $0 } }

        /// - Parameter answers: the statuses of each bulk.
        init(_ answers: [[Int]]) {
            self.answers = answers
            gates = answers.map { _ in Gate() }
        }

        func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
            let body = Data(request.body ?? [])
            guard request.url.lastPathComponent == "batch" else {
                let line = try JSONDecoder().decode(Line.self, from: body)
                received.withLock { $0.append([line.text]) }
                return .json(201, #"{"number":1}"#)
            }
            let texts = try JSONDecoder().decode([Line].self, from: body).map(\.text)
            let index = received.withLock { received in
                received.append(texts)
                return received.count { $0.count > 1 } - 1
            }
            await gates[index].wait()
            return .json(200, "\(answers[index])")
        }
    }

    private final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    /// Three changes, each of which the test sends in a task of its own.
    private struct Changes {
        let store: EventStore
        private let transport: RequestTransport
        private var positions: [String: Position] = [:]
        /// The number of requests that have asked for a bulk.
        private let asked = Counter()

        /// - Parameter pauses: those in which bulks are collected, in order; further ones take no time.
        init(_ api: GatedAPI, pauses: [Gate]) async throws {
            store = try await NotesDevice(NotesAPI()).store
            for text in ["a", "b", "c"] {
                let memo = MemoAdded(note: text, text: text)
                positions[text] = try await store.append(memo).position
            }
            let (asked, pause) = (asked, Counter())
            var endpoint = BulkEndpoint { _ in
                _ = asked.next()
                return ""
            } request: { requests in
                try APIRequest(.post, "batch", json: try requests.map(line))
            } answers: { answer, _ in
                try answer.decode([Int].self).map { .json($0, #"{"number":1}"#) }
            }
            endpoint.sleep = { _ in
                let number = pause.next()
                if number <= pauses.count { await pauses[number - 1].wait() }
            }
            transport = try RequestTransport(
                store, api: "notes", at: try #require(URL(string: "https://api.example.com/v1")),
                promise: .once(keysKeptFor: nil), bulk: endpoint, client: api)
        }

        /// Sends a change, and returns when it has begun a bulk, or joined one.
        ///
        /// - Returns: whether the change was applied.
        func send(_ text: String) async throws -> Task<Bool, any Error> {
            let position = try #require(positions[text])
            let batch = try await store.jsonArray(of: [position])
            let before = asked.value
            let task = Task { [transport] in
                let reply = try await transport.send(.append(batch: batch), token: nil)
                return String(decoding: reply.body, as: UTF8.self).contains(#""applied""#)
            }
            try await eventually("requests for a bulk", is: before + 1) { asked.value }
            await takeTurns { _ = await store.clockOffset }
            return task
        }
    }

    private static func line(_ request: BuiltRequest) throws -> Line {
        try JSONDecoder().decode(Line.self, from: Data(request.body ?? []))
    }

    @Test(.verifies("REQ-11"))
    func `a change gets no answer of a bulk that it has left`() async throws {
        let api = GatedAPI([[201, 422], [201, 201]])
        let pauses = [Gate(), Gate(), Gate()]
        let changes = try await Changes(api, pauses: pauses)
        let first = try await changes.send("a")
        let left = try await changes.send("b")
        pauses[0].open()
        pauses[1].open()
        try await eventually("requests", is: [["a", "b"]]) { api.requests }
        left.cancel()
        await #expect(throws: CancellationError.self) { try await left.value }
        let other = try await changes.send("c")
        let again = try await changes.send("b")
        api.gates[0].open()
        #expect(try await first.value)
        pauses[2].open()
        try await eventually("requests", is: [["a", "b"], ["c", "b"]]) { api.requests }
        api.gates[1].open()
        #expect(try await other.value)
        #expect(try await again.value)
    }

    @Test(.verifies("REQ-11"))
    func `a change whose task is cancelled while a bulk is collected is not sent`() async throws {
        let api = GatedAPI([[201, 201]])
        let pauses = [Gate()]
        let changes = try await Changes(api, pauses: pauses)
        let first = try await changes.send("a")
        let left = try await changes.send("b")
        let last = try await changes.send("c")
        left.cancel()
        await #expect(throws: CancellationError.self) { try await left.value }
        pauses[0].open()
        api.gates[0].open()
        #expect(try await first.value)
        #expect(try await last.value)
        #expect(api.requests == [["a", "c"]])
    }

    @Test(.verifies("REQ-11"))
    func `a bulk whose first task is cancelled is not sent, and the others are sent alone`()
        async throws
    {
        let api = GatedAPI([[201, 201]])
        let changes = try await Changes(api, pauses: [Gate()])
        let first = try await changes.send("a")
        let other = try await changes.send("b")
        first.cancel()
        api.gates[0].open()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(try await other.value)
        #expect(api.requests == [["b"]])
    }
}
