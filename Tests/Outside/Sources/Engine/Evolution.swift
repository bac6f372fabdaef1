// The code of the article "Evolving events and views": an app's own event and view, in two releases.

import Daybook
import Foundation

package enum FirstRelease {
    // Evolution-1 begins
    struct TripPlanned: EventPayload, Codable {
        static let type = "com.example.trip.planned"
        var trip: String
        var stop: String
        var subject: String? { trip }
    }
    // Evolution-1 ends

    // Evolution-2 begins
    struct Trips: Projection, Codable {
        static let name = "trips"
        static let version = 1
        private(set) var stops: StateDictionary<String, String> = [:]

        mutating func fold(_ event: Event) {
            guard event.type == TripPlanned.type,
                let planned = try? event.payload(as: TripPlanned.self)
            else { return }
            stops[planned.trip] = planned.stop
        }
    }
    // Evolution-2 ends

    package static func run(at url: URL) async throws -> StateDictionary<String, String> {
        // Evolution-3 begins
        let store = try await EventStore.open(
            at: url, account: "user-456",
            rules: [.of(TripPlanned.self, action: "PLAN_TRIP")], views: [Trips.self])
        try await store.append(TripPlanned(trip: "spring", stop: "lake"))
        print(store.view(Trips.self).stops["spring"] ?? "nowhere")
        // Evolution-3 ends
        let stops = store.view(Trips.self).stops
        try await store.close()
        return stops
    }
}

package enum SecondRelease {
    typealias TripPlanned = FirstRelease.TripPlanned

    // Evolution-4 begins
    struct TripPlannedV2: EventPayload, Codable {
        static let type = "com.example.trip.planned.v2"
        var trip: String
        var stops: [String]
        var subject: String? { trip }
    }
    // Evolution-4 ends

    // Evolution-5 begins
    static let upcasters = [
        Upcaster(from: TripPlanned.self, to: TripPlannedV2.self) { old in
            TripPlannedV2(trip: old.trip, stops: [old.stop])
        }
    ]
    // Evolution-5 ends

    // Evolution-6 begins
    struct Trips: Projection, Codable {
        static let name = "trips"
        static let version = 2
        private(set) var stops: StateDictionary<String, [String]> = [:]

        mutating func fold(_ event: Event) {
            guard event.type == TripPlannedV2.type,
                let planned = try? event.payload(as: TripPlannedV2.self)
            else { return }
            stops[planned.trip] = planned.stops
        }
    }
    // Evolution-6 ends

    struct TripNamed: EventPayload, Codable {
        static let type = "com.example.trip.named"
        var trip: String
        var name: String
        var subject: String? { trip }

        init(trip: String, name: String) {
            self.trip = trip
            self.name = name
        }

        init?(_ event: Event) {
            guard event.type == Self.type,
                let named = try? event.payload(as: TripNamed.self)
            else { return nil }
            self = named
        }
    }

    // Evolution-8 begins
    struct TripNames: CompactableView, Codable {
        static let name = "trip-names"
        static let version = 1
        private(set) var names: [String: Register<String>] = [:]

        mutating func fold(_ event: Event) {
            guard let named = TripNamed(event) else { return }
            names[named.trip].set(named.name, event.lwwTimestamp)
        }

        func retention(of event: Event) -> Retention {
            guard let named = TripNamed(event) else { return .unconcerned }
            guard let last = names[named.trip]?.lwwTimestamp, last != event.lwwTimestamp else {
                return .needed(.current)
            }
            return .superseded(by: [last])
        }
    }
    // Evolution-8 ends

    package static func name(at url: URL) async throws -> (name: String?, removed: Int) {
        let store = try await EventStore.open(
            at: url, rules: [.of(TripNamed.self)], views: [TripNames.self], compaction: nil)
        for number in 1...2_000 {
            // Random text, so that the segment is large enough for a compaction.
            let noise = (0..<40).map { _ in UUID().uuidString }.joined()
            let name = "\(noise) \(number)"
            try await store.append(TripNamed(trip: "spring", name: name), durability: .relaxed)
        }
        let removed = try await store.compact().removed
        let name = store.view(TripNames.self).names["spring"]?.value
        try await store.close()
        return (name, removed)
    }

    package static func run(at url: URL) async throws -> StateDictionary<String, [String]> {
        // Evolution-7 begins
        let store = try await EventStore.open(
            at: url, account: "user-456",
            rules: [
                .of(TripPlanned.self, action: "PLAN_TRIP"),
                .of(TripPlannedV2.self, action: "PLAN_TRIP"),
            ],
            upcasters: upcasters, views: [Trips.self])
        try await store.append(TripPlannedV2(trip: "summer", stops: ["forest", "lake"]))
        for (type, count) in store.upcastFailures {
            print("\(count) events of type \(type) could not be read as a newer one")
        }
        // Evolution-7 ends
        let stops = store.view(Trips.self).stops
        try await store.close()
        return stops
    }
}
