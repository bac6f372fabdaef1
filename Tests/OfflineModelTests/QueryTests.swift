// The live queries: every built-in query delivers its present value and every change.
// Spec/format/following.md.

import DaybookTestKit
import Foundation
import Observation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

private func openStore() async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
}

@Suite struct QueryTests {
    /// The first value, and the one after `record` has recorded an event.
    private func values<Value>(
        _ query: ViewQuery<Value>, after body: () async throws -> Void
    ) async throws -> [Value?] {
        var changes = query.changes.makeAsyncIterator()
        let first = await changes.next()
        try await body()
        let second = await changes.next()
        #expect(second == query.current)
        return [first, second]
    }

    @Test(.verifies("FOL-7")) func `every built-in query delivers its changes`() async throws {
        let store = try await openStore()
        let cities = store.cities
        #expect(
            try await values(cities.saved(by: "ada")) {
                try await cities.save("oslo", by: "bob")
                try await cities.save("rome", by: "ada")
                try await cities.save("bern", by: "ada")
            } == [[], ["bern", "rome"]])
        #expect(
            try await values(cities.savers(of: "oslo")) {
                try await cities.save("oslo", by: "ada")
            } == [["bob"], ["ada", "bob"]])
        let note = try await store.notes.add("one", city: "oslo", by: "ada")
        #expect(
            try await values(store.note(note.id)) {
                try await store.notes.add("other", city: "oslo", by: "ada")
                try await store.notes.update(note.id, "two", by: "ada")
            }.map { $0??.content } == ["one", "two"])
        #expect(
            try await values(store.note(note.id)) {
                try await store.notes.delete(note.id, by: "ada")
            }.map { $0??.content } == ["two", nil])
        #expect(
            try await values(store.preferences(for: "ada")) {
                try await store.preferences.update(for: "ada") { $0.pruneAfterDays = 30 }
            }.map { $0?.pruneAfterDays } == [7, 30])
        try await contentQueries(store)
        let progress = try await values(store.progress(of: "ada")) {
            try await store.progress.activateCourse("spanish", by: "ada")
            try await store.progress.completeLesson("l1", course: "spanish", by: "ada")
        }
        #expect(progress[0]?.activeCourseId == nil)
        #expect(progress[0]?.courses == [])
        #expect(progress[1]?.activeCourseId == "spanish")
        #expect(progress[1]?.courses.map(\.lessonsCompleted) == [1])
        let waiting = store.outboxCount.current
        #expect(
            try await values(store.outboxCount) { try await cities.save("kyiv", by: "ada") }
                == [waiting, waiting + 1])
        var states = store.changes(of: CitiesView.self).makeAsyncIterator()
        #expect(await states.next()?.isSaved("kyiv", by: "ada") == true)
        try await store.close()
    }

    private func contentQueries(_ store: OfflineStore) async throws {
        let content = store.content
        let time = try #require(ZonedTime("2019-08-12T00:03:19.457Z"))
        func put(_ title: String, _ bytes: [UInt8]) async throws {
            var page = ContentPage(path: "/p/", title: title, content: "", lastUpdate: time)
            page.parentPath = ""
            let resource = ContentResource(
                path: "/p/", url: "https://x.example/1", lastUpdate: time, content: .bytes(bytes))
            try await content.store(
                city: "oslo", language: "no", pages: [page], resources: [resource],
                lastUpdate: time)
        }
        let city = ListedCity(name: "Oslo", code: "oslo", sortingName: "Oslo")
        #expect(
            try await values(content.cities) { try await content.list([city]) }
                .map { $0 ?? nil } == [nil, [city]])
        #expect(
            try await values(content.liveCities) { try await content.list([]) } == [[city], []])
        #expect(
            try await values(content.languages(of: "oslo")) {
                try await content.list([ListedLanguage(code: "no")], of: "oslo")
            }.map { $0 ?? nil } == [nil, [ListedLanguage(code: "no")]])
        #expect(
            try await values(content.lastUpdate(of: "oslo", language: "no")) {
                try await put("one", [1])
            }.map { $0 ?? nil } == [nil, time])
        #expect(
            try await values(content.lastUsage(of: "oslo")) { try await content.use("oslo") }
                .map { ($0 ?? nil) == nil } == [true, false])
        let pages = try await values(content.pages(.category, city: "oslo", language: "no")) {
            try await put("two", [1])
        }
        #expect(pages.map { $0?.map(\.title) } == [["one"], ["two"]])
        let children = try await values(content.children(of: "", city: "oslo", language: "no")) {
            try await put("three", [1])
        }
        #expect(children.map { $0?.map(\.title) } == [["two"], ["three"]])
        let page = try await values(content.storedPage("/p/", city: "oslo", language: "no")) {
            try await put("four", [1])
        }
        #expect(page.map { $0??.title } == ["three", "four"])
        let files = try await values(content.resources(of: "/p/", city: "oslo", language: "no")) {
            try await put("four", [1, 2])
        }
        #expect(files.map { $0?.map(\.size) } == [[1], [2]])
    }

    @Test(.verifies("FOL-5", "FOL-7")) @MainActor
    func `values and events can be received on the main actor`() async throws {
        let store = try await openStore()
        try await store.notes.add("one", city: "oslo", by: "ada")
        for await notes in store.notes(in: "oslo").changes {
            #expect(notes.map(\.content) == ["one"])
            break
        }
        for try await event in store.events(after: .zero) {
            #expect(event.type == NoteAdded.type)
            break
        }
        try await store.close()
    }

    @Test(.verifies("FOL-9")) @MainActor
    func `an observed value follows its query, notifies of changes only, and releases the query`()
        async throws
    {
        let store = try await openStore()
        final class Counter: Sendable { let count = Mutex(0) }
        let (told, asked) = (Counter(), Counter())
        let query = store.query(NotesView.self) { view -> NoteList in
            asked.count.withLock { $0 += 1 }
            return view.notes(in: "oslo")
        }
        var notes: Observed<NoteList>? = Observed(query)
        #expect(notes?.value == [])
        func track() {
            withObservationTracking {
                _ = notes?.value
            } onChange: {
                told.count.withLock { $0 += 1 }
            }
        }
        /// Adds notes that the query does not show. When it is computed for the last one, its values before have
        /// been delivered.
        func addElsewhere() async throws {
            for _ in 0..<3 {
                let before = asked.count.withLock { $0 }
                try await store.notes.add("elsewhere", city: "rome", by: "ada")
                try await eventually("computed values", where: { $0 > before }) {
                    asked.count.withLock { $0 }
                }
            }
        }
        track()
        // The first value of the query equals the initial one and is no change.
        try await eventually("subscribers", is: 1) { await store.events.subscriberCount }
        try await addElsewhere()
        #expect(told.count.withLock { $0 } == 0)
        try await store.notes.add("here", city: "oslo", by: "ada")
        try await eventually("notes", is: ["here"]) { notes?.value.map(\.content) ?? [] }
        #expect(told.count.withLock { $0 } == 1)
        track()
        try await store.cities.save("oslo", by: "ada")
        try await addElsewhere()
        #expect(told.count.withLock { $0 } == 1)
        notes = nil
        try await eventually("subscribers", is: 0) { await store.events.subscriberCount }
        try await store.close()
    }
}
