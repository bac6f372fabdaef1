// Failures by which users of other systems lost data, each with its issue. They must be impossible here.
// Spec/protocol/replay.md.

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

/// Answers by a function, and records the applied events.
private final class Server: Transport {
    private let judge: @Sendable ([String: JSONValue]) -> String?
    private let taken = Mutex<[String]>([])
    var ids: [String] { taken.withLock { $0 } }

    init(_ judge: @escaping @Sendable ([String: JSONValue]) -> String?) { self.judge = judge }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        guard case .array(let events) = try JSONValue(batch.span.bytes) else {
            return TransportReply(status: 400)
        }
        var verdicts: [String] = []
        var stopped: Set<String> = []
        for case .object(let event) in events {
            let id = event["id"]?.stringValue ?? ""
            let lane = event["partitionkey"]?.stringValue ?? ""
            guard !stopped.contains(lane), let status = judge(event) else { continue }
            if status == "applied" {
                taken.withLock { $0.append(id) }
            } else {
                stopped.insert(lane)
            }
            verdicts.append(#"{"id":"\#(id)","status":"\#(status)"}"#)
        }
        return TransportReply(
            status: 200, body: Array("{\"verdicts\":[\(verdicts.joined(separator: ","))]}".utf8))
    }
}

private func openStore(_ files: any FileSystem) async throws -> EventStore {
    try await EventStore.open(
        at: "/log", catalogue: OfflineModel.catalogue,
        views: OfflineModel.views + [Outbox.self],
        environment: LogEnvironment(fileSystem: files))
}

@Suite struct QueueFailureTests {
    @Test(.verifies("RPL-2"))
    func `one bad document does not stop all (couchbase-lite-ios 1057)`() async throws {
        let store = try await openStore(InMemoryFileSystem())
        for city in 0..<20 { try await store.append(CitySaved(userId: "u", cityId: "\(city)")) }
        let server = Server { $0["subject"]?.stringValue == "3" ? "rejected" : "applied" }
        let report = try await Replayer(store, transport: server).run()
        #expect(report.applied == 19)
        #expect(report.rejected == 1)
        #expect(report.pending == 1)
        try await store.close()
    }

    @Test(.verifies("OUT-6"))
    func `a failed record is never marked as synced (WatermelonDB 1226)`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        let place = try await store.append(CitySaved(userId: "u", cityId: "c"))
        _ = try await Replayer(store, transport: Server { _ in "rejected" }).run()
        try await store.close()
        let again = try await openStore(files)
        let entry = try #require(again.view(Outbox.self).entry(at: place.position))
        #expect(entry.status == .failed)
        #expect(entry.id == place.id)
        try await again.close()
    }

    @Test(.verifies("OUT-6"))
    func `nothing leaves the queue before it was sent and answered (Workbox 2599)`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        for city in 0..<5 { try await store.append(CitySaved(userId: "u", cityId: "\(city)")) }
        final class Dies: Transport {
            let files: InMemoryFileSystem
            init(_ files: InMemoryFileSystem) { self.files = files }
            let image = Mutex<InMemoryFileSystem?>(nil)
            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                image.withLock { $0 = $0 ?? files.snapshot() }
                throw CancellationError()
            }
        }
        let dies = Dies(files)
        _ = try await Replayer(
            store, transport: dies, sleep: { _ in throw CancellationError() }
        ).run()
        try await store.close()
        let image = try #require(dies.image.withLock { $0 })
        let again = try await openStore(image)
        #expect(again.view(Outbox.self).count == 5)
        try await again.close()
    }

    @Test(.verifies("OUT-5"))
    func `a batch that was under way is sent again after a restart (TanStack query 6238)`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        // The server applies it, and the app is killed before the reply.
        let server = Server { _ in "applied" }
        let line = try await store.jsonArray(of: [Position(1)])
        _ = try await server.send(.append(batch: line), token: nil)
        let again = try await openStore(files.snapshot())
        let report = try await Replayer(again, transport: server).run()
        #expect(report.applied == 1)
        #expect(report.pending == 0)
        #expect(Set(server.ids).count == 1)
        #expect(server.ids.count == 2)
        for store in [store, again] { try await store.close() }
    }

    @Test(.verifies("OUT-3"))
    func `a record or a reply that cannot be read drops no pending change (sqlite-data 492)`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        try await store.append(CitySaved(userId: "u", cityId: "c"))
        for json in ["{}", "[]", #"{"by":3}"#] {
            try await store.append(
                record: EventDraft(type: SyncSettled.type, data: .json(Array(json.utf8))))
        }
        struct Nonsense: Transport {
            func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
                TransportReply(status: 200, body: Array(#"{"verdicts":[{"id":7}]}"#.utf8))
            }
        }
        let report = try await Replayer(
            store, transport: Nonsense(), sleep: { _ in throw CancellationError() }
        ).run()
        #expect(report.pending == 1)
        try await store.close()
        let again = try await openStore(files)
        #expect(again.view(Outbox.self).count == 1)
        #expect(try await Replayer(again, transport: Server { _ in "applied" }).run().applied == 1)
        try await again.close()
    }

    @Test(.verifies("OUT-8"))
    func `a backlog does not make the app start slowly (LiveStore PR 1012)`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        for start in stride(from: 0, to: 20_000, by: 1_000) {
            try await store.append(
                contentsOf: (start..<start + 1_000).map {
                    try EventDraft(CitySaved(userId: "u", cityId: "\($0)"))
                })
        }
        try await store.close()
        // Opening does not fold the backlog: the outbox is restored from the checkpoint.
        let folded = Mutex(0)
        let again = try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self],
            environment: LogEnvironment(fileSystem: files)
        ) { count, _ in folded.withLock { $0 = count } }
        #expect(again.view(Outbox.self).count == 20_000)
        #expect(folded.withLock { $0 } == 0)
        try await again.close()
    }
}
