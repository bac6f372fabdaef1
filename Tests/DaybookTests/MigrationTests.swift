// An app in its third version opens what its first one has recorded: events by upcasters, settings
// and a new type by migration steps. Killed at every operation.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

// MARK: The app, in three versions

/// Version 1: a trip has a city.
private struct TripPlanned: EventPayload, Codable, Hashable {
    static let type = "com.example.trip.planned"
    var trip: String
    var city: String
}

/// Version 2: it has several.
private struct TripPlannedV2: EventPayload, Codable, Hashable {
    static let type = "com.example.trip.planned.v2"
    var trip: String
    var cities: [String]
}

/// Version 3: it has a title, too.
private struct TripPlannedV3: EventPayload, Codable, Hashable {
    static let type = "com.example.trip.planned.v3"
    var trip: String
    var title: String
    var cities: [String]
}

/// New in version 2: what a trip costs, recorded once for each that there was.
private struct TripPriced: EventPayload, Codable, Hashable {
    static let type = "com.example.trip.priced"
    var trip: String
    var euros: Int
}

private struct Trips: Projection, Codable, Hashable {
    static let name = "trips"
    static let version = 1
    var titles: [String: String] = [:]
    var prices: [String: Int] = [:]
    /// How often each was priced.
    var pricings: [String: Int] = [:]

    mutating func fold(_ event: Event) {
        let json = event.content.json ?? []
        switch event.type {
        case TripPlannedV3.type:
            guard let trip = try? TripPlannedV3(json: json) else { return }
            titles[trip.trip] = trip.title
        case TripPriced.type:
            guard let price = try? TripPriced(json: json) else { return }
            prices[price.trip] = price.euros
            pricings[price.trip, default: 0] += 1
        default: break
        }
    }

    var unpriced: [String] { titles.keys.filter { prices[$0] == nil }.sorted() }
}

private enum App {
    static let upcasters: [Upcaster] = [
        Upcaster(from: TripPlanned.self, to: TripPlannedV2.self) {
            TripPlannedV2(trip: $0.trip, cities: [$0.city])
        },
        Upcaster(from: TripPlannedV2.self, to: TripPlannedV3.self) {
            TripPlannedV3(
                trip: $0.trip, title: $0.cities.joined(separator: " and "), cities: $0.cities)
        },
    ]

    /// To 2: every trip gets a price, two a commit. To 3: `darkMode` becomes `themeMode`.
    static let steps: [MigrationPlan.Step] = [
        MigrationPlan.Step(to: 2) { transaction in
            let unpriced = transaction.view(Trips.self).unpriced
            for trip in unpriced.prefix(2) {
                try transaction.append(TripPriced(trip: trip, euros: 100))
            }
            return unpriced.count > 2 ? .more : .done
        } verify: { transaction in
            let unpriced = transaction.view(Trips.self).unpriced
            guard unpriced.isEmpty else { throw Unfit(detail: "\(unpriced) have no price") }
        },
        MigrationPlan.Step(to: 3) { transaction in
            guard let isDark = transaction.view(SettingsView.self)[darkMode] else { return .done }
            try transaction.put(.themeMode, isDark ? "dark" : "light")
            try transaction.delete(darkMode)
            return .done
        },
    ]

    static let darkMode = SettingKey<Bool>("darkMode")

    static func open(_ files: any FileSystem, ahead: Int64 = 0) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), upcasters: upcasters, views: [Trips.self],
            environment: LogEnvironment(fileSystem: files, now: { 1_771_756_214_425 + ahead }))
    }

    /// What version 1 of the app has left.
    static func version1(on files: any FileSystem, ahead: Int64 = 0) async throws {
        let store = try await open(files, ahead: ahead)
        for city in ["lisbon", "porto", "oslo", "rome", "bern"] {
            try await store.append(TripPlanned(trip: "to \(city)", city: city))
        }
        try await store.settings.put(darkMode, true)
        try await store.close()
    }

    /// Whether all data has the form of version 3.
    static func check(_ store: OfflineStore) throws {
        let trips = store.view(Trips.self)
        try #require(trips.titles["to lisbon"] == "lisbon")
        try #require(trips.titles.count == 5)
        try #require(trips.unpriced == [])
        // Once each, whatever the number of kills.
        try #require(trips.pricings.values.allSatisfy { $0 == 1 })
        try #require(store.settings.get(.themeMode) == "dark")
        try #require(store.settings.tryGet(darkMode) == nil)
        try #require(store.settings.tryGet(.version) == 3)
    }
}

private struct Unfit: Error, CustomStringConvertible {
    var detail: String
    var description: String { detail }
}

@Suite struct MigrationTests {
    @Test(.verifies("SET-6", "SET-7"))
    func `data of version 1 become data of version 3, once`() async throws {
        let files = InMemoryFileSystem()
        try await App.version1(on: files)
        let store = try await App.open(files)
        let plan = MigrationPlan(App.steps)
        let report = try await store.migrate(plan)
        // Three commits and a version, one commit and a version.
        #expect(report == MigrationReport(from: 1, to: 3, commits: 6))
        try App.check(store)
        let end = await store.events.lastDurable
        #expect(try await store.migrate(plan) == MigrationReport(from: 3, to: 3))
        #expect(await store.events.lastDurable == end)
        // The lines of version 1 have not changed.
        #expect(try await store.events.event(at: Position(1))?.type == TripPlanned.type)
        try await store.close()
    }

