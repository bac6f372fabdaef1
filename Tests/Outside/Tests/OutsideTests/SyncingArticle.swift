// The code of the article "Syncing with a server".

import Daybook
import DaybookTestKit
import Foundation
import Testing

@testable import Engine

private func openHabits() async throws -> EventStore {
    try await .inMemory(rules: OwnEvents.rules, views: [Habits.self])
}

// Syncing-1 begins
/// Syncs while the app runs. The app cancels the task at logout.
func keepInStep(_ store: EventStore, with server: any Transport) -> Task<Void, any Error> {
    let workers = store.workers()
    workers.sync(over: server)
    return Task { try await workers.run() }
}
// Syncing-1 ends

@Test func theServiceShips() async throws {
    let store = try await openHabits()
    try await store.append(HabitDone(habit: "reading", minutes: 20))
    #expect(store.outboxCount.current == 1)
    let syncing = keepInStep(store, with: pickyServer())
    for await count in store.outboxCount.changes where count == 0 { break }
    syncing.cancel()
    _ = await syncing.result
    try await store.close()
}

// Syncing-2 begins
/// One line for a settings screen.
func line(for status: SyncStatus) -> String {
    if let obstacle = status.obstacle, status.pending > 0 {
        return "\(status.pending) not sent: \(obstacle.message)"
    }
    switch status.connection {
    case .pushed where status.pending == 0: return "Up to date"
    case .inactive: return "Syncing is off"
    default: return status.behind.map { "\($0) to read" } ?? "Connecting"
    }
}
// Syncing-2 ends

@Test func theStatusLineSaysWhatIsInTheWay() async throws {
    let store = try await openHabits()
    #expect(line(for: store.syncStatus.current) == "Syncing is off")
    try await store.append(HabitDone(habit: "reading", minutes: 20))
    var status = store.syncStatus.current
    status.obstacle = SyncStatus.Obstacle(kind: .offline, message: "no network")
    #expect(line(for: status) == "1 not sent: no network")
    try await store.close()
}

// Syncing-3 begins
func refreshInBackground(
    _ store: EventStore, _ endpoint: URL, until deadline: Date
) async throws {
    let report = try await store.sync(
        to: endpoint, credentials: NoCredentials(), resolver: KeepMine(), until: deadline)
    print("\(report.applied) shipped, \(report.received) received, \(report.pending) left")
}
// Syncing-3 ends

@Test func aRefreshWithoutAServerEndsInTime() async throws {
    let store = try await openHabits()
    try await store.append(HabitDone(habit: "reading", minutes: 20))
    let endpoint = try #require(URL(string: unreachableAddress))
    try await refreshInBackground(store, endpoint, until: Date(timeIntervalSinceNow: 0.5))
    #expect(store.view(Outbox.self).count == 1)
    try await store.close()
}

// Syncing-4 begins
/// The goal of a habit was set.
struct GoalSet: EventPayload, Codable {
    static let type = "com.example.goal.set"
    var habit: String
    var minutes: Int
    var subject: String? { habit }
    var lane: String? { "goal:\(habit)" }
}

/// The goal of each habit, and the event that has set it.
struct Goals: Projection, Codable {
    static let name = "goals"
    static let version = 1
    private(set) var goals: StateDictionary<String, Register<Goal>> = [:]

    struct Goal: Codable, Hashable {
        var minutes: Int
        var event: UUID
    }

    mutating func fold(_ event: Event) {
        guard event.type == GoalSet.type, let goal = try? event.payload(as: GoalSet.self)
        else { return }
        goals[goal.habit].set(Goal(minutes: goal.minutes, event: event.id), event.lwwTimestamp)
    }
}

/// Replaces the goal that this device shows.
func setGoal(_ goal: GoalSet, in store: EventStore) async throws {
    try await store.write { transaction in
        let shown = transaction.view(Goals.self).goals[goal.habit]
        transaction.append(
            try EventDraft(goal, basedOn: shown?.value.event ?? EventDraft.noBase),
            replacing: shown?.lwwTimestamp)
    }
}
// Syncing-4 ends

// Syncing-5 begins
/// Of two goals that were set on two devices, the greater one counts.
let greaterGoal = Merge { conflict in
    guard let mine = conflict.pending.last?.content, mine.type == GoalSet.type,
        let theirs = conflict.current, theirs.type == GoalSet.type
    else { return nil }
    var goal = try GoalSet(json: mine.json ?? [])
    goal.minutes = max(goal.minutes, try GoalSet(json: theirs.json ?? []).minutes)
    return try EventDraft(goal)
}
// Syncing-5 ends

// Syncing-6 begins
@Test func ofTwoGoalsTheGreaterOneCounts() async throws {
    let devices = try await DevicePair(
        rules: [.of(GoalSet.self, action: "SET_GOAL")], views: [Goals.self])
    try await setGoal(GoalSet(habit: "reading", minutes: 10), in: devices.phone)
    try await devices.sync()
    try await setGoal(GoalSet(habit: "reading", minutes: 30), in: devices.phone)
    try await setGoal(GoalSet(habit: "reading", minutes: 20), in: devices.tablet)
    try await devices.sync(resolver: greaterGoal)
    for store in [devices.phone, devices.tablet] {
        #expect(store.view(Goals.self).goals["reading"]?.value.minutes == 30)
    }
    try await devices.close()
}
// Syncing-6 ends

