// The commands on cached content: store, use, peek, read, remove. Spec/model/content.md.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private func openStore(
    _ files: InMemoryFileSystem = InMemoryFileSystem(),
    _ clock: VirtualClock = VirtualClock(milliseconds: 1_800_000_000_000)
) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"),
        environment: LogEnvironment(fileSystem: files, now: { clock.milliseconds }))
}

private func time(_ text: String) throws -> ZonedTime { try #require(ZonedTime(text)) }

private func page(_ path: String, _ content: String = "<p>text</p>") throws -> ContentPage {
    ContentPage(
        path: path, title: "Title", content: content,
        lastUpdate: try time("2023-11-20T14:06:57.863+01:00"))
}

private let update = "2019-08-12T00:03:19.457Z"

extension OfflineStore {
    @discardableResult
    fileprivate func put(
        _ city: String, _ pages: [ContentPage], _ resources: [ContentResource]? = nil,
        at text: String = update
    ) async throws -> ContentChanges {
        try await content.store(
            city: city, language: "en", pages: pages, resources: resources,
            lastUpdate: try time(text))
    }

    /// The cities with stored pages.
    fileprivate var cached: [String] { view(PagesView.self).cityCodes }

    fileprivate func types() async throws -> [String] {
        var types: [String] = []
        for position in 1...max(1, await events.lastDurable.rawValue) {
            if let event = try await events.event(at: Position(position)) {
                types.append(String(event.type.dropFirst("daybook.".count)))
            }
        }
        return types
    }
}

@Suite struct ContentCommandTests {
    // MARK: Storing

    @Test(.verifies("CONT-10"))
    func `only changes are recorded, missing pages and files are removed, and the time comes last`()
        async throws
    {
        let store = try await openStore()
        var changes = try await store.put("augsburg", [page("/a/"), page("/b/"), page("/c/")])
        #expect(changes.pagesStored == 3)
        #expect(changes.isUpdated)
        #expect(changes.events == 4)
        #expect(try await store.put("augsburg", [page("/c/"), page("/a/"), page("/b/")]).isEmpty)
        #expect(await store.events.lastDurable == Position(4))
        changes = try await store.put(
            "augsburg", [page("/a/"), page("/b/", "new")], at: "2020-01-01T00:00:00Z")
        #expect(
            try await store.types()
                == [
                    "page.stored", "page.stored", "page.stored", "content.updated", "page.stored",
                    "page.removed", "content.updated",
                ])
        #expect(changes.pagesStored == 1)
        #expect(changes.pagesRemoved == 1)
        let content = store.content
        #expect(
            content.lastUpdate(of: "augsburg", language: "en").current
                == (try time("2020-01-01T00:00:00Z")))
        #expect(
            content.pages(.category, city: "augsburg", language: "en").current.map(\.path)
                == ["/a/", "/b/"])
        #expect(
            try await content.page("/b/", city: "augsburg", language: "en")?.content == "new")
        #expect(try await content.page("/c/", city: "augsburg", language: "en") == nil)
        // Storing another language does not change this one.
        try await content.store(
            city: "augsburg", language: "de", pages: [], lastUpdate: try time(update))
        #expect(store.view(PagesView.self).languages(of: "augsburg") == ["en"])
        try await store.close()
    }

    @Test(.verifies("CONT-12")) func `unchanged lists are not recorded again`()
        async throws
    {
        let store = try await openStore()
        let cities = [ListedCity(name: "Augsburg", code: "augsburg", sortingName: "Augsburg")]
        let languages = [ListedLanguage(code: "de", name: "Deutsch"), ListedLanguage(code: "en")]
        for _ in 0..<3 {
            try await store.content.list(cities)
            try await store.content.list(languages, of: "augsburg")
        }
        #expect(await store.events.lastDurable == Position(2))
        try await store.content.list(languages.reversed(), of: "augsburg")
        #expect(await store.events.lastDurable == Position(3))
        #expect(store.content.cities.current == cities)
        #expect(store.content.liveCities.current == cities)
        #expect(store.content.languages(of: "augsburg").current == languages.reversed())
        let doubled = [languages[0], languages[0]]
        #expect(try await store.content.list(doubled, of: "augsburg").map(\.index) == [1])
        #expect(store.content.languages(of: "augsburg").current == [languages[0]])
        await #expect(throws: EventError.self) {
            try await store.content.list([ListedLanguage(code: "")], of: "augsburg")
        }
        try await store.close()
    }

    @Test(.verifies("CONT-11"))
    func `of 200 files with one bad address 199 are stored, and the one is reported each time`()
        async throws
    {
        let store = try await openStore()
        let resources = try (0..<200).map { number in
            ContentResource(
                path: "/a/", url: "https://x.example/\(number == 7 ? "a b" : "\(number)").png",
                lastUpdate: try time(update), content: .bytes([UInt8(number)]))
        }
        for stored in [199, 0] {
            let changes = try await store.put("augsburg", [page("/a/")], resources)
            #expect(changes.resourcesStored == stored)
            #expect(changes.leftOut.map(\.url) == ["https://x.example/a b.png"])
            #expect(changes.leftOut.first?.reason.contains("not an absolute URL") == true)
        }
        let lastUpdate = store.content.lastUpdate(of: "augsburg", language: "en").current
        #expect(lastUpdate?.text == update)
        try await store.close()
    }

    @Test(.verifies("CONT-11"))
    func `a page or file that cannot be recorded is left out, and its stored version stays`()
        async throws
    {
        let store = try await openStore()
        let good = try page("/a/")
        var place = try page("/x/")
        try await store.put("augsburg", [good, place, page("/b/")])
        place.location = .init(latitude: .infinity)
        let resource = ContentResource(
            path: "/a/", url: "https://x.example/1.png", lastUpdate: try time(update),
            content: .bytes([1]))
        var notStored = resource
        notStored.url = "https://x.example/2.png"
        notStored.content = .stored
        var missing = resource
        missing.url = "https://x.example/3.png"
        missing.content = .file(URL(filePath: "/none"))
        let changes = try await store.put(
            "augsburg",
            [
                good, good, page(""), place,
                page("/b/", String(repeating: "x", count: 1_048_576)), page("/new/"),
            ], [resource, resource, notStored, missing])
        #expect(
            changes.leftOut.map { $0.url ?? $0.path } == [
                "/a/", "", "/x/", "/b/", resource.url, notStored.url, missing.url,
            ])
        #expect(changes.pagesStored == 1)
        #expect(changes.pagesRemoved == 0)
        #expect(changes.resourcesStored == 1)
        let content = store.content
        #expect(
            content.pages(.category, city: "augsburg", language: "en").current.map(\.path)
                == ["/a/", "/b/", "/new/", "/x/"])
        let last = await store.events.lastDurable
        await #expect(throws: EventError.self) { try await store.put("", [good]) }
        #expect(await store.events.lastDurable == last)
        try await store.close()
    }

    @Test(.verifies("CONT-11"))
    func `a crash in the middle keeps the previous time, and storing again completes the update`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        try await store.put("augsburg", [page("/0/")])
        // Random, so that compression does not keep it from filling the disk.
        var random = SeededRandom(seed: 7)
        let pages = try (0..<12).map { number in
            let bytes = (0..<400_000).map { _ in
                "0123456789abcdefghijklmnopqrstuv".utf8.randomElement(using: &random) ?? 0
            }
            return try page("/\(number)/", String(decoding: bytes, as: UTF8.self))
        }
        // The disk has space for some of the commits.
        files.setQuota(files.usedBytes + 2_500_000)
        let given = store
        await #expect(throws: LogError.self) {
            try await given.put("augsburg", pages, at: "2020-01-01T00:00:00Z")
        }
        try? await store.close()
        files.setQuota(nil)
        store = try await openStore(files)
        #expect(
            store.content.lastUpdate(of: "augsburg", language: "en").current == (try time(update)))
        let there = store.content.pages(.category, city: "augsburg", language: "en").current.count
        #expect((2..<12).contains(there))
        let rest = try await store.put("augsburg", pages, at: "2020-01-01T00:00:00Z")
        #expect(rest.pagesStored == 12 - there)
        #expect(rest.pagesRemoved == 0)
        #expect(rest.isUpdated)
        for page in pages {
            #expect(
                try await store.content.page(page.path, city: "augsburg", language: "en") == page)
        }
        try await store.close()
    }

    @Test(.verifies("CONT-11"))
    func `content that is removed during storing is stored again before the time of the update`()
        async throws
    {
        let pages = try (0..<5).map {
            try page("/\($0)/", String(repeating: "\($0)", count: 600_000))
        }
        // The time of a removal depends on the scheduler: two must be between two commits.
        var between = 0
        for attempt in 0..<20 where between < 2 {
            let store = try await openStore()
            let storing = Task {
                try await store.put("augsburg", pages, at: "2020-01-01T00:00:00Z")
            }
            let wanted = 1 + attempt % 2
            while store.view(PagesView.self).languages(of: "augsburg").isEmpty
                || store.content.pages(.category, city: "augsburg", language: "en").current.count
                    < wanted
            {
                await Task.yield()
            }
            try await store.content.remove("augsburg")
            let changes = try await storing.value
            let types = try await store.types()
            let removal = try #require(types.firstIndex(of: "content.removed"))
            if types.firstIndex(of: "content.updated").map({ $0 > removal }) ?? true {
                between += 1
                #expect(changes.isUpdated)
                #expect(types.last == "content.updated")
                #expect(
                    store.content.pages(.category, city: "augsburg", language: "en").current.count
                        == pages.count)
                #expect(try await store.put("augsburg", pages, at: "2020-01-01T00:00:00Z").isEmpty)
            }
            try await store.close()
        }
        #expect(between == 2)
    }

    @Test(.verifies("CONT-11"))
    func `two concurrent stores of one language leave the content of one of them`() async throws {
        let texts = ["a", "b"]
        let given = try texts.map { text in
            try (0..<3).map {
                try page("/\($0)/\($0 == 0 ? text : "")", String(repeating: text, count: 600_000))
            }
        }
        let store = try await openStore()
        let results = await withTaskGroup(of: Result<ContentChanges, any Error>.self) { group in
            for (number, pages) in given.enumerated() {
                group.addTask {
                    do {
                        return .success(
                            try await store.put(
                                "augsburg", pages, at: "202\(number)-01-01T00:00:00Z"))
                    } catch { return .failure(error) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for case .failure(let error) in results {
            #expect((error as? EventError)?.code == .refused, "\(error)")
        }
        if let time = store.content.lastUpdate(of: "augsburg", language: "en").current {
            let number = time.text.hasPrefix("2020") ? 0 : 1
            #expect(
                Set(
                    store.content.pages(.category, city: "augsburg", language: "en").current
                        .map(\.path)) == Set(given[number].map(\.path)))
            #expect(
                try await store.content.page("/2/", city: "augsburg", language: "en")
                    == given[number][2])
        }
        try await store.close()
    }

    @Test(.verifies("CONT-17"))
    func `events that were recorded while the clock was ahead are replaced and removed as well`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await openStore(InMemoryFileSystem(), clock)
        let content = store.content
        func resource(_ byte: UInt8) throws -> [ContentResource] {
            [
                ContentResource(
                    path: "/a/", url: "https://x.example/1.png", lastUpdate: try time(update),
                    content: .bytes([byte]))
            ]
        }
        clock.advance(by: .minutes(24 * 60))
        try await content.list([ListedLanguage(code: "de")], of: "a")
        try await content.list([ListedCity(name: "A", code: "a", sortingName: "A")])
        for city in ["a", "b", "c"] {
            try await store.put(city, [page("/a/", "ahead"), page("/b/")], resource(1))
            try await content.use(city)
        }
        try await store.put("gone", [page("/a/")])
        try await content.remove("gone")
        clock.advance(by: .minutes(-24 * 60))
        // Every command takes effect, and its repetition records nothing.
        let now = Timestamp(milliseconds: clock.milliseconds)
        for _ in 0..<2 {
            try await content.list([ListedLanguage(code: "en")], of: "a")
            try await content.list([ListedCity(name: "B", code: "b", sortingName: "B")])
            try await store.put("a", [page("/a/", "back")], resource(2), at: "2020-01-01T00:00:00Z")
            try await content.use("a")
        }
        try await store.events.flush()
        var last = await store.events.lastDurable
        #expect(
            try await store.put("a", [page("/a/", "back")], resource(2), at: "2020-01-01T00:00:00Z")
                .isEmpty)
        try await content.use("a")
        try await store.events.flush()
        #expect(await store.events.lastDurable == last)
        for _ in 0..<2 { try await store.put("gone", [page("/a/", "back")], resource(2)) }
        #expect(content.languages(of: "a").current?.map(\.code) == ["en"])
        #expect(content.cities.current?.map(\.code) == ["b"])
        #expect(try await content.page("/a/", city: "a", language: "en")?.content == "back")
        #expect(try await content.page("/b/", city: "a", language: "en") == nil)
        #expect(
            content.lastUpdate(of: "a", language: "en").current
                == (try time("2020-01-01T00:00:00Z")))
        #expect(
            content.resources(of: "/a/", city: "a", language: "en").current.map(\.file)
                == [FileID(of: [2])])
        #expect(content.lastUsage(of: "a").current?.moment == now)
        #expect(try await content.page("/a/", city: "gone", language: "en")?.content == "back")
        // The use of a fourth city evicts cities for good.
        try await store.put("d", [page("/d/")])
        #expect(try await content.use("d") == ["gone", "b"])
        #expect(store.cached == ["a", "c", "d"])
        try await store.events.flush()
        last = await store.events.lastDurable
        #expect(try await content.use("d") == [])
        #expect(await store.events.lastDurable == last)
        try await content.remove("c")
        #expect(store.cached == ["a", "d"])
        try await store.close()
    }

    // MARK: Reading

    @Test(.verifies("CONT-5"))
    func `a page is read as it was stored, also before it is on disk and after compaction`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        var full = try page("/full/")
        full.kind = .event
        full.thumbnail = ""
        full.availableLanguages = [.init(language: "de", path: "/voll/")]
        full.parentPath = "/"
        full.children = ["/full/1/"]
        full.order = -2
        full.hash = "93b8"
        full.excerpt = "e"
        full.date = .init(start: try time(update), end: try time(update), isAllDay: true)
        full.location = .init(address: "a", town: "t", postcode: "p", latitude: 48.4, longitude: 0)
        let waiting = try EventDraft(
            PageStored(city: "augsburg", language: "en", page: try page("/full/")))
        try await store.events.append(contentsOf: [waiting], durability: .relaxed)
        #expect(
            try await store.content.page("/full/", city: "augsburg", language: "en")
                == page("/full/"))
        try await store.put("augsburg", [full])
        try store.events.log.roll()
        #expect(try await store.compact().removed == 1)
        #expect(try await store.content.page("/full/", city: "augsburg", language: "en") == full)
        try await store.close()
        store = try await openStore(files)
        #expect(try await store.content.page("/full/", city: "augsburg", language: "en") == full)
        #expect(
            store.content.storedPage("/full/", city: "augsburg", language: "en").current?.start
                == (try time(update)).moment)
        #expect(try await store.content.page("/full", city: "augsburg", language: "en") == nil)
        #expect(try await store.content.page("/full/", city: "augsburg", language: "de") == nil)
        try await store.close()
    }

    @Test(.verifies("CONT-8"))
    func `queries read from memory; only a page's content is read from the disk`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let pages = try (0..<300).map { try page("/\($0)/", String(repeating: "x", count: 500)) }
        try await store.put("augsburg", pages)
        try await store.close()
        store = try await openStore(files)
        let reads = Mutex(0)
        files.failing { operation, _ in
            if operation == "read" { reads.withLock { $0 += 1 } }
            return nil
        }
        let content = store.content
        #expect(
            content.pages(.category, city: "augsburg", language: "en").current.count == 300)
        #expect(content.children(of: "/", city: "augsburg", language: "en").current.isEmpty)
        #expect(content.storedPage("/7/", city: "augsburg", language: "en").current != nil)
        #expect(content.resources(of: "/7/", city: "augsburg", language: "en").current.isEmpty)
        #expect(content.lastUsage(of: "augsburg").current == nil)
        #expect(reads.withLock { $0 } == 0)
        #expect(try await content.page("/7/", city: "augsburg", language: "en") == pages[7])
        #expect(reads.withLock { $0 } > 0)
        files.failing(nil)
        try await store.close()
    }

    // MARK: Using and peeking

    @Test(.verifies("CONT-13"))
    func `the use of a city all day hardly grows the log`() async throws {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await openStore(InMemoryFileSystem(), clock)
        for _ in 0..<60 {
            for _ in 0..<20 { try await store.content.use("augsburg") }
            clock.advance(by: .minutes(1))
        }
        try await store.events.flush()
        #expect(await store.events.lastDurable == Position(12))
        #expect(
            store.content.lastUsage(of: "augsburg").current?.moment
                == Timestamp(milliseconds: 1_800_000_000_000 + 55 * 60_000))
        // The clock was set back: a use at the earlier time becomes the last one, and is recorded once.
        clock.advance(by: .minutes(-1_000))
        for _ in 0..<5 { try await store.content.use("augsburg") }
        try await store.events.flush()
        #expect(await store.events.lastDurable == Position(13))
        #expect(
            store.content.lastUsage(of: "augsburg").current?.moment
                == Timestamp(milliseconds: clock.milliseconds))
        await #expect(throws: EventError.self) { try await store.content.use("") }
        try await store.close()
    }

    @Test(.verifies("CONT-14"))
    func `three cities are kept; the least recently used one is evicted, with its files`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await openStore(InMemoryFileSystem(), clock)
        for city in ["a", "b", "c"] {
            #expect(try await store.content.use(city) == [])
            let resource = ContentResource(
                path: "/\(city)/", url: "https://x.example/\(city).png",
                lastUpdate: try time(update), content: .bytes(Array(city.utf8)))
            try await store.put(city, [page("/\(city)/")], [resource])
            clock.advance(by: .minutes(10))
        }
        #expect(try await store.content.use("a") == [])
        clock.advance(by: .minutes(10))
        let files = store.files
        #expect(try await files.read(FileID(of: Array("b".utf8))) == Array("b".utf8))
        // A city that cannot be fetched now has no content, and takes no place.
        for city in ["d", "e", "f"] { #expect(try await store.content.use(city) == []) }
        #expect(store.cached == ["a", "b", "c"])
        #expect(try await store.put("d", [page("/d/")]).evicted == ["b"])
        #expect(store.cached == ["a", "c", "d"])
        #expect(try await store.content.use("d") == [])
        await #expect(throws: FileStoreError.self) {
            try await files.read(FileID(of: Array("b".utf8)))
        }
        #expect(store.content.lastUsage(of: "b").current == nil)
        #expect(try await files.read(FileID(of: Array("a".utf8))) == Array("a".utf8))
        // The eviction is recorded, not only in memory.
        #expect(try await store.types().last == "content.removed")
        try await store.close()
    }

    @Test(.verifies("CONT-14"))
    func `what cannot be fetched now is not evicted; the next use with a network evicts`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await openStore(InMemoryFileSystem(), clock)
        for city in ["a", "b", "c", "d"] { try await store.put(city, [page("/\(city)/")]) }
        for city in ["a", "b", "c", "d"] {
            #expect(try await store.content.use(city, on: .none) == [])
            clock.advance(by: .minutes(10))
        }
        #expect(store.cached == ["a", "b", "c", "d"])
        #expect(try await store.content.use("d", on: .cellular) == ["a"])
        try await store.close()
    }

    @Test(.verifies("CONT-39"))
    func `of a list only what cannot be stored is left out, with its location`() async throws {
        let store = try await openStore()
        func city(_ code: String, _ name: String = "name") -> ListedCity {
            ListedCity(name: name, code: code, sortingName: "s")
        }
        var bad = city("c")
        bad.properties = Array("[]".utf8)
        let faults = try await store.content.list(
            [city("a"), city("b", ""), city("a"), bad, city("d")])
        #expect(faults.map(\.index) == [1, 2, 3])
        #expect(faults[0].reason.contains("cities[1].name"))
        #expect(faults[1].reason == "cities[2]: a occurs twice")
        #expect(store.content.cities.current?.map(\.code) == ["a", "d"])
        // A list of which nothing remains replaces nothing.
        await #expect(throws: EventError.self) { try await store.content.list([city("")]) }
        #expect(store.content.cities.current?.count == 2)
        let languages = [ListedLanguage(code: "de"), ListedLanguage(code: "")]
        #expect(try await store.content.list(languages, of: "a").map(\.index) == [1])
        #expect(store.content.languages(of: "a").current?.map(\.code) == ["de"])
        let spanish = LanguageCombination(learn: "es", display: "de")
        let lesson = ListedLesson(id: "1")
        let courses = [
            ListedCourse(id: "a", lessons: [lesson]),
            ListedCourse(id: "b", lessons: [lesson, lesson]),
        ]
        #expect(try await store.learning.storeCourses(courses, of: spanish).map(\.id) == ["b"])
        #expect(store.learning.courses(of: spanish).current == [courses[0]])
        let items = try [#"{"id":"x"}"#, #"{"id":"x","n":2}"#, #"{"id":"y"}"#].map {
            try VocabularyItem(json: Array($0.utf8))
        }
        #expect(try await store.learning.cacheVocabulary(items, of: "u", in: spanish) == 2)
        try await store.close()
    }

    @Test(.verifies("CONT-15"))
    func `peeking evicts nothing and is no use, and a peeked city is evicted first`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await openStore(InMemoryFileSystem(), clock)
        for city in ["a", "b", "c"] {
            try await store.put(city, [page("/\(city)/")])
            try await store.content.use(city)
            clock.advance(by: .minutes(10))
        }
        for city in ["peeked-2", "peeked-1"] { try await store.put(city, [page("/p/")]) }
        #expect(store.cached == ["a", "b", "c", "peeked-1", "peeked-2"])
        #expect(try await store.content.page("/p/", city: "peeked-1", language: "en") != nil)
        #expect(try await store.content.use("b") == ["peeked-1", "peeked-2"])
        #expect(store.cached == ["a", "b", "c"])
        // A city that is stored and then used is kept.
        try await store.put("d", [page("/d/")])
        #expect(try await store.content.use("d") == ["a"])
        #expect(store.cached == ["b", "c", "d"])
        try await store.close()
    }

    @Test(.verifies("CONT-16"))
    func `saved and downloaded cities are a separate cache`() async throws {
        let store = try await openStore()
        for city in ["a", "b", "c", "d"] {
            try await store.cities.save(city, by: "u")
            try await store.put(city, [page("/\(city)/")])
            try await store.content.use(city)
        }
        #expect(store.cities.saved(by: "u").current == ["a", "b", "c", "d"])
        #expect(store.cached.count == 3)
        try await store.cities.unsave("d", by: "u")
        #expect(store.cached.contains("d"))
        try await store.close()
    }

    @Test(.verifies("CONT-14")) func `a city can be removed, once`() async throws {
        let store = try await openStore()
        try await store.put("a", [page("/a/")])
        try await store.content.remove("a")
        #expect(store.cached == [])
        await #expect(throws: EventError.self) { try await store.content.remove("a") }
        try await store.put("a", [page("/a/")])
        #expect(store.cached == ["a"])
        try await store.close()
    }

    // MARK: Files

    @Test(.verifies("CONT-22"))
    func `files are given as bytes, downloads or stored, and are deleted when no page names them`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        files["/download"] = [1, 2, 3]
        func resource(_ url: String, _ content: ContentResource.Content) throws -> ContentResource {
            ContentResource(
                path: "/a/", url: url, lastUpdate: try time(update), hash: "h", content: content)
        }
        let pages = [try page("/a/")]
        var changes = try await store.put(
            "augsburg", pages,
            [
                resource("https://x.example/1.png", .bytes([9])),
                resource("https://x.example/2.png", .file(URL(filePath: "/download"))),
            ])
        #expect(changes.resourcesStored == 2)
        #expect(files["/download"] == nil)
        func stored() -> [CachedResource] {
            store.content.resources(of: "/a/", city: "augsburg", language: "en").current
        }
        #expect(stored().map(\.size) == [1, 3])
        #expect(try await store.files.read(stored()[1].file) == [1, 2, 3])
        // Without `resources` the files stay. The same resources again record nothing.
        #expect(try await store.put("augsburg", pages).isEmpty)
        #expect(
            try await store.put(
                "augsburg", pages,
                [
                    resource("https://x.example/1.png", .bytes([9])),
                    resource("https://x.example/2.png", .stored),
                ]
            ).isEmpty)
        changes = try await store.put(
            "augsburg", pages, [resource("https://x.example/1.png", .stored)])
        #expect(changes.resourcesRemoved == 1)
        #expect(changes.events == 1)
        try await store.files.collect()
        #expect(files.image.keys.filter { $0.hasPrefix("/log/files/") }.count == 1)
        #expect(try await store.files.read(stored()[0].file) == [9])
        try await store.close()
    }

    @Test(.verifies("CONT-22"))
    func `a file given as stored is left out if it does not exist, and kept if it does`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        var resource = ContentResource(
            path: "/a/", url: "https://x.example/1.png", lastUpdate: try time(update),
            content: .bytes([1]))
        try await store.put("augsburg", [page("/a/")], [resource])
        resource.content = .stored
        resource.hash = "other"
        let (path, good) = (store.files.path(of: FileID(of: [1])), files.image)
        for damage in [nil, [9]] as [[UInt8]?] {
            files[path] = damage
            let changes = try await store.put("augsburg", [page("/a/")], [resource])
            #expect(changes.leftOut.map(\.url) == [resource.url])
            #expect(changes.isEmpty)
        }
        files[path] = good[path]
        #expect(try await store.put("augsburg", [page("/a/")], [resource]).resourcesStored == 1)
        try await store.files.collect()
        #expect(try await store.files.read(FileID(of: [1])) == [1])
        try await store.close()
    }

    @Test(.verifies("CONT-22"))
    func `a replaced file is deleted once the replacement is recorded`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        func put(_ contents: [UInt8]...) async throws {
            let resources = try contents.enumerated().map { number, bytes in
                ContentResource(
                    path: "/a/", url: "https://x.example/\(number).png",
                    lastUpdate: try time(update), content: .bytes(bytes))
            }
            try await store.put("augsburg", [page("/a/")], resources)
        }
        func there() -> Int { files.image.keys.count { $0.hasPrefix("/log/files/") } }
        try await put([1], [2])
        try await put([3], [2])
        #expect(there() == 2)
        try await put([3])
        #expect(there() == 1)
        try await put()
        #expect(there() == 0)
        try await store.close()
    }

    @Test(
        .verifies("CONT-20"),
        arguments: [
            (
                "/ahaus/en/", "https://cms.example/wp-content/2017/11/calendar159-150x150.png",
                "7294a3eba1c2c73331ec85a3cf1cc448", ".png"
            ),
            ("", "http://x.example/a", "d41d8cd98f00b204e9800998ecf8427e", ""),
            (
                "a", "http://x.example/a.tar.GZ?b=/c.png#d.e", "0cc175b9c0f1b6a831c399e269772661",
                ".GZ"
            ),
            ("abc", "ftp://x.example/a.b/c", "900150983cd24fb0d6963f7d28e17f72", ""),
            ("abc", "https://x.example", "900150983cd24fb0d6963f7d28e17f72", ""),
            ("abc", "https://x.example/a.", "900150983cd24fb0d6963f7d28e17f72", ""),
            ("abc", "https://x.example/.%2e%2e", "900150983cd24fb0d6963f7d28e17f72", ""),
            (
                "abc", "https://x.example/a.12345678901234567", "900150983cd24fb0d6963f7d28e17f72",
                ""
            ),
            ("abc", "https://x.example/\u{E9}.jpg", "900150983cd24fb0d6963f7d28e17f72", ".jpg"),
        ])
    func `a resource is named by its page and its URL`(
        path: String, url: String, folder: String, ending: String
    ) throws {
        let name = try ResourceName(path: path, url: url)
        #expect(name.folder == folder)
        #expect(name.file.hasSuffix(ending))
        #expect(name.file.count == 32 + ending.count)
        #expect(name.description == "\(name.folder)/\(name.file)")
        // MD5 of the URL as it is written.
        if url == "http://x.example/a" {
            #expect(name.file == "acb70a7ee092bb70185fee7492eab5dc")
        }
    }

    @Test(
        .verifies("CONT-21"),
        arguments: [
            "", "a.png", "/a.png", "//x.example/a.png", "https:", "https://", "https:///a.png",
            "://x.example", "1s://x.example", "https:/x.example/a", "https://x.example/a b",
            "https://x.example/a\n", "https://x.example/\u{0}", "https://x.example/<a>",
            "https://?a", "https://-/a", "http://:80/a", "http://user@/x", "http://user:pw@:80/x",
            "http://a@b@/x",
        ])
    func `a URL that is not absolute is an error`(url: String) throws {
        #expect { try ResourceName(path: "/a/", url: url) } throws: {
            ($0 as? EventError)?.code == .invalidData
        }
    }
}