    @Test(.verifies("SET-8"))
    func `after a kill or a power cut at every operation, the migration continues and completes`()
        async throws
    {
        let files = SimulatedFileSystem()
        try await App.version1(on: files)
        files.record()
        let store = try await App.open(files)
        try await store.migrate(MigrationPlan(App.steps))
        try await store.close()
        let points = files.crashPoints
        #expect(points.count > 20)
        var (states, versions) = (0, Set<Int?>())
        for point in points {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 32, samples: 8)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                states += 1
                let again = try await App.open(machine)
                let version = again.settings.tryGet(.version)
                versions.insert(version)
                // The version of a complete step.
                if version ?? 1 >= 2 { #expect(again.view(Trips.self).unpriced == []) }
                if version == 3 { try App.check(again) }
                try await again.migrate(MigrationPlan(App.steps))
                try App.check(again)
                try await again.close()
            }
        }
        #expect(versions == [nil, 2, 3])
        print("\(points.count) operations, \(states) states")
    }

    @Test(.verifies("SET-8"))
    func `a call that fails leaves a version whose step is complete, and the next one continues`()
        async throws
    {
        for fault in SimulatedFault.all {
            for call in 0..<200 {
                let files = SimulatedFileSystem()
                try await App.version1(on: files)
                var store = try await App.open(files)
                files.fail(call: files.calls + call, fault)
                do { try await store.migrate(MigrationPlan(App.steps)) } catch {}
                let wasHit = files.faultsHit > 0
                files.endFaults()
                try? await store.close()
                store = try await App.open(files)
                try await store.migrate(MigrationPlan(App.steps))
                try App.check(store)
                try await store.close()
                if !wasHit { break }
            }
        }
    }

    @Test(.verifies("SET-7"))
    func `data of version 1 become data of version 3 also if the clock was a year ahead then`()
        async throws
    {
        let files = InMemoryFileSystem()
        try await App.version1(on: files, ahead: 31_536_000_000)
        let store = try await App.open(files)
        try await store.migrate(MigrationPlan(App.steps))
        try App.check(store)
    }

    @Test(.verifies("SET-6"))
    func `a version that the plan does not know, or that is no number, is refused`() async throws {
        let store = try await OfflineStore.inMemory()
        func refuses(_ plan: MigrationPlan) async throws {
            let end = await store.events.lastDurable
            await #expect { try await store.migrate(plan) } throws: {
                ($0 as? MigrationError)?.code == .unknownVersion
            }
            #expect(await store.events.lastDurable == end)
        }
        let step = MigrationPlan.Step(to: 6) { _ in .done }
        try await store.settings.put(.version, 3)
        try await refuses(MigrationPlan(from: 5, [step]))
        try await refuses(MigrationPlan(from: 2, [step]))
        #expect(try await store.migrate(MigrationPlan(from: 3, [step])).to == 6)
        try await store.settings.put(SettingKey<String>("version"), "4.0")
        try await refuses(MigrationPlan(from: 3, [step]))
    }

    @Test(.verifies("SET-6"))
    func `a new log has the newest version at once`() async throws {
        let store = try await App.open(InMemoryFileSystem())
        #expect(
            try await store.migrate(MigrationPlan(App.steps))
                == MigrationReport(from: 3, to: 3, commits: 1))
        #expect(store.settings.tryGet(.version) == 3)
    }

    @Test(.verifies("SET-6"))
    func `an older release refuses newer data and changes nothing`() async throws {
        let files = InMemoryFileSystem()
        try await App.version1(on: files)
        let store = try await App.open(files)
        try await store.migrate(MigrationPlan(App.steps))
        let end = await store.events.lastDurable
        await #expect {
            try await store.migrate(MigrationPlan(Array(App.steps.prefix(1))))
        } throws: { error in
            guard let error = error as? MigrationError else { return false }
            return error.code == .newerVersion && error.stored == 3 && error.wanted == 2
                && "\(error)".contains("Update the app")
        }
        #expect(await store.events.lastDurable == end)
    }

    @Test(.verifies("SET-7", "SET-8"))
    func `a step that fails, is not verified or does not end leaves the version as it was`()
        async throws
    {
        let files = InMemoryFileSystem()
        try await App.version1(on: files)
        let store = try await App.open(files)
        func fails(
            _ code: MigrationError.Code, _ step: MigrationPlan.Step
        ) async throws {
            await #expect {
                try await store.migrate(MigrationPlan([App.steps[0], step]))
            } throws: { error in
                (error as? MigrationError)?.code == code && (error as? MigrationError)?.stored == 2
            }
            #expect(store.settings.tryGet(.version) == 2)
        }
        try await fails(
            .stepFailed, MigrationPlan.Step(to: 3) { _ in throw Unfit(detail: "no") })
        try await fails(.stepFailed, MigrationPlan.Step(to: 3) { _ in .more })
        // The same event is not recorded again.
        let id = UUID()
        try await fails(
            .stepFailed,
            MigrationPlan.Step(to: 3) { transaction in
                transaction.append(try EventDraft(TripPriced(trip: "x", euros: 1), id: id))
                return .more
            })
        // More than the limit of a commit.
        try await fails(
            .stepFailed,
            MigrationPlan.Step(to: 3) { transaction in
                let city = String(repeating: "x", count: 1_000_000)
                for _ in 0..<5 { try transaction.append(TripPlanned(trip: "y", city: city)) }
                return .done
            })
        try await fails(
            .notVerified,
            MigrationPlan.Step(to: 3) { _ in
                .done
            } verify: { _ in
                throw Unfit(detail: "no")
            })
        try await store.migrate(MigrationPlan(App.steps))
        try App.check(store)
    }
}
