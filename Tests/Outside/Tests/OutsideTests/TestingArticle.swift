// The code of the article "Testing your app".

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization
import Testing

// Testing-1 begins
@Test func aSavedCityIsInTheList() async throws {
    let store = try await OfflineStore.inMemory(
        account: "user-456", clock: { Date(timeIntervalSince1970: 0) })
    try await store.cities.save("lisbon", by: "user-456")
    #expect(store.view(CitiesView.self).cityIDs == ["lisbon"])
    try await store.close()
}
// Testing-1 ends

// Testing-2 begins
@Test func notesAreThereAfterARestart() async throws {
    let environment = LogEnvironment(fileSystem: InMemoryFileSystem())
    for expected in 1...3 {
        let store = try await OfflineStore.open(
            at: URL(filePath: "/log"), account: "user-456", environment: environment)
        try await store.notes.add("Great coffee", city: "lisbon", by: "user-456")
        #expect(store.notes(in: "lisbon").current.count == expected)
        try await store.close()
    }
}
// Testing-2 ends

// Testing-3 begins
@Test func aFullDeviceIsToldAndPasses() async throws {
    let files = InMemoryFileSystem()
    let store = try await OfflineStore.open(
        at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
    files.setQuota(files.usedBytes)
    // Noise, since a text that compresses well would find room.
    let long = (0..<50_000).map { _ in String(UInt8.random(in: .min ... .max), radix: 16) }.joined()
    await #expect(throws: LogError.self) {
        try await store.notes.add(long, city: "lisbon", by: "user-456")
    }
    files.setQuota(nil)
    try await store.notes.add(long, city: "lisbon", by: "user-456")
    try await store.close()
}
// Testing-3 ends

// Testing-4 begins
@Test func whatWasSavedSurvivesAPowerCut() async throws {
    try await Property.check("saved cities survive", runs: 50) { choices in
        let machine = SimulatedFileSystem()
        machine.cutPower(at: choices.int(in: 0...60))
        var saved: [String] = []
        do {
            let store = try await open(machine)
            for city in ["lisbon", "porto", "oslo"] {
                try await store.cities.save(city, by: "user-456")
                saved.append(city)
            }
            try await store.close()
        } catch is LogError {}

        let again = try await open(machine.afterPowerCut(&choices))
        let found = again.view(CitiesView.self).cityIDs
        // The one that was under way may be there, or not.
        try #require(Set(saved).isSubset(of: found) && found.count <= saved.count + 1)
        try await again.close()
    }
}

func open(_ files: any FileSystem) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
}
// Testing-4 ends

// Testing-5 begins
/// A server that knows the city of Lisbon only.
final class PickyServer: Transport {
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        let events = try JSONSerialization.jsonObject(with: Data(batch)) as? [[String: Any]]
        let verdicts = (events ?? []).map { event in
            let isKnown = event["subject"] as? String == "lisbon"
            return ["id": event["id"], "status": isKnown ? "applied" : "rejected"]
        }
        let body = try JSONSerialization.data(withJSONObject: ["verdicts": verdicts])
        return TransportReply(status: 200, body: Array(body))
    }
}

@Test func aRejectedCityIsShownAsFailed() async throws {
    let store = try await OfflineStore.inMemory()
    try await store.cities.save("lisbon", by: "user-456")
    try await store.cities.save("atlantis", by: "user-456")
    let report = try await Replayer(store.events, transport: PickyServer()).run()
    #expect(report.applied == 1 && report.rejected == 1)
    #expect(store.view(Outbox.self).entries().map(\.status) == [.failed])
    try await store.close()
}
// Testing-5 ends

// Testing-6 begins
struct CityHistory: StateMachine {
    enum Operation { case save, unsave, restart }
    enum Command { case save(String), unsave(String), restart }

    let environment = LogEnvironment(fileSystem: InMemoryFileSystem())
    let swarm: Swarm<Operation>
    var store: OfflineStore
    var saved: Set<String> = []

    init(_ choices: inout Choices) async throws {
        // Each run does without some of the operations.
        swarm = Swarm([.save, .save, .unsave, .restart], &choices)
        store = try await OfflineStore.open(at: URL(filePath: "/log"), environment: environment)
    }

    func next(_ choices: inout Choices) -> Command {
        let city = choices.element(of: ["lisbon", "porto", "oslo"])
        return switch swarm.next(&choices) {
        case .save: .save(city)
        case .unsave: .unsave(city)
        case .restart: .restart
        }
    }

    func allows(_ command: Command) -> Bool {
        if case .unsave(let city) = command { saved.contains(city) } else { true }
    }

    mutating func run(_ command: Command) async throws {
        switch command {
        case .save(let city):
            try await store.cities.save(city, by: "user-456")
            saved.insert(city)
        case .unsave(let city):
            try await store.cities.unsave(city, by: "user-456")
            saved.remove(city)
        case .restart:
            try await store.close()
            store = try await OfflineStore.open(at: URL(filePath: "/log"), environment: environment)
        }
    }

    func check() async throws {
        try #require(store.cities.saved(by: "user-456").current == saved.sorted())
    }
}

@Test func citiesAreWhatWasSaved() async throws {
    try await Property.check("cities are what was saved", runs: 20) { choices in
        var history = try await CityHistory(&choices)
        try await choices.run(&history, steps: 0...30)
        choices.count("something is saved", by: history.saved.isEmpty ? 0 : 1)
        try await history.store.close()
    }
}
// Testing-6 ends

// Testing-7 begins
@Test func aListIsNeverLongerThanItsCities() throws {
    try Property.check("no city twice", regressions: [[3, 1, 3, 1, 0]]) { choices in
        let cities = choices.array(0...5) { $0.element(of: ["lisbon", "porto", "oslo"]) }
        try #require(Set(cities).count <= cities.count)
    }
}
// Testing-7 ends
