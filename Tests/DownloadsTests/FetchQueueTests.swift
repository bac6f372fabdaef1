// What all fetches while an app runs have in common: when a failed one is due again, which network may be used,
// and how the loop ends. Spec/model/downloads.md, DL-19; Spec/model/learning.md, LRN-33, LRN-37, LRN-39.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

/// An actor that counts the rounds of its loop.
private actor Fetcher {
    nonisolated let queue: FetchQueue<String>
    private(set) var rounds = 0
    private(set) var ends = 0
    private(set) var suspensions = 0

    init(_ store: OfflineStore, _ network: TestNetwork, _ waits: Waits) {
        queue = FetchQueue(store.events, user: "u", network, sleep: { try await waits.wait($0) })
    }

    func run() async throws {
        try await queue.run(
            work: {
                rounds += 1
                try await queue.store.checkOpen()
                return true
            }, suspend: { suspensions += 1 }, end: { ends += 1 })
    }
}

@Suite struct FetchQueueTests {
    private let waits = Waits()
    private let network = TestNetwork()
    private let store: OfflineStore
    private let fetcher: Fetcher
    private var queue: FetchQueue<String> { fetcher.queue }

    init() async throws {
        store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        fetcher = Fetcher(store, network, waits)
    }

    @Test(.verifies("DL-19", "LRN-33"))
    func `a failed fetch is due after its wait, with another network, or when it is forgotten`()
        async throws
    {
        let run = Task { try await fetcher.run() }
        try await eventually("path", is: .wifi) { queue.path }
        #expect(queue.isDue("new"))
        let long = Duration.seconds(3_600)

        queue.retry("a", after: long)
        queue.retry("b", after: long)
        #expect(!queue.isDue("a"))
        #expect(!queue.isDue("b"))
        queue.forgetRetry("a")
        #expect(queue.isDue("a"))
        queue.keepRetries { $0 != "b" }
        #expect(queue.isDue("b"))

        let rounds = await fetcher.rounds
        queue.retry("a", after: .seconds(1))
        try await eventually("a is due", is: true) { queue.isDue("a") }
        try await eventually("rounds", where: { $0 > rounds }) { await fetcher.rounds }

        queue.retry("a", after: long)
        #expect(!queue.isDue("a"))
        network.set(.cellular)
        try await eventually("a is due", is: true) { queue.isDue("a") }
        // The network changed while it was fetched.
        queue.retry("a", after: long, since: queue.networkChanges - 1)
        #expect(queue.isDue("a"))
        run.cancel()
        try await run.value
    }

    @Test(.verifies("DL-19")) func `without a network no retry waits`() async throws {
        let run = Task { try await fetcher.run() }
        try await eventually("path", is: .wifi) { queue.path }
        queue.retry("a", after: .seconds(3_600))
        network.set(.none)
        try await eventually("a is due", is: true) { queue.isDue("a") }
        try await eventually("waits", is: 1) { waits.all.count }
        queue.retry("a", after: .seconds(3_600))
        #expect(queue.isDue("a"))
        network.set(.wifi)
        try await eventually("path", is: .wifi) { queue.path }
        #expect(queue.isDue("a"))
        #expect(waits.all.count == 1)
        run.cancel()
        try await run.value
    }

    @Test(.verifies("DL-19", "LRN-37"))
    func `no network, an unknown one, and a phone's network against the settings are not used`()
        async throws
    {
        #expect(queue.obstacle(on: nil) == .connection)
        #expect(queue.obstacle(on: NetworkPath.none) == .connection)
        #expect(queue.obstacle(on: .wifi) == nil)
        #expect(queue.obstacle(on: .cellular) == .cellular)
        try await store.preferences.update(for: "u") { $0.wifiOnlyDownload = false }
        try await eventually("obstacle", is: nil) { queue.obstacle(on: .cellular) }
    }

    @Test(.verifies("LRN-39"))
    func `one loop runs at a time, rests while the store is suspended, and ends with it`()
        async throws
    {
        let run = Task { try await fetcher.run() }
        try await eventually("rounds", where: { $0 > 0 }) { await fetcher.rounds }
        try await fetcher.run()
        #expect(await fetcher.ends == 0)
        try await store.suspend()
        try await eventually("suspensions", where: { $0 > 0 }) { await fetcher.suspensions }
        try await store.resume()
        let rounds = await fetcher.rounds
        queue.wake()
        try await eventually("rounds", where: { $0 > rounds }) { await fetcher.rounds }
        queue.retry("a", after: .seconds(3_600))
        try await store.close()
        try await run.value
        #expect(await fetcher.ends == 1)
        #expect(queue.path == nil)
        #expect(queue.isDue("a"))
    }
}
