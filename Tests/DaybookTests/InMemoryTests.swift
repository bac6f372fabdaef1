// A store in memory, as an app's tests use it: nothing but `import Daybook`.

import Foundation
import Testing

@testable import DaybookOffline

private struct Visited: EventPayload, Codable {
    static let type = "com.example.visited"
    var place: String
    var subject: String? { place }
}

private struct Places: Projection {
    static let name = "places"
    static let version = 1
    private(set) var visited: [String] = []
    mutating func fold(_ event: Event) {
        if event.type == Visited.type, let place = event.subject { visited.append(place) }
    }
}

@Suite struct InMemoryTests {
    @Test func `a store in memory behaves like one on a disk`() async throws {
        let store = try await OfflineStore.inMemory()
        try await store.cities.save("lisbon", by: "ada")
        let note = try await store.notes.add("Great coffee", city: "lisbon", by: "ada")
        #expect(store.notes(in: "lisbon").current == [note])
        #expect(store.view(Outbox.self).count == 2)
        try await store.close()
    }

    @Test func `every store in memory is a new one`() async throws {
        let first = try await OfflineStore.inMemory()
        try await first.cities.save("lisbon", by: "ada")
        let second = try await OfflineStore.inMemory()
        #expect(second.view(CitiesView.self).cityIDs == [])
        #expect(first.events.incarnation != second.events.incarnation)
        try await first.close()
        try await second.close()
    }

    @Test func `its clock is the test's`() async throws {
        let store = try await OfflineStore.inMemory(clock: { Date(timeIntervalSince1970: 0) })
        let note = try await store.notes.add("x", city: "c", by: "u")
        #expect(note.createdAt.description == "1970-01-01T00:00:00.000Z")
        try await store.close()
    }

    @Test func `it accepts an account, rules and views like a store on a disk`() async throws {
        let rule = EventRule(type: Visited.type, action: "VISIT") { (draft) throws(EventError) in
            guard draft.subject != "nowhere" else { throw EventError(.invalidData, "nowhere") }
        }
        let store = try await OfflineStore.inMemory(
            account: "ada", rules: [rule], views: [Places.self])
        #expect(store.events.account == "ada")
        try await store.append(Visited(place: "lisbon"))
        await #expect(throws: EventError.self) { try await store.append(Visited(place: "nowhere")) }
        #expect(store.view(Places.self).visited == ["lisbon"])
        #expect(store.view(Outbox.self).entries.map(\.action) == ["VISIT"])
        try await store.close()
    }
}
