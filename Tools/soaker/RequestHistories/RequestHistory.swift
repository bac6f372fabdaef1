// One history of an app with its own API: changes are made offline, requests and answers are lost, delayed and
// replaced, the app is killed and the power cut. At the end the API has each change as often as promised.
// `Tools/soak requests` runs many. Spec/testing/testing.md.

import Daybook
import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay

/// A change that is lost, doubled, out of order or sent with a number that the API has not told.
public struct RequestFailure: Error, CustomStringConvertible {
    /// The violation.
    public let description: String
}

/// A history of one device and one API.
public struct RequestHistory {
    /// What the API and the app promise together.
    enum Promise: String, CaseIterable {
        case once = "once"
        case onceForAnHour = "once, keys kept for an hour"
        case onceWithQuestion = "once, keys kept for an hour, with a question"
        case atLeastOnce = "at least once"
        case atLeastOnceWithQuestion = "at least once, with a question"
    }

    /// The labels that a few hundred histories must have counted.
    public static let labels =
        Promise.allCases.map(\.rawValue) + [
            "bulk requests", "histories with lost answers", "keys expired", "kills",
            "late requests", "lost answers", "places removed", "power cuts", "refused",
        ]

    private static let hour = Duration.seconds(3_600)
    private let promise: Promise
    private let isBulk: Bool
    private let rules: [EventRule]
    private let clock = VirtualClock()
    private let connection: SimulatedConnection
    private let api: SimulatedPlaces
    private var files: SimulatedFileSystem
    private var store: EventStore
    private var starts: UInt64 = 1
    /// The ids of the events of each place, in order, without those that the user has discarded.
    private var expected: [String: [UUID]] = [:]
    private var removed: Set<String> = []
    private var kills = 0

    /// Runs a history.
    ///
    /// - Parameters:
    ///   - choices: decide all of it; which requests share a bulk depends on the machine, too.
    ///   - mistake: a mistake of the app, with which a search must fail.
    /// - Throws: `RequestFailure` if a promise is not kept.
    public static func run(
        _ choices: inout Choices, mistake: PlaceRules.Mistake? = nil
    ) async throws {
        var history = try await RequestHistory(&choices, mistake)
        defer { choices = history.connection.choices }
        try await history.run()
    }

    private init(_ choices: inout Choices, _ mistake: PlaceRules.Mistake?) async throws {
        let promise = choices.element(of: Promise.allCases)
        choices.count(promise.rawValue)
        self.promise = promise
        isBulk = choices.bool(oneIn: 4)
        rules = PlaceRules.all(mistake)
        let files = SimulatedFileSystem()
        self.files = files
        // A request that arrives late is applied again by an API that has no key of it.
        let connection = SimulatedConnection(choices, files, mayBeLate: promise == .once)
        self.connection = connection
        let keys: SimulatedPlaces.Keys =
            switch promise {
            case .once: mistake == .assumesKeys ? .ignored : .keptForEver
            case .onceForAnHour, .onceWithQuestion: .kept(for: Self.hour)
            case .atLeastOnce, .atLeastOnceWithQuestion: .ignored
            }
        api = SimulatedPlaces(keys, clock) { connection.nextFate() }
        store = try await Self.open(files, clock, rules, seed: 1)
    }

    private static func open(
        _ files: SimulatedFileSystem, _ clock: VirtualClock, _ rules: [EventRule], seed: UInt64
    ) async throws -> EventStore {
        try await EventStore.open(
            at: "/log", account: "ana", catalogue: EventCatalogue(rules),
            views: [Outbox.self, PlaceNumbers.self],
            environment: clock.environment(fileSystem: files, seed: seed))
    }

    private func draw<Value: Sendable>(_ body: (inout Choices) -> Value) -> Value {
        connection.draw(body)
    }

    // MARK: The steps

    private mutating func run() async throws {
        for _ in 0..<draw({ $0.int(in: 1...6) }) {
            for _ in 0..<draw({ $0.int(in: 0...4) }) { try await change() }
            try await sync()
            if let killed = connection.killed {
                kills += 1
                try await reopen(killed)
            } else if draw({ $0.bool(oneIn: 6) }) {
                connection.count("power cuts")
                let files = files
                try await reopen(draw { files.afterPowerCut(&$0) })
            } else if draw({ $0.bool(oneIn: 6) }) {
                try await reopen(files.afterKill())
            }
            try await decide()
            clock.advance(by: .seconds(draw { $0.int(in: 0...5_000) }))
        }
        connection.becomeReliable()
        var left = 20
        while store.view(Outbox.self).count > 0, left > 0 {
            left -= 1
            clock.advance(by: .seconds(3_700))
            try await sync()
            try await decide()
            // Before the key expires again.
            try await sync()
        }
        api.deliverLateRequests()
        try check()
    }

