// All workers of an app as one task, against a syncserver process and an HTTP server of content.
// Spec/protocol/workers.md.

import DaybookOffline
import Foundation
import Synchronization
import TestSupport
import Testing

/// The servers of an app: `syncserver` with tokens, and one with cities and lessons, which requires the same token
/// and a header.
private struct Servers {
    let sync: ServerProcess
    let content: LocalServer
    private let fixture: StorageFixture

    init() throws {
        fixture = try StorageFixture()
        let tokens = fixture.folder.appending("tokens")
        try Data("secret ada\n".utf8).write(to: tokens)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: tokens.path)
        sync = try ServerProcess(database: fixture.location, "--token-file", tokens.path)
        content = try LocalServer { request in
            guard request.values("Authorization") == ["Bearer secret"],
                request.values("X-Gate") == ["open"]
            else { return .reply(401) }
            let json: String
            switch request.target {
            case "/cities/lisbon":
                let city = CityData(
                    id: "lisbon", name: "Lisbon", country: "Portugal", description: "",
                    costOfLiving: 62, internetSpeed: 110, safetyRating: 4.5, climate: "mild")
                json = #"{"city":\#(String(decoding: city.json, as: UTF8.self)),"images":[]}"#
            case let path where path.hasPrefix("/users/ada/reviews"):
                json = #"{"reviews":[{"id":"r","content":{}}]}"#
            default: return .reply(404)
            }
            return .reply(
                200, headers: [("Content-Type", "application/json")], body: Array(json.utf8))
        }
    }

    /// The workers of an app, which names credentials, headers and account once.
    func workers(_ store: OfflineStore) throws -> (
        all: StoreWorkers<OfflineStore>, sync: SyncService
    ) {
        let workers = store.workers(
            credentials: BearerToken("secret"), http: HTTPOptions(headers: ["X-Gate": "open"]),
            reachability: AlwaysReachable())
        let sync = try workers.sync(to: try #require(URL(string: sync.base)))
        let content = try #require(URL(string: content.base))
        try workers.downloads(from: content)
        try workers.learning(from: content, policy: .iOS)
        return (workers, sync)
    }
}

/// A store with work for each worker.
private func openStoreWithWork() async throws -> OfflineStore {
    let store = try await OfflineStore.inMemory(account: "ada")
    try await store.learning.selectCombination(
        LanguageCombination(learn: "es", display: "de"), for: "ada")
    try await store.downloads.queue("lisbon")
    try await store.cities.save("porto", by: "ada")
    return store
}

private func isAllDone(_ store: OfflineStore) -> Bool {
    store.outboxCount.current == 0 && store.cities.offline("lisbon").current != nil
        && store.learning.reviews(of: "ada").current.count == 1
}

/// A worker of an app, which records its calls.
private final class Recording: StoreWorker {
    struct Failure: Error {}

    private let calls = Mutex<[String]>([])
    private let fails: Bool
    /// True if `work(until:)` ends only when it is cancelled.
    private let isSlow: Bool
    var all: [String] { calls.withLock { $0 } }

    init(fails: Bool = false, isSlow: Bool = false) { (self.fails, self.isSlow) = (fails, isSlow) }

    func run() async throws {
        calls.withLock { $0.append("run") }
        if fails { throw Failure() }
        try? await Task.sleep(for: .seconds(3_600))
        calls.withLock { $0.append("end") }
    }

    func work(until deadline: Date) async throws {
        calls.withLock { $0.append("work") }
        if isSlow { try await Task.sleep(for: .seconds(3_600)) }
    }

    func resume() { calls.withLock { $0.append("resume") } }
}

