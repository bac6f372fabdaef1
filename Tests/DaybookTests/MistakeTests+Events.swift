// Mistakes with events: appending them, reading them, deciding in transactions.

import Daybook
import DaybookOffline
import Foundation

extension Mistake {
    private static let id = UUID(
        uuid: (1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16))
    private static let nilID = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    /// An event with values that Foundation writes as no JSON, or as JSON that means something else.
    private struct Bill: EventPayload, Codable {
        static let type = "com.example.bill"
        var items: [Item]

        struct Item: Codable {
            var price: Decimal
            var guests: [UUID: String]?
        }
    }

    /// An event whose dictionary is nil at first.
    private struct Party: EventPayload, Codable {
        static let type = "com.example.party"
        var name: String
        var guests: [UUID: String]?
    }

    /// Events whose dictionaries have other names in JSON than in Swift.
    private struct Table: EventPayload, Codable {
        static let type = "com.example.table"
        private enum CodingKeys: String, CodingKey { case seats = "s" }
        var seats: [UUID: String]
    }

    private struct Seating: EventPayload, Codable {
        static let type = "com.example.seating"
        enum Order: Codable { case free, fixed([UUID: String]) }
        var order: Order
        var rows: [[UUID: String]] = []
    }

    /// A payload with some of the members of `Trip`.
    private struct Plan: EventPayload, Codable {
        static let type = "com.example.plan"
        var name: String
    }

    static let ofAppending = ofIdentities + ofData

    private static let ofIdentities: [Mistake] = [
        Mistake(
            "a known id with another content", "EventError.idReused",
            "belongs to the event at position 1 of the type com.example.trip"
        ) { _ in
            let store = try await store()
            try await store.append(contentsOf: [EventDraft(Trip(name: "a"), id: id)])
            try await store.append(contentsOf: [EventDraft(Trip(name: "b"), id: id)])
        },
        Mistake(
            "an id twice in one call", "EventError.idReused",
            "at position 1 of the type com.example.trip"
        ) { _ in
            let drafts = try [
                EventDraft(Trip(name: "a"), id: id), EventDraft(Trip(name: "b"), id: id),
            ]
            try await store().append(contentsOf: drafts)
        },
        Mistake("a wrong event among several", "EventError.refused", "event 2 of 2: the event") {
            _ in
            let later = Timestamp(Date(timeIntervalSinceNow: 7 * 86_400))
            try await store().append(contentsOf: [
                EventDraft(Trip(name: "a")), EventDraft(Trip(name: "b"), time: later),
            ])
        },
        Mistake("a wrong event in a transaction", "EventError.refused", "event 2 of 3: the event") {
            _ in
            let later = Timestamp(Date(timeIntervalSinceNow: 7 * 86_400))
            try await store().write { transaction in
                try transaction.append(Trip(name: "a"))
                // Checks the events so far.
                _ = transaction.view(Trips.self)
                transaction.append(try EventDraft(Trip(name: "b"), time: later))
                try transaction.append(Trip(name: "c"))
            }
        },
        Mistake("an id twice in a transaction", "EventError.idReused", "event 2 of 2: the id") {
            _ in
            try await store().write { transaction in
                transaction.append(try EventDraft(Trip(name: "a"), id: id))
                transaction.append(try EventDraft(Trip(name: "b"), id: id))
            }
        },
        Mistake(
            "a record of the store among several", "EventError.refused",
            "event 2 of 2: daybook.sync.settled is a record"
        ) { _ in
            try await store().append(contentsOf: [
                EventDraft(Trip(name: "a")), EventDraft(type: "daybook.sync.settled"),
            ])
        },
        Mistake("an id that is no UUID of RFC 9562", "EventError.badAttribute", "is not a UUID") {
            _ in
            try await store().append(contentsOf: [EventDraft(Trip(name: "a"), id: nilID)])
        },
        Mistake("an empty type", "EventError.badAttribute", "type is empty") { _ in
            try await store().append(contentsOf: [EventDraft(type: "")])
        },
        Mistake("a type of the library", "EventError.refused", "daybook.mine, which belongs") { _ in
            try await store().append(contentsOf: [EventDraft(type: "daybook.mine")])
        },
        Mistake("an empty subject", "EventError.badAttribute", "subject is empty") { _ in
            try await store().append(Trip(name: ""))
        },
        Mistake("a subject beside the data's", "EventError.invalidData", "the subject is not") {
            _ in
            var draft = try EventDraft(Trip(name: "a"))
            draft.subject = "b"
            try await store().append(contentsOf: [draft])
        },
        Mistake("an attribute in camel case", "EventError.badAttribute", #""tripId" is no"#) { _ in
            let extensions = [EventDraft.Extension(name: "tripId", string: "1")]
            try await store().append(contentsOf: [
                EventDraft(Trip(name: "a"), extensions: extensions)
            ])
        },
        Mistake("a time far ahead", "EventError.refused", "more than 24 hours ahead") { _ in
            let time = Timestamp(Date(timeIntervalSinceNow: 10 * 86_400))
            try await store().append(contentsOf: [EventDraft(Trip(name: "a"), time: time)])
        },
        Mistake("a record of the store", "EventError.refused", "a record of the store's own") { _ in
            try await store().write { $0.append(EventDraft(type: "daybook.sync.settled")) }
        },
        Mistake(
            "a record of the store in a transaction", "EventError.refused",
            "event 1 of 2: daybook.sync.settled is a record"
        ) { _ in
            try await store().write { transaction in
                transaction.append(EventDraft(type: "daybook.sync.settled"))
                try transaction.append(Trip(name: "a"))
            }
        },
        Mistake("a value of the last moment replaced", "EventError.refused", "the last time") { _ in
            let last = LWWTimestamp(
                time: Timestamp(milliseconds: .max), source: .max, sequence: 0)
            try await store().append(Trip(name: "a"), replacing: last)
        },
    ]

