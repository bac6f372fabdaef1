// The automatic removal of cities, images and downloads. Spec/model/cities.md, CITY-15.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// Hourly timers that the test fires.
private final class HourlyTimers: Sendable {
    private let waiting = Mutex<[UUID: AsyncStream<Void>.Continuation]>([:])

    /// The number of timers.
    var count: Int { waiting.withLock { $0.count } }

    func sleep(_ duration: Duration) async throws {
        guard duration == .seconds(3_600) else { throw CancellationError() }
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let id = UUID()
        waiting.withLock { $0[id] = continuation }
        for await _ in stream {}
        waiting.withLock { $0[id] = nil }
        try Task.checkCancellation()
    }

    func ring() {
        for timer in waiting.withLock({ Array($0.values) }) { timer.finish() }
    }
}

private struct Bench {
    let clock = VirtualClock(milliseconds: 1_771_756_200_000)
    let timers = HourlyTimers()
    let files = InMemoryFileSystem()

    func open(
        account: String? = "u", user: String? = nil, cleansUp: Bool = true
    ) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), account: account, compaction: nil, user: user,
            cleansUp: cleansUp, environment: environment)
    }

    var environment: LogEnvironment {
        LogEnvironment(
            fileSystem: files, now: { [clock] in clock.milliseconds },
            sleep: { [timers] in try await timers.sleep($0) })
    }

    /// Caches a city with an image.
    func cache(_ cityId: String, explicit: Bool = false, in store: OfflineStore) async throws {
        let city = CityData(
            id: cityId, name: cityId, country: "Portugal", description: "", costOfLiving: 62,
            internetSpeed: 110, safetyRating: 4.5, climate: "mild")
        let image = CityImage(
            id: cityId, url: "https://x.example/\(cityId).jpg", kind: .hero, width: 1, height: 1,
            content: Array("image of \(cityId)".utf8))
        try await store.cities.cache(
            json: city.json, images: [image], isExplicit: explicit, for: "u")
    }

    /// Records a job that was completed now, and one that failed now.
    func finishTwoDownloads(in store: OfflineStore) async throws {
        for cityId in ["done", "failed"] {
            let job = try await store.downloads.queue(cityId)
            try await store.downloads.start(job.id)
            if cityId == "done" {
                try await store.downloads.complete(job.id, totalBytes: 0)
            } else {
                try await store.downloads.fail(job.id, "no", numbers: .initial)
            }
        }
    }

    func cached(in store: OfflineStore) -> Set<String> {
        Set(store.cities.offlineCities.current.map(\.cityId))
    }

    /// The number of images on the disk.
    var imageCount: Int { ((try? files.list("/log/files")) ?? []).count }
}

