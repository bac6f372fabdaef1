// Commands are refused for ids that the store knows to be missing. Spec/model/events.md, EVT-17.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct ReferenceTests {
    private static let spanish = LanguageCombination(learn: "es", display: "de")

    private func open(
        _ references: ReferenceCheck, _ files: any FileSystem = InMemoryFileSystem()
    ) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil, references: references,
            environment: LogEnvironment(fileSystem: files, sleep: noTimers))
    }

    private func list(_ codes: String..., in store: OfflineStore) async throws {
        try await store.content.list(codes.map { ListedCity(name: $0, code: $0, sortingName: $0) })
    }

    private func expectUnknown(
        _ id: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async {
        await #expect(sourceLocation: sourceLocation) {
            try await body()
        } throws: {
            guard let error = $0 as? EventError else { return false }
            return error.code == .unknownReference && error.detail.contains(" \(id) ")
        }
    }

    @Test(.verifies("EVT-17"))
    func `a city that no list names is not saved, noted or downloaded, and nothing is recorded`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        try await list("augsburg", "lisbon", in: store)
        let before = await store.events.lastDurable
        await expectUnknown("porto") { try await store.cities.save("porto", by: "ada") }
        await expectUnknown("porto") {
            try await store.notes.add("Port", city: "porto", by: "ada")
        }
        await expectUnknown("porto") { _ = try await store.downloads.queue("porto") }
        #expect(await store.events.lastDurable == before)
        try await store.cities.save("lisbon", by: "ada")
        try await store.notes.add("Sea", city: "lisbon", by: "ada")
        #expect(try await store.downloads.queue("augsburg").cityId == "augsburg")
    }

    @Test(.verifies("EVT-17"), arguments: [ReferenceCheck.cities, [.cities, .courses], []])
    func `without a list, or with an empty one, any id is accepted`(references: ReferenceCheck)
        async throws
    {
        let store = try await open(references)
        try await store.content.list([ListedCity]())
        try await store.cities.save("porto", by: "ada")
        try await store.learning.selectCombination(Self.spanish, for: "ada")
        try await store.progress.activateCourse("a1", by: "ada")
        try await store.progress.completeLesson("1", course: "a1", by: "ada")
        #expect(store.view(CitiesView.self).cityIDs == ["porto"])
    }

    @Test(.verifies("EVT-17"))
    func `a city that the store had before the list stays known`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("saved", by: "ada")
        try await store.notes.add("Sea", city: "noted", by: "ada")
        _ = try await store.downloads.queue("queued")
        try await list("augsburg", in: store)
        for city in ["saved", "noted", "queued"] {
            try await store.cities.save(city, by: "grace")
            try await store.notes.add("Seen", city: city, by: "grace")
        }
        try await store.cities.unsave("saved", by: "ada")
    }

    @Test(.verifies("EVT-17"))
    func `an event from another log is recorded, whatever id it names, and commands build on it`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        try await list("augsburg", in: store)
        try await store.append(CitySaved(userId: "ada", cityId: "porto"))
        #expect(store.view(CitiesView.self).isSaved("porto", by: "ada"))
        try await store.notes.add("Port", city: "porto", by: "ada")
    }

    @Test(.verifies("EVT-17"))
    func `an app whose list has other ids opens its store without the check`() async throws {
        let store = try await open([])
        try await list("augsburg", in: store)
        try await store.cities.save("city-4711", by: "ada")
    }

    @Test(.verifies("EVT-17"))
    func `courses and their lessons are checked if the app enables it`() async throws {
        let files = InMemoryFileSystem()
        let before = try await open(.cities, files)
        try await before.learning.selectCombination(Self.spanish, for: "ada")
        try await before.learning.storeCourses(
            [ListedCourse(id: "a1", lessons: [ListedLesson(id: "1"), ListedLesson(id: "2")])],
            of: Self.spanish)
        try await before.progress.completeLesson("x", course: "old", by: "ada")
        try await before.close()
        let store = try await open([.cities, .courses], files)
        await expectUnknown("b1") {
            try await store.progress.activateCourse("b1", by: "ada")
        }
        await expectUnknown("3") {
            try await store.progress.completeLesson("3", course: "a1", by: "ada")
        }
        await expectUnknown("b1") {
            try await store.progress.completeReview(
                "r", course: "b1", by: "ada", itemsSeen: 1, itemsCorrect: 1)
        }
        try await store.progress.activateCourse("a1", by: "ada")
        try await store.progress.completeLesson("2", course: "a1", by: "ada")
        // Begun before the list was stored.
        try await store.progress.activateCourse("old", by: "ada")
        // The progress of another learner is unknown.
        try await store.progress.activateCourse("b1", by: "grace")
    }

    @Test(.verifies("EVT-17", "EVT-9"))
    func `check and record are atomic, also while lists replace each other`() async throws {
        let store = try await OfflineStore.inMemory()
        try await list("a", in: store)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    do {
                        if number.isMultiple(of: 2) {
                            try await list(number % 4 == 0 ? "a" : "b", in: store)
                        } else {
                            try await store.notes.add("n", city: "b", by: "ada")
                        }
                    } catch { #expect((error as? EventError)?.code == .unknownReference) }
                }
            }
        }
        // Replayed in order: no note was recorded while the list at that moment lacked its city, except
        // after the first, which makes it known.
        var codes: [String] = []
        var isKnown = false
        for try await event in store.events.recordedEvents() {
            switch event.type {
            case CitiesListed.type:
                codes = try event.payload(as: CitiesListed.self).cities.map(\.code)
            case NoteAdded.type:
                #expect(isKnown || codes == ["b"])
                isKnown = true
            default: break
            }
        }
    }
}
