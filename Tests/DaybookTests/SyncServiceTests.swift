// The triggers of a sync service, and the conditions that prevent a sync. Spec/protocol/triggers.md.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// A network that is always there, and counts the runs that watch it.
private final class CountedNetwork: Reachability {
    private let count = Mutex(0)
    var runs: Int { count.withLock { $0 } }

    var paths: AsyncStream<NetworkPath> {
        count.withLock { $0 += 1 }
        return AlwaysReachable().paths
    }
}

/// A network that the test switches.
private final class Switch: Reachability {
    private let listeners = Mutex<
        (path: NetworkPath?, all: [AsyncStream<NetworkPath>.Continuation])
    >(
        (nil, []))

    /// - Parameter path: nil while it is unknown.
    init(_ path: NetworkPath?) { listeners.withLock { $0.path = path } }

    var paths: AsyncStream<NetworkPath> {
        AsyncStream { continuation in
            listeners.withLock { state in
                if let path = state.path { continuation.yield(path) }
                state.all.append(continuation)
            }
        }
    }

    func turn(_ path: NetworkPath) {
        listeners.withLock { state in
            state.path = path
            for listener in state.all { listener.yield(path) }
        }
    }
}

/// Applies everything and counts.
private final class Counting: Transport {
    private let counts = Mutex((events: 0, reads: 0, failures: 0))
    var events: Int { counts.withLock { $0.events } }
    var reads: Int { counts.withLock { $0.reads } }
    var requests: Int { counts.withLock { $0.events + $0.reads + $0.failures } }
    private let server = InMemorySyncServer()
    /// Requests that fail before any succeeds.
    private let failing: Mutex<Int>

    init(failing: Int = 0) { self.failing = Mutex(failing) }

    struct NoAnswer: Error {}

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        let fails = failing.withLock { failing in
            failing -= 1
            return failing >= 0
        }
        guard !fails else {
            counts.withLock { $0.failures += 1 }
            throw NoAnswer()
        }
        guard case .append(let batch) = request else {
            counts.withLock { $0.reads += 1 }
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        let events = try JSONSerialization.jsonObject(with: Data(batch)) as? [Any] ?? []
        counts.withLock { $0.events += events.count }
        return try await server.send(request, token: token)
    }
}

/// True if everything was sent and read, and the run waits for a signal, not for a timer.
private func isIdle(_ status: SyncStatus) -> Bool {
    !status.isExchanging && status.pending == 0 && status.behind == 0 && status.nextAttempt == nil
        && status.obstacle == nil
}