@Suite(.timeLimit(.minutes(10))) struct StoreWorkersTests {
    @Test(.verifies("WRK-1", "WRK-2"))
    func `one task syncs, downloads and fetches with one set of credentials, headers and account`()
        async throws
    {
        let servers = try Servers()
        let store = try await openStoreWithWork()
        let (workers, sync) = try servers.workers(store)
        #expect(workers.user == "ada")
        let running = Task { try await workers.run() }
        try await eventually("all is done", is: true) { isAllDone(store) }
        try await eventually("report", is: 1) { sync.report.applied }
        // A second task returns at once.
        try await workers.run()
        // A later change needs no call.
        try await store.cities.save("faro", by: "ada")
        try await eventually("outbox", is: 0) { store.outboxCount.current }
        running.cancel()
        try await running.value
        #expect(store.syncStatus.current.connection == .inactive)
        try await store.close()
    }

    @Test(.verifies("WRK-1")) func `the task ends when the store is closed`() async throws {
        let servers = try Servers()
        let store = try await openStoreWithWork()
        let workers = try servers.workers(store).all
        let running = Task { try await workers.run() }
        try await eventually("all is done", is: true) { isAllDone(store) }
        try await store.close()
        try await running.value
    }

    @Test(.verifies("WRK-3"), arguments: [false, true])
    func `a background task has done all work when it returns, also beside a running one`(
        _ isRunning: Bool
    ) async throws {
        let servers = try Servers()
        let store = try await openStoreWithWork()
        let (workers, sync) = try servers.workers(store)
        let running = isRunning ? Task { try await workers.run() } : nil
        try await workers.run(until: Date(timeIntervalSinceNow: 60))
        #expect(isAllDone(store))
        #expect(sync.report.isElsewhere == false)
        if let running {
            // It goes on afterwards.
            try await eventually("connection", is: .pushed) {
                store.syncStatus.current.connection
            }
            running.cancel()
            try await running.value
        }
        #expect(store.syncStatus.current.connection == .inactive)
        try await store.close()
    }

    @Test(.verifies("WRK-3")) func `a background task ends at its deadline`() async throws {
        let store = try await EventStore.inMemory()
        let workers = store.workers(reachability: AlwaysReachable())
        let (slow, quick) = (workers.add(Recording(isSlow: true)), workers.add(Recording()))
        // A server that accepts a request and never answers.
        let silent = try LocalServer { _ in .script { $0.waitForEnd() } }
        try workers.sync(to: try #require(URL(string: silent.base)))
        try await workers.run(until: Date(timeIntervalSinceNow: 0.3))
        #expect([slow.all, quick.all] == [["work"], ["work"]])
        #expect(store.syncStatus.current.connection == .inactive)
        try await workers.run(until: .distantPast)
        try await store.close()
    }

    @Test(.verifies("WRK-3"))
    func `a background task keeps to the limits that the user has set`() async throws {
        let servers = try Servers()
        let store = try await openStoreWithWork()
        try await store.preferences.update(for: "ada") { $0.autoSync = false }
        let changes = store.outboxCount.current
        #expect(changes > 0)
        let (workers, sync) = try servers.workers(store)
        try await workers.run(until: Date(timeIntervalSinceNow: 60))
        #expect(store.outboxCount.current == changes)
        #expect(sync.report.failure == .notAllowed)
        #expect(store.cities.offline("lisbon").current != nil)
        try await store.close()
    }

    @Test(.verifies("WRK-4"))
    func `the app's own workers run beside the others, and an error ends all`() async throws {
        let store = try await EventStore.inMemory()
        let workers = store.workers(reachability: AlwaysReachable())
        let own = workers.add(Recording())
        let running = Task { try await workers.run() }
        try await eventually("calls", is: ["run"]) { own.all }
        await workers.resume()
        // The worker that is added begins at once; the others begin again.
        workers.add(Recording(fails: true))
        await #expect(throws: Recording.Failure.self) { try await running.value }
        #expect(own.all.filter { $0 == "run" }.count == own.all.filter { $0 == "end" }.count)
        #expect(own.all.contains("resume"))
        try await store.close()
    }

    @Test(.verifies("WRK-2"))
    func `without a user, downloads are refused with what to do`() async throws {
        let store = try await OfflineStore.inMemory()
        let base = try #require(URL(string: "http://127.0.0.1:9"))
        let error = #expect(throws: EventError.self) {
            try store.workers().downloads(from: base)
        }
        #expect(error?.detail.contains("pass user:") == true)
        #expect(store.workers(user: "ada").user == "ada")
        try await store.close()
    }
}
