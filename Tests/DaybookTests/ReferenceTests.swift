// Commands are refused for ids that the app's check does not know. Spec/model/events.md, EVT-17.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.verifies("EVT-17")) struct ReferenceTests {
    private static let spanish = LanguageCombination(learn: "es", display: "de")

    private func open(_ references: ReferenceCheck?) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil, references: references,
            environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: noTimers))
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

    private func json(of cityId: String) -> [UInt8] {
        CityData(
            id: cityId, name: "Lisbon", country: "Portugal", description: "", costOfLiving: 1,
            internetSpeed: 1, safetyRating: 1, climate: "mild"
        ).json
    }

    @Test func `without a check any id is accepted, also beside a list of other ids`()
        async throws
    {
        let store = try await open(nil)
        try await list("augsburg", in: store)
        try await store.cities.save("city-4711", by: "ada")
        try await store.notes.add("Sea", city: "city-4711", by: "ada")
        try await store.progress.completeLesson("1", course: "a1", by: "ada")
        #expect(store.view(CitiesView.self).cityIDs == ["city-4711"])
    }

    /// The list is in the store that all accounts share.
    @Test
    func `a city that no list names is not saved, noted or downloaded, and nothing is recorded`()
        async throws
    {
        let shared = try await OfflineStore.openShared(
            at: URL(filePath: "/shared"),
            environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: noTimers))
        let store = try await open(
            ReferenceCheck { reference, _ in
                guard case .city(let id) = reference else { return true }
                return shared.content.cities.current?.contains { $0.code == id } ?? true
            })
        // No list has arrived.
        try await store.cities.save("porto", by: "ada")
        try await list("augsburg", "lisbon", in: shared)
        let before = await store.events.lastDurable
        await expectUnknown("porto") { try await store.cities.save("porto", by: "ada") }
        await expectUnknown("porto") {
            try await store.notes.add("Port", city: "porto", by: "ada")
        }
        await expectUnknown("porto") { _ = try await store.downloads.queue("porto") }
        await expectUnknown("porto") {
            _ = try await store.cities.cache(json: json(of: "porto"), isExplicit: true, for: "ada")
        }
        #expect(await store.events.lastDurable == before)
        try await store.cities.unsave("porto", by: "ada")
        try await store.cities.save("lisbon", by: "ada")
        try await store.notes.add("Sea", city: "lisbon", by: "ada")
        try await store.cities.cache(json: json(of: "lisbon"), isExplicit: true, for: "ada")
        #expect(try await store.downloads.queue("augsburg").cityId == "augsburg")
    }

    @Test func `the city of a note that is added again after a conflict is checked`() async throws {
        let store = try await open(
            ReferenceCheck { reference, _ in reference == .city("lisbon") })
        try await store.notes.add("Sea", city: "lisbon", by: "ada")
        let end = await store.events.lastDurable
        let event = try #require(try await store.events.event(at: end))
        let conflict = Conflict(lane: "note", current: nil, pending: [event])
        await expectUnknown("porto") {
            try await store.notes.addAgain(conflict, city: "porto", by: "ada")
        }
        // Another id passes the check: the note is in no conflict.
        await #expect(throws: DecisionError.self) {
            try await store.notes.addAgain(conflict, city: "lisbon", by: "ada")
        }
        #expect(await store.events.lastDurable == end)
    }

    @Test
    func `an event from another log is recorded, whatever id it names, and commands build on it`()
        async throws
    {
        let store = try await open(ReferenceCheck { _, _ in false })
        try await store.append(CitySaved(userId: "ada", cityId: "porto"))
        #expect(store.view(CitiesView.self).isSaved("porto", by: "ada"))
        try await store.cities.unsave("porto", by: "ada")
    }

    @Test func `courses and lessons are checked where they are learned and where they are stored`()
        async throws
    {
        let store = try await open(
            ReferenceCheck { reference, _ in
                switch reference {
                case .city: false
                case .course(let id, _): id == "a1"
                case .lesson(let id, _, _): ["1", "2"].contains(id)
                }
            })
        let (learning, progress) = (store.learning, store.progress)
        await expectUnknown("b1") { try await progress.activateCourse("b1", by: "ada") }
        await expectUnknown("3") {
            try await progress.completeLesson("3", course: "a1", by: "ada")
        }
        await expectUnknown("b1") {
            try await progress.completeReview(
                "r", course: "b1", by: "ada", itemsSeen: 1, itemsCorrect: 1)
        }
        await expectUnknown("3") {
            _ = try await learning.storeLesson(
                "3", course: "a1", content: Array("{}".utf8), isExplicit: true)
        }
        await expectUnknown("b1") {
            _ = try await learning.storeReview(
                "r", of: "ada", in: Self.spanish, course: "b1", order: 0,
                content: Array("{}".utf8), isExplicit: true)
        }
        #expect(await store.events.lastDurable == .zero)
        try await progress.activateCourse("a1", by: "ada")
        try await progress.completeLesson("2", course: "a1", by: "ada")
        try await learning.storeLesson(
            "2", course: "a1", content: Array("{}".utf8), isExplicit: true)
        // A session of no course refers to none.
        try await progress.completeReview("r", by: "ada", itemsSeen: 1, itemsCorrect: 1)
    }

    @Test(.verifies("EVT-9"))
    func `check and record are atomic, also while lists replace each other`() async throws {
        let store = try await open(
            ReferenceCheck { reference, transaction in
                guard case .city(let id) = reference else { return true }
                return transaction.view(ContentView.self).cityList?.contains { $0.code == id }
                    ?? true
            })
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
        // Replayed in order: no note was recorded while the list at that moment lacked its city.
        var codes: [String] = []
        for try await event in store.events.recordedEvents() {
            switch event.type {
            case CitiesListed.type:
                codes = try event.payload(as: CitiesListed.self).cities.map(\.code)
            case NoteAdded.type: #expect(codes == ["b"])
            default: break
            }
        }
    }
}