@Test func aGoalBasedOnAnOlderOneIsInConflict() async throws {
    let devices = try await DevicePair(
        rules: [.of(GoalSet.self, action: "SET_GOAL")], views: [Goals.self])
    try await setGoal(GoalSet(habit: "reading", minutes: 10), in: devices.phone)
    try await devices.sync()
    try await setGoal(GoalSet(habit: "reading", minutes: 30), in: devices.phone)
    try await setGoal(GoalSet(habit: "reading", minutes: 20), in: devices.tablet)
    try await setGoal(GoalSet(habit: "running", minutes: 20), in: devices.tablet)
    try await devices.sync()
    #expect(devices.phone.outbox.count == 0)
    #expect(devices.tablet.outbox.entries.map(\.status) == [.conflict])
    #expect(devices.tablet.outbox.entries.first?.entityId == "reading")
    try await devices.close()
}

@Test(arguments: [(20, 30), (30, 20)])
func theGreaterGoalReplacesBoth(mine: Int, theirs: Int) async throws {
    let store = try await EventStore.inMemory()
    try await store.append(GoalSet(habit: "reading", minutes: mine))
    let event = try #require(try await store.event(at: Position(1)))
    let conflict = Conflict(
        lane: event.lane, current: try EventDraft(GoalSet(habit: "reading", minutes: theirs)),
        pending: [event])
    guard case .replace(let drafts) = try await greaterGoal.resolve(conflict) else {
        Issue.record("both goals are known, and neither was replaced")
        return
    }
    #expect(try drafts.map { try GoalSet(json: $0.json ?? []).minutes } == [30])
    try await store.close()
}

@Test func aGoalThatTheServerDoesNotShowStaysInConflict() async throws {
    let conflict = Conflict(lane: "goal:reading", current: nil, pending: [])
    guard case .undecided = try await greaterGoal.resolve(conflict) else {
        Issue.record("a conflict was decided without the server's event")
        return
    }
}

// Syncing-7 begins
/// Asks for each conflict between two goals whether this device's goal counts.
func decideGoals(
    in store: EventStore, keepsMine: @Sendable (_ mine: GoalSet, _ theirs: GoalSet?) async -> Bool
) async throws {
    for entry in Array(store.outbox.entries) where entry.status == .conflict {
        guard let conflict = try await store.outbox.conflict(entry.id),
            let mine = try? conflict.pending.last?.payload(as: GoalSet.self)
        else { continue }
        let theirs = try conflict.current?.json.map { try GoalSet(json: $0) }
        try await store.outbox.resolve(
            conflict, await keepsMine(mine, theirs) ? .keepMine : .keepTheirs)
    }
}
// Syncing-7 ends

@Test(arguments: [true, false])
func theUserDecidesBetweenTwoGoals(keepsMine: Bool) async throws {
    let devices = try await DevicePair(
        rules: [.of(GoalSet.self, action: "SET_GOAL")], views: [Goals.self])
    try await setGoal(GoalSet(habit: "reading", minutes: 10), in: devices.phone)
    try await devices.sync()
    try await setGoal(GoalSet(habit: "reading", minutes: 30), in: devices.phone)
    try await setGoal(GoalSet(habit: "reading", minutes: 20), in: devices.tablet)
    try await devices.sync()
    try await decideGoals(in: devices.tablet) { mine, theirs in
        #expect(mine.minutes == 20)
        #expect(theirs?.minutes == 30)
        return keepsMine
    }
    try await devices.sync()
    for store in [devices.phone, devices.tablet] {
        let minutes = store.view(Goals.self).goals["reading"]?.value.minutes
        #expect(minutes == (keepsMine ? 20 : 30))
        #expect(store.outbox.count == 0)
    }
    try await devices.close()
}

@Test func aBaseThatTheServerDoesNotKnowIsAConflict() async throws {
    let devices = try await DevicePair(
        rules: [.of(GoalSet.self, action: "SET_GOAL")], views: [Goals.self])
    let goal = GoalSet(habit: "reading", minutes: 10)
    let draft = try EventDraft(goal, basedOn: UUID())
    try await devices.phone.append(contentsOf: [draft])
    try await devices.sync()
    let conflict = try #require(try await devices.phone.outbox.conflict(draft.id))
    #expect(conflict.current == nil)
    try await devices.phone.outbox.resolve(draft.id, .keepMine)
    try await devices.sync()
    let again = try #require(devices.phone.outbox.entries.first)
    #expect(again.status == .conflict)
    try await devices.phone.outbox.resolve(again.id, .replace([try EventDraft(goal)]))
    try await devices.sync()
    #expect(devices.phone.outbox.count == 0)
    #expect(devices.tablet.view(Goals.self).goals["reading"]?.value.minutes == 10)
    try await devices.close()
}

// Syncing-8 begins
/// Sends useful events again that the server has rejected, and discards the others.
func decide(_ store: EventStore, isUseful: (OutboxEntry) -> Bool) async throws {
    for entry in Array(store.outbox.entries) where entry.parking == .rejected {
        if isUseful(entry) {
            try await store.outbox.retry(entry.id)
        } else {
            try await store.outbox.discard(entry.id, withDependents: true)
        }
    }
}
// Syncing-8 ends

@Test func aDiscardedEventCountsAsNeverRecorded() async throws {
    let store = try await openHabits()
    for habit in ["reading", "juggling", "chess"] {
        try await store.append(HabitDone(habit: habit, minutes: 20))
    }
    _ = try await Replayer(store, transport: pickyServer()).run()
    try await decide(store) { $0.entityId == "chess" }
    #expect(store.view(Habits.self).minutes == ["reading": 20, "chess": 20])
    // Pending, so it will be sent again.
    #expect(store.outbox.entries.map(\.status) == [.pending])
    try await store.close()
}
