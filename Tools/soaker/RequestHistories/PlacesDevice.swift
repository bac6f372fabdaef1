// A device of the app that reads its places.

import Daybook
import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay

package struct PlacesDevice {
    package let clock: VirtualClock
    package private(set) var files = SimulatedFileSystem()
    package private(set) var store: EventStore
    package private(set) var api: PlacesAPI
    private(set) var account: String
    private var rules: [EventRule]
    private let promise: RequestPromise
    private var folder = "/log"
    private var starts: UInt64

    /// - Parameters:
    ///   - rules: the rules of the app; nil for those of the API.
    ///   - promise: what API and app promise; nil for once, keys kept for ever.
    package init(
        _ api: PlacesAPI, matches: Bool = true, teaches: Bool = true, seed: UInt64 = 1,
        clock: VirtualClock = VirtualClock(), account: String = "ann", rules: [EventRule]? = nil,
        promise: RequestPromise? = nil
    ) async throws {
        self.api = api
        self.clock = clock
        self.account = account
        starts = seed << 32
        self.rules = rules ?? api.rules(matches: matches, teaches: teaches)
        self.promise = promise ?? .once(keysKeptFor: nil)
        store = try await Self.open(files, folder, account, clock, self.rules, starts)
    }

    private static func open(
        _ files: SimulatedFileSystem, _ folder: String, _ account: String, _ clock: VirtualClock,
        _ rules: [EventRule], _ seed: UInt64
    ) async throws -> EventStore {
        try await EventStore.open(
            at: folder, account: account, catalogue: EventCatalogue(rules),
            views: [
                Outbox.self, APIStates.self, Places.self, NewestPlaces.self, PlaceNumbers.self,
            ],
            environment: clock.environment(fileSystem: files, seed: seed))
    }

    /// Opens the log again as it is on the disk, after the process was killed.
    ///
    /// - Parameter disk: the disk; nil for that of a kill at this moment.
    package mutating func reopen(_ disk: SimulatedFileSystem? = nil) async throws {
        files = disk ?? files.afterKill()
        starts += 1
        store = try await Self.open(files, folder, account, clock, rules, starts)
    }

    /// A disk with the log.
    package struct Backup {
        fileprivate let files: SimulatedFileSystem
        fileprivate let folder: String
    }

    /// The disk at this moment.
    package func backup() -> Backup { Backup(files: files.afterKill(), folder: folder) }

    /// Opens a copy of the log that a backup has, as after a restore.
    package mutating func restore(_ backup: Backup) async throws {
        let disk = backup.files.afterKill()
        let copy = "/copy-\(starts)"
        try disk.copyFolder(backup.folder, to: copy)
        folder = copy
        try await reopen(disk)
    }

    /// Erases the log, and begins one of another account with its own API.
    mutating func erase(for account: String, _ api: PlacesAPI, _ rules: [EventRule]) async throws {
        try await store.erase(discardingUnsynced: true)
        (self.account, self.api, self.rules) = (account, api, rules)
        try await reopen()
    }

    /// Compacts the log.
    ///
    /// - Returns: the number of removed events.
    package func compact() async throws -> Int {
        try await store.compact(sealing: true).removed
    }

    @discardableResult
    package func run(
        deciding resolver: (any ConflictResolver)? = nil, sources: [PullSource]? = nil,
        api name: String = "places", ships: Bool = true, as user: any Credentials = NoCredentials(),
        requests: Int = 1, over client: (any APIClient)? = nil
    ) async throws -> SyncReport {
        var options = Replayer.Options()
        options.requestsMax = requests
        options.resolver = resolver
        options.ships = ships
        guard let base = URL(string: "https://api.example.com/v1") else {
            throw RequestFailure(description: "the address is no URL")
        }
        let transport = try RequestTransport(
            store, api: name, at: base, promise: promise, reading: sources ?? api.sources,
            client: client ?? api)
        let clock = clock
        return try await Replayer(store, transport: transport, credentials: user, options: options)
        {
            clock.advance(by: $0)
        }.run()
    }

    package func title(_ place: String, _ title: String) async throws {
        try await store.append(PlaceRenamed(place: place, name: title))
    }

    package var titles: [String: String] { store.view(Places.self).titles }
    package var outbox: Outbox { store.view(Outbox.self) }

    /// All events of the log.
    package func log() throws -> [Event] {
        var events: [Event] = []
        try LogReader(folder, fileSystem: files).forEachEvent(catalogue: store.catalogue) {
            events.append($0)
            return true
        }
        return events
    }

    /// The number of the log's events of a type.
    package func count(_ type: String) throws -> Int {
        try log().count { $0.type == type }
    }
}
