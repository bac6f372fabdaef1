// The commands for lessons, review sessions, courses and vocabulary. Spec/model/learning.md.

import DaybookTestKit
import Foundation
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

private let content = Array(#"{"steps":[{"say":"hola"}],"x":1.50}"#.utf8)
private let sound = LearningFileContent(url: "https://x.example/hola.mp3", content: [1, 2, 3])

extension OfflineStore {
    fileprivate func fileNames(_ files: InMemoryFileSystem) -> [String] {
        ((try? files.list(self.files.directory)) ?? []).sorted()
    }
}

@Suite struct LearningCommandTests {
    @Test(.verifies("LRN-2", "LRN-5"))
    func `a lesson is stored with its files, listed, and read again after reopening`() async throws
    {
        let files = InMemoryFileSystem()
        var store = try await openStore(files)
        let stored = try await store.learning.storeLesson(
            "l", course: "c", content: content, files: [sound], isExplicit: true)
        #expect(stored.material.size == content.count + 3)
        #expect(stored.material.isExplicit)
        #expect(store.learning.isAvailable("l", course: "c").current)
        #expect(!store.learning.isAvailable("l", course: "d").current)
        for reopens in [false, true] {
            if reopens {
                try await store.events.checkpoint()
                try await store.close()
                store = try await openStore(files)
            }
            #expect(store.learning.storedLessons.current == [stored])
            let material = try #require(try await store.learning.readLesson("l", course: "c"))
            #expect(material.content == content)
            #expect(material.isExplicit)
            #expect(material.files.map(\.url) == [sound.url])
            #expect(try await store.files.read(material.files[0].file) == sound.content)
        }
        #expect(try await store.learning.readLesson("m", course: "c") == nil)
    }

    @Test(.verifies("LRN-10", "LRN-11"))
    func `a requested lesson remains explicit, and unreferenced files are deleted`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        let learning = store.learning
        try await learning.storeLesson(
            "l", course: "c", content: content, files: [sound], isExplicit: true)
        let other = LearningFileContent(url: sound.url, content: [4])
        let again = try await learning.storeLesson(
            "l", course: "c", content: content, files: [other], isExplicit: false)
        #expect(again.material.isExplicit)
        #expect(again.material.size == content.count + 1)
        #expect(store.fileNames(files) == [FileID(of: [4]).description])
        try await learning.removeLesson("l", course: "c")
        #expect(store.fileNames(files).isEmpty)
        #expect(learning.storedLessons.current.isEmpty)
        await #expect(throws: EventError.self) {
            try await learning.removeLesson("l", course: "c")
        }
    }

    @Test(.verifies("LRN-2"))
    func `a refused command changes nothing, files included`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        let learning = store.learning
        try await learning.storeReview(
            "r", of: "u", in: spanish, order: 0, content: content, files: [sound],
            isExplicit: false)
        let before = (store.fileNames(files), await store.events.lastDurable)
        let other = LearningFileContent(url: "https://x.example/2", content: [9])
        func refused(
            _ id: String, order: Int = 1, _ content: [UInt8], _ given: [LearningFileContent]
        ) async {
            await #expect(throws: EventError.self) {
                try await learning.storeReview(
                    id, of: "u", in: spanish, order: order, content: content, files: given,
                    isExplicit: false)
            }
            #expect(store.fileNames(files) == before.0)
        }
        await refused("", content, [other])
        await refused("s", Array("[]".utf8), [other])
        await refused("s", Array("{".utf8), [other])
        // Texts that would add members to the event.
        await refused("s", Array(#"{},"x":{}"#.utf8), [other])
        await refused("s", order: -1, content, [other])
        await refused("s", content, [other, other])
        let long = String(repeating: "x", count: 1_048_576)
        await refused("s", Array(#"{"a":"\#(long)"}"#.utf8), [other])
        #expect(await store.events.lastDurable == before.1)
        #expect(learning.reviews(of: "u").current.map(\.reviewId) == ["r"])
    }

    @Test(.verifies("LRN-2"))
    func `a content cannot add members to the event`() async throws {
        let store = try await openStore()
        let learning = store.learning
        let bytes = Array(#"{},"courseTitle":{}"#.utf8)
        await #expect(throws: EventError.self) {
            try await learning.storeUser("u", info: bytes)
        }
        await #expect(throws: EventError.self) {
            try await learning.storeLesson("l", course: "c", content: bytes, isExplicit: false)
        }
        await #expect(throws: EventError.self) {
            try await learning.storeReview(
                "r", of: "u", in: spanish, order: 0, content: bytes, isExplicit: false)
        }
        #expect(throws: EventError.self) {
            try VocabularyItem(json: Array(#"{"id":"a"},{"id":"b"}"#.utf8))
        }
        #expect(await store.events.lastDurable == .zero)
    }

    @Test(.verifies("LRN-6"))
    func `review sessions are kept for each user and language, and removed one by one`()
        async throws
    {
        let store = try await openStore()
        let learning = store.learning
        for (id, user, combination, order) in [
            ("b", "u", spanish, 1), ("a", "u", spanish, 0), ("a", "v", spanish, 0),
            ("f", "u", french, 0),
        ] {
            try await learning.storeReview(
                id, of: user, in: combination, course: "c", order: order, content: content,
                isExplicit: false)
        }
        #expect(learning.reviews(of: "u", in: spanish).current.map(\.reviewId) == ["a", "b"])
        #expect(try await learning.readReview("a", of: "v")?.content == content)
        try await learning.removeReview("a", of: "u")
        #expect(learning.reviews(of: "u").current.map(\.reviewId) == ["f", "b"])
        #expect(learning.reviews(of: "v").current.map(\.courseId) == ["c"])
        await #expect(throws: EventError.self) { try await learning.removeReview("a", of: "u") }
    }

    @Test(.verifies("LRN-3", "LRN-8", "LRN-12"))
    func `unchanged users, combinations and courses are not recorded again`() async throws {
        let store = try await openStore()
        let learning = store.learning
        let courses = [ListedCourse(id: "c", title: "A", lessons: [ListedLesson(id: "l")])]
        for round in 0...1 {
            try await learning.storeUser("u", info: Array(#"{"name":"Ada"}"#.utf8))
            try await learning.selectCombination(spanish, for: "u")
            try await learning.storeCourses(courses, of: spanish)
            #expect(await store.events.lastDurable == Position(3), "round \(round)")
        }
        #expect(try await learning.user("u")?.info == Array(#"{"name":"Ada"}"#.utf8))
        #expect(try await learning.user("v") == nil)
        #expect(learning.combination(of: "u").current == spanish)
        #expect(learning.courses(of: spanish).current == courses)
        try await learning.selectCombination(french, for: "u")
        #expect(learning.combination(of: "u").current == french)
        #expect(await store.events.lastDurable == Position(4))
        await #expect(throws: EventError.self) { try await learning.storeUser("") }
        await #expect(throws: EventError.self) {
            try await learning.storeUser("u", info: Array("7".utf8))
        }
    }

    @Test(.verifies("LRN-7"))
    func `the first 200 items of a vocabulary are cached, in the given order`() async throws {
        let store = try await openStore()
        let learning = store.learning
        let items = try (0..<250).map {
            try VocabularyItem(json: Array(#"{"id":"\#($0)","t":"café"}"#.utf8))
        }
        #expect(try await learning.vocabulary(of: "u", in: spanish) == nil)
        #expect(learning.vocabularyCount(of: "u", in: spanish).current == nil)
        #expect(try await learning.cacheVocabulary(items, of: "u", in: spanish) == 200)
        #expect(try await learning.cacheVocabulary(items, of: "u", in: spanish) == 200)
        #expect(await store.events.lastDurable == Position(1))
        #expect(try await learning.vocabulary(of: "u", in: spanish) == Array(items.prefix(200)))
        #expect(try await learning.vocabulary(of: "u", in: french) == nil)
        #expect(try await learning.cacheVocabulary(items.prefix(1), of: "u", in: spanish) == 1)
        #expect(learning.vocabularyCount(of: "u", in: spanish).current == 1)
        #expect(throws: EventError.self) { try VocabularyItem(json: Array("{}".utf8)) }
    }

    @Test func `contents are written and read as the app's own types`() async throws {
        struct Item: Codable, Equatable { var id: String; var level: Int }
        let store = try await openStore()
        let learning = store.learning
        let item = Item(id: "x", level: 2)
        let json = try LearningCommands.json(of: item)
        try await learning.storeUser("u", info: json)
        #expect(try await learning.user("u")?.decodeInfo(as: Item.self) == item)
        try await learning.storeLesson("l", course: "c", content: json, isExplicit: true)
        let lesson = try #require(try await learning.readLesson("l", course: "c"))
        #expect(try lesson.decodeContent(as: Item.self) == item)
        #expect(try VocabularyItem(encoding: item).decode(as: Item.self) == item)
        #expect(throws: EventError.self) { try LearningCommands.json(of: [1]) }
        try await store.close()
    }

    @Test(.verifies("LRN-13"))
    func `commands take effect although a clock was ahead`() async throws {
        let (files, clock) = (InMemoryFileSystem(), VirtualClock(milliseconds: 1_800_000_000_000))
        var store = try await openStore(files, clock)
        clock.advance(by: .hours(100))
        try await store.learning.storeLesson(
            "l", course: "c", content: content, isExplicit: false)
        try await store.learning.storeReview(
            "r", of: "u", in: spanish, order: 0, content: content, isExplicit: false)
        try await store.learning.selectCombination(french, for: "u")
        try await store.close()
        clock.advance(by: .hours(-100))
        store = try await openStore(files, clock)
        try await store.learning.removeLesson("l", course: "c")
        try await store.learning.removeReview("r", of: "u")
        try await store.learning.selectCombination(spanish, for: "u")
        #expect(store.learning.storedLessons.current.isEmpty)
        #expect(store.learning.reviews(of: "u").current.isEmpty)
        #expect(store.learning.combination(of: "u").current == spanish)
    }

    @Test(.verifies("LRN-8")) func `a query reports the changes of its value`() async throws {
        let store = try await openStore()
        var changes = store.learning.isAvailable("l", course: "c").changes.makeAsyncIterator()
        #expect(await changes.next() == false)
        try await store.learning.storeLesson(
            "l", course: "c", content: content, isExplicit: false)
        #expect(await changes.next() == true)
    }

    @Test(.verifies("LRN-9"))
    func `replaced events are compacted away, and the others read as before`() async throws {
        let store = try await openStore()
        for number in 0..<50 {
            try await store.learning.storeLesson(
                "l", course: "c", content: Array(#"{"n":\#(number)}"#.utf8), isExplicit: false)
        }
        try store.events.log.roll()
        try await store.compact()
        #expect(
            try await store.learning.readLesson("l", course: "c")?.content
                == Array(#"{"n":49}"#.utf8))
        var lines = 0
        for position in UInt64(1)...50 {
            if try await store.events.event(at: Position(position)) != nil { lines += 1 }
        }
        #expect(lines == 1)
    }
}
