// Declared views, of which an app writes the parts and what each type of event does. Spec/model/views.md,
// VIEW-31.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import HashTreeCollections
import TestSupport
import Testing

private struct Rated: EventPayload, Codable {
    static let type = "com.example.rated"
    var place: String
    var guest: String
    var stars: Int
}

private struct Named: EventPayload, Codable {
    static let type = "com.example.named"
    var place: String
    var name: String
}

/// Removes a place's ratings, until it is rated again.
private struct Renovated: EventPayload, Codable {
    static let type = "com.example.renovated"
    var place: String
}

private struct Closed: EventPayload, Codable {
    static let type = "com.example.closed"
    var place: String
}

private struct Place: StateObject {
    struct Ratings: StateObject {
        var stars: TreeDictionary<EntityID, Register<Int>> = [:]
        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&stars)
        }
    }

    var name: Register<String>?
    var ratings = Removable<Ratings>()

    mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&name, &ratings)
    }

    var stateFault: String? { name?.value.isEmpty ?? false ? "a place has an empty name" : nil }
}

private struct Places: DeclaredRows {
    static let name = "places"
    static let version = 1
    static let events: ViewEvents<Places> = [
        .on(Rated.self) { rated, view, change in
            view.places.update(rated.place, &change) { place, change in
                place.ratings.update(&change) {
                    $1.set(&$0.stars[EntityID(rated.guest)], to: rated.stars)
                }
            }
        },
        .on(Named.self) { named, view, change in
            guard !named.name.isEmpty else { throw EventError(.invalidData, "no name") }
            view.places.update(named.place, &change) { $1.set(&$0.name, to: named.name) }
        },
        .on(Renovated.self) { renovated, view, change in
            view.places.update(renovated.place, &change) { $0.ratings.remove(&$1) }
        },
        .on(Closed.self) { $1.places.delete($0.place, &$2) },
    ]
    static let fields: [ViewField<(id: String, place: Place)>] = [
        .init("place") { $0.id }, .init("name") { $0.place.name?.value },
        .init("stars") { $0.place.ratings.registers.stars.values.map(\.value).reduce(0, +) },
    ]
    var places = EntityTable<Place>()
    var ignored = 0

    mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&places)
    }

    var rowIDs: [EntityID] { places.ids() }
    func rowValue(_ id: EntityID) -> (id: String, place: Place)? {
        places[id].map { (id.string, $0) }
    }
}

@Suite(.verifies("VIEW-31")) struct DeclaredViewTests {
    private static func draft(_ payload: some EventPayload, at time: Int64) throws -> EventDraft {
        try EventDraft(payload, time: Timestamp(milliseconds: time))
    }

    private static func payload(_ choices: inout Choices) -> any EventPayload {
        let place = choices.element(of: ["inn", "bar"])
        return switch choices.int(in: 0...6) {
        case 0: Closed(place: place)
        case 1: Renovated(place: place)
        case 2, 3: Named(place: place, name: choices.element(of: ["", "a", "b"]))
        default:
            Rated(
                place: place, guest: choices.element(of: ["u", "v"]), stars: choices.int(in: 1...5))
        }
    }

    @Test func `a declared view obeys the laws of views`() throws {
        try Property.checkProjection(Places.self, except: [.repetition], runs: 300) {
            try EventDraft(Self.payload(&$0))
        }
    }

    @Test func `an event is needed for its registers, and a removal for those before it`() throws {
        var history = EventHistory()
        let rated = Rated(place: "inn", guest: "u", stars: 3)
        history.addOwn(try Self.draft(rated, at: 1))
        history.addOwn(try Self.draft(Renovated(place: "inn"), at: 2))
        history.addOwn(try Self.draft(rated, at: 3))
        history.addOwn(try Self.draft(rated, at: 4))
        var view = Places(folding: history.events[..<2])
        #expect(
            view.retention(of: history.events[0])
                == .superseded(by: [history.events[1].lwwTimestamp]))
        for event in history.events[2...] { view.fold(event) }
        #expect(view.retention(of: history.events[1]) == .needed(.deletion))
        #expect(
            view.retention(of: history.events[2])
                == .superseded(by: [history.events[3].lwwTimestamp]))
        #expect(view.retention(of: history.events[3]) == .needed(.current))
        history.addOwn(try Self.draft(Closed(place: "inn"), at: 0))
        view.fold(history.events[4])
        #expect(view.retention(of: history.events[4]) == .needed(.deletion))
        #expect(
            view.retention(of: history.events[3])
                == .superseded(by: [history.events[4].lwwTimestamp]))
        #expect(Places().retention(of: history.events[2]) == .needed(.current))
    }

    @Test func `rows, their keys and the types of the events follow from the declaration`() throws {
        var history = EventHistory()
        history.addOwn(try Self.draft(Named(place: "inn", name: "Inn"), at: 1))
        history.addOwn(try Self.draft(Named(place: "bar", name: ""), at: 1))
        let view = Places(folding: history.events)
        #expect(view.rows().map(\.json) == [Array(#"{"place":"inn","name":"Inn","stars":0}"#.utf8)])
        #expect(view.row(key: ["inn"]) == view.rows()[0])
        #expect(view.rowKeys(changedBy: history.events[0]) == [["inn"]])
        #expect(view.rowKeys(changedBy: history.events[1]) == [])
        #expect(view.ignored == 1)
        #expect(view.retention(of: history.events[1]) == .needed(.notUnderstood))
        #expect(Places.eventTypes == [Rated.type, Named.type, Renovated.type, Closed.type])
        #expect(Places.columns == ["place", "name", "stars"])
    }

    @Test func `a state that no events give is refused`() throws {
        /// The state with one place that has these registers.
        func state(_ place: Place) throws -> [UInt8] {
            var writer = StateWriter()
            writer.write(count: 0)
            var places = writer.entries(count: 1)
            writer.begin(EntityID("inn"), of: &places)
            writer.write(true)
            try place.write(to: &writer)
            writer.end(places)
            return writer.bytes
        }
        let lwwTimestamp = LWWTimestamp(time: Timestamp(milliseconds: 5), source: 1, sequence: 1)
        #expect(throws: EventError.self) { try Places(encodedState: try state(Place())) }
        var place = Place()
        place.name = Register("", lwwTimestamp)
        #expect(throws: EventError.self) { try Places(encodedState: try state(place)) }
        place.name = Register("Inn", lwwTimestamp)
        #expect(try Places(encodedState: try state(place)).rows().count == 1)
    }
}
