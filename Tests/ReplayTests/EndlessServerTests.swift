// Servers whose answers would keep a run from ending: pages that form a cycle or never end,
// and a conflict after every resolution.

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

@Suite(.timeLimit(.minutes(10))) struct EndlessServerTests {
    /// Sends pages by their number and answers every event with one verdict. Stops after 200
    /// requests, so that a run without a limit ends, too.
    private final class Server: Transport {
        private let page: @Sendable (Int) -> (events: String, next: String?)
        private let verdict: String
        private let counts = Mutex((reads: 0, appends: 0))

        init(
            verdict: String = "applied",
            page: @escaping @Sendable (Int) -> (events: String, next: String?) = { _ in ("", nil) }
        ) {
            self.page = page
            self.verdict = verdict
        }

        var reads: Int { counts.withLock { $0.reads } }
        var appends: Int { counts.withLock { $0.appends } }

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            guard case .append(let batch) = request else {
                let number = counts.withLock { counts in
                    counts.reads += 1
                    return counts.reads
                }
                let (events, next) = number <= 200 ? page(number) : ("", nil)
                return TransportReply(status: 200, body: Array("[\(events)]".utf8), next: next)
            }
            let number = counts.withLock { counts in
                counts.appends += 1
                return counts.appends
            }
            let verdict = number <= 200 ? verdict : "applied"
            guard case .array(let events) = try JSONValue(batch.span.bytes) else {
                return TransportReply(status: 400)
            }
            let verdicts = events.map { event in
                guard case .object(let event) = event, let id = event["id"]?.stringValue else {
                    return "{}"
                }
                return #"{"id":"\#(id)","status":"\#(verdict)"}"#
            }
            return TransportReply(
                status: 200, body: Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8)
            )
        }
    }

    private func store() async throws -> EventStore {
        try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
    }

    private static func event() -> String {
        """
        {"specversion":"1.0","id":"\(UUID().uuidString.lowercased())","type":"com.example.x",\
        "source":"urn:uuid:\(UUID().uuidString.lowercased())","sequence":"1","subject":"s","data":{}}
        """
    }

    @Test(.verifies("RPL-9"), arguments: [true, false])
    func `G6: pages that form a cycle end reading until the next read`(isKnown: Bool) async throws {
        let event = isKnown ? Self.event() : "5"
        let server = Server { (event, "/page\($0 % 3)") }
        let store = try await store()
        let report = try await Replayer(store, transport: server).run()
        #expect(server.reads < 10)
        #expect(report.isBehind)
        #expect(report.message?.contains("cycle") == true)
        #expect(report.received == (isKnown ? 1 : 0))
        try await store.close()
    }

    @Test(.verifies("RPL-9"))
    func `a long catch-up through pages of known events is completed`() async throws {
        let event = Self.event()
        let server = Server { number in
            number <= 150 ? (event, "/page\(number)") : ("", nil)
        }
        let store = try await store()
        let report = try await Replayer(store, transport: server).run()
        #expect(server.reads == 151)
        #expect(!report.isBehind)
        #expect(report.received == 1)
        try await store.close()
    }

    @Test(.verifies("CON-5"))
    func `a lane with a conflict after every resolution waits for the next run`() async throws {
        let server = Server(verdict: "conflict")
        let store = try await store()
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        try await store.append(CitySaved(userId: "u", cityId: "d"))
        var options = Replayer.Options()
        options.resolver = KeepMine()
        options.reads = false
        let replayer = Replayer(store, transport: server, options: options)
        let report = try await replayer.run()
        #expect(report.resolved == 2 * Resolutions.max)
        #expect(report.pending == 2)
        #expect(report.held == 2)
        #expect(server.appends < 20)
        #expect(report.message?.contains("next run") == true)
        #expect(try await replayer.run().resolved == 2 * Resolutions.max)
        try await store.close()
    }
}
