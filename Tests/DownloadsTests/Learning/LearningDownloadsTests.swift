// Prefetches and requested downloads of lessons and review sessions: a unit is stored completely or not at
// all, and no session starts meanwhile. Spec/model/learning.md, LRN-30 to LRN-39.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private let spanish = LanguageCombination(learn: "es", display: "de")
private let french = LanguageCombination(learn: "fr", display: "de")
private let hour: Int64 = 3_600_000

/// A source that the tests control: its sessions, its failures, its delayed responses.
private final class TestSource: LearningSource {
    private struct State {
        var sessions: [String] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7"]
        var asked: [String] = []
        var failures: [String: any Error] = [:]
        /// The requests that wait for a delayed response.
        var held: [String: [AsyncStream<Void>.Continuation]] = [:]
        var edition = 1
    }

    private let state = Mutex(State())

    var asked: [String] { state.withLock { $0.asked } }
    func forget() { state.withLock { $0.asked = [] } }
    func have(_ sessions: [String]) { state.withLock { $0.sessions = sessions } }
    func fail(_ what: String, _ error: (any Error)?) {
        state.withLock { $0.failures[what] = error }
    }
    /// Delays a response until its release.
    func hold(_ what: String) { state.withLock { $0.held[what] = [] } }
    func letGo(_ what: String) {
        for waiting in state.withLock({ $0.held.removeValue(forKey: what) }) ?? [] {
            waiting.finish()
        }
    }
    func publish() { state.withLock { $0.edition += 1 } }

    private func ask(_ what: String) async throws -> Int {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let failure = state.withLock { state in
            if state.held[what] == nil {
                continuation.finish()
            } else {
                state.held[what]?.append(continuation)
            }
            state.asked.append(what)
            return state.failures[what]
        }
        if let failure { throw failure }
        for await _ in stream {}
        try Task.checkCancellation()
        return state.withLock { $0.edition }
    }

    func reviews(
        of userId: String, _ combination: LanguageCombination, first count: Int
    ) async throws -> [ReviewSession] {
        let edition = try await ask("reviews \(combination.learnLanguage) \(count)")
        return state.withLock { $0.sessions }.prefix(count).map { id in
            ReviewSession(
                reviewId: "\(combination.learnLanguage)-\(id)", courseId: "c",
                unit: LearningUnit(
                    content: Array(#"{"edition":\#(edition)}"#.utf8),
                    files: ["https://x.example/\(id)", "https://x.example/all"]))
        }
    }

    func lesson(
        _ lessonId: String, course courseId: String, _ combination: LanguageCombination
    ) async throws -> LearningUnit {
        let edition = try await ask("lesson \(lessonId)")
        return LearningUnit(
            content: Array(#"{"edition":\#(edition)}"#.utf8),
            files: ["https://x.example/\(lessonId)"])
    }

    func file(_ url: String, bytesMax: Int) async throws -> [UInt8] {
        Array("\(url) \(try await ask(url))".utf8)
    }
}

/// A clock whose waits end when a test calls `ring()`.
private final class Alarms: Sendable {
    private let waiting = Mutex<[UUID: (Duration, AsyncStream<Void>.Continuation)]>([:])

    var durations: [Duration] { waiting.withLock { $0.values.map(\.0) }.sorted() }

    func sleep(_ duration: Duration) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let id = UUID()
        waiting.withLock { $0[id] = (duration, continuation) }
        for await _ in stream {}
        waiting.withLock { $0[id] = nil }
        try Task.checkCancellation()
    }

    func ring() {
        for (_, continuation) in waiting.withLock({ Array($0.values) }) { continuation.finish() }
    }
}

/// A number, and whether a download runs or work is due.
private enum Activity: Equatable {
    case busy(Int)
    case idle(Int)
}

private struct LearningBench {
    let files: InMemoryFileSystem
    let store: OfflineStore
    let source: TestSource
    let network: TestNetwork
    let clock: VirtualClock
    let alarms = Alarms()
    let downloads: LearningDownloads

