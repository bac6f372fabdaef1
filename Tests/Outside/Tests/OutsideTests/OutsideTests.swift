// Runs the code of the outside package.

import DaybookOffline
import DaybookTestKit
import Foundation
import Testing

@testable import Engine
@testable import Outside

/// A folder that is removed after the test.
final class Folder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "outside-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    var log: URL { url.appending(path: "log") }
}

/// The address of a server that refuses connections: no program listens on port 9.
let unreachableAddress = "http://127.0.0.1:9/v1/events"

@Suite struct OutsideTests {
    @Test func `the whole interface works as documented, without a server`() async throws {
        let folder = try Folder()
        let setting = Setting(
            url: folder.log, endpoint: try #require(URL(string: unreachableAddress)),
            credentials: BearerToken("secret"), deadline: Date(timeIntervalSinceNow: 1))
        let (report, notes) = try await setting.useTheInterface()
        #expect(notes == 1)
        #expect(report.applied == 0)
        #expect(report.pending == 6)
        #expect(report.message != nil)
        let again = try await OfflineStore.open(at: folder.log, account: "user-456")
        #expect(again.view(Outbox.self).count == 6)
        #expect(
            again.notes(in: "city-1").current.map(\.content) == ["Great coffee, closed on Mondays"])
        try await again.close()
    }

    @Test func `settings are kept, migrated and reset`() async throws {
        let folder = try Folder()
        let secrets = InMemorySecretStore()
        let store = try await OfflineStore.open(at: folder.log, secrets: secrets)
        let (mode, server) = try await Settings.use(store, "secret")
        #expect(mode == "dark")
        #expect(server == nil)
        #expect(secrets.values.count == 1)
        await Settings.follow(store)
        try await store.settings.put(SettingKey<Bool>("darkMode"), true)
        #expect(try await Settings.migrate(store).to == 2)
        #expect(store.settings.get(.themeMode) == "dark")
        try await store.close()
        try await Settings.reset(folder.log.deletingLastPathComponent(), secrets)
        #expect(secrets.values.isEmpty)
    }

    @Test func `an app's file is stored, read, listed after a restart and deleted`() async throws {
        let folder = try Folder()
        let recording: [UInt8] = Array("la la la".utf8)
        let (store, files) = try await Files.open(at: folder.log)
        let file = try await Files.keep(recording, in: store, files)
        try await files.collect()
        try await store.close()
        let (again, stored) = try await Files.open(at: folder.log)
        #expect(again.view(Recordings.self).lessons[file] == "lesson-7")
        let event = try await again.event(at: Position(1))
        let data = String(decoding: event?.content.json ?? [], as: UTF8.self)
        #expect(data == "{\"file\":\"\(file)\",\"lesson\":\"lesson-7\"}")
        #expect(try await Files.read(file, in: stored) == recording)
        #expect(try await Files.drop(file, in: again, stored) == 1)
        await #expect(throws: FileStoreError.self) { try await stored.read(file) }
        try await again.close()
    }

    @Test func `a city is cached, read, listed, cleaned up and removed`() async throws {
        let folder = try Folder()
        let store = try await OfflineStore.open(at: folder.log, account: "user-456")
        let description = CityData(
            id: "lisbon", name: "Lisbon", country: "Portugal", description: "By the sea",
            costOfLiving: 1_800, internetSpeed: 120, safetyRating: 8, climate: "mild")
        let image = CityImage(
            id: "hero", url: "https://x.example/hero.jpg", kind: .hero, width: 4, height: 3,
            content: [1, 2, 3])
        let size = try await Cities.cache(store, description.json, [image])
        try await Cities.read(store)
        let (used, old) = await Cities.list(store)
        #expect(used == size)
        #expect(size == description.json.count + 3)
        #expect(old.isEmpty)
        let report = try await Cities.tidy(store)
        #expect(report == CityCleanUp())
        #expect(store.cities.storageUsed.current == 0)
        try await store.close()
    }

    @Test func `images are fetched once, read, limited and cleared`() async throws {
        struct Server: ImageServer {
            var bytes: [UInt8]?
            func thumbnail(of assetId: String) async throws -> [UInt8] {
                guard let bytes else { throw CancellationError() }
                return bytes
            }
        }
        let folder = try Folder()
        let store = try await OfflineStore.open(at: folder.log, account: "user-456")
        try await Images.limit(store)
        #expect(try await Images.fetch(store, Server(bytes: [1, 2, 3])) == [1, 2, 3])
        #expect(try await Images.fetch(store, Server()) == [1, 2, 3])
        await Images.listCached(store)
        try await Images.store(store, [4, 5])
        let (size, bytes) = try await Images.clear(store)
        #expect(size == ImageCacheSize(images: 1, bytes: 3))
        #expect(bytes == 5)
        try await store.close()
    }

    @Test func `lessons and reviews are stored, shown, fetched and shipped`() async throws {
        struct Source: LearningSource {
            func reviews(
                of userId: String, _ combination: LanguageCombination, first count: Int
            ) async throws -> [ReviewSession] {
                [ReviewSession(reviewId: "review-1", unit: LearningUnit(content: Array("{}".utf8)))]
            }
            func lesson(
                _ lessonId: String, course courseId: String, _ combination: LanguageCombination
            ) async throws -> LearningUnit { LearningUnit(content: Array("{}".utf8)) }
            func file(_ url: String, bytesMax: Int) async throws -> [UInt8] { [] }
        }
        let folder = try Folder()
        let store = try await OfflineStore.open(at: folder.log, account: "user-456")
        let object = Array("{}".utf8)
        let lesson = try await Learning.store(store, object, object, [1, 2, 3])
        #expect(lesson.material.size == 5)
        #expect(try await Learning.show(store) == 1)
        #expect(try await Learning.vocabulary(store, [Array(#"{"id":"hola"}"#.utf8)]) == 1)
        let nowhere = try #require(URL(string: "http://127.0.0.1:9"))
        #expect(
            await Learning.ahead(
                store, server: nowhere, credentials: NoCredentials(),
                reachability: AlwaysReachable()) == nil)
        let downloads = LearningDownloads(
            store, source: Source(), user: "user-456", policy: .android)
        #expect(try await Learning.learn(store, downloads) == 1)
        let report = try await Learning.ship(store) { batch in
            let events = try JSONSerialization.jsonObject(with: Data(batch)) as? [[String: Any]]
            let verdicts = (events ?? []).compactMap { $0["id"] as? String }
                .map { #"{"id":"\#($0)","status":"applied"}"# }
            return Array(#"{"verdicts":[\#(verdicts.joined(separator: ","))]}"#.utf8)
        }
        #expect(report.applied == 1)
        #expect(store.progress(of: "user-456").current.courses.map(\.reviewsCompleted) == [1])
        try await store.close()
    }

    @Test func `content is stored, listed, shown and used`() async throws {
        let folder = try Folder()
        let store = try await Content.open(folder.log)
        let time = try #require(ZonedTime("2023-11-20T14:06:57.863+01:00"))
        var page = ContentPage(
            path: "/augsburg/en/welcome/", title: "Welcome", content: "<h1>Welcome</h1>",
            lastUpdate: time)
        page.parentPath = ""
        let resource = ContentResource(
            path: page.path, url: "https://x.example/1.png", lastUpdate: time,
            content: .bytes([1, 2, 3]))
        #expect(try await Content.keep(store, [page], [resource]).pagesStored == 1)
        #expect(try await Content.keep(store, [page], [resource]).pagesStored == 0)
        try await Content.list(store)
        #expect(try await Content.show(store) == 2)
        #expect(try await Content.use(store) == [])
        try await store.close()
    }

    @Test func `a first log is written, shipped later, shared, and closed`() async throws {
        let folder = try Folder()
        try await FirstLog.keep(at: folder.log)
        let store = try await OfflineStore.open(at: folder.log, account: "user-456")
        let endpoint = try #require(URL(string: unreachableAddress))
        let report = try await FirstLog.ship(
            store, to: endpoint, until: Date(timeIntervalSinceNow: 0.5))
        #expect(report.pending == 3)
        let nowhere = try #require(URL(string: unreachableAddress))
        let running = try await FirstLog.work(store, nowhere, nowhere, NoCredentials())
        running.cancel()
        try await running.value
        FirstLog.parked(store)
        var watched = 0
        await FirstLog.watch(store) { notes in
            watched = notes.count
            return false
        }
        #expect(watched == 1)
        async let counting: Void = FirstLog.count(store)
        #expect(try await FirstLog.leave(store) == 3)
        await counting
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.log.path) == [])
        #expect(try await FirstLog.share(at: folder.url.appending(path: "device")) == "dark")
    }

    @Test func `downloads are controlled as the article says`() async throws {
        struct Nowhere: Reachability {
            var paths: AsyncStream<NetworkPath> { AsyncStream { $0.yield(.none) } }
        }
        let store = try await OfflineStore.inMemory()
        let server = try #require(URL(string: "https://cities.example/api"))
        let (manager, work) = Downloading.start(store, server, NoCredentials(), Nowhere())
        async let watched: Void = Downloading.watch(store, manager)
        for await active in store.downloads.active.changes {
            guard let job = active.first else { continue }
            try await Downloading.steer(store, manager, job)
            break
        }
        try await watched
        try await Downloading.retry(store)
        #expect(store.view(DownloadsView.self).jobs.isEmpty)
        work.cancel()
        try await work.value
        let (_, other) = Downloading.bundled(store, server)
        other.cancel()
        try await other.value
        try await store.close()
    }
}
