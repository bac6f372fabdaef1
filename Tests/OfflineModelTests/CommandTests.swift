// Commands are checked before they become events; imported history is accepted as fact.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func openStore(_ files: InMemoryFileSystem = InMemoryFileSystem()) async throws
    -> OfflineStore
{
    try await OfflineStore.open(
        at: URL(filePath: "/log"), account: "user-456",
        environment: LogEnvironment(fileSystem: files))
}

@Suite struct CommandTests {
    @Test func `the documented example does what it says`() async throws {
        let files = InMemoryFileSystem()
        let store = try await openStore(files)
        try await store.cities.save("city-1", by: "user-456")
        let note = try await store.notes.add("Great coffee", city: "city-1", by: "user-456")
        try await store.notes.update(
            note.id, "Great coffee, closed on Mondays", by: "user-456")
        try await store.preferences.update(for: "user-456") { $0.maxStorageLimit = 200 * 1_048_576 }
        try await store.progress.completeLesson(
            "lesson-7", course: "spanish", by: "user-456", score: 0.9)
        try await store.close()

        let again = try await openStore(files)
        #expect(again.view(CitiesView.self).isSaved("city-1", by: "user-456"))
        let found = try #require(again.view(NotesView.self).notes(in: "city-1").first)
        #expect(found.content == "Great coffee, closed on Mondays")
        #expect(again.view(PreferencesView.self)["user-456"].maxStorageLimit == 200 * 1_048_576)
        #expect(again.view(ProgressView.self).courses(of: "user-456")[0].lessonsCompleted == 1)
        #expect(again.view(Outbox.self).count == 5)
        try await again.close()
    }

    @Test(.verifies("EVT-6"))
    func `a change of a note contains the id of the event that it is based on`() async throws {
        let store = try await openStore()
        let note = try await store.notes.add("one", city: "c", by: "u")
        try await store.notes.update(note.id, "two", by: "u")
        try await store.notes.delete(note.id, by: "u")
        let first = try #require(try await store.events.event(at: Position(1)))
        let second = try #require(try await store.events.event(at: Position(2)))
        let third = try #require(try await store.events.event(at: Position(3)))
        #expect(second.content.string("baseid") == first.id.uuidString.lowercased())
        #expect(third.content.string("baseid") == second.id.uuidString.lowercased())
        try await store.close()
    }

    @Test(.verifies("EVT-5", "EVT-9"))
    func `invalid commands are refused with a reason and record nothing`() async throws {
        let store = try await openStore()
        let note = try await store.notes.add("gone", city: "c", by: "u")
        try await store.notes.delete(note.id, by: "u")
        let before = await store.events.lastDurable
        let attempts: [@Sendable () async throws -> Void] = [
            { try await store.notes.update("nothing", "x", by: "u") },
            { try await store.notes.update(note.id, "x", by: "u") },
            { try await store.notes.delete(note.id, by: "u") },
            { try await store.notes.add("x", city: "", by: "u") },
            { try await store.cities.save("", by: "u") },
            { try await store.cities.unsave("never-saved", by: "u") },
            {
                try await store.preferences.update(for: "u") { $0.maxStorageLimit = 49 * 1_048_576 }
            },
            {
                try await store.preferences.update(for: "u") {
                    $0.maxStorageLimit = 501 * 1_048_576
                }
            },
            { try await store.preferences.update(for: "u") { $0.pruneAfterDays = 0 } },
            { try await store.preferences.update(for: "u") { $0.pruneAfterDays = 91 } },
            { try await store.preferences.update(for: "u") { $0.pruneAfterDays = -1 } },
            { try await store.preferences.update(for: "u") { $0.maxStorageLimit = -5 } },
            { try await store.preferences.update(for: "") { $0.autoSync = false } },
            { try await store.progress.completeLesson("l", course: "c", by: "u", score: 1.5) },
            { try await store.progress.completeLesson("l", course: "c", by: "u", score: .nan) },
            {
                try await store.progress.completeReview(
                    "r", course: "c", by: "u", itemsSeen: 1, itemsCorrect: 2)
            },
            { try await store.progress.activateCourse("", by: "u") },
        ]
        for attempt in attempts {
            await #expect(throws: EventError.self) { try await attempt() }
        }
        #expect(await store.events.lastDurable == before)
        try await store.close()
    }

