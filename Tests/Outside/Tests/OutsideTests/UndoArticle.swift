// The code of the article "Undoing changes".

import Daybook
import DaybookTestKit
import Foundation
import Testing

@testable import Engine

struct LevelReached: EventPayload, Codable {
    static let type = "com.example.level.reached"
    var level: Int
}

// Undoing-1 begins
/// Sets a goal. The app keeps the id for its undo button.
func setGoal(_ goal: GoalSet, undoably store: EventStore) async throws -> UUID {
    try await store.append(goal).id
}

/// Undoes a goal, or says why not.
func undoGoal(_ id: UUID, in store: EventStore) async throws -> String? {
    do {
        try await store.undo(id)  // later: try await store.redo(id)
        return nil
    } catch let error as UndoError { return error.detail }
}
// Undoing-1 ends

// Undoing-2 begins
let undoableRules: [EventRule] = [
    .of(GoalSet.self, action: "SET_GOAL").undoable { (set: GoalSet, before: Goals) in
        before.goals[set.habit].map { GoalSet(habit: set.habit, minutes: $0.value.minutes) }
    },
    // A sum: minus 20 minutes undo 20 minutes.
    .of(HabitDone.self, action: "DO_HABIT").undoable { (done: HabitDone) in
        HabitDone(habit: done.habit, minutes: -done.minutes)
    },
    .of(LevelReached.self).notUndoable(because: "a level that was reached stays reached"),
]
// Undoing-2 ends

@Test func goalsAreUndoneAndLevelsAreNot() async throws {
    let store = try await EventStore.inMemory(
        rules: undoableRules, views: [Habits.self, Goals.self])
    func minutes() -> Int? { store.view(Goals.self).goals["reading"]?.value.minutes }
    let first = try await setGoal(GoalSet(habit: "reading", minutes: 10), undoably: store)
    #expect(try await undoGoal(first, in: store)?.contains("there was nothing before") == true)
    let second = try await setGoal(GoalSet(habit: "reading", minutes: 30), undoably: store)
    #expect(try await undoGoal(second, in: store) == nil)
    #expect(minutes() == 10)
    try await store.redo(second)
    #expect(minutes() == 30)
    let walk = try await store.append(HabitDone(habit: "walking", minutes: 20))
    try await store.undo(walk.id)
    #expect(store.view(Habits.self).minutes["walking"] == 0)
    let level = try await store.append(LevelReached(level: 2))
    #expect(try await undoGoal(level.id, in: store)?.hasSuffix("stays reached") == true)
    try await store.close()
}
