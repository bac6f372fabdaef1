// The status of a store's syncing, for a screen. Spec/protocol/triggers.md, STA-1 to STA-5.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.timeLimit(.minutes(10))) struct SyncStatusTests {
    /// Runs a sync service until the body has returned.
    private func syncing(
        _ store: OfflineStore, _ transport: any Transport,
        _ reachability: any Reachability = AlwaysReachable(),
        _ body: (SyncService) async throws -> Void
    ) async throws {
        let service = SyncService(store, transport: transport, reachability: reachability)
        let run = Task { try await service.run() }
        try await body(service)
        run.cancel()
        _ = await run.result
    }

    @Test(.verifies("STA-1", "STA-2", "STA-3"))
    func `a store that follows its server has nothing to send or to read, and then is inactive`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        #expect(store.syncStatus.current == SyncStatus())
        try await store.cities.save("lisbon", by: "u")
        #expect(store.syncStatus.current.pending == 1)
        try await syncing(store, InMemorySyncServer()) { _ in
            func isUpToDate(_ status: SyncStatus) -> Bool {
                status.connection == .pushed && status.pending == 0 && status.behind == 0
                    && status.lastSuccess != nil && status.obstacle == nil && !status.isExchanging
            }
            try await eventually("status", where: isUpToDate) { store.syncStatus.current }
        }
        #expect(store.syncStatus.current.connection == .inactive)
        #expect(store.syncStatus.current.obstacle == nil)
        try await store.close()
    }

    @Test(.verifies("STA-3"))
    func `a device that reads a long history sees how much is left`() async throws {
        let server = InMemorySyncServer()
        let phone = try await OfflineStore.inMemory()
        for number in 0..<1_200 { try await phone.cities.save("city-\(number)", by: "u") }
        try await phone.sync(over: server)
        let tablet = try await OfflineStore.inMemory()
        let numbers = Mutex<[Int]>([])
        let watch = Task {
            for await status in tablet.syncStatus.changes {
                if let behind = status.behind { numbers.withLock { $0.append(behind) } }
            }
        }
        try await syncing(tablet, server) { _ in
            try await eventually("events to read", is: 0) { tablet.syncStatus.current.behind }
        }
        try await tablet.close()
        await watch.value
        // A slow subscriber may miss a value, but not that there is something to read.
        #expect(numbers.withLock { $0.contains(700) || $0.contains(200) })
        #expect(numbers.withLock { $0.allSatisfy { [700, 200, 0].contains($0) } })
        #expect(numbers.withLock { $0 == $0.sorted(by: >) })
        try await phone.close()
    }

    @Test(.verifies("STA-4", "STA-5"))
    func `a server that does not answer is an obstacle until it answers`() async throws {
        let server = InMemorySyncServer()
        server.isReachable = false
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        try await syncing(store, server) { service in
            func hasFailed(_ status: SyncStatus) -> Bool {
                status.obstacle?.kind == .failed && status.nextAttempt != nil
            }
            try await eventually("status", where: hasFailed) { store.syncStatus.current }
            #expect(store.syncStatus.current.pending == 1)
            #expect(store.syncStatus.current.lastSuccess == nil)
            server.isReachable = true
            service.syncNow()
            func hasRecovered(_ status: SyncStatus) -> Bool {
                status.obstacle == nil && status.pending == 0 && status.lastSuccess != nil
            }
            try await eventually("status", where: hasRecovered) { store.syncStatus.current }
        }
        try await store.close()
    }

    @Test(.verifies("STA-5", "COND-1"))
    func `without a network no next attempt is planned`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        try await syncing(store, InMemorySyncServer(), NoNetwork()) { _ in
            try await eventually("obstacle", is: .offline) {
                store.syncStatus.current.obstacle?.kind
            }
            #expect(store.syncStatus.current.nextAttempt == nil)
        }
        try await store.close()
    }

    @Test(.verifies("STA-5"), arguments: [401: "unauthorized", 404: "wrongEndpoint"])
    func `the kind of an obstacle tells an app what to ask of the user`(
        status: Int, kind: String
    ) async throws {
        struct Refusing: Transport {
            let status: Int
            func send(_ request: TransportRequest, token: String?) -> TransportReply {
                TransportReply(status: status)
            }
        }
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        try await syncing(store, Refusing(status: status)) { _ in
            func isObstructed(_ status: SyncStatus) -> Bool {
                status.obstacle?.kind.rawValue == kind && status.nextAttempt != nil
            }
            try await eventually("status", where: isObstructed) { store.syncStatus.current }
        }
        try await store.close()
    }

    @Test(.verifies("STA-1", "STA-5"))
    func `rejected and deferred events are counted, and the next attempt is known`() async throws {
        let server = InMemorySyncServer { draft in
            switch draft.subject {
            case "bad": Verdict(id: draft.id, status: .rejected, code: "bad_city")
            case "later": Verdict(id: draft.id, status: .retry, retryAfterSeconds: 600)
            default: nil
            }
        }
        let store = try await OfflineStore.inMemory()
        for city in ["good", "bad", "later"] { try await store.cities.save(city, by: "u") }
        try await syncing(store, server) { _ in
            func isPostponed(_ status: SyncStatus) -> Bool {
                status.obstacle?.kind == .postponed && status.connection == .pushed
            }
            try await eventually("status", where: isPostponed) { store.syncStatus.current }
            let status = store.syncStatus.current
            #expect(status.pending == 1)
            #expect(status.parked == 1)
            #expect(status.inConflict == 0)
            let wait = try #require(status.nextAttempt).date.timeIntervalSinceNow
            #expect((500...601).contains(wait))
        }
        try await store.close()
    }

    @Test(.verifies("STA-4"))
    func `the last exchange is known after an opening`() async throws {
        let files = InMemoryFileSystem()
        func open() async throws -> OfflineStore {
            try await OfflineStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
        }
        let store = try await open()
        try await store.cities.save("lisbon", by: "u")
        try await store.sync(over: InMemorySyncServer())
        #expect(store.syncStatus.current.connection == .inactive)
        let time = try #require(store.syncStatus.current.lastSuccess)
        try await store.close()
        let again = try await open()
        let known = try #require(again.syncStatus.current.lastSuccess)
        #expect(abs(known.milliseconds - time.milliseconds) < 60_000)
        try await again.close()
    }

    @Test(.verifies("STA-5"))
    func `a run that ends early leaves its reason`() async throws {
        let server = InMemorySyncServer()
        server.isReachable = false
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        try await store.sync(over: server, until: Date(timeIntervalSinceNow: 0.2))
        #expect(store.syncStatus.current.connection == .inactive)
        #expect([.outOfTime, .failed].contains(store.syncStatus.current.obstacle?.kind))
        try await store.close()
    }
}

private struct NoNetwork: Reachability {
    var paths: AsyncStream<NetworkPath> {
        AsyncStream { continuation in continuation.yield(.none) }
    }
}
