// Runs the code of the article "Declaring the members of an event", with the engine and the test kit alone.

import Daybook
import DaybookTestKit
import Engine
import Testing

@Suite struct DeclaringTests {
    private func store() async throws -> EventStore {
        try await .inMemory(rules: Declaring.rules, views: [HabitRatings.self])
    }

    @Test func `a rating is recorded, and the newest counts`() async throws {
        let store = try await store()
        #expect(try await Declaring.rate(in: store) == 5)
        let rows = store.view(HabitRatings.self).rows()
        let row = String(decoding: try #require(rows.first).json, as: UTF8.self)
        #expect(rows.count == 1)
        #expect(
            row.hasPrefix(
                #"{"userId":"ana","habit":"reading","stars":5,"comment":"Daily!","updatedAt":"20"#))
        try await store.close()
    }

    @Test func `a habit has its newest stars until it is dropped`() async throws {
        let store = try await EventStore.inMemory(views: [RatedHabits.self])
        try await store.append(HabitRated(userId: "ana", habit: "reading", stars: 4))
        let row = String(
            decoding: try #require(store.view(RatedHabits.self).rows().first).json, as: UTF8.self)
        #expect(row.hasPrefix(#"{"habit":"reading","stars":4,"firstRated":"20"#))
        try await store.append(HabitDropped(habit: "reading"))
        #expect(store.view(RatedHabits.self).rows().isEmpty)
        try await store.close()
    }

    @Test func `data that break the declaration are refused with the member's name`() async throws {
        let folder = try Folder()
        let store = try await Declaring.open(at: folder.log)
        let error = await #expect(throws: EventError.self) {
            try await store.append(HabitRated(userId: "ana", habit: "reading", stars: 6))
        }
        #expect(error?.code == .invalidData)
        #expect(error?.detail.contains("data.stars is 6, not between 1 and 5") == true)
        try await store.close()
    }

    @Test func `a store without a rule does not check the declaration`() async throws {
        let store = try await EventStore.inMemory(views: [HabitRatings.self])
        try await store.append(HabitRated(userId: "ana", habit: "reading", stars: 6))
        #expect(await store.lastDurable == Position(1))
        #expect(store.view(HabitRatings.self).rows().isEmpty)
        try await store.close()
    }

    @Test func `the SQL names the type, its members and its lane`() {
        let sql = Declaring.sql()
        #expect(sql.hasPrefix("INSERT INTO daybook.event_type (type, schema) VALUES"))
        #expect(sql.contains(#"('com.example.habit.rated', '{"subject":["","habit"],"lane":["#))
        #expect(sql.contains(#"{"name":"stars","kind":"count","min":1,"max":5}"#))
    }

    // Declaring-7 begins
    @Test func `ratings fold to the same rows in any order`() async throws {
        try await Property.check("ratings", runs: 30) { choices in
            let ratings = try choices.array(0...8) { try $0.payload(HabitRated.self) }
            let drafts = try ratings.enumerated().map { index, rating in
                try EventDraft(rating, time: Timestamp(milliseconds: Int64(index)))
            }
            let (one, other) = (try await store(), try await store())
            try await one.append(contentsOf: drafts)
            try await other.append(contentsOf: drafts.reversed())
            try #require(one.view(HabitRatings.self).rows() == other.view(HabitRatings.self).rows())
            try await one.close()
            try await other.close()
        }
    }
    // Declaring-7 ends
}