@Suite(.verifies("CITY-15")) struct HousekeepingTests {
    @Test func `a city that was not accessed is removed when the store is opened`()
        async throws
    {
        let bench = Bench()
        var store = try await bench.open()
        try await bench.cache("seldom", in: store)
        try await bench.cache("wanted", explicit: true, in: store)
        bench.clock.advance(by: .days(5))
        try await bench.cache("new", in: store)
        try await store.close()
        bench.clock.advance(by: .days(1.9))
        store = try await bench.open()
        #expect(bench.cached(in: store) == ["seldom", "wanted", "new"])
        #expect(bench.imageCount == 3)
        let last = await store.events.lastDurable
        try await store.close()
        bench.clock.advance(by: .days(0.2))
        store = try await bench.open()
        #expect(bench.cached(in: store) == ["wanted", "new"])
        #expect(bench.imageCount == 2)
        #expect(await store.events.lastDurable == last.next)
        try await store.close()
        // A city that the user downloaded stays for a year.
        bench.clock.advance(by: .days(365))
        store = try await bench.open()
        #expect(bench.cached(in: store) == ["wanted"])
        try await store.close()
    }

    @Test(.verifies("DL-15"))
    func `images that were fetched for an unfinished download stay when a city is removed`()
        async throws
    {
        let bench = Bench()
        var store = try await bench.open()
        try await bench.cache("seldom", in: store)
        // A kill during a download leaves a file that no event names yet.
        let fetched = try await store.files.storeRetained(Array("fetched".utf8))
        await store.files.release([fetched])
        try await store.close()
        bench.clock.advance(by: .days(8))
        store = try await bench.open()
        #expect(bench.cached(in: store).isEmpty)
        #expect(bench.imageCount == 1)
        #expect(try await store.files.read(fetched) == Array("fetched".utf8))
        try await store.close()
    }

    @Test(.verifies("DL-4"))
    func `finished downloads are removed after a day and a week, also without a manager`()
        async throws
    {
        let bench = Bench()
        let store = try await bench.open(account: nil)
        try await bench.finishTwoDownloads(in: store)
        func jobs() -> Set<String> {
            Set(["done", "failed"].filter { !store.downloads.jobs(of: $0).current.isEmpty })
        }
        for (days, left) in [
            (0.9, ["done", "failed"]), (0.2, ["failed"]), (5.8, ["failed"]), (0.2, []),
        ] as [(Double, Set<String>)] {
            bench.clock.advance(by: .days(days))
            try await eventually("timers", is: 1) { bench.timers.count }
            bench.timers.ring()
            try await eventually("cities with jobs", is: left) { jobs() }
            try await eventually("timers", is: 1) { bench.timers.count }
        }
        try await store.close()
    }

    @Test
    func `in an open or suspended store, cities are removed at the next hour or on resuming`()
        async throws
    {
        let bench = Bench()
        let store = try await bench.open()
        try await bench.cache("a", in: store)
        bench.clock.advance(by: .days(8))
        #expect(bench.cached(in: store) == ["a"])
        try await eventually("timers", is: 1) { bench.timers.count }
        bench.timers.ring()
        try await eventually("cached cities", is: []) { bench.cached(in: store) }
        try await eventually("images on the disk", is: 0) { bench.imageCount }
        try await bench.cache("b", in: store)
        try await eventually("timers", is: 1) { bench.timers.count }
        try await store.suspend()
        bench.clock.advance(by: .days(8))
        bench.timers.ring()
        try await eventually("timers", is: 1) { bench.timers.count }
        #expect(bench.cached(in: store) == ["b"])
        try await store.resume()
        #expect(bench.cached(in: store).isEmpty)
        // The hourly clean-up may run already, and still be deleting the image.
        try await eventually("images on the disk", is: 0) { bench.imageCount }
        try await store.close()
    }

    @Test func `the user's settings apply, and without one no city is removed`() async throws {
        let bench = Bench()
        var store = try await bench.open(account: nil)
        try await bench.cache("a", in: store)
        try await store.preferences.update(for: "keeps") { $0.pruneAfterDays = 90 }
        try await store.close()
        bench.clock.advance(by: .days(30))
        for (user, cleansUp, isLeft) in [
            (nil, true, true), ("keeps", true, true), ("u", false, true), ("u", true, false),
        ] {
            store = try await bench.open(account: nil, user: user, cleansUp: cleansUp)
            #expect(bench.cached(in: store) == (isLeft ? ["a"] : []))
            #expect(bench.timers.count <= (cleansUp ? 1 : 0))
            try await store.close()
        }
    }

    @Test func `a closed store, and one without references, leave no timer and no store`()
        async throws
    {
        let bench = Bench()
        var store: OfflineStore? = try await bench.open()
        try await eventually("timers", is: 1) { bench.timers.count }
        try await store?.close()
        try await eventually("timers", is: 0) { bench.timers.count }
        store = try await bench.open()
        weak let events = store?.events
        try await eventually("timers", is: 1) { bench.timers.count }
        store = nil
        try await eventually("timers", is: 0) { bench.timers.count }
        try await eventually("the store is released", is: true) { events == nil }
    }

    @Test func `the store that all accounts share removes finished downloads and no city`()
        async throws
    {
        let bench = Bench()
        func open() async throws -> OfflineStore {
            try await OfflineStore.openShared(
                at: URL(filePath: "/log"), compaction: nil, environment: bench.environment)
        }
        var store = try await open()
        try await bench.cache("a", in: store)
        try await bench.finishTwoDownloads(in: store)
        try await store.close()
        bench.clock.advance(by: .days(400))
        store = try await open()
        #expect(bench.cached(in: store) == ["a"])
        #expect(store.downloads.jobs(of: "failed").current.isEmpty)
        try await store.close()
    }
}
