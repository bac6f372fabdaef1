// The code of the article "Testing your app".

import Daybook
import DaybookTestKit
import Foundation
import Testing

@testable import Engine

// Testing-1 begins
@Test func minutesOfAHabitAreInTheView() async throws {
    let store = try await EventStore.inMemory(
        account: "user-456", views: [Habits.self], clock: { Date(timeIntervalSince1970: 0) })
    try await store.append(HabitDone(habit: "reading", minutes: 20))
    #expect(store.view(Habits.self).minutes == ["reading": 20])
    let event = try await store.event(at: Position(1))
    #expect(event?.time == Timestamp(milliseconds: 0))
    try await store.close()
}
// Testing-1 ends

// Testing-2 begins
@Test func minutesAreThereAfterARestart() async throws {
    let environment = LogEnvironment(fileSystem: InMemoryFileSystem())
    for opening in 1...3 {
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), account: "user-456", views: [Habits.self],
            environment: environment)
        try await store.append(HabitDone(habit: "reading", minutes: 20))
        #expect(store.view(Habits.self).minutes["reading"] == 20 * opening)
        try await store.close()
    }
}
// Testing-2 ends

// Testing-3 begins
@Test func aFullDiskLosesNothing() async throws {
    let files = InMemoryFileSystem()
    let store = try await open(files)
    files.setQuota(files.usedBytes)
    // Random names: data that compress well would fit into the preallocated space.
    let drafts = try (0..<4_000).map { _ in
        try EventDraft(HabitDone(habit: UUID().uuidString, minutes: 1))
    }
    let error = await #expect(throws: LogError.self) { try await store.append(contentsOf: drafts) }
    #expect(error?.code == .diskFull)
    #expect(store.view(Habits.self).minutes.isEmpty)
    files.setQuota(nil)
    try await store.append(contentsOf: drafts)
    #expect(store.view(Habits.self).minutes.count == drafts.count)
    try await store.close()
}

func open(_ files: any FileSystem) async throws -> EventStore {
    try await EventStore.open(
        at: URL(filePath: "/log"), views: [Habits.self],
        environment: LogEnvironment(fileSystem: files))
}
// Testing-3 ends

// Testing-4 begins
@Test func recordedHabitsSurviveAPowerCut() async throws {
    try await Property.check("recorded habits survive", runs: 50) { choices in
        let machine = SimulatedFileSystem()
        machine.cutPower(at: choices.int(in: 0...60))
        var recorded: Set<String> = []
        do {
            let store = try await open(machine)
            for habit in ["reading", "running", "chess"] {
                try await store.append(HabitDone(habit: habit, minutes: 20))
                recorded.insert(habit)
            }
            try await store.close()
        } catch is LogError {}

        let again = try await open(machine.afterPowerCut(&choices))
        let found = Set(again.view(Habits.self).minutes.keys)
        // The append that the power cut interrupted may be recorded.
        try #require(recorded.isSubset(of: found) && found.count <= recorded.count + 1)
        try await again.close()
    }
}
// Testing-4 ends

// Testing-5 begins
/// A server that accepts events of one habit only, reading.
func pickyServer() -> InMemorySyncServer {
    InMemorySyncServer { event in
        event.subject == "reading"
            ? nil : Verdict(id: event.id, status: .rejected, detail: "no such habit")
    }
}

@Test func aRejectedHabitIsShownAsFailed() async throws {
    let store = try await EventStore.inMemory(
        rules: [.of(HabitDone.self, action: "DO_HABIT")], views: [Habits.self])
    try await store.append(HabitDone(habit: "reading", minutes: 20))
    try await store.append(HabitDone(habit: "juggling", minutes: 20))
    let report = try await store.sync(over: pickyServer())
    #expect(report.applied == 1 && report.rejected == 1)
    let entries = store.view(Outbox.self).entries
    #expect(entries.map(\.entityId) == ["juggling"] && entries.map(\.status) == [.failed])
    try await store.close()
}
// Testing-5 ends

