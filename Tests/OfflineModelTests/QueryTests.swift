// What an app shows: every built-in query tells its value now and when it becomes another.
// Spec/following.md.

import Daybook
import DaybookTestKit
import Foundation
import Observation
import Synchronization
import TestSupport
import Testing

private func openStore() async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
}

@Suite struct QueryTests {
    /// The first value, then the one after something was recorded.
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

    @Test(.verifies("FOL-7")) func `every built-in query tells its changes`() async throws {
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
        let progress = try await values(store.progress(of: "ada")) {
            try await store.progress.activateCourse("spanish", by: "ada")
            try await store.progress.completeLesson("l1", course: "spanish", by: "ada")
        }
        #expect(progress[0]?.activeCourseId == nil && progress[0]?.courses == [])
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

    @Test(.verifies("FOL-5", "FOL-7")) @MainActor
    func `values and events can be taken on the main actor`() async throws {
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
    func `an observed value follows its query, tells of changes only, and lets go`() async throws {
        let store = try await openStore()
        var notes: Observed<[Note]>? = Observed(store.notes(in: "oslo"))
        #expect(notes?.value == [])
        final class Told: Sendable { let count = Mutex(0) }
        let told = Told()
        func track() {
            withObservationTracking {
                _ = notes?.value
            } onChange: {
                told.count.withLock { $0 += 1 }
            }
        }
        track()
        // Its first value is the one that it began with.
        try await eventually { await store.events.subscriberCount == 1 }
        try await Task.sleep(for: .milliseconds(50))
        #expect(told.count.withLock { $0 } == 0)
        try await store.notes.add("elsewhere", city: "rome", by: "ada")
        try await store.notes.add("here", city: "oslo", by: "ada")
        try await eventually { notes?.value.map(\.content) == ["here"] }
        #expect(told.count.withLock { $0 } == 1)
        track()
        try await store.cities.save("oslo", by: "ada")
        try await Task.sleep(for: .milliseconds(50))
        #expect(told.count.withLock { $0 } == 1)
        notes = nil
        try await eventually { await store.events.subscriberCount == 0 }
        try await store.close()
    }
}
