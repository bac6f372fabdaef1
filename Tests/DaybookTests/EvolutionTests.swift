// Event types are replaced by newer ones while the recorded lines do not change; an app can be
// rolled back and forth. The worked example: trips to one city, to several, with a name.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

/// Version 1: one city.
private struct TripPlanned: EventPayload, Codable {
    static let type = "com.example.trip.planned"
    var trip: String
    var city: String
    var subject: String? { trip }
}

/// Version 2: several cities.
private struct TripPlannedV2: EventPayload, Codable {
    static let type = "com.example.trip.planned.v2"
    var trip: String
    var cities: [String]
    var subject: String? { trip }
    var lane: String? { "trip:\(trip)" }
}

/// Version 3: also a title.
private struct TripPlannedV3: EventPayload, Codable {
    static let type = "com.example.trip.planned.v3"
    var trip: String
    var cities: [String]
    var title: String
    var subject: String? { trip }
    var lane: String? { "trip:\(trip)" }
}

/// The trips, as the newest release reads them.
private struct Trips: Projection, Codable, Equatable {
    static let name = "trips"
    static let version = 1
    private(set) var titles: [String: String] = [:]
    private(set) var cities: [String: [String]] = [:]
    private(set) var types: [String] = []
    private(set) var places: [String] = []

    mutating func fold(_ event: Event) {
        types.append(event.type)
        places.append("\(event.position) \(event.lane) \(event.subject ?? "-")")
        guard event.type == TripPlannedV3.type, let json = event.content.json,
            let trip = try? TripPlannedV3(json: json)
        else { return }
        titles[trip.trip] = trip.title
        cities[trip.trip] = trip.cities
    }
}

private let upcasters = [
    Upcaster(from: TripPlanned.self, to: TripPlannedV2.self) { old in
        guard old.city != "nowhere" else { throw EventError(.invalidData, "no such city") }
        return TripPlannedV2(trip: old.trip, cities: [old.city])
    },
    Upcaster(from: TripPlannedV2.self, to: TripPlannedV3.self) { old in
        TripPlannedV3(
            trip: old.trip, cities: old.cities, title: old.cities.joined(separator: ", "))
    },
]

private func open(
    _ files: InMemoryFileSystem, rules: [EventRule] = [], upcasters: [Upcaster] = upcasters,
    views: [any Projection.Type] = [Trips.self]
) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), rules: rules, upcasters: upcasters, views: views,
        environment: LogEnvironment(fileSystem: files))
}

/// The lines of the log as they are on the disk.
private func lines(_ files: InMemoryFileSystem) throws -> [String] {
    var lines: [String] = []
    try LogReader("/log", fileSystem: files).forEachLine { _, line in
        lines.append(String(decoding: line.array, as: UTF8.self))
        return true
    }
    return lines
}

@Suite struct EvolutionTests {
    // MARK: Upcasters

    @Test(.verifies("EVT-10"))
    func `events of replaced types reach views in the newest form, through all versions`()
        async throws
    {
        let files = InMemoryFileSystem()
        for _ in 0..<2 {
            let store = try await open(files)
            if await store.events.lastDurable == .zero {
                try await store.append(TripPlanned(trip: "a", city: "oslo"))
                try await store.append(TripPlannedV2(trip: "b", cities: ["porto", "lisbon"]))
                try await store.append(TripPlannedV3(trip: "c", cities: [], title: "Home"))
            }
            let trips = store.view(Trips.self)
            #expect(trips.titles == ["a": "oslo", "b": "porto, lisbon", "c": "Home"])
            #expect(trips.types == Array(repeating: TripPlannedV3.type, count: 3))
            // Only type and data change: lanes and subjects are the recorded ones.
            #expect(trips.places == ["1 a a", "2 trip:b b", "3 trip:c c"])
            #expect(store.events.upcastFailures == [:])
            try await store.close()
        }
    }

