// The code of the article "Declaring the members of an event": a payload that declares its members, and a view
// of registers.

import Daybook
import Foundation

// Declaring-1 begins
public struct HabitRated: DeclaredPayload {
    public static let type = "com.example.habit.rated"
    public var userId: String
    public var habit: String
    public var stars: Int
    public var comment: String?

    public init(userId: String, habit: String, stars: Int, comment: String? = nil) {
        self.userId = userId
        self.habit = habit
        self.stars = stars
        self.comment = comment
    }

    public static var example: Self { Self(userId: "-", habit: "-", stars: 1) }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("habit", &habit, .identifier)
        try members.required("stars", &stars, .count(1...5))
        try members.optional("comment", &comment, .nonEmptyText)
    }

    public var subject: String? { habit }
    public var lane: String? { "rating:\(userId):\(habit)" }
}
// Declaring-1 ends

// Declaring-2 begins
public struct HabitRatings: RegisterView {
    public static let name = "ratings"
    public static let version = 1
    public static let eventTypes: Set<String>? = [HabitRated.type]
    public static let keyNames = ["userId", "habit"]
    public var registers = RegisterTable(initial: HabitRated.example)

    public init() {}

    public static func change(in event: Event) throws -> RegisterChange<HabitRated> {
        let rated = try event.payload(as: HabitRated.self)
        return RegisterChange(of: [rated.userId, rated.habit], to: rated)
    }

    /// A user's stars for a habit, from 1 to 5; nil without a rating.
    public func stars(_ habit: String, by userId: String) -> Int? {
        registers[userId, habit]?.values.stars
    }
}
// Declaring-2 ends

package enum Declaring {
    package static let rules: [EventRule] = [.of(HabitRated.self, action: "RATE_HABIT")]

    package static func open(at url: URL) async throws -> EventStore {
        // Declaring-3 begins
        let store = try await EventStore.open(
            at: url, account: "user-456",
            rules: [.of(HabitRated.self, action: "RATE_HABIT")], views: [HabitRatings.self])
        // Declaring-3 ends
        return store
    }

    package static func rate(in store: EventStore) async throws -> Int? {
        // Declaring-4 begins
        try await store.append(HabitRated(userId: "ana", habit: "reading", stars: 4))
        try await store.append(
            HabitRated(userId: "ana", habit: "reading", stars: 5, comment: "Daily!"))
        let stars = store.view(HabitRatings.self).stars("reading", by: "ana")  // 5
        // Declaring-4 ends
        return stars
    }

    package static func sql() -> String {
        // Declaring-5 begins
        let catalogue = EventCatalogue([.of(HabitRated.self, action: "RATE_HABIT")])
        let sql = catalogue.supabaseSQL
        // Declaring-5 ends
        return sql
    }
}