    init(
        _ policy: PrefetchPolicy = .iOS, network: NetworkPath = .wifi,
        files: InMemoryFileSystem = InMemoryFileSystem(), source: TestSource = TestSource(),
        clock: VirtualClock = VirtualClock(milliseconds: 1_800_000_000_000),
        options change: (inout DownloadManager.Options) -> Void = { _ in }
    ) async throws {
        self.files = files
        self.source = source
        self.clock = clock
        self.network = TestNetwork(network)
        store = try await OfflineStore.open(
            at: URL(filePath: "/log"),
            environment: LogEnvironment(fileSystem: files, now: { clock.milliseconds }))
        try await store.learning.selectCombination(spanish, for: "u")
        try await store.learning.storeCourses(
            [
                ListedCourse(
                    id: "c", lessons: ["l1", "l2", "l3"].map { ListedLesson(id: $0) })
            ], of: spanish)
        var options = DownloadManager.Options()
        options.sleep = { [alarms] in try await alarms.sleep($0) }
        change(&options)
        downloads = LearningDownloads(
            store, source: source, user: "u", reachability: self.network, policy: policy,
            options: options)
    }

    var reviews: [String] { store.learning.reviews(of: "u").current.map(\.reviewId) }
    var fileCount: Int { ((try? files.list(store.files.directory)) ?? []).count }

    /// The number of requests for sessions.
    var fetches: Int { source.asked.filter { $0.hasPrefix("reviews") }.count }

    func complete(_ reviewId: String) async throws {
        try await store.progress.completeReview(
            reviewId, course: "c", by: "u", itemsSeen: 1, itemsCorrect: 1)
    }

    /// Calls `body` while `run()` is active.
    func running(_ body: () async throws -> Void) async throws {
        let work = Task { try await downloads.run() }
        do { try await body() } catch {
            work.cancel()
            throw error
        }
        work.cancel()
        try await work.value
    }
}

@Suite struct LearningDownloadsTests {
    // MARK: Automatic fetches

    @Test(.verifies("LRN-21", "LRN-31"))
    func `at the start the first five sessions are fetched, also if they are stored`() async throws
    {
        let bench = try await LearningBench()
        let five = ["es-r1", "es-r2", "es-r3", "es-r4", "es-r5"]
        try await bench.running { try await eventually("sessions", is: five) { bench.reviews } }
        bench.source.publish()
        bench.source.forget()
        try await bench.running {
            try await eventually("requests", where: { $0 >= 11 }) { bench.source.asked.count }
            try await eventually("fetches", is: 1) { bench.fetches }
            try await eventually("sessions", is: 5) { bench.reviews.count }
            try await eventually("sessions are downloaded", is: false) {
                await bench.downloads.isDownloadingReviews
            }
        }
        for id in five {
            let material = try #require(try await bench.store.learning.readReview(id, of: "u"))
            #expect(material.content == Array(#"{"edition":2}"#.utf8))
            #expect(!material.isExplicit)
            #expect(material.files.count == 2)
            for file in material.files {
                #expect(
                    try await bench.store.files.read(file.file) == Array("\(file.url) 2".utf8))
            }
        }
        // One for each session and a shared one; no file of the first edition is left.
        #expect(bench.fileCount == 6)
    }

    @Test(.verifies("LRN-31"), arguments: [NetworkPath.wifi, .none])
    func `a run until idle fetches the due work and ends`(
        network: NetworkPath
    ) async throws {
        let bench = try await LearningBench(network: network)
        try await bench.downloads.run(untilIdle: true)
        #expect(bench.reviews.count == (network == .none ? 0 : 5))
        // A second run is possible.
        bench.network.set(.wifi)
        try await bench.downloads.run(untilIdle: true)
        #expect(bench.reviews.count == 5)
        try await bench.store.suspend()
        let run = Task { try await bench.downloads.run(untilIdle: true) }
        bench.source.forget()
        try await bench.store.resume()
        try await run.value
        #expect(bench.fetches == 1)
    }

    @Test(.verifies("LRN-31"))
    func `a run until idle does not wait for the retry of failed work`()
        async throws
    {
        let bench = try await LearningBench()
        bench.source.fail("reviews es 5", DownloadError(.unavailable, "busy"))
        try await bench.downloads.run(untilIdle: true)
        #expect(bench.reviews == [])
    }

