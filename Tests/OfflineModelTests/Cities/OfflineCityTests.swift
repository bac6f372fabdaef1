// Cached cities: copies, accesses, limits, age. Spec/model/cities.md.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// A store in memory and a clock that the test sets.
private struct Bench {
    static let unit = 1_048_576
    let files = InMemoryFileSystem()
    let clock: VirtualClock
    let store: OfflineStore

    init() async throws {
        let clock = VirtualClock(milliseconds: 1_771_756_200_000)
        self.clock = clock
        store = try await OfflineStore.open(
            at: URL(filePath: "/log"), account: "u", compaction: nil,
            environment: LogEnvironment(
                fileSystem: files, now: { clock.milliseconds }, sleep: noTimers))
    }

    /// Sets the storage limit in units.
    func limit(_ units: Int) async throws {
        try await store.preferences.update(for: "u") { $0.maxStorageLimit = units * Self.unit }
    }

    static func json(_ cityId: String, more: String = "") -> [UInt8] {
        var json = CityData(
            id: cityId, name: cityId.capitalized, country: "Portugal", description: "By the sea",
            costOfLiving: 1_800.5, internetSpeed: 120, safetyRating: 7.5, climate: "mild",
            touristAttractions: [
                TouristAttraction(
                    id: "t", name: "Tower", description: "Old", latitude: 38.69, longitude: -9.21)
            ], categories: [CityCategory(id: "sea", name: "Sea")], relatedCities: ["porto"]
        ).json
        if !more.isEmpty { json.insert(contentsOf: Array("\(more),".utf8), at: 1) }
        return json
    }

    static func image(_ id: String, bytes: Int) -> CityImage {
        CityImage(
            id: id, url: "https://x.example/\(id).jpg", kind: .gallery, width: 4, height: 3,
            content: (0..<bytes).map { Array(id.utf8)[$0 % id.utf8.count] })
    }

    /// Caches a city whose image has a size in units on record. Its file is small.
    @discardableResult
    func cache(
        _ cityId: String, units: Int = 0, explicit: Bool = false
    ) async throws -> OfflineCity {
        clock.advance(by: .days(0.01))
        let image = Self.image(cityId, bytes: 8)
        var images: [CachedImage] = []
        if units > 0 {
            images.append(
                CachedImage(
                    id: image.id, url: image.url,
                    file: try await store.files.storeRetained(image.content),
                    size: units * Self.unit, kind: image.kind, width: image.width,
                    height: image.height))
        }
        let stored = images
        func collect() async throws {
            await store.files.release(stored.map(\.file))
            try await store.files.collect()
        }
        do {
            try await store.events.write { transaction in
                try CityCommands.cache(
                    json: Self.json(cityId), images: stored.map { .success($0) },
                    isExplicit: explicit,
                    for: "u", in: &transaction)
            }
        } catch {
            try await collect()
            throw error
        }
        try await collect()
        return try #require(store.view(CitiesView.self).offline(cityId))
    }

    var cached: [String] { store.cities.offlineCities.current.map(\.cityId) }
    var fileNames: [String] { ((try? files.list("/log/files")) ?? []).sorted() }
}