@Suite(.timeLimit(.minutes(10))) struct SyncServiceTests {
    @Test(.verifies("TRG-1"))
    func `it syncs at its start and after each commit`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        let server = Counting()
        let service = SyncService(store, transport: server, reachability: AlwaysReachable())
        let run = Task { try await service.run() }
        try await eventually("events at the server", is: 1) { server.events }
        try await store.cities.save("porto", by: "u")
        try await eventually("events at the server", is: 2) { server.events }
        try await eventually("applied events", is: 2) { service.report.applied }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-2"))
    func `with nothing to do it makes no request, and ends when the store is closed`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        let server = Counting()
        let run = Task {
            try await SyncService(store, transport: server, reachability: AlwaysReachable()).run()
        }
        try await eventually("status", where: isIdle) { store.syncStatus.current }
        #expect(server.requests == 1)
        // The next request is that of a commit.
        try await store.cities.save("lisbon", by: "u")
        try await eventually("events at the server", is: 1) { server.events }
        try await eventually("status", where: isIdle) { store.syncStatus.current }
        #expect(server.requests == 2)
        try await store.close()
        try await run.value
    }

    @Test func `the report says why the service waits`() async throws {
        struct Refusal: Transport {
            func send(_ request: TransportRequest, token: String?) -> TransportReply {
                TransportReply(status: 401)
            }
        }
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        let service = SyncService(store, transport: Refusal(), reachability: AlwaysReachable())
        let run = Task { try await service.run() }
        try await eventually("message", where: { $0.contains("log in again") }) {
            service.report.message ?? ""
        }
        #expect(service.report.pending == 1)
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-3", "COND-1"))
    func `without a network it waits, and continues when there is one`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        let server = Counting()
        let network = Switch(NetworkPath.none)
        let service = SyncService(store, transport: server, reachability: network)
        let run = Task { try await service.run() }
        try await eventually("obstacle", is: .offline) {
            store.syncStatus.current.obstacle?.kind
        }
        #expect(server.requests == 0)
        service.syncNow()
        await takeTurns { _ = await store.events.subscriberCount }
        #expect(server.requests == 0)
        network.turn(.cellular)
        try await eventually("events at the server", is: 1) { server.events }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-5", "COND-1"))
    func `a demand before the network's state is known waits for it`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        let server = Counting()
        let network = Switch(nil)
        let service = SyncService(store, transport: server, reachability: network)
        let run = Task { try await service.run() }
        try await eventually("connection", is: .onDemand) { store.syncStatus.current.connection }
        service.syncNow()
        // The run gets this state after the demand.
        network.turn(.none)
        try await eventually("obstacle", is: .offline) {
            store.syncStatus.current.obstacle?.kind
        }
        #expect(server.requests == 0)
        #expect(!store.syncStatus.current.isExchanging)
        network.turn(.wifi)
        try await eventually("events at the server", is: 1) { server.events }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-4", "COND-2"))
    func `with autoSync off it syncs only on demand`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.preferences.update(for: "u") { $0.autoSync = false }
        let server = Counting()
        let service = SyncService(
            store, transport: server, user: "u", reachability: AlwaysReachable())
        let run = Task { try await service.run() }
        try await eventually("obstacle", is: .notAllowed) {
            store.syncStatus.current.obstacle?.kind
        }
        #expect(server.requests == 0)
        service.syncNow()
        try await eventually("events at the server", is: 1) { server.events }
        try await eventually("reads", is: 1) { server.reads }
        try await eventually("status", where: isIdle) { store.syncStatus.current }
        try await store.cities.save("lisbon", by: "u")
        try await eventually("obstacle", is: .notAllowed) {
            store.syncStatus.current.obstacle?.kind
        }
        #expect(server.events == 1)
        #expect(!store.syncStatus.current.isExchanging)
        try await store.preferences.update(for: "u") { $0.autoSync = true }
        try await eventually("events at the server", is: 3) { server.events }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-4", "COND-3"))
    func `with wifiOnlyDownload on it ships over cellular and reads over Wi-Fi`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        let server = Counting()
        let network = Switch(.cellular)
        let service = SyncService(store, transport: server, user: "u", reachability: network)
        let run = Task { try await service.run() }
        try await eventually("events at the server", is: 1) { server.events }
        // After the last answer the run has sent what it could, or waits.
        func waits(_ status: SyncStatus) -> Bool { !status.isExchanging && status.pending == 0 }
        try await eventually("status", where: waits) { store.syncStatus.current }
        #expect(server.reads == 0)
        network.turn(.wifi)
        try await eventually("reads", is: 1) { server.reads }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-5"))
    func `syncNow does not wait for a backoff to end`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "u")
        // After a dozen failures a backoff is up to a minute long.
        let server = Counting(failing: 12)
        let service = SyncService(store, transport: server, reachability: AlwaysReachable())
        let run = Task { try await service.run() }
        try await eventually("events at the server", is: 1) {
            service.syncNow()
            return server.events
        }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-6"))
    func `while the store is suspended it waits, and continues afterwards`() async throws {
        let store = try await OfflineStore.inMemory()
        let server = Counting()
        let run = Task {
            try await SyncService(store, transport: server, reachability: AlwaysReachable()).run()
        }
        try await eventually("reads", is: 1) { server.reads }
        try await store.suspend()
        try await store.resume()
        try await store.cities.save("lisbon", by: "u")
        try await eventually("events at the server", is: 1) { server.events }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-6"))
    func `an open stream ends while the store is suspended`() async throws {
        let store = try await OfflineStore.inMemory()
        let server = InMemorySyncServer()
        let network = CountedNetwork()
        let service = SyncService(store, transport: server, reachability: network)
        let run = Task { try await service.run() }
        try await eventually("connection", is: .pushed) { store.syncStatus.current.connection }
        try await store.suspend()
        try await eventually("connection", is: .inactive) { store.syncStatus.current.connection }
        // The service makes no run after the other meanwhile.
        await takeTurns { _ = await store.events.subscriberCount }
        #expect(network.runs <= 3)
        try await store.resume()
        try await eventually("connection", is: .pushed) { store.syncStatus.current.connection }
        run.cancel()
        _ = await run.result
        try await store.close()
    }

    @Test(.verifies("TRG-7"))
    func `it reads at the set interval`() async throws {
        let store = try await OfflineStore.inMemory()
        let server = Counting()
        var options = Replayer.Options()
        // In real time: a sync service has no clock that a test could move.
        options.readInterval = .milliseconds(20)
        let service = SyncService(
            store, transport: server, options: options, reachability: AlwaysReachable())
        let run = Task { try await service.run() }
        try await eventually("reads", where: { $0 >= 4 }) { server.reads }
        run.cancel()
        _ = await run.result
        try await store.close()
    }
}