    @Test(.verifies("LRN-43", "VIEW-8"))
    func `a session without a course counts for none, whatever course is active`() async throws {
        let store = try await openStore()
        try await store.progress.activateCourse("active", by: "u")
        let french = LanguageCombination(learn: "fr", display: "en")
        for (id, course) in [("free", nil), ("bound", "beginners")] {
            try await store.learning.storeReview(
                id, of: "u", in: french, course: course, order: 0, content: Array("{}".utf8),
                isExplicit: true)
        }
        for (id, course) in [("free", nil), ("unknown", nil), ("bound", "beginners")] {
            let position = try await store.progress.completeReview(
                id, by: "u", itemsSeen: 2, itemsCorrect: 1
            ).position
            let event = try #require(try await store.events.event(at: position))
            #expect(try event.payload(as: ReviewCompleted.self).courseId == course)
        }
        let courses = store.progress(of: "u").current.courses
        #expect(courses.map(\.courseId) == [nil, "beginners"])
        #expect(courses.map(\.reviewsCompleted) == [2, 1])
        let view = store.view(ProgressView.self)
        let decoded = try ProgressView(encodedState: try #require(try view.encodedState()))
        #expect(decoded.courses(of: "u") == courses)
        try await store.progress.completeLesson("l2", course: "b", by: "u", score: 0.5)
        try await store.progress.completeLesson("l1", course: "b", by: "u")
        let lessons = store.completedLessons(of: "u").current
        #expect(lessons.map(\.lessonId) == ["l1", "l2"])
        #expect(lessons.last?.completion.bestScore == 0.5)
        #expect(store.completedLessons(of: "u", course: "c").current == [])
        try await store.close()
    }

    @Test(.verifies("EVT-9")) func `unchanged settings are not recorded`() async throws {
        let store = try await openStore()
        try await store.preferences.update(for: "u") { $0.autoSync = true }
        #expect(await store.events.lastDurable == .zero)
        try await store.close()
    }

    @Test(.verifies("EVT-7"))
    func `events of the device are recorded in the lane of their subject and not shipped`()
        async throws
    {
        let store = try await openStore()
        let page = EventDraft(
            type: "daybook.page.removed", lane: "elsewhere",
            data: .json(Array(#"{"city":"oslo","language":"en","path":"/a/","by":7}"#.utf8)))
        try await store.events.append(contentsOf: [page])
        let event = try #require(try await store.events.event(at: Position(1)))
        #expect(event.content.json == page.json)
        #expect(event.subject == "/a/")
        #expect(event.lane == "/a/")
        #expect(event.action == nil)
        #expect(store.view(Outbox.self).count == 0)
        #expect(store.view(CitiesView.self).rows().isEmpty)
        #expect(store.view(NotesView.self).rows().isEmpty)
        #expect(store.view(PreferencesView.self).rows().isEmpty)
        #expect(store.view(ProgressView.self).rows().isEmpty)
        try await store.close()
    }

    @Test
    func
        `a query of notes delivers the present value and every change until the store closes`()
        async throws
    {
        let store = try await openStore()
        try await store.notes.add("elsewhere", city: "porto", by: "u")
        var changes = store.notes(in: "lisbon").changes.makeAsyncIterator()
        #expect(await changes.next() == [])
        let note = try await store.notes.add("one", city: "lisbon", by: "u")
        #expect(await changes.next()?.map(\.content) == ["one"])
        try await store.notes.update(note.id, "two", by: "u")
        #expect(await changes.next()?.map(\.content) == ["two"])
        #expect(store.notes(in: "lisbon").current.count == 1)
        try await store.close()
        #expect(await changes.next() == nil)
    }

    @Test func `a log belongs to one account`() async throws {
        let files = InMemoryFileSystem()
        try await openStore(files).close()
        await #expect(
            performing: {
                try await OfflineStore.open(
                    at: URL(filePath: "/log"), account: "somebody else",
                    environment: LogEnvironment(fileSystem: files))
            },
            throws: { ($0 as? LogError)?.code == .wrongAccount })
    }
}
