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
public struct HabitDropped: EventPayload, Codable {
    public static let type = "com.example.habit.dropped"
    public var habit: String
    public var subject: String? { habit }

    public init(habit: String) { self.habit = habit }
}

/// The registers of a habit.
public struct Habit: StateObject {
    public var stars: Register<Int>?
    public var firstRated: LWWTimestamp?

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&stars, &firstRated)
    }
}

public struct RatedHabits: DeclaredRows {
    public static let name = "ratedhabits"
    public static let version = 1
    public static let events: ViewEvents<RatedHabits> = [
        .on(HabitRated.self) { rated, view, change in
            view.habits.update(rated.habit, &change) { habit, change in
                change.set(&habit.stars, to: rated.stars)
                change.setFirst(&habit.firstRated)
            }
        },
        .on(HabitDropped.self) { dropped, view, change in
            view.habits.delete(dropped.habit, &change)
        },
    ]
    public static let fields: [ViewField<(id: String, habit: Habit)>] = [
        .init("habit") { $0.id }, .init("stars") { $0.habit.stars?.value },
        .init("firstRated") { $0.habit.firstRated?.time },
    ]

    private var habits = EntityTable<Habit>()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&habits)
    }

    public var rowIDs: [EntityID] { habits.ids() }

    public func rowValue(_ id: EntityID) -> (id: String, habit: Habit)? {
        habits[id].map { (id.string, $0) }
    }
}
// Declaring-2 ends

// Declaring-3 begins
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
// Declaring-3 ends

package enum Declaring {
    package static let rules: [EventRule] = [.of(HabitRated.self, action: "RATE_HABIT")]

    package static func open(at url: URL) async throws -> EventStore {
        // Declaring-4 begins
        let store = try await EventStore.open(
            at: url, account: "user-456",
            rules: [.of(HabitRated.self, action: "RATE_HABIT")], views: [HabitRatings.self])
        // Declaring-4 ends
        return store
    }

    package static func rate(in store: EventStore) async throws -> Int? {
        // Declaring-5 begins
        try await store.append(HabitRated(userId: "ana", habit: "reading", stars: 4))
        try await store.append(
            HabitRated(userId: "ana", habit: "reading", stars: 5, comment: "Daily!"))
        let stars = store.view(HabitRatings.self).stars("reading", by: "ana")  // 5
        // Declaring-5 ends
        return stars
    }

    package static func sql() -> String {
        // Declaring-6 begins
        let catalogue = EventCatalogue([.of(HabitRated.self, action: "RATE_HABIT")])
        let sql = catalogue.supabaseSQL
        // Declaring-6 ends
        return sql
    }
}