// Testing-8 begins
func syncThroughFaults(_ devices: DevicePair, _ choices: inout Choices) async throws {
    let (shared, clock) = (SharedChoices(choices), devices.clock)
    defer { choices = shared.choices }
    let network = SimulatedNetwork(
        shared, clock: clock, replicas: [devices.server], faults: [.requestLost, .replyLost])
    for store in [devices.phone, devices.tablet] {
        _ = try await Replayer(store, transport: network) { clock.advance(by: $0) }.run()
    }
    try await devices.sync()
}
// Testing-8 ends

@Test func lostRequestsAndRepliesLoseNoHabit() async throws {
    let faults = [NetworkFault.requestLost, .replyLost].map(\.rawValue)
    try await Property.check("faults lose no habit", runs: 10, covering: faults) { choices in
        let devices = try await DevicePair(
            rules: [.of(HabitDone.self, action: "DO_HABIT")], views: [Habits.self])
        for store in [devices.phone, devices.tablet] {
            try await store.append(HabitDone(habit: "reading", minutes: 20))
        }
        try await syncThroughFaults(devices, &choices)
        for store in [devices.phone, devices.tablet] {
            try #require(store.view(Habits.self).minutes["reading"] == 40)
            try #require(store.outbox.count == 0)
        }
        try await devices.close()
    }
}

// Testing-6 begins
struct HabitHistory: StateMachine {
    enum Operation { case record, fillUp, restart }
    enum Command { case record(String, minutes: Int), fillUp(String), restart }

    let files = InMemoryFileSystem()
    let swarm: Swarm<Operation>
    var store: EventStore
    /// The model: the expected minutes of each habit.
    var minutes: [String: Int] = [:]

    init(_ choices: inout Choices) async throws {
        // Each run omits some of the operations.
        swarm = Swarm([.record, .record, .fillUp, .restart], &choices)
        store = try await open(files)
    }

    func next(_ choices: inout Choices) -> Command {
        let habit = choices.element(of: ["reading", "running", "chess"])
        return switch swarm.next(&choices) {
        case .record: .record(habit, minutes: choices.int(in: 1...30))
        case .fillUp: .fillUp(habit)
        case .restart: .restart
        }
    }

    func allows(_ command: Command) -> Bool {
        if case .fillUp(let habit) = command { minutes[habit, default: 0] < 60 } else { true }
    }

    mutating func run(_ command: Command) async throws {
        switch command {
        case .record(let habit, let done):
            try await store.append(HabitDone(habit: habit, minutes: done))
            minutes[habit, default: 0] += done
        case .fillUp(let habit):
            try await store.write { transaction in
                let done = transaction.view(Habits.self).minutes[habit] ?? 0
                try transaction.append(HabitDone(habit: habit, minutes: 60 - done))
            }
            minutes[habit] = 60
        case .restart:
            try await store.close()
            store = try await open(files)
        }
    }

    func check() async throws {
        let shown = store.view(Habits.self).minutes
        try #require(shown.count == minutes.count && shown.allSatisfy { minutes[$0] == $1 })
    }
}

@Test func theViewSaysWhatWasRecorded() async throws {
    let rare = "a habit has more than an hour"
    try await Property.check("minutes add up", runs: 20, covering: [rare]) { choices in
        var history = try await HabitHistory(&choices)
        try await choices.run(&history, steps: 0...30)
        if history.minutes.values.contains(where: { $0 > 60 }) { choices.count(rare) }
        try await history.store.close()
    }
}
// Testing-6 ends

// Testing-7 begins
@Test func equalEventsCountOneByOne() async throws {
    // Twice 20 minutes.
    let kept: [[UInt64]] = [[3, 19, 3, 19, 0]]
    try await Property.check("each event counts", runs: 20, regressions: kept) { choices in
        let all = choices.array(0...5) { $0.int(in: 1...60) }
        let store = try await EventStore.inMemory(views: [Habits.self])
        for minutes in all {
            try await store.append(HabitDone(habit: "reading", minutes: minutes))
        }
        try #require(store.view(Habits.self).minutes["reading", default: 0] == all.reduce(0, +))
        try await store.close()
    }
}
// Testing-7 ends
