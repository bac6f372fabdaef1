// The code of the article "Getting started with Daybook": an app that uses the engine alone.

import Daybook
import Foundation

// OwnEvents-1 begins
struct HabitDone: EventPayload, Codable {
    static let type = "com.example.habit.done"
    var habit: String
    var minutes: Int
    var subject: String? { habit }
}

struct Habits: Projection, Codable {
    static let name = "habits"
    static let version = 1
    private(set) var minutes: StateDictionary<String, Int> = [:]

    mutating func fold(_ event: Event) {
        guard event.type == HabitDone.type,
            let done = try? event.payload(as: HabitDone.self)
        else { return }
        minutes[done.habit, default: 0] += done.minutes
    }
}
// OwnEvents-1 ends

// OwnEvents-11 begins
enum Mood: RawRepresentable, Codable, Hashable {
    case good, bad
    case other(String)

    init(rawValue: String) {
        switch rawValue {
        case "good": self = .good
        case "bad": self = .bad
        default: self = .other(rawValue)
        }
    }

    var rawValue: String {
        switch self {
        case .good: "good"
        case .bad: "bad"
        case .other(let value): value
        }
    }
}
// OwnEvents-11 ends

// OwnEvents-7 begins
/// The habits, sorted by their minutes, greatest first.
struct HabitRanking: Projection, Codable {
    static let name = "habit-ranking"
    static let version = 1
    private(set) var ranking = SortedIndex<Rank>()
    private var ranks: StateDictionary<String, Rank> = [:]

    struct Rank: Comparable, Codable, Hashable {
        var minutes: Int
        var habit: String

        static func < (one: Rank, other: Rank) -> Bool {
            (other.minutes, one.habit) < (one.minutes, other.habit)
        }
    }

    mutating func fold(_ event: Event) {
        guard event.type == HabitDone.type,
            let done = try? event.payload(as: HabitDone.self)
        else { return }
        let old = ranks[done.habit]
        let new = Rank(minutes: (old?.minutes ?? 0) + done.minutes, habit: done.habit)
        ranking.replace(old, with: new)
        ranks[done.habit] = new
    }
}

func followRanking(in store: EventStore, _ show: ([HabitRanking.Rank], Int) -> Bool) async {
    let ranking = store.query(HabitRanking.self) { $0.ranking }
    print("\(ranking.count.current) habits")
    for await difference in ranking.differences {
        let firstPage = ranking.current.page(after: nil, limit: 20)
        guard show(firstPage, difference.count) else { break }
    }
}
// OwnEvents-7 ends

package enum OwnEvents {
    package static let rules: [EventRule] = [.of(HabitDone.self, action: "DO_HABIT")]

    package static func open(at url: URL) async throws -> EventStore {
        // OwnEvents-2 begins
        let store = try await EventStore.open(
            at: url, account: "user-456",
            rules: [.of(HabitDone.self, action: "DO_HABIT")], views: [Habits.self])
        // OwnEvents-2 ends
        return store
    }

    package static func record(in store: EventStore) async throws -> Int {
        // OwnEvents-3 begins
        try await store.append(HabitDone(habit: "reading", minutes: 20))
        let minutes = store.view(Habits.self).minutes["reading"] ?? 0  // 20
        // OwnEvents-3 ends
        return minutes
    }

    package static func decide(in store: EventStore) async throws -> Int {
        // OwnEvents-4 begins
        let left = try await store.write { transaction in
            let done = transaction.view(Habits.self).minutes["reading"] ?? 0
            guard done < 60 else { return 0 }
            try transaction.append(HabitDone(habit: "reading", minutes: 60 - done))
            return 60 - done
        }
        // OwnEvents-4 ends
        return left
    }

    package static func follow(
        _ store: EventStore, _ show: @Sendable (Int) -> Bool
    ) async {
        // OwnEvents-5 begins
        let reading = store.query(Habits.self) { $0.minutes["reading"] ?? 0 }
        for await minutes in reading.changes {
            guard show(minutes) else { break }
        }
        // OwnEvents-5 ends
    }

    package static func ship(
        _ store: EventStore, to endpoint: URL, until deadline: Date
    ) async throws -> SyncReport {
        // OwnEvents-8 begins
        let report = try await store.sync(
            to: endpoint, credentials: BearerToken("…"), until: deadline)
        print("\(report.applied) shipped, \(report.pending) still to go")
        // OwnEvents-8 ends
        return report
    }

    package static func keepInStep(_ store: EventStore, _ endpoint: URL) -> Task<Void, any Error> {
        // OwnEvents-9 begins
        let service = SyncService(store, transport: HTTPTransport(endpoint: endpoint))
        let syncing = Task { try await service.run() }
        // OwnEvents-9 ends
        return syncing
    }

    package static func leave(
        _ store: EventStore, copy: URL
    ) async throws -> (events: Int, removed: Int) {
        // OwnEvents-10 begins
        let copied = try await store.export(to: copy)
        let compacted = try await store.compact()
        do {
            try await store.erase()
        } catch let unsynced as UnsyncedError {
            print("\(unsynced.count) changes have not been saved online yet.")
            try await store.erase(discardingUnsynced: true)
        }
        // OwnEvents-10 ends
        return (copied.events, compacted.removed)
    }
}