    @Test(.verifies("EVT-10", "EVT-11"))
    func `the stored line never changes: it is what is read by position, compared and shipped`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files, upcasters: [])
        let draft = try EventDraft(TripPlanned(trip: "a", city: "oslo"))
        try await store.events.append(contentsOf: [draft])
        try await store.close()
        let before = try lines(files)

        store = try await open(
            files, rules: [.of(TripPlannedV3.self, action: "PLAN_TRIP")])
        #expect(store.view(Trips.self).titles == ["a": "oslo"])
        let event = try #require(try await store.events.event(at: Position(1)))
        #expect(event.type == TripPlanned.type)
        #expect(event.content.json == draft.json)
        #expect(try store.events.catalogue.upcast(event).type == TripPlannedV3.type)
        // The same event again is the same event; another content under its id is not.
        #expect(try await store.events.append(contentsOf: [draft])[0].isNew == false)
        var other = try EventDraft(
            TripPlannedV3(trip: "a", cities: ["oslo"], title: "oslo"), id: draft.id)
        other.time = event.time
        await #expect(throws: EventError.self) {
            try await store.events.append(contentsOf: [other])
        }
        // It is shipped by the rule of the type that has replaced its own, and in its old form.
        #expect(store.view(Outbox.self).entries.map(\.action) == ["PLAN_TRIP"])
        let server = InMemorySyncServer()
        let report = try await Replayer(store.events, transport: server).run()
        #expect(report.applied == 1)
        #expect(server.batches == ["[\(before[0])]"])
        #expect(Array(try lines(files).prefix(1)) == before)
        try await store.close()
    }

    @Test(.verifies("EVT-11"))
    func `a replaced type that has a rule of its own keeps its action`() async throws {
        let store = try await open(
            InMemoryFileSystem(),
            rules: [
                .of(TripPlanned.self), .of(TripPlannedV2.self, action: "PLAN_TRIP"),
                .of(TripPlannedV3.self, action: "PLAN_NAMED_TRIP"),
            ])
        try await store.append(TripPlanned(trip: "a", city: "oslo"))
        try await store.append(TripPlannedV2(trip: "b", cities: []))
        #expect(store.view(Outbox.self).entries.map(\.action) == ["PLAN_TRIP"])
        try await store.close()
    }

    @Test(.verifies("EVT-10"))
    func `an event that cannot be converted is counted and stays unknown to views`() async throws {
        let files = InMemoryFileSystem()
        let broken = Upcaster(from: "com.example.raw", to: "com.example.raw.v2") { json in
            json + Array("}".utf8)
        }
        var store = try await open(files, upcasters: upcasters + [broken])
        try await store.append(TripPlanned(trip: "a", city: "nowhere"))
        try await store.append(TripPlanned(trip: "b", city: "oslo"))
        try await store.events.append(contentsOf: [
            EventDraft(type: TripPlanned.type, data: .json(Array("[]".utf8))),
            EventDraft(type: TripPlanned.type), EventDraft(type: TripPlannedV2.type),
            EventDraft(
                type: TripPlanned.type, dataContentType: "image/png",
                data: .base64(Array("\"\"".utf8))),
            EventDraft(type: "com.example.raw", data: .json(Array("{}".utf8))),
        ])
        let expected = [TripPlanned.type: 4, TripPlannedV2.type: 1, "com.example.raw": 1]
        #expect(store.events.upcastFailures == expected)
        #expect(store.view(Trips.self).titles == ["b": "oslo"])
        // In the recorded form, not an intermediate one.
        #expect(store.view(Trips.self).types.filter { $0 == TripPlannedV2.type }.count == 1)
        try await store.close()
        // Events that a checkpoint covers are not folded again.
        for path in files.image.keys where path.contains("/checkpoints/") { files[path] = nil }
        store = try await open(files, upcasters: upcasters + [broken])
        #expect(store.events.upcastFailures == expected)
        try await store.close()
    }

    @Test func `an upcaster of JSON text adds what a type was lacking`() async throws {
        let raw = Upcaster(from: "com.example.raw", to: "com.example.raw.v2") { json in
            var object = try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any] ?? [:]
            object["unit"] = "km"
            return Array(try JSONSerialization.data(withJSONObject: object))
        }
        let store = try await open(InMemoryFileSystem(), upcasters: [raw])
        try await store.events.append(contentsOf: [
            EventDraft(type: "com.example.raw", data: .json(Array(#"{"far":7}"#.utf8)))
        ])
        let event = try #require(try await store.events.event(at: Position(1)))
        let newest = try store.events.catalogue.upcast(event)
        #expect(newest.type == "com.example.raw.v2")
        #expect(newest.id == event.id)
        #expect(newest.lwwTimestamp == event.lwwTimestamp)
        #expect(newest.lineBytes == event.lineBytes)
        let json = try JSONSerialization.jsonObject(with: Data(newest.content.json ?? []))
        #expect(json as? NSDictionary == ["far": 7, "unit": "km"])
        #expect(store.view(Trips.self).types == ["com.example.raw.v2"])
        try await store.close()
    }

    @Test(.verifies("EVT-10"))
    func `upcasters that form a cycle, or two ways, are refused`() async throws {
        let chains: [([(String, String)], culprit: String)] = [
            ([("a", "a")], "a"),
            ([("a", "b"), ("b", "c"), ("c", "a")], "c"),
            ([("a", "b"), ("a", "c")], "a"),
        ]
        for (chain, culprit) in chains {
            let error = await #expect(throws: EventError.self) {
                _ = try await OfflineStore.inMemory(
                    upcasters: chain.map { Upcaster(from: $0, to: $1) { $0 } })
            }
            #expect(error?.code == .refused)
            #expect(error?.detail.contains("from the event type \(culprit)") == true)
        }
        let catalogue = EventCatalogue(
            upcasters: [
                Upcaster(from: "b", to: "c") { $0 }, Upcaster(from: "a", to: "b") { $0 },
                Upcaster(from: "x", to: "c") { $0 },
            ])
        #expect(catalogue.newestType(of: "a") == "c")
    }

    // MARK: Stored states

    @Test(.verifies("CHK-4", "EVT-12"))
    func `a stored state is rebuilt when the upcasters or rules of its types have changed`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files, upcasters: [])
        try await store.append(TripPlanned(trip: "a", city: "oslo"))
        #expect(store.view(Trips.self).titles == [:])
        try await store.events.checkpoint()
        try await store.close()
        // The developer forgot to raise the view's version.
        store = try await open(files)
        #expect(store.view(Trips.self).titles == ["a": "oslo"])
        try await store.events.checkpoint()
        try await store.close()
        store = try await open(files, upcasters: [upcasters[0]])
        #expect(store.view(Trips.self).types == [TripPlannedV2.type])
        try await store.close()
    }

    @Test(.verifies("CHK-1", "EVT-12"))
    func `a Codable view of an app is stored and restored`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files, views: [Trips.self, Folded.self])
        for trip in 0..<20 { try await store.append(TripPlanned(trip: "\(trip)", city: "oslo")) }
        try await store.events.checkpoint()
        try await store.append(TripPlanned(trip: "last", city: "porto"))
        let trips = store.view(Trips.self)
        try await store.close()
        store = try await open(files, views: [Trips.self, Folded.self])
        #expect(store.view(Trips.self) == trips)
        #expect(store.view(Folded.self).count == 21)
        #expect(store.view(Folded.self).foldedHere == 1)
        try await store.close()
    }

    // MARK: Own types

    @Test(.verifies("EVT-2", "EVT-9"))
    func `an app's own type is checked, has a lane, and is shipped`() async throws {
        let store = try await open(
            InMemoryFileSystem(), rules: [.of(TripPlannedV2.self, action: "PLAN_TRIP")])
        try await store.append(TripPlannedV2(trip: "b", cities: ["porto"]))
        // The same for an event of another log: subject and lane are computed from the data.
        try await store.events.append(contentsOf: [
            EventDraft(
                type: TripPlannedV2.type,
                data: .json(Array(#"{"trip":"c","cities":[],"mood":"good"}"#.utf8)))
        ])
        let outbox = Array(store.view(Outbox.self).entries)
        #expect(outbox.map(\.action) == ["PLAN_TRIP", "PLAN_TRIP"])
        #expect(outbox.map(\.lane) == ["trip:b", "trip:c"])
        #expect(outbox.map(\.entityId) == ["b", "c"])
        for (data, subject) in [(#"{"trip":"d"}"#, nil), (#"{"trip":"d","cities":[]}"#, "x")] {
            await #expect {
                try await store.events.append(contentsOf: [
                    EventDraft(
                        type: TripPlannedV2.type, subject: subject, data: .json(Array(data.utf8)))
                ])
            } throws: {
                ($0 as? EventError)?.code == .invalidData
            }
        }
        #expect(await store.events.lastDurable == Position(2))
        try await store.close()
    }

    // MARK: Subscriptions and compaction

    @Test(.verifies("EVT-11"))
    func `a subscription gives the newest form, and the recorded one where that fails`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await store.append(TripPlanned(trip: "a", city: "oslo"))
        try await store.append(TripPlanned(trip: "b", city: "nowhere"))
        try await store.append(TripPlannedV3(trip: "c", cities: [], title: "Home"))
        var seen: [String] = []
        for try await event in store.events(after: .zero) {
            seen.append(event.type)
            if seen.count == 3 { break }
        }
        #expect(seen == [TripPlannedV3.type, TripPlanned.type, TripPlannedV3.type])
        // The view has counted it; a subscription does not count it again.
        #expect(store.events.upcastFailures == [TripPlanned.type: 1])
        try await store.close()
    }

    @Test(.verifies("CMP-27", "EVT-11"))
    func `compaction asks views of the newest form, and keeps the recorded one`() async throws {
        let files = InMemoryFileSystem()
        // A type that no rule knows would stay: some other release may want to ship it.
        let rules = [EventRule.of(TripPlannedV3.self)]
        let store = try await open(files, rules: rules, views: [LastTitles.self])
        try await store.append(TripPlanned(trip: "a", city: "oslo"))
        try await store.append(TripPlanned(trip: "b", city: "bergen"))
        try await store.append(TripPlanned(trip: "c", city: "nowhere"))
        try await store.append(TripPlannedV2(trip: "a", cities: ["porto", "lisbon"]))
        try await store.append(TripPlannedV3(trip: "b", cities: [], title: "Home"))
        try store.events.log.roll()
        let before = try lines(files)
        let titles = store.view(LastTitles.self).titles
        #expect(titles == ["a": "porto, lisbon", "b": "Home"])
        let report = try await store.events.compact()
        #expect(report.removed == 2)
        // An event that cannot be converted is kept, and so is each winner.
        #expect(try lines(files) == Array(before[2...]))
        try await store.close()
        let again = try await open(files, rules: rules, views: [LastTitles.self])
        #expect(again.view(LastTitles.self).titles == titles)
        try await again.close()
    }

    // MARK: Back and forth

    @Test(.verifies("EVT-12", "OUT-6"))
    func `an app can be rolled back and forth: nothing is lost, and all is shipped in the end`()
        async throws
    {
        let files = InMemoryFileSystem()
        let rules: [EventRule] = [.of(TripPlannedV3.self, action: "PLAN_TRIP")]
        // The newer release records what the older does not know.
        var store = try await open(files, rules: rules)
        try await store.cities.save("lisbon", by: "ada")
        try await store.append(TripPlannedV3(trip: "a", cities: ["oslo"], title: "North"))
        try await store.cities.save("porto", by: "ada")
        try await store.events.checkpoint()
        try await store.close()
        let recorded = try lines(files)

        // The older release: goes on, stores its states, ships by the rules that the log has recorded.
        store = try await open(files, upcasters: [], views: [])
        #expect(store.view(CitiesView.self).cityIDs == ["lisbon", "porto"])
        try await store.cities.save("oslo", by: "ada")
        try await store.append(TripPlanned(trip: "b", city: "bergen"))
        let server = InMemorySyncServer()
        #expect(try await Replayer(store.events, transport: server).run().applied == 5)
        try await store.events.checkpoint()
        try await store.close()
        let shipped = try lines(files)
        #expect(Array(shipped.prefix(3)) == recorded)
        #expect(server.batches == ["[" + shipped.prefix(5).joined(separator: ",") + "]"])

        // The newer one again: its views are complete, and nothing is left to be sent.
        store = try await open(files, rules: rules)
        #expect(store.view(Trips.self).titles == ["a": "North", "b": "bergen"])
        #expect(store.view(CitiesView.self).cityIDs == ["lisbon", "oslo", "porto"])
        #expect(store.view(Outbox.self).count == 0)
        try await store.close()
    }
}

/// Counts events, and of them those that this process has folded.
private struct Folded: Projection, Codable {
    static let name = "folded"
    static let version = 1
    private(set) var count = 0
    private(set) var foldedHere = 0

    private enum CodingKeys: CodingKey { case count }

    mutating func fold(_ event: Event) {
        count += 1
        foldedHere += 1
    }
}

/// The last title of each trip: the event with the greater LWW timestamp wins.
private struct LastTitles: CompactableView, Codable {
    static let name = "last-titles"
    static let version = 1
    private var registers: [String: Register<String>] = [:]

    var titles: [String: String] { registers.mapValues(\.value) }

    mutating func fold(_ event: Event) {
        guard let trip = trip(event) else { return }
        registers[trip.trip].set(trip.title, event.lwwTimestamp)
    }

    func retention(of event: Event) -> Retention {
        guard let trip = trip(event) else { return .unconcerned }
        guard let last = registers[trip.trip]?.lwwTimestamp, last != event.lwwTimestamp else {
            return .needed(.current)
        }
        return .superseded(by: [last])
    }

    private func trip(_ event: Event) -> TripPlannedV3? {
        guard event.type == TripPlannedV3.type, let json = event.content.json else { return nil }
        return try? TripPlannedV3(json: json)
    }
}