@Suite struct OfflineCityTests {
    @Test(.verifies("CITY-1", "CITY-2", "FILE-2"))
    func `a cached city is read back completely`() async throws {
        let bench = try await Bench()
        let image = Bench.image("hero", bytes: 1_000)
        let json = Bench.json("lisbon", more: #""mayor":{"since":2021}"#)
        let city = try await bench.store.cities.cache(
            json: json, images: [image], isExplicit: true, for: "u")
        #expect(city.storageSize == json.count + 1_000)
        #expect(city.downloadedAt.milliseconds == bench.clock.milliseconds)
        #expect(city.lastAccessedAt == city.downloadedAt)
        #expect(city.isExplicitDownload)
        #expect(city.version == 1)
        let (found, data) = try #require(try await bench.store.cities.read("lisbon"))
        #expect(found == city)
        #expect(data == (try CityData(json: json)))
        #expect(data.touristAttractions[0].longitude == -9.21)
        #expect(data.relatedCities == ["porto"])
        #expect(data.categories.first?.id == "sea")
        let cached = try #require(city.images.first)
        #expect(cached.size == 1_000)
        #expect(cached.kind == .gallery)
        #expect(cached.width == 4)
        #expect(try await bench.store.files.read(cached.file) == image.content)
        #expect(try await bench.store.cities.read("porto") == nil)
        let line = try #require(try await bench.store.events.event(id: city.event)?.content.json)
        let recorded = String(decoding: line, as: UTF8.self)
        #expect(recorded.contains(cached.file.description))
        #expect(!recorded.contains("/log"))
        #expect(bench.store.cities.storageUsed.current == city.storageSize)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-1", "CITY-2", "VIEW-5"))
    func `the row of a cached city has members that no type names, and the paths of its images`()
        async throws
    {
        let bench = try await Bench()
        let image = Bench.image("hero", bytes: 10)
        let json = Bench.json("lisbon", more: #""mayor":{"since":2021}"#)
        let city = try await bench.store.cities.cache(
            json: json, images: [image], isExplicit: true, for: "u")
        let data = try await bench.store.events.event(id: city.event)?.content.json
        let row = try #require(bench.store.view(CitiesView.self).rows().first)
            .filled { $0 == city.event ? data : nil }
        let fields = Dictionary(
            uniqueKeysWithValues: row.fields.map {
                ($0.name, String(decoding: $0.json, as: UTF8.self))
            })
        #expect(fields["cityId"] == #""lisbon""#)
        #expect(fields["cityData"] == String(decoding: json, as: UTF8.self))
        // The path in the row is relative to the log's folder, which may move.
        let file = try #require(city.images.first?.file)
        #expect(fields["images"]?.contains(#""localUri":"files/\#(file)""#) == true)
        #expect(bench.store.files.path(of: file) == "/log/files/\(file)")
        #expect(bench.files["/log/files/\(file)"] == image.content)
        try await bench.store.close()
    }

    @Test(
        .verifies("CITY-2"),
        arguments: [
            ("{}", "id"), (#"{"id":"x"}"#, "name"), ("[]", "object"), ("", "object"),
            (#"{"id":"","name":"n"}"#, "id"),
        ])
    func `a description without a required member is refused with the name of the member`(
        json: String, name: String
    ) async throws {
        let bench = try await Bench()
        await #expect {
            try await bench.store.cities.cache(
                json: Array(json.utf8), images: [Bench.image("i", bytes: 9)], isExplicit: false,
                for: "u")
        } throws: {
            ($0 as? EventError)?.code == .invalidData && "\($0)".contains(name)
        }
        #expect(bench.cached.isEmpty)
        #expect(bench.fileNames.isEmpty)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-1", "EVT-7"))
    func `what the log cannot hold as a copy is refused`() throws {
        let good = CityCached(
            cityId: "c", version: 1, isExplicitDownload: true, cityData: Bench.json("c"),
            images: [])
        let text = String(decoding: try good.json(), as: UTF8.self)
        func refuses(_ part: String, _ other: String) {
            let changed = text.replacingOccurrences(of: part, with: other)
            #expect(changed != text)
            #expect(throws: EventError.self, "\(other)") {
                try CityCached(json: Array(changed.utf8))
            }
        }
        #expect(try CityCached(json: good.json()) == good)
        refuses(#""version":1"#, #""version":0"#)
        refuses(#""version":1"#, #""version":null"#)
        refuses(#""cityId":"c""#, #""cityId":"d""#)
        refuses(#""isExplicitDownload":true"#, #""isExplicitDownload":1"#)
        refuses(#""images":[]"#, #""images":{}"#)
        refuses(#""images":[]"#, #""images":[{"id":"i","url":"u","file":"f","size":1}]"#)
        refuses(#""costOfLiving":1800.5"#, #""costOfLiving":1e999"#)
        refuses(#""lat":38.69"#, #""lat":"38.69""#)
        refuses(#""relatedCities":["porto"]"#, #""relatedCities":[7]"#)
    }

    @Test(.verifies("CITY-3", "CITY-4", "CITY-7"))
    func `a new copy has the next version, stays explicit and replaces the old images`()
        async throws
    {
        let bench = try await Bench()
        try await bench.cache("a", units: 1, explicit: true)
        let old = bench.fileNames
        let second = try await bench.store.cities.cache(
            json: Bench.json("a"), images: [Bench.image("new", bytes: 10)], isExplicit: false,
            for: "u")
        #expect(second.version == 2)
        #expect(second.isExplicitDownload)
        #expect(bench.fileNames == [second.images[0].file.description])
        #expect(bench.fileNames != old)
        try await bench.store.cities.remove("a")
        #expect(bench.fileNames.isEmpty)
        #expect(try await bench.cache("a").version == 1)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-5"))
    func `reading moves the last access, and a day of reading hardly grows the log`() async throws {
        let bench = try await Bench()
        try await bench.cache("a")
        try await bench.cache("b")
        #expect(bench.cached == ["b", "a"])
        bench.clock.advance(by: .days(1))
        _ = try await bench.store.cities.read("a")
        #expect(bench.cached == ["a", "b"])
        #expect(
            bench.store.cities.offline("a").current?.lastAccessedAt.milliseconds
                == bench.clock.milliseconds)
        func events() async -> UInt64 { await bench.store.events.lastDurable.rawValue }
        try await bench.store.events.flush()
        let before = await events()
        // Once a second for an hour.
        for _ in 0..<3_600 {
            bench.clock.advance(by: .days(1 / 86_400))
            _ = try await bench.store.cities.read("a")
        }
        try await bench.store.events.flush()
        #expect(await events() - before == 12)
        // A query is no access.
        bench.clock.advance(by: .days(1))
        _ = bench.store.cities.offline("b").current
        #expect(bench.cached == ["a", "b"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-5"))
    func `a city that was read while the clock was ahead is read again once the clock is right`()
        async throws
    {
        let bench = try await Bench()
        bench.clock.advance(by: .days(1_000))
        try await bench.cache("a")
        bench.clock.advance(by: .days(-1_000))
        try await bench.cache("b")
        // The second access counts, too, though the event of the first has a time in the future.
        for _ in 0..<2 {
            bench.clock.advance(by: .days(1))
            _ = try await bench.store.cities.read("a")
            #expect(
                bench.store.cities.offline("a").current?.lastAccessedAt.milliseconds
                    == bench.clock.milliseconds)
        }
        #expect(bench.cached == ["a", "b"])
        bench.clock.advance(by: .days(8))
        #expect(try await bench.store.cities.cleanUp(for: "u").outdated == ["b", "a"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-5", "CITY-10"))
    func `a copy whose last access a clock that was ahead has recorded ages as well`()
        async throws
    {
        let bench = try await Bench()
        for city in ["read", "plain"] { try await bench.cache(city) }
        bench.clock.advance(by: .days(1_000))
        _ = try await bench.store.cities.read("read")
        for city in ["copied", "again"] { try await bench.cache(city) }
        bench.clock.advance(by: .days(-960))
        _ = try await bench.store.cities.read("plain")
        // Its event is ahead of the clock, the access is not.
        let again = try await bench.cache("again")
        #expect(again.lastAccessedAt.milliseconds == bench.clock.milliseconds)
        let report = try await bench.store.cities.cleanUp(for: "u")
        #expect(report.outdated == ["read"])
        #expect(Set(bench.cached) == ["again", "copied", "plain"])
        // A clock that is behind removes nothing.
        bench.clock.advance(by: .days(-10_000))
        #expect(try await bench.store.cities.cleanUp(for: "u").outdated == [])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-8"))
    func `a city that was last read while the clock was ahead is evicted first`() async throws {
        let bench = try await Bench()
        try await bench.cache("old", units: 40)
        bench.clock.advance(by: .days(1_000))
        try await bench.cache("ahead", units: 40)
        bench.clock.advance(by: .days(-999))
        try await bench.cache("new", units: 40)
        #expect(Set(bench.cached) == ["old", "new"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-11"))
    func `stale cities are followed: as time passes, and with the setting`() async throws {
        let clock = VirtualClock(milliseconds: 1_771_756_200_000)
        let (sleeps, wake) = AsyncStream.makeStream(of: Void.self)
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"), account: "u", compaction: nil, cleansUp: false,
            environment: LogEnvironment(
                fileSystem: InMemoryFileSystem(), now: { clock.milliseconds },
                sleep: { _ in
                    for await _ in sleeps { return }
                    throw CancellationError()
                }))
        try await store.cities.cache(json: Bench.json("a"), isExplicit: true, for: "u")
        var lists = store.cities.staleChanges(for: "u").makeAsyncIterator()
        #expect(await lists.next() == [])
        clock.advance(by: .days(31))
        wake.yield()
        #expect(await lists.next()?.map(\.cityId) == ["a"])
        try await store.preferences.update(for: "u") { $0.showStaleDataWarning = false }
        #expect(await lists.next() == [])
        try await store.close()
    }

    @Test(.verifies("CITY-6"))
    func `removing a city keeps the save and the outbox`() async throws {
        let bench = try await Bench()
        try await bench.store.cities.save("a", by: "u")
        try await bench.cache("a", units: 1, explicit: true)
        try await bench.store.cities.remove("a")
        #expect(bench.cached.isEmpty)
        #expect(bench.fileNames.isEmpty)
        #expect(bench.store.cities.saved(by: "u").current == ["a"])
        #expect(bench.store.outboxCount.current == 1)
        await #expect(throws: EventError.self) { try await bench.store.cities.remove("a") }
        await #expect(throws: EventError.self) { try await bench.store.cities.remove("") }
        try await bench.store.close()
    }

    @Test(.verifies("CITY-6"))
    func `removing a city removes its downloads in the same commit`() async throws {
        let bench = try await Bench()
        try await bench.cache("a")
        let job = try await bench.store.downloads.queue("a")
        let other = try await bench.store.downloads.queue("b")
        try await bench.store.cities.remove("a")
        #expect(bench.store.downloads.job(job.id).current == nil)
        #expect(bench.store.downloads.active.current.map(\.id) == [other.id])
        // The same for a city that is not cached yet.
        try await bench.store.cities.remove("b")
        #expect(bench.store.downloads.active.current.isEmpty)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-6", "CITY-8", "CITY-10"))
    func `a copy that is removed for the limit or its age removes its downloads`()
        async throws
    {
        let bench = try await Bench()
        let downloads = bench.store.downloads
        for city in ["old", "refreshed", "wanted"] { try await bench.cache(city) }
        let automatic = try await downloads.queue("old", isExplicit: false)
        let asked = try await downloads.queue("wanted")
        bench.clock.advance(by: .days(8))
        let report = try await bench.store.cities.cleanUp(for: "u")
        #expect(Set(report.outdated) == ["old", "refreshed", "wanted"])
        #expect(downloads.job(automatic.id).current == nil)
        // An unfinished explicit download stays, because it brings a new copy.
        #expect(downloads.active.current.map(\.id) == [asked.id])

        try await bench.limit(50)
        try await bench.cache("small", units: 30)
        let finished = try await downloads.queue("small")
        try await downloads.start(finished.id)
        try await downloads.fail(finished.id, "gone", numbers: .initial)
        try await bench.cache("next", units: 30)
        #expect(bench.cached == ["next"])
        #expect(downloads.job(finished.id).current == nil)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-12"))
    func `saved cities are queued automatically if the setting is on, and not twice`()
        async throws
    {
        let bench = try await Bench()
        let downloads = bench.store.downloads
        for city in ["a", "b", "c", "d"] { try await bench.store.cities.save(city, by: "u") }
        try await bench.store.cities.save("not-mine", by: "v")
        #expect(try await downloads.queueWanted(for: "u") == [])
        try await bench.store.preferences.update(for: "u") { $0.autoDownloadEnabled = true }
        try await bench.cache("a")
        try await bench.store.cities.unsave("d", by: "u")
        #expect(try await downloads.queueWanted(for: "u") == ["b", "c"])
        #expect(downloads.active.current.allSatisfy { !$0.isExplicit })
        #expect(try await downloads.queueWanted(for: "u") == [])
        // A failed job is not retried at once, and a removed city is not queued until it is saved again.
        let job = try #require(downloads.jobs(of: "b").current.first)
        try await downloads.start(job.id)
        try await downloads.fail(job.id, "no such city", numbers: .initial)
        try await bench.store.cities.remove("c")
        try await bench.store.cities.remove("a")
        #expect(try await downloads.queueWanted(for: "u") == [])
        bench.clock.advance(by: .days(8))
        try await downloads.cleanUp()
        try await bench.store.cities.save("c", by: "u")
        #expect(try await downloads.queueWanted(for: "u") == ["b", "c"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-14"))
    func `copies and removals win even if the clock was ahead before`() async throws {
        let bench = try await Bench()
        bench.clock.advance(by: .days(400))
        try await bench.store.cities.save("a", by: "u")
        try await bench.cache("a", units: 1)
        bench.clock.advance(by: .days(-400))
        let second = try await bench.cache("a", units: 2)
        #expect(second.version == 2)
        #expect(second.images.first?.size == 2 * Bench.unit)
        try await bench.store.preferences.update(for: "u") { $0.autoDownloadEnabled = true }
        try await bench.store.cities.remove("a")
        #expect(bench.cached.isEmpty)
        #expect(bench.fileNames.isEmpty)
        #expect(try await bench.store.downloads.queueWanted(for: "u") == [])
        try await bench.cache("a", units: 1)
        #expect(bench.cached == ["a"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-14"))
    func `a full disk does not prevent the user from freeing space`() async throws {
        let bench = try await Bench()
        try await bench.cache("a", units: 30)
        bench.files.setQuota(bench.files.usedBytes)
        // The log cannot grow any more once its preallocated space is used.
        await #expect(throws: (any Error).self) {
            for number in 0..<100_000 {
                try await bench.store.notes.add(
                    String(repeating: "\(number) ", count: 1_000), city: "a", by: "u")
            }
        }
        try await bench.store.cities.remove("a")
        #expect(bench.cached.isEmpty)
        #expect(bench.fileNames.isEmpty)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-12"))
    func `an automatic download that failed is tried again after a day, one of the user is not`()
        async throws
    {
        let bench = try await Bench()
        let store = bench.store
        try await store.preferences.update(for: "u") { $0.autoDownloadEnabled = true }
        var jobs: [String] = []
        for (city, isExplicit) in [("a", false), ("b", true)] {
            try await store.cities.save(city, by: "u")
            let job = try await store.downloads.queue(city, isExplicit: isExplicit)
            try await store.downloads.start(job.id)
            try await store.downloads.fail(job.id, "the device is full", numbers: .initial)
            jobs.append(job.id)
        }
        bench.clock.advance(by: .hours(23))
        #expect(try await store.downloads.queueWanted(for: "u") == [])
        bench.clock.advance(by: .hours(1))
        #expect(try await store.downloads.queueWanted(for: "u") == ["a"])
        #expect(store.downloads.jobs(.queued).current.map(\.id) == [jobs[0]])
        #expect(store.downloads.jobs(.failed).current.map(\.id) == [jobs[1]])
        try await store.close()
    }

    @Test(.verifies("CITY-10"))
    func `extreme numbers of days and versions from an import do no harm`() async throws {
        let bench = try await Bench()
        var changes = PreferencesUpdated.Changes()
        changes.pruneAfterDays = .max
        try await bench.store.append(PreferencesUpdated(userId: "u", changes: changes))
        try await bench.store.append(
            CityCached(
                cityId: "a", version: .max, isExplicitDownload: false,
                cityData: Bench.json("a"), images: []))
        bench.clock.advance(by: .days(91))
        #expect(try await bench.cache("a").version == .max)
        bench.clock.advance(by: .days(91))
        #expect(try await bench.store.cities.cleanUp(for: "u").outdated == ["a"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-8", "CITY-10"), arguments: [0, 1, 50 * Bench.unit - 1, 501 * Bench.unit])
    func `a limit or an age that no command accepts removes no city`(value: Int) async throws {
        let bench = try await Bench()
        try await bench.cache("a", units: 40)
        try await bench.cache("b", units: 40)
        var changes = PreferencesUpdated.Changes()
        changes.maxStorageLimit = value
        changes.pruneAfterDays = value == 1 ? 91 : value
        try await bench.store.append(PreferencesUpdated(userId: "u", changes: changes))
        bench.clock.advance(by: .days(89))
        let report = try await bench.store.cities.cleanUp(for: "u")
        #expect(report.outdated + report.evicted == [])
        // The greatest value that a command accepts holds.
        try await bench.cache("c", units: 421)
        #expect(bench.cached == ["c", "b"])
        bench.clock.advance(by: .days(91))
        #expect(try await bench.store.cities.cleanUp(for: "u").outdated == ["b", "c"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-13"))
    func `reading a city reads as much of a long log as of a short one`() async throws {
        var reads: [Int] = []
        for events in [4_000, 12_000] {
            let files = CountedFileSystem()
            let store = try await OfflineStore.open(
                at: URL(filePath: "/log"),
                environment: LogEnvironment(fileSystem: files, sleep: noTimers))
            try await store.cities.cache(json: Bench.json("a"), isExplicit: true, for: "u")
            for start in stride(from: 0, to: events, by: 50) {
                try await store.events.append(
                    contentsOf: (start..<start + 50).map { number in
                        try EventDraft(
                            NoteAdded(
                                noteId: "n\(number)", cityId: "a", content: "\(number)",
                                createdBy: "u"))
                    })
            }
            try await store.close()
            let again = try await OfflineStore.open(
                at: URL(filePath: "/log"),
                environment: LogEnvironment(fileSystem: files, sleep: noTimers))
            // The first lookup of an id indexes the live segment.
            _ = try await again.events.event(id: UUID())
            let before = files.bytesRead.withLock(\.self)
            _ = try await again.cities.read("a")
            reads.append(files.bytesRead.withLock(\.self) - before)
            try await again.close()
        }
        #expect(reads[0] > 0, "\(reads)")
        #expect(reads[1] <= reads[0], "\(reads)")
    }

    @Test(.verifies("CITY-7", "CITY-8"))
    func `copies above the limit are evicted in LRU order, explicit ones never`()
        async throws
    {
        let bench = try await Bench()
        try await bench.cache("asked", units: 30, explicit: true)
        for city in ["a", "b", "c"] { try await bench.cache(city, units: 20) }
        bench.clock.advance(by: .days(1))
        _ = try await bench.store.cities.read("a")
        try await bench.cache("d", units: 20)
        // 110 units and some text: b is the least recently accessed.
        #expect(bench.cached == ["d", "a", "c", "asked"])
        #expect(bench.fileNames.count == 4)
        #expect(bench.store.cities.evictionCandidates(1).current.map(\.cityId) == ["c"])
        try await bench.cache("e", units: 60)
        #expect(bench.cached == ["e", "asked"])
        #expect(bench.store.cities.storageUsed.current <= 100 * Bench.unit)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-9"))
    func `a city that does not fit next to the explicit ones is refused with its name`()
        async throws
    {
        let bench = try await Bench()
        try await bench.cache("asked", units: 70, explicit: true)
        try await bench.cache("other", units: 20)
        let before = bench.fileNames
        for explicit in [true, false] {
            await #expect {
                try await bench.cache("new", units: 40, explicit: explicit)
            } throws: {
                guard let error = $0 as? StorageLimitError else { return false }
                return error.limit == 100 * Bench.unit && error.explicitBytes > 70 * Bench.unit
                    && error.neededBytes > 40 * Bench.unit && "\(error)".contains("limit")
            }
        }
        #expect(bench.cached == ["other", "asked"])
        #expect(bench.fileNames == before)
        // The new copy replaces the old one, whose bytes do not count.
        try await bench.cache("asked", units: 90)
        #expect(bench.cached == ["asked"])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-10"))
    func `a clean-up removes outdated copies first, then copies above the limit`()
        async throws
    {
        let bench = try await Bench()
        try await bench.cache("asked", units: 51, explicit: true)
        try await bench.cache("old")
        bench.clock.advance(by: .days(4))
        try await bench.cache("big", units: 20)
        try await bench.cache("small", units: 1)
        bench.clock.advance(by: .days(3.5))
        let report = try await bench.store.cities.cleanUp(for: "u")
        #expect(report.outdated == ["old"])
        #expect(report.evicted == [])
        #expect(report.limit == nil)
        try await bench.limit(53)
        let second = try await bench.store.cities.cleanUp(for: "u")
        #expect(second.evicted == ["big"])
        #expect(second.limit == nil)
        #expect(second.files.files == 1)
        try await bench.limit(50)
        try await bench.store.preferences.update(for: "u") { $0.pruneAfterDays = 90 }
        let third = try await bench.store.cities.cleanUp(for: "u")
        #expect(third.evicted == ["small"])
        #expect(third.limit?.explicitBytes ?? 0 > 51 * Bench.unit)
        #expect(bench.cached == ["asked"])
        // A year later the explicit copy is still cached.
        bench.clock.advance(by: .days(365))
        #expect(try await bench.store.cities.cleanUp(for: "u").outdated == [])
        try await bench.store.close()
    }

    @Test(.verifies("CITY-11"))
    func `a copy of more than thirty days is stale, and the warning can be turned off`()
        async throws
    {
        let bench = try await Bench()
        try await bench.cache("a", explicit: true)
        bench.clock.advance(by: .days(30))
        #expect(await bench.store.cities.stale(for: "u").isEmpty)
        bench.clock.advance(by: .days(0.001))
        #expect(await bench.store.cities.stale(for: "u").map(\.cityId) == ["a"])
        try await bench.store.preferences.update(for: "u") { $0.showStaleDataWarning = false }
        #expect(await bench.store.cities.stale(for: "u").isEmpty)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-11"))
    func `on a device whose clock is a year ahead, a fresh copy is not stale`() async throws {
        let bench = try await Bench()
        bench.clock.advance(by: .days(365))
        await bench.store.events.setClockOffset(-365 * 86_400_000)
        try await bench.cache("a", explicit: true)
        #expect(await bench.store.cities.stale(for: "u").isEmpty)
        try await bench.store.close()
    }

    @Test(.verifies("CITY-8", "CITY-9", "CITY-10", "CITY-13"))
    func `the limit is kept whatever is cached, read, removed and cleaned up`() async throws {
        try await Property.check("storage ≤ limit; explicit copies stay", runs: 60) { choices in
            let bench = try await Bench()
            var asked: Set<String> = []
            for _ in 0..<choices.int(in: 1...25) {
                let city = "c\(choices.int(in: 0...9))"
                bench.clock.advance(by: .days(Double(choices.int(in: 0...3))))
                switch choices.int(in: 0...5) {
                case 0: _ = try await bench.store.cities.read(city)
                case 1:
                    if (try? await bench.store.cities.remove(city)) != nil { asked.remove(city) }
                case 2: _ = try await bench.store.cities.cleanUp(for: "u")
                default:
                    let explicit = choices.bool(oneIn: 4)
                    do {
                        try await bench.cache(
                            city, units: choices.int(in: 1...40), explicit: explicit)
                        if explicit { asked.insert(city) }
                    } catch is StorageLimitError {
                        try #require(!asked.isEmpty)
                    }
                }
                let cities = bench.store.cities.offlineCities.current
                try #require(asked.isSubset(of: cities.map(\.cityId)))
                try #require(cities.map(\.storageSize).reduce(0, +) <= 100 * Bench.unit)
                try #require(
                    bench.store.cities.storageUsed.current
                        == cities.map(\.storageSize).reduce(0, +))
                try #require(
                    cities.map(\.lastAccessedAt) == cities.map(\.lastAccessedAt).sorted(by: >))
                try #require(
                    bench.store.cities.evictionCandidates(99).current
                        == cities.reversed().filter { !$0.isExplicitDownload })
                try #require(bench.fileNames.count <= cities.count)
            }
            try await bench.store.close()
        }
    }
}

/// Counts the bytes that are read.
private final class CountedFileSystem: ForwardingFileSystem {
    let base: any FileSystem = InMemoryFileSystem()
    let bytesRead = Mutex(0)

    private final class Counted: ForwardingFile {
        let file: any File
        let owner: CountedFileSystem
        init(_ file: any File, _ owner: CountedFileSystem) {
            (self.file, self.owner) = (file, owner)
        }
        func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
            let bytes = try file.read(at: offset, count: count)
            owner.bytesRead.withLock { $0 += bytes.count }
            return bytes
        }
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        Counted(try base.open(path, mode), self)
    }
}