    @Test(.verifies("LRN-31", "LRN-20"))
    func `a completed review and another combination in the log trigger a fetch`() async throws {
        let bench = try await LearningBench()
        try await bench.running {
            try await eventually("sessions", is: .idle(5)) {
                await bench.activity(bench.reviews.count)
            }
            #expect(bench.fetches == 1)
            try await bench.complete("es-r1")
            try await eventually("fetches", is: 2) { bench.fetches }
            try await bench.store.learning.selectCombination(french, for: "u")
            try await eventually("requests", where: { $0.contains("reviews fr 5") }) {
                bench.source.asked
            }
            try await eventually("sessions", is: .idle(10)) {
                await bench.activity(bench.reviews.count)
            }
            await bench.downloads.notice(.appResume)
            try await eventually("fetches", is: 4) { bench.fetches }
            try await eventually("fetches", is: .idle(4)) { await bench.activity(bench.fetches) }
            await bench.downloads.notice(.logIn)
            try await eventually("fetches", is: .idle(5)) { await bench.activity(bench.fetches) }
        }
    }

    @Test(.verifies("LRN-22", "LRN-31"))
    func `on Android sessions are fetched when the last one is completed`() async throws {
        let bench = try await LearningBench(.android)
        bench.source.have(["r1", "r2"])
        try await bench.running {
            try await eventually("sessions", is: .idle(2)) {
                await bench.activity(bench.reviews.count)
            }
            try await bench.complete("es-r1")
            await bench.downloads.notice(.appResume)
            bench.source.have(["r3"])
            try await bench.complete("es-r2")
            try await eventually("sessions", is: ["es-r3"]) { bench.reviews }
            // The loop has completed all earlier work.
            #expect(try await bench.downloads.startLesson("l1", course: "c") == nil)
            try await eventually("lesson l2 is available", is: true) {
                bench.store.learning.isAvailable("l2", course: "c").current
            }
            #expect(bench.fetches == 2)
        }
    }

    @Test(.verifies("LRN-42"))
    func `sessions are fetched after eighteen hours although one is repeated every seventeen`()
        async throws
    {
        var policy = PrefetchPolicy.android
        policy.reviewTriggers.remove(.appStart)
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let bench = try await LearningBench(policy, clock: clock)
        try await bench.running {
            try await bench.complete("old")
            try await eventually("waits", is: [Duration.seconds(18 * 3_600)]) {
                bench.alarms.durations
            }
            clock.advance(by: .hours(17))
            try await bench.complete("old")
            clock.advance(by: .hours(1))
            bench.alarms.ring()
            try await eventually("sessions", is: .idle(5)) {
                await bench.activity(bench.reviews.count)
            }
        }
    }

    @Test(.verifies("LRN-42"), arguments: 1...4)
    func `sessions that become due between two readings of the clock are fetched`(
        readings: Int
    ) async throws {
        var policy = PrefetchPolicy.android
        policy.reviewTriggers.remove(.appStart)
        let bench = try await LearningBench(policy)
        try await bench.store.progress.completeLesson("l1", course: "c", by: "u")
        bench.clock.advance(by: .hours(18), afterReadings: readings)
        try await bench.running {
            try await eventually("sessions", is: Activity.idle(5)) {
                bench.alarms.ring()
                return await bench.activity(bench.reviews.count)
            }
        }
    }

    @Test(.verifies("LRN-42", "LRN-32"))
    func `the work due after eighteen hours is computed from the log and survives restarts`()
        async throws
    {
        let (files, clock, source) = (
            InMemoryFileSystem(), VirtualClock(milliseconds: 1_800_000_000_000), TestSource()
        )
        var policy = PrefetchPolicy.android
        do {
            let bench = try await LearningBench(
                policy, files: files, source: source, clock: clock)
            try await bench.running {
                try await eventually("sessions", is: .idle(5)) {
                    await bench.activity(bench.reviews.count)
                }
                #expect(await bench.downloads.nextPrefetch() == nil)
                #expect(bench.alarms.durations == [])
                clock.advance(by: .hours(1))
                try await bench.store.progress.completeLesson("l1", course: "c", by: "u")
                try await eventually("waits", is: [Duration.seconds(18 * 3_600)]) {
                    bench.alarms.durations
                }
            }
            clock.advance(by: .hours(2))
            try await bench.store.close()
        }
        // Not triggered by the start of the app this time.
        policy.reviewTriggers.remove(.appStart)
        let bench = try await LearningBench(policy, files: files, source: source, clock: clock)
        let due = Timestamp(milliseconds: clock.milliseconds + 16 * hour)
        #expect(await bench.downloads.nextPrefetch() == due)
        source.forget()
        try await bench.running {
            try await eventually("waits", is: [Duration.seconds(16 * 3_600)]) {
                bench.alarms.durations
            }
            #expect(bench.fetches == 0)
            clock.advance(by: .hours(16))
            bench.alarms.ring()
            try await eventually("fetches", is: .idle(1)) { await bench.activity(bench.fetches) }
            try await eventually("next prefetch", is: nil) { await bench.downloads.nextPrefetch() }
        }
        #expect(bench.fetches == 1)
    }