    private static let ofData: [Mistake] = [
        Mistake("NaN in a payload", "EventError.invalidData", "nights is nan, which JSON") { _ in
            try await store().append(Trip(name: "a", nights: .nan))
        },
        Mistake("a date that is no number", "EventError.invalidData", "start is nan, which JSON") {
            _ in
            try await store().append(Trip(name: "a", start: Date(timeIntervalSince1970: .nan)))
        },
        Mistake("a date after 9999", "EventError.invalidData", "start is a date outside the years")
        {
            _ in
            try await store().append(
                Trip(name: "a", start: Date(timeIntervalSince1970: 253_402_300_800)))
        },
        Mistake("a decimal that is no number", "EventError.invalidData", "[0].price is NaN, which")
        {
            _ in
            try await store().append(Bill(items: [Bill.Item(price: .nan)]))
        },
        Mistake(
            "a dictionary without names", "EventError.invalidData",
            "items[0].guests is a dictionary that JSON can only express as an array"
        ) { _ in
            let guests = Bill.Item(price: 1, guests: [id: "ana"])
            try await store().append(Bill(items: [Bill.Item(price: 1), guests]))
        },
        Mistake(
            "a dictionary without names in a later event", "EventError.invalidData",
            "guests is a dictionary that JSON can only express as an array"
        ) { _ in
            let store = try await store()
            try await store.append(Party(name: "a"))
            try await store.append(Party(name: "b", guests: [id: "ana"]))
        },
        Mistake(
            "a dictionary without names under another name", "EventError.invalidData",
            "s is a dictionary that JSON can only express as an array"
        ) { _ in try await store().append(Table(seats: [id: "ana"])) },
        Mistake(
            "a dictionary without names in an enum case", "EventError.invalidData",
            "order.fixed._0 is a dictionary that JSON can only express as an array"
        ) { _ in try await store().append(Seating(order: .fixed([id: "ana"]))) },
        Mistake(
            "an array, still empty, of dictionaries without names", "EventError.invalidData",
            "rows is a dictionary that JSON can only express as an array"
        ) { _ in try await store().append(Seating(order: .free)) },
        Mistake("a time that is no number", "EventError.refused", "24 hours") { _ in
            let time = Timestamp(Date(timeIntervalSince1970: .nan))
            try await store().append(contentsOf: [EventDraft(Trip(name: "a"), time: time)])
        },
        Mistake("data without a member", "EventError.invalidData", "com.example.trip: name is") {
            _ in
            try await append(data: #"{"nights":2}"#)
        },
        Mistake("a member of another kind", "EventError.invalidData", "nights is not of the type") {
            _ in
            try await append(data: #"{"name":"a","nights":"two"}"#)
        },
        Mistake("a date in words", "EventError.invalidData", "'tomorrow' is not a date in ISO 8601")
        {
            _ in
            try await append(data: #"{"name":"a","nights":1,"start":"tomorrow"}"#)
        },
        Mistake("data that are a list", "EventError.invalidData", "the data is not of the type") {
            _ in
            try await append(data: "[1]")
        },
        Mistake("text that is no JSON", "EventError.invalidData", "not valid JSON") { _ in
            try await append(data: "{")
        },
        Mistake("text that is no JSON, without a rule", "EventError.notJSON", "not JSON: ") { _ in
            try await store().append(contentsOf: [ruleless("{")])
        },
        Mistake("bytes that are no JSON string", "EventError.notJSON", "not JSON: ") { _ in
            let draft = EventDraft(type: "com.example.file", data: .base64(Array("AAAA".utf8)))
            try await store().append(contentsOf: [draft])
        },
        Mistake("too large to be shipped", "EventError.tooLarge", "at most 262144 fit") { _ in
            try await store().append(Trip(name: String(repeating: "x", count: 300 * 1_024)))
        },
        Mistake(
            "one of several too large to be shipped", "EventError.tooLarge",
            "event 2 of 2: com.example.trip has"
        ) { _ in
            try await store().append(contentsOf: [
                Trip(name: "a"), Trip(name: String(repeating: "x", count: 300 * 1_024)),
            ])
        },
        Mistake("too large for a line", "EventError.tooLarge", "at most 1048576 fit") { _ in
            try await store().append(contentsOf: [ruleless(text(bytes: 2 << 20))])
        },
        Mistake("too large for a commit", "EventError.tooLarge", "at most 4194304 can be") { _ in
            let text = text(bytes: 900 * 1_024)
            try await store().append(contentsOf: (0..<5).map { _ in ruleless(text) })
        },
    ]

    /// Appends a trip with these data.
    private static func append(data json: String) async throws {
        try await store().append(contentsOf: [
            EventDraft(type: Trip.type, data: .json(Array(json.utf8)))
        ])
    }

    /// A JSON string.
    private static func text(bytes: Int) -> String {
        "\"" + String(repeating: "x", count: bytes) + "\""
    }

    static let ofReading: [Mistake] = [
        Mistake(
            "decoding as another type", "EventError.invalidData",
            "has the type com.example.trip and cannot be read as Renamed, whose type is "
                + "com.example.renamed"
        ) { _ in
            let event = try await storeWithTrip().event(at: Position(1))
            _ = try event?.payload(as: Renamed.self)
        },
        Mistake(
            "decoding as another type with the same members", "EventError.invalidData",
            "cannot be read as Plan, whose type is com.example.plan"
        ) { _ in
            let event = try await storeWithTrip().event(at: Position(1))
            _ = try event?.payload(as: Plan.self)
        },
        Mistake(
            "decoding an event without data", "EventError.invalidData",
            "the event at position 1 has the type com.example.trip and cannot be read as Trip: "
                + "it has no JSON data"
        ) { _ in
            let store = try await EventStore.inMemory()
            try await store.append(EventDraft(type: Trip.type))
            _ = try await store.event(at: Position(1))?.payload(as: Trip.self)
        },
        Mistake("a text that ends early", "JSONError", "The text is not JSON: ") { _ in
            let text = Array("{".utf8)
            _ = try JSONValue(text.span.bytes)
        },
        Mistake("a state after the end", "EventError.refused", "there is no state at 9 yet") { _ in
            _ = try await store().state(at: Position(9))
        },
        Mistake("events after the end", "EventError.refused", "the log ends at position 0") { _ in
            for try await _ in try await store().recordedEvents(after: Position(9)) {}
        },
        Mistake("a state that was compacted", "EventError.refused", "compacted through position") {
            _ in
            let store = try await OfflineStore.inMemory()
            for columns in 1...5 { try await store.settings.put(.tilesPerRow, columns) }
            try store.events.log.roll()
            try await store.compact()
            _ = try await store.state(at: Position(1))
        },
    ]
}
