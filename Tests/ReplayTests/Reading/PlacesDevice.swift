// A device of the app with places.

import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import Replay

/// Decides conflicts by a function, and notes the titles that lose.
final class ChosenResolver: ConflictResolver {
    private let choose: @Sendable () -> Int
    let lost = Mutex<Set<String>>([])
    let asked = Mutex(0)

    init(_ choose: @escaping @Sendable () -> Int) { self.choose = choose }

    func resolve(_ conflict: Conflict) throws -> Resolution {
        asked.withLock { $0 += 1 }
        switch choose() {
        case 0: return .undecided
        case 1:
            for event in conflict.pending {
                let change = try event.payload(as: PlaceTitled.self)
                lost.withLock { _ = $0.insert(change.title) }
            }
            return .keepTheirs
        default: return .keepMine
        }
    }
}

struct PlacesDevice {
    let clock: VirtualClock
    var files = InMemoryFileSystem()
    var store: EventStore
    let api: PlacesAPI
    let rules: [EventRule]
    private var starts: UInt64

    init(
        _ api: PlacesAPI, matches: Bool = true, teaches: Bool = true, seed: UInt64 = 1,
        clock: VirtualClock = VirtualClock(), rules: [EventRule]? = nil
    ) async throws {
        self.api = api
        self.clock = clock
        starts = seed
        self.rules = rules ?? api.rules(matches: matches, teaches: teaches)
        store = try await Self.open(files, clock, self.rules, seed)
    }

    private static func open(
        _ files: InMemoryFileSystem, _ clock: VirtualClock, _ rules: [EventRule], _ seed: UInt64
    ) async throws -> EventStore {
        try await EventStore.open(
            at: "/log", account: "ann", catalogue: EventCatalogue(rules),
            views: [Outbox.self, APIStates.self, Places.self, NewestPlaces.self],
            environment: clock.environment(fileSystem: files, seed: seed))
    }

    /// Opens the log again as it is on the disk: the process was killed.
    mutating func reopen(_ snapshot: InMemoryFileSystem? = nil) async throws {
        files = snapshot ?? files.snapshot()
        starts += 100
        store = try await Self.open(files, clock, rules, starts)
    }

    @discardableResult
    func run(
        deciding resolver: (any ConflictResolver)? = nil, sources: [PullSource]? = nil,
        api name: String = "places", ships: Bool = true, as user: any Credentials = NoCredentials(),
        requests: Int = 1, over client: (any APIClient)? = nil
    ) async throws -> SyncReport {
        var options = Replayer.Options()
        options.requestsMax = requests
        options.resolver = resolver
        options.ships = ships
        let transport = try RequestTransport(
            store, api: name, at: #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), reading: sources ?? [api.source],
            client: client ?? api)
        let clock = clock
        return try await Replayer(store, transport: transport, credentials: user, options: options)
        {
            clock.advance(by: $0)
        }.run()
    }

    /// Syncs with a server over HTTP.
    func run(at server: LocalServer) async throws -> SyncReport {
        let transport = try RequestTransport(
            store, api: "places", at: #require(URL(string: server.base)),
            promise: .once(keysKeptFor: nil), reading: [api.source])
        return try await Replayer(store, transport: transport).run()
    }

    func title(_ place: String, _ title: String) async throws {
        try await store.append(PlaceTitled(place: place, title: title))
    }

    var titles: [String: String] { store.view(Places.self).titles }
    var outbox: Outbox { store.view(Outbox.self) }

    /// All events of the log.
    func log() throws -> [Event] {
        var events: [Event] = []
        try LogReader("/log", fileSystem: files).forEachEvent(catalogue: store.catalogue) {
            events.append($0)
            return true
        }
        return events
    }

    /// The number of the log's events of a type.
    func count(_ type: String) throws -> Int {
        try log().count { $0.type == type }
    }
}