    @Test(.verifies("LRN-32"))
    func `a server that has no sessions, or refuses, is not asked repeatedly`() async throws {
        for refuses in [false, true] {
            var policy = PrefetchPolicy.android
            policy.reviewTriggers.remove(.appStart)
            let bench = try await LearningBench(policy)
            bench.source.have([])
            if refuses {
                bench.source.fail("reviews es 5", DownloadError(.refused, "no"))
            }
            try await bench.store.progress.completeLesson("l1", course: "c", by: "u")
            bench.clock.advance(by: .hours(19))
            try await bench.running {
                try await eventually("fetches", is: .idle(1)) {
                    await bench.activity(bench.fetches)
                }
                try await bench.store.progress.activateCourse("c", by: "u")
                // The loop has completed all earlier work.
                #expect(try await bench.downloads.startLesson("l1", course: "c") == nil)
                try await eventually("lesson l2 is available", is: true) {
                    bench.store.learning.isAvailable("l2", course: "c").current
                }
                #expect(await bench.downloads.nextPrefetch() == nil)
            }
            #expect(bench.fetches == 1)
        }
    }

    @Test(.verifies("LRN-33"))
    func `failed work is retried after a time, on another network, or by a trigger`()
        async throws
    {
        let bench = try await LearningBench()
        let busy = DownloadError(.unavailable, "busy", retryAfterSeconds: 1_200)
        bench.source.fail("reviews es 5", busy)
        try await bench.running {
            try await eventually("waits", is: [Duration.seconds(1_200)]) { bench.alarms.durations }
            #expect(bench.fetches == 1)
            #expect(bench.reviews.isEmpty)
            bench.clock.advance(by: .hours(1))
            bench.alarms.ring()
            try await eventually("fetches", is: 2) { bench.fetches }
            bench.network.set(.none)
            bench.source.fail("reviews es 5", URLError(.networkConnectionLost))
            bench.network.set(.cellular)
            try await bench.store.preferences.update(for: "u") { $0.wifiOnlyDownload = false }
            try await eventually("fetches", is: 3) { bench.fetches }
            bench.source.fail("reviews es 5", nil)
            await bench.downloads.notice(.appResume)
            try await eventually("sessions", is: 5) { bench.reviews.count }
        }
    }