    /// The user adds, renames or removes a place.
    private mutating func change() async throws {
        let place = "place-\(draw { $0.int(in: 0...3) })"
        guard !removed.contains(place) else { return }
        let id = store.newID()
        guard expected[place] != nil else {
            try await store.append(EventDraft(PlaceAdded(place: place, name: place), id: id))
            expected[place] = [id]
            return
        }
        expected[place]?.append(id)
        switch draw({ $0.int(in: 0...7) }) {
        case 5, 6:
            connection.count("places removed")
            removed.insert(place)
            try await store.append(EventDraft(PlaceRemoved(place: place), id: id))
        case 7:
            connection.count("refused")
            try await store.append(EventDraft(PlaceRenamed(place: place, name: "refused"), id: id))
        default:
            let name = "name \(expected[place]?.count ?? 0)"
            try await store.append(EventDraft(PlaceRenamed(place: place, name: name), id: id))
        }
    }

    private func sync() async throws {
        let clock = clock
        var options = Replayer.Options()
        // Without bulks the same order of requests in every run.
        options.requestsMax = isBulk ? 4 : 1
        _ = try await Replayer(store, transport: transport(), options: options) {
            clock.advance(by: $0)
        }.run()
    }

    private func transport() throws -> RequestTransport {
        let isThere = Confirmation { context in
            APIRequest(.get, "changes", context.event.id.uuidString.lowercased())
        }
        let promise: RequestPromise =
            switch promise {
            case .once: .once(keysKeptFor: nil)
            case .onceForAnHour: .once(keysKeptFor: Self.hour)
            case .onceWithQuestion: .once(keysKeptFor: Self.hour, confirm: isThere)
            case .atLeastOnce: .atLeastOnce()
            case .atLeastOnceWithQuestion: .atLeastOnce(confirm: isThere)
            }
        guard let base = URL(string: "https://api.example.com/v1") else {
            throw RequestFailure(description: "the address is no URL")
        }
        return try RequestTransport(
            store, api: "places", at: base, promise: promise,
            bulk: isBulk ? SimulatedPlaces.bulk : nil, client: api)
    }

    /// Opens the log again, as it is on the disk.
    private mutating func reopen(_ files: SimulatedFileSystem) async throws {
        self.files = files
        connection.restart(on: files)
        starts += 1
        store = try await Self.open(files, clock, rules, seed: starts)
    }

    /// The user decides what becomes of the parked changes: discards what is refused, and after `key_expired` asks
    /// elsewhere whether the change is there.
    private mutating func decide() async throws {
        for entry in store.outbox.entries where entry.status == .failed {
            switch entry.code {
            case "http_422": try await discard(entry.id)
            case RequestTransport.Code.keyExpired:
                connection.count("keys expired")
                if api.snapshot.applied.contains(entry.id.uuidString.lowercased()) {
                    try await discard(entry.id)
                } else {
                    try await store.outbox.retry(entry.id)
                }
            case RequestTransport.Code.noRequest, RequestTransport.Code.unusableAnswer:
                throw RequestFailure(
                    description:
                        "a change is parked: \(entry.code ?? ""), \(entry.errorMessage ?? "")")
            default: break
            }
        }
    }

    private mutating func discard(_ id: UUID) async throws {
        // With an event that was discarded before.
        guard store.outbox.entries.contains(where: { $0.id == id }) else { return }
        let discarded = Set(try await store.outbox.discard(id, withDependents: true))
        for place in expected.keys {
            expected[place]?.removeAll { discarded.contains($0) }
            // The user sees no such place any more.
            if expected[place] == [] { removed.insert(place) }
        }
    }

    // MARK: The end

    private func check() throws {
        let api = api.snapshot
        if let violation = api.violations.first { throw RequestFailure(description: violation) }
        if let entry = store.outbox.entries.first {
            let reason = "\(entry.status.rawValue), \(entry.errorMessage ?? "no answer")"
            throw RequestFailure(
                description: "\(entry.action) is not settled: \(reason) (\(promise.rawValue))")
        }
        let counts = Dictionary(api.applied.map { ($0, 1) }, uniquingKeysWith: +)
        for (place, ids) in expected {
            let keys = ids.map { $0.uuidString.lowercased() }
            if let lost = keys.first(where: { counts[$0] == nil }) {
                throw RequestFailure(
                    description: "the change \(lost) is lost (\(promise.rawValue))")
            }
            var seen: Set<String> = []
            let order = api.applied.filter { keys.contains($0) && seen.insert($0).inserted }
            guard order == keys else {
                throw RequestFailure(description: "the changes of \(place) are out of order")
            }
        }
        for (key, count) in counts where count > 1 {
            // A kill loses the answers to the other requests that are under way.
            let killed = isBulk ? kills : 0
            let allowed = promise == .atLeastOnce ? killed + api.lostAnswers[key, default: 0] : 0
            guard count - 1 <= allowed else {
                throw RequestFailure(
                    description:
                        "the change \(key) took effect \(count) times (\(promise.rawValue))")
            }
            connection.count("doubled, at least once", by: count - 1)
        }
        connection.count("requests", by: api.requests)
        connection.count("bulk requests", by: api.bulks)
        connection.count("changes", by: expected.values.reduce(0) { $0 + $1.count })
        if !api.lostAnswers.isEmpty { connection.count("histories with lost answers") }
    }
}