    @Test(.verifies("LRN-24", "LRN-31"))
    func `a started lesson causes a fetch of the next one`() async throws {
        let bench = try await LearningBench(.android)
        try await bench.running {
            try await eventually("sessions", is: .idle(5)) {
                await bench.activity(bench.reviews.count)
            }
            #expect(try await bench.downloads.startLesson("l1", course: "c") == nil)
            try await eventually("lesson l2 is available", is: true) {
                bench.store.learning.isAvailable("l2", course: "c").current
            }
            #expect(
                bench.store.learning.lesson("l2", course: "c").current?.material.isExplicit
                    == false)
            #expect(try await bench.downloads.startLesson("l3", course: "c") == nil)
            let two = try #require(try await bench.downloads.startLesson("l2", course: "c"))
            #expect(two.files.count == 1)
            try await eventually("lesson l3 is available", is: true) {
                bench.store.learning.isAvailable("l3", course: "c").current
            }
        }
        #expect(bench.source.asked.filter { $0.hasPrefix("lesson") } == ["lesson l2", "lesson l3"])
    }

    // MARK: Requested downloads

    @Test(.verifies("LRN-34"))
    func `lessons and sessions that the user downloads are kept`() async throws {
        let bench = try await LearningBench()
        let lesson = try await bench.downloads.downloadLesson("l3", course: "c")
        #expect(lesson.material.isExplicit)
        #expect(lesson.material.files.count == 1)
        let reviews = try await bench.downloads.downloadReviews(first: 2)
        #expect(reviews.map(\.reviewId) == ["es-r1", "es-r2"])
        #expect(reviews.allSatisfy { $0.material.isExplicit })
        #expect(reviews.map(\.order) == [0, 1])
        bench.source.have(["r6"])
        try await bench.running {
            // A later prefetch replaces prefetched sessions, not these.
            try await eventually("sessions", is: ["es-r1", "es-r6", "es-r2"]) { bench.reviews }
        }
        #expect(try await bench.downloads.downloadReviews(first: -1).isEmpty)
        let other = LearningDownloads(
            bench.store, source: bench.source, user: "nobody", reachability: bench.network,
            policy: .iOS)
        await refuses(.noCombination) { try await other.downloadReviews() }
    }

    @Test(.verifies("LRN-35"))
    func `no session can be started while sessions are downloaded`() async throws {
        let bench = try await LearningBench()
        try await bench.downloads.downloadReviews(first: 1)
        #expect(try await bench.downloads.startReview("es-r1").files.count == 2)
        bench.source.hold("https://x.example/r2")
        let download = Task { try await bench.downloads.downloadReviews(first: 2) }
        try await eventually("requests", where: { $0.contains("https://x.example/r2") }) {
            bench.source.asked
        }
        #expect(await bench.downloads.isDownloadingReviews)
        await refuses(.downloadInProgress) {
            try await bench.downloads.startReview("es-r1")
        }
        // A direct read is refused, too; one by another user is not.
        await #expect {
            try await bench.store.learning.readReview("es-r1", of: "u")
        } throws: { ($0 as? EventError)?.code == .refused }
        #expect(try await bench.store.learning.readReview("es-r1", of: "v") == nil)
        // Lessons are not affected.
        #expect(try await bench.downloads.startLesson("l1", course: "c") == nil)
        bench.source.letGo("https://x.example/r2")
        #expect(try await download.value.count == 2)
        #expect(try await bench.downloads.startReview("es-r2").files.count == 2)
        #expect(try await bench.store.learning.readReview("es-r1", of: "u")?.files.count == 2)
        await refuses(.notStored) { try await bench.downloads.startReview("es-r9") }
    }

    @Test(.verifies("LRN-30"))
    func `a session is stored completely or unchanged, and no file is left over`() async throws {
        let bench = try await LearningBench()
        try await bench.downloads.downloadReviews(first: 2)
        let files = bench.fileCount
        bench.source.publish()
        bench.source.fail("https://x.example/r2", DownloadError(.refused, "gone"))
        await #expect(throws: DownloadError.self) {
            try await bench.downloads.downloadReviews(first: 2)
        }
        for (id, edition) in [("es-r1", 2), ("es-r2", 1)] {
            let material = try #require(try await bench.store.learning.readReview(id, of: "u"))
            #expect(material.content == Array(#"{"edition":\#(edition)}"#.utf8))
            for file in material.files {
                #expect(
                    try await bench.store.files.read(file.file)
                        == Array("\(file.url) \(edition)".utf8))
            }
        }
        // The shared file is stored in both editions now.
        #expect(bench.fileCount == files + 1)
    }

    @Test(
        .verifies("LRN-30"),
        arguments: [DownloadError.Code.refused, .unavailable, .unauthorized])
    func `a session that the server lacks or does not send keeps no other off the device`(
        code: DownloadError.Code
    ) async throws {
        let bench = try await LearningBench()
        bench.source.fail("https://x.example/r2", DownloadError(code, "gone"))
        let error = await #expect(throws: DownloadError.self) {
            try await bench.downloads.downloadReviews(first: 3)
        }
        #expect(error?.detail == "gone")
        let stored = bench.store.learning.reviews(of: "u").current
        #expect(stored.map(\.reviewId) == ["es-r1", "es-r3"])
        // A prefetch waits for the next trigger and does not fetch the others again and again.
        try await bench.running {
            try await eventually("sessions", is: 4) { bench.reviews.count }
            try await eventually("idle", is: true) { await bench.downloads.isIdle }
            #expect(bench.alarms.durations == [])
            bench.source.fail("https://x.example/r2", nil)
            await bench.downloads.notice(.appResume)
            try await eventually("sessions", is: 5) { bench.reviews.count }
        }
    }

    @Test(.verifies("LRN-30"))
    func `a connection that breaks at a session ends the download`() async throws {
        let bench = try await LearningBench()
        bench.source.fail("https://x.example/r2", URLError(.networkConnectionLost))
        bench.source.fail("reviews es 1", URLError(.networkConnectionLost))
        await #expect(throws: URLError.self) {
            try await bench.downloads.downloadReviews(first: 3)
        }
        #expect(!bench.source.asked.contains("https://x.example/r3"))
    }

    @Test(.verifies("LRN-21", "LRN-30"))
    func `earlier sessions are removed also if the server lacks one of the next`()
        async throws
    {
        let bench = try await LearningBench()
        try await bench.downloads.run(untilIdle: true)
        bench.source.have(["r3", "r6"])
        bench.source.fail("https://x.example/r6", DownloadError(.refused, "gone"))
        try await bench.downloads.run(untilIdle: true)
        #expect(bench.reviews == ["es-r3"])
    }

    @Test(.verifies("LRN-36"))
    func `a cancelled download changes nothing`() async throws {
        let bench = try await LearningBench()
        bench.source.hold("https://x.example/l1")
        let download = Task { try await bench.downloads.downloadLesson("l1", course: "c") }
        try await eventually("requests", where: { $0.contains("https://x.example/l1") }) {
            bench.source.asked
        }
        download.cancel()
        await #expect(throws: CancellationError.self) { try await download.value }
        #expect(bench.store.learning.storedLessons.current.isEmpty)
        #expect(bench.fileCount == 0)
        let reviews = Task { try await bench.downloads.downloadReviews() }
        reviews.cancel()
        await #expect(throws: CancellationError.self) { try await reviews.value }
        #expect(await !bench.downloads.isDownloadingReviews)
    }

    @Test(.verifies("LRN-37"))
    func `nothing is fetched without a network, nor over a cellular one against the settings`()
        async throws
    {
        let bench = try await LearningBench(network: .none)
        try await bench.running {
            await refuses(.offline) { try await bench.downloads.downloadReviews() }
            bench.network.set(.cellular)
            await refuses(.cellular) {
                try await bench.downloads.downloadLesson("l1", course: "c")
            }
            #expect(bench.source.asked.isEmpty)
            try await bench.store.preferences.update(for: "u") { $0.wifiOnlyDownload = false }
            try await eventually("sessions", is: 5) { bench.reviews.count }
        }
    }

    @Test(.verifies("LRN-37"), arguments: ["network", "setting"])
    func `a download ends when the network or the setting does not permit it any more`(
        what: String
    ) async throws {
        let bench = try await LearningBench(network: .cellular)
        try await bench.store.preferences.update(for: "u") { $0.wifiOnlyDownload = false }
        bench.source.hold("lesson l1")
        let download = Task { try await bench.downloads.downloadLesson("l1", course: "c") }
        try await eventually("requests", where: { $0.contains("lesson l1") }) { bench.source.asked }
        if what == "network" {
            bench.network.set(.none)
            await refuses(.offline) { try await download.value }
        } else {
            try await bench.store.preferences.update(for: "u") { $0.wifiOnlyDownload = true }
            await refuses(.cellular) { try await download.value }
        }
    }

    @Test(.verifies("LRN-38"))
    func `an invalid lesson is refused: too many files, one twice, too long, no object`()
        async throws
    {
        struct Bad: LearningSource {
            var unit: LearningUnit
            func reviews(
                of userId: String, _ combination: LanguageCombination, first count: Int
            ) async throws -> [ReviewSession] { [ReviewSession(reviewId: "", unit: unit)] }
            func lesson(
                _ lessonId: String, course courseId: String, _ combination: LanguageCombination
            ) async throws -> LearningUnit { unit }
            func file(_ url: String, bytesMax: Int) async throws -> [UInt8] {
                [UInt8](repeating: 0, count: 11)
            }
        }
        let bench = try await LearningBench()
        func lesson(
            _ unit: LearningUnit, _ change: (inout DownloadManager.Options) -> Void = { _ in }
        ) async throws {
            var options = DownloadManager.Options()
            change(&options)
            let downloads = LearningDownloads(
                bench.store, source: Bad(unit: unit), user: "u", policy: .iOS, options: options)
            try await downloads.downloadLesson("l1", course: "c")
        }
        let good = Array("{}".utf8)
        let many = (0...LearningUnit.filesMax).map { "https://x.example/\($0)" }
        await #expect(throws: DownloadError.self) {
            try await lesson(LearningUnit(content: good, files: many))
        }
        await #expect(throws: DownloadError.self) {
            try await lesson(LearningUnit(content: good, files: ["a", "a"]))
        }
        await #expect(throws: DownloadError.self) {
            try await lesson(LearningUnit(content: good, files: ["a"])) { $0.imageBytesMax = 10 }
        }
        await #expect(throws: DownloadError.self) {
            try await lesson(LearningUnit(content: good, files: ["a", "b"])) {
                $0.cityBytesMax = 21
            }
        }
        await #expect(throws: EventError.self) {
            try await lesson(LearningUnit(content: [], files: ["a"]))
        }
        await #expect(throws: EventError.self) {
            try await LearningDownloads(
                bench.store, source: Bad(unit: LearningUnit(content: good)), user: "u",
                policy: .iOS
            ).downloadReviews()
        }
        #expect(bench.store.learning.storedLessons.current.isEmpty)
        #expect(bench.fileCount == 0)
    }

    @Test(.verifies("LRN-39", "LRN-33"))
    func `nothing is fetched while the store is suspended, and the work continues afterwards`()
        async throws
    {
        let bench = try await LearningBench()
        bench.source.hold("https://x.example/r2")
        try await bench.running {
            try await eventually("requests", where: { $0.contains("https://x.example/r2") }) {
                bench.source.asked
            }
            try await bench.store.suspend()
            try await eventually("sessions are downloaded", is: false) {
                await bench.downloads.isDownloadingReviews
            }
            bench.source.letGo("https://x.example/r2")
            bench.source.forget()
            bench.network.set(.cellular)
            bench.network.set(.wifi)
            await bench.downloads.notice(.appResume)
            await #expect(throws: LogError.self) {
                try await bench.downloads.downloadLesson("l1", course: "c")
            }
            #expect(bench.fetches == 0)
            try await bench.store.resume()
            try await eventually("sessions", is: .idle(5)) {
                await bench.activity(bench.reviews.count)
            }
            #expect(bench.alarms.durations == [])
        }
    }

    @Test(.verifies("LRN-33"))
    func `a source that throws a cancellation does not end the run`() async throws {
        let bench = try await LearningBench()
        bench.source.fail("reviews es 5", CancellationError())
        let work = Task { try await bench.downloads.run() }
        try await eventually("fetches", is: 1) { bench.fetches }
        try await eventually("waits", is: [Duration.seconds(900)]) { bench.alarms.durations }
        bench.source.fail("reviews es 5", nil)
        await bench.downloads.notice(.appResume)
        try await eventually("sessions", is: 5) { bench.reviews.count }
        work.cancel()
        try await work.value
    }

    @Test(.verifies("LRN-30", "LRN-34"))
    func `a download of fewer sessions removes none, and a count of 0 downloads none`() async throws
    {
        let bench = try await LearningBench()
        try await bench.running { try await eventually("sessions", is: 5) { bench.reviews.count } }
        let all = bench.reviews
        bench.source.forget()
        for count in [0, -1, .min] {
            #expect(try await bench.downloads.downloadReviews(first: count).isEmpty)
            #expect(bench.reviews == all)
        }
        #expect(bench.source.asked.isEmpty)
        #expect(try await bench.downloads.downloadReviews(first: 2).count == 2)
        #expect(bench.reviews == all)
    }

    @Test(.verifies("LRN-30"))
    func `a requested session is removed when it is completed and not among the next`() async throws
    {
        let bench = try await LearningBench()
        try await bench.downloads.downloadReviews(first: 2)
        try await bench.complete("es-r1")
        bench.source.have(["r6"])
        try await bench.running {
            try await eventually("sessions", is: ["es-r6", "es-r2"]) { bench.reviews }
        }
    }

    @Test(.verifies("LRN-31"))
    func `completions are detected although a clock was ahead`() async throws {
        let bench = try await LearningBench()
        bench.clock.advance(by: .hours(100))
        try await bench.complete("es-r9")
        bench.clock.advance(by: .hours(-100))
        try await bench.running {
            try await eventually("sessions", is: .idle(5)) {
                await bench.activity(bench.reviews.count)
            }
            for (index, id) in ["es-r1", "es-r2"].enumerated() {
                try await bench.complete(id)
                try await eventually("fetches", is: .idle(index + 2)) {
                    await bench.activity(bench.fetches)
                }
            }
        }
    }

    @Test(.verifies("LRN-37", "LRN-35"))
    func `an unknown network counts as none, and a download that waits for one blocks no session`()
        async throws
    {
        struct Unknown: Reachability {
            let paths: AsyncStream<NetworkPath>
        }
        let bench = try await LearningBench()
        try await bench.downloads.downloadReviews(first: 1)
        func downloads(_ paths: AsyncStream<NetworkPath>) -> LearningDownloads {
            LearningDownloads(
                bench.store, source: bench.source, user: "u",
                reachability: Unknown(paths: paths), policy: .iOS)
        }
        await refuses(.offline) {
            try await downloads(AsyncStream { $0.finish() }).downloadReviews()
        }
        let (paths, continuation) = AsyncStream.makeStream(of: NetworkPath.self)
        let waiting = downloads(paths)
        let download = Task { try await waiting.downloadReviews(first: 2) }
        #expect(try await waiting.startReview("es-r1").files.count == 2)
        #expect(await !waiting.isDownloadingReviews)
        continuation.yield(.wifi)
        #expect(try await download.value.count == 2)
        continuation.finish()
    }

    @Test(.verifies("LRN-38"))
    func `a session that a source returns twice is reported and keeps no other off the device`()
        async throws
    {
        let bench = try await LearningBench()
        bench.source.have(["r1", "r2", "r1"])
        await #expect(throws: DownloadError.self) {
            try await bench.downloads.downloadReviews()
        }
        #expect(bench.reviews == ["es-r1", "es-r2"])
    }

    @Test(.verifies("LRN-35"))
    func `only one download of sessions runs at a time`() async throws {
        let bench = try await LearningBench()
        bench.source.hold("https://x.example/r2")
        let first = Task { try await bench.downloads.downloadReviews(first: 2) }
        try await eventually("requests", where: { $0.contains("https://x.example/r2") }) {
            bench.source.asked
        }
        let second = Task { try await bench.downloads.downloadReviews(first: 3) }
        let third = Task { try await bench.downloads.downloadReviews(first: 4) }
        third.cancel()
        await #expect(throws: CancellationError.self) { try await third.value }
        #expect(bench.fetches == 1)
        bench.source.letGo("https://x.example/r2")
        #expect(try await first.value.count == 2)
        #expect(try await second.value.count == 3)
        #expect(bench.fetches == 2)
    }

    @Test(.verifies("LRN-39"))
    func `run ends with the store, and a second call returns at once`() async throws {
        let bench = try await LearningBench()
        let work = Task { try await bench.downloads.run() }
        try await eventually("sessions", is: 5) { bench.reviews.count }
        try await bench.downloads.run()
        try await bench.store.close()
        try await work.value
        await #expect(throws: LogError.self) {
            try await bench.downloads.downloadLesson("l1", course: "c")
        }
    }
}

extension LearningBench {
    /// Returns a number with the state of the downloads after it was read.
    fileprivate func activity(_ number: Int) async -> Activity {
        await downloads.isIdle ? .idle(number) : .busy(number)
    }
}

private func refuses<Result>(
    _ code: LearningError.Code, _ body: () async throws -> Result
) async {
    let error = await #expect(throws: LearningError.self) { _ = try await body() }
    #expect(error?.code == code)
}
