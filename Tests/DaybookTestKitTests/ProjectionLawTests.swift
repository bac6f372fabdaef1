// The laws of views: a view that obeys them passes, and a view that breaks a law fails it with a short
// history. Spec/model/views.md, Spec/format/compaction.md.

import Daybook
import DaybookTestKit
import Testing

/// The first release's event: one stop, and no subject.
private struct StopPlanned: EventPayload, Codable {
    static let type = "com.example.stop.planned"
    var trip: String
    var stop: String
}

private struct StopsPlanned: EventPayload, Codable {
    static let type = "com.example.stops.planned"
    var trip: String
    var stops: [String]
    var subject: String? { trip }

    init(trip: String, stops: [String]) {
        self.trip = trip
        self.stops = stops
    }

    init?(_ event: Event) {
        guard event.type == Self.type, let planned = try? event.payload(as: Self.self) else {
            return nil
        }
        self = planned
    }
}

private let rules: [EventRule] = [.of(StopsPlanned.self, action: "PLAN_STOPS")]
private let upcasters = [
    Upcaster(from: StopPlanned.self, to: StopsPlanned.self) { old in
        StopsPlanned(trip: old.trip, stops: [old.stop])
    }
]

extension Choices {
    /// An event of either release about one of two trips.
    fileprivate mutating func trip() -> any EventPayload {
        let trip = element(of: ["spring", "summer"])
        let stop = element(of: ["lake", "forest", "sea"])
        return bool()
            ? StopsPlanned(trip: trip, stops: [stop]) : StopPlanned(trip: trip, stop: stop)
    }
}

// MARK: Views

/// The requirements of the tests' views.
private protocol TripView: Projection, Equatable {}

extension TripView {
    static var name: String { "trips" }
    static var version: Int { 1 }
}

/// The stops of each trip by its newest event.
private struct Stops: TripView, CompactableView, Codable {
    static let eventTypes: Set<String>? = [StopsPlanned.type]
    var stops: [String: Register<[String]>] = [:]

    mutating func fold(_ event: Event) {
        guard let planned = StopsPlanned(event) else { return }
        stops[planned.trip].set(planned.stops, event.lwwTimestamp)
    }

    func retention(of event: Event) -> Retention {
        guard let planned = StopsPlanned(event) else { return .unconcerned }
        return .of(event, heldBy: [stops[planned.trip]?.lwwTimestamp])
    }
}

private struct StopsAsTheyArrived: TripView, Codable {
    var stops: [String: [String]] = [:]

    mutating func fold(_ event: Event) {
        guard let planned = StopsPlanned(event) else { return }
        stops[planned.trip] = planned.stops
    }
}

private struct EventCount: TripView, Codable {
    var count = 0
    mutating func fold(_ event: Event) { count += 1 }
}

private struct TripsNotStored: TripView, Codable {
    private enum CodingKeys: CodingKey { case stops }
    var stops: Set<String> = []
    var trips: Set<String> = []

    mutating func fold(_ event: Event) {
        guard let planned = StopsPlanned(event) else { return }
        stops.formUnion(planned.stops)
        trips.insert(planned.trip)
    }
}

private struct StopsStoredInAnyOrder: TripView, Codable {
    var stops: [String] = []

    mutating func fold(_ event: Event) {
        for stop in StopsPlanned(event)?.stops ?? [] where !stops.contains(stop) {
            stops.append(stop)
        }
    }

    static func == (one: Self, other: Self) -> Bool { Set(one.stops) == Set(other.stops) }
}

private struct FirstAndLast: TripView, CompactableView, Codable {
    var stops = Stops()
    var first: [String: LWWTimestamp] = [:]

    mutating func fold(_ event: Event) {
        stops.fold(event)
        guard let trip = StopsPlanned(event)?.trip else { return }
        first[trip] = min(first[trip] ?? event.lwwTimestamp, event.lwwTimestamp)
    }

    // The mistake: the first event is needed as well.
    func retention(of event: Event) -> Retention { stops.retention(of: event) }
}

private struct SupersededByItself: TripView, CompactableView, Codable {
    var stops = Stops()
    mutating func fold(_ event: Event) { stops.fold(event) }

    func retention(of event: Event) -> Retention {
        guard case .superseded = stops.retention(of: event) else { return .needed(.current) }
        return .superseded(by: [event.lwwTimestamp])
    }
}

private struct AllStops: TripView, Codable {
    static let allowsCompaction = true
    var stops: Set<String> = []
    mutating func fold(_ event: Event) { stops.formUnion(StopsPlanned(event)?.stops ?? []) }
}

private struct SubjectsOfStops: TripView, Codable {
    var subjects: Set<String> = []

    mutating func fold(_ event: Event) {
        if event.type == StopsPlanned.type { subjects.insert(event.subject ?? "") }
    }
}

private struct OldTypeNamed: TripView, Codable {
    static let eventTypes: Set<String>? = [StopPlanned.type]
    var stops = Stops()
    mutating func fold(_ event: Event) { stops.fold(event) }
}

private struct TypeNotNamed: TripView, Codable {
    static let eventTypes: Set<String>? = [StopsPlanned.type]
    var types: Set<String> = []
    mutating func fold(_ event: Event) { types.insert(event.type) }
}

/// A change of a trip; its kind is its type.
private struct TripChanged<Kind: TripChangeKind>: EventPayload, Codable {
    static var type: String { "com.example.trip.\(Kind.self)".lowercased() }
    var trip: String
    var subject: String { trip }
}

private protocol TripChangeKind {}
private enum Begun: TripChangeKind {}
private enum Confirmed: TripChangeKind {}
private enum Cancelled: TripChangeKind {}
private enum Refused: TripChangeKind {}
private enum Archived: TripChangeKind {}
private enum Deleted: TripChangeKind {}

/// The confirmed trips. Of six event types four end a trip for ever, and hide the mistake of the other two.
private struct ConfirmedTrips: TripView, CompactableView, Codable {
    static let ending: Set<String> = [
        TripChanged<Cancelled>.type, TripChanged<Refused>.type, TripChanged<Archived>.type,
        TripChanged<Deleted>.type,
    ]
    var begun: Set<String> = []
    var confirmed: Set<String> = []
    var ended: Set<String> = []

    mutating func fold(_ event: Event) {
        guard let trip = event.subject else { return }
        if Self.ending.contains(event.type) {
            ended.insert(trip)
            begun.remove(trip)
            confirmed.remove(trip)
        }
        guard !ended.contains(trip) else { return }
        if event.type == TripChanged<Begun>.type { begun.insert(trip) }
        // The mistake: a confirmation that arrives before the beginning is dropped.
        if event.type == TripChanged<Confirmed>.type, begun.contains(trip) {
            confirmed.insert(trip)
        }
    }

    func retention(of event: Event) -> Retention { .needed(.current) }
}

/// The stops, with a retention that needs every event, of whatever type.
private struct NeedsAll: TripView, CompactableView, Codable {
    var stops = Stops()
    mutating func fold(_ event: Event) { stops.fold(event) }

    func retention(of event: Event) -> Retention {
        event.type == StopsPlanned.type ? stops.retention(of: event) : .needed(.current)
    }
}

/// A view that is neither equatable nor stored.
private struct Incomparable: Projection {
    static let name = "incomparable"
    static let version = 1
    mutating func fold(_ event: Event) {}
}

// MARK: Tests

@Suite struct ProjectionLawTests {
    /// The failure of a view that breaks a law, with its shrunk history.
    private func failure<View: Projection>(
        _ view: View.Type, of law: ProjectionLaw, rules: [EventRule] = rules,
        upcasters: [Upcaster] = upcasters, alongside others: [any CompactableView.Type] = [],
        events: (inout Choices) throws -> any EventPayload = { $0.trip() },
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> PropertyFailure {
        let failure = try #require(
            throws: PropertyFailure.self, sourceLocation: sourceLocation
        ) {
            try Property.checkProjection(
                view, rules: rules, upcasters: upcasters, alongside: others, events: events)
        }
        let violation = try #require(
            failure.cause as? ProjectionLaw.Violation, sourceLocation: sourceLocation)
        #expect(violation.law == law, sourceLocation: sourceLocation)
        #expect(
            failure.name == "\(View.self): \(law.rawValue)", sourceLocation: sourceLocation)
        return failure
    }

    @Test func `a view of registers obeys all laws`() throws {
        try Property.checkProjection(Stops.self, rules: rules, upcasters: upcasters) { choices in
            choices.trip()
        }
    }

    @Test func `a view that depends on the order of arrival is caught with two events`() throws {
        let failure = try failure(StopsAsTheyArrived.self, of: .orderOfArrival)
        #expect(
            failure.notes == [
                "1. phone at 1970-01-01T00:00:00.000Z: com.example.stop.planned "
                    + #"{"stop":"lake","trip":"spring"}"#,
                "2. phone at 1970-01-01T00:00:00.000Z: com.example.stop.planned "
                    + #"{"stop":"forest","trip":"spring"}"#,
            ])
        #expect("\(failure)".contains("in the order 2, 1: the states differ"))
        #expect("\(failure)".contains(#"expected: {"stops":{"spring":["forest"]}}"#))
        #expect("\(failure)".contains("DAYBOOK_SEED=0x"))
        try Property.checkProjection(
            StopsAsTheyArrived.self, rules: rules, upcasters: upcasters,
            except: [.orderOfArrival, .repetition]
        ) { $0.trip() }
    }

    @Test func `a view that counts events breaks the law of repetition`() throws {
        #expect(try failure(EventCount.self, of: .repetition).notes.count == 1)
        try Property.checkProjection(
            EventCount.self, rules: rules, except: [.repetition]
        ) { $0.trip() }
    }

    @Test func `a member that is missing in the stored state is caught with one event`() throws {
        #expect(try failure(TripsNotStored.self, of: .storedState).notes.count == 1)
    }

    @Test func `equal states that are stored as different bytes are caught with two events`() throws
    {
        let failure = try failure(StopsStoredInAnyOrder.self, of: .storedState)
        #expect(failure.notes.count == 2)
        #expect("\(failure.cause)".contains("equal states have different encoded bytes"))
    }

    @Test func `a value that compaction loses is caught`() throws {
        let failure = try failure(FirstAndLast.self, of: .compaction)
        #expect(failure.notes.count == 2)
        #expect("\(failure.cause)".contains("with 1 removed after 2 events"))
    }

    @Test func `an event that nothing has superseded is missed where the others are retracted`()
        throws
    {
        let failure = try failure(SupersededByItself.self, of: .compaction)
        #expect(failure.notes.count == 2)
        #expect("\(failure.cause)".contains("and 2 retracted"))
    }

    @Test func `a view that needs events that another view supersedes is caught`() throws {
        let failure = try failure(AllStops.self, of: .compaction, alongside: [Stops.self])
        #expect(failure.notes.count == 2)
    }

    @Test func `a view that depends on an attribute that an upcaster does not change is caught`()
        throws
    {
        let failure = try failure(SubjectsOfStops.self, of: .upcasting)
        #expect(failure.notes.count == 1)
    }

    @Test func `an upcaster whose data the new type refuses is caught`() throws {
        let wrong = Upcaster(from: StopPlanned.type, to: StopsPlanned.type) { $0 }
        let failure = try failure(Stops.self, of: .upcasting, upcasters: [wrong])
        #expect(failure.notes.count == 1)
        #expect("\(failure.cause)".contains("1 cannot be converted"))
    }

    @Test func `a pair of event types that break a law is found among six, of which four hide it`()
        throws
    {
        let failure = try failure(
            ConfirmedTrips.self, of: .orderOfArrival, rules: [], upcasters: []
        ) { choices in
            let trip = choices.element(of: ["spring", "summer", "autumn", "winter"])
            switch choices.int(in: 0...5) {
            case 0: return TripChanged<Cancelled>(trip: trip)
            case 1: return TripChanged<Refused>(trip: trip)
            case 2: return TripChanged<Archived>(trip: trip)
            case 3: return TripChanged<Deleted>(trip: trip)
            case 4: return TripChanged<Begun>(trip: trip)
            default: return TripChanged<Confirmed>(trip: trip)
            }
        }
        #expect(failure.notes.count == 2)
    }

    @Test func `the report has the types that changed the view, and the pairs that met`() throws {
        let report = try Property.checkProjection(
            Stops.self, rules: rules, upcasters: upcasters
        ) { $0.trip() }
        #expect(report.changes.keys.sorted() == [StopsPlanned.type])
        #expect(report.missing.isEmpty)
        #expect("\(report)".hasSuffix("1 types changed it, and 1 of 1 ordered pairs of them met"))
    }

    @Test func `a type that retention calls needed and that never changes the view is reported`()
        throws
    {
        let violation = try #require(throws: ProjectionLaw.Violation.self) {
            try Property.checkProjection(NeedsAll.self, rules: rules) {
                choices -> any EventPayload in
                let stop = choices.element(of: ["lake", "sea"])
                let planned = StopsPlanned(trip: "spring", stops: [stop])
                if choices.bool() { return planned }
                return TripChanged<Begun>(trip: "spring")
            }
        }
        #expect(violation.law == .compaction)
        #expect(violation.detail.contains("calls events of com.example.trip.begun needed"))
    }

    @Test func `a view whose event types are not those that it folds is caught`() throws {
        #expect(try failure(TypeNotNamed.self, of: .eventTypes, upcasters: []).notes.count == 1)
        #expect(try failure(OldTypeNamed.self, of: .eventTypes).notes.isEmpty)
    }

    @Test func `a check whose events cannot break a law fails`() throws {
        func missing(_ body: () throws -> Void) throws -> [String] {
            try #require(throws: CoverageFailure.self, performing: body).missing
        }
        let old = { (choices: inout Choices) in StopPlanned(trip: "spring", stop: "lake") }
        #expect(
            try missing { try Property.checkProjection(Stops.self, events: old) }
                == ["an event changes the view"])
        #expect(
            try missing {
                try Property.checkProjection(Stops.self, upcasters: upcasters) { choices in
                    StopsPlanned(trip: "spring", stops: [])
                }
            } == ["an event is of an old type"])
        #expect(
            try missing {
                try Property.checkProjection(
                    AllStops.self, upcasters: upcasters, events: { $0.trip() })
            } == ["compaction removes an event"])
    }

    @Test func `a view that cannot be checked is refused`() throws {
        let error = try #require(throws: EventError.self) {
            try Property.checkProjection(Incomparable.self, events: { $0.trip() })
        }
        #expect(error.code == .refused)
        #expect(error.detail.contains("Make it Equatable"))
        #expect(throws: EventError.self) {
            try Property.checkProjection(
                Stops.self, upcasters: upcasters + upcasters, events: { $0.trip() })
        }
    }
}

@Suite struct SampleHistoryTests {
    @Test func `a history has the events that a store would have`() async throws {
        let store = try await EventStore.inMemory(rules: rules)
        var history = try SampleHistory(rules: rules)
        let time = Timestamp(milliseconds: 7)
        let draft = try EventDraft(StopsPlanned(trip: "spring", stops: ["lake"]), time: time)
        try await store.append(contentsOf: [draft])
        history.record(draft)
        let stored = try #require(try await store.event(at: Position(1)))
        let event = history.events[0]
        #expect(event.content == stored.content)
        #expect(event.position == stored.position)
        #expect(event.lineBytes == stored.lineBytes)
        #expect(event.action == stored.action)
        #expect(event.isOwn)
        #expect(event.sequence == 1)
        try await store.close()
    }

    @Test func `each device has a source and a sequence, and each event a later time`() throws {
        var history = try SampleHistory()
        for device in [SampleHistory.Device.phone, .tablet, .phone, .tablet] {
            try history.record(StopPlanned(trip: "spring", stop: "lake"), on: device)
        }
        #expect(history.events.map(\.position.rawValue) == [1, 2, 3, 4])
        #expect(history.events.map(\.sequence) == [1, 1, 3, 2])
        #expect(history.events.map(\.isOwn) == [true, false, true, false])
        #expect(history.events.map(\.time.milliseconds) == [1_000, 2_000, 3_000, 4_000])
        #expect(Set(history.events.map(\.source)).count == 2)
    }

    @Test func `a view gets events of its types only, in their newest form`() throws {
        var history = try SampleHistory(rules: rules, upcasters: upcasters)
        try history.record(StopPlanned(trip: "spring", stop: "lake"))
        history.record(EventDraft(type: StopsPlanned.type))
        #expect(history.view(Stops.self).stops["spring"]?.value == ["lake"])
        #expect(history.view(TypeNotNamed.self).types == [StopsPlanned.type])
    }

    @Test func `data that a rule refuses can be recorded as a draft only`() throws {
        let strict = EventRule(type: StopPlanned.type, action: nil) { _ throws(EventError) in
            throw EventError(.invalidData, "no stop")
        }
        var history = try SampleHistory(rules: [strict])
        let error = try #require(throws: EventError.self) {
            try history.record(StopPlanned(trip: "spring", stop: "lake"))
        }
        #expect(error.detail == "no stop")
        #expect(history.events.isEmpty)
        history.record(EventDraft(type: StopPlanned.type))
        #expect(history.events.count == 1)
    }
}

@Suite struct DevicePairTests {
    @Test func `after a sync each device shows the other's events`() async throws {
        let devices = try await DevicePair(rules: rules, views: [Stops.self])
        try await devices.phone.append(StopsPlanned(trip: "spring", stops: ["lake"]))
        devices.clock.advance(by: .seconds(60))
        try await devices.tablet.append(StopsPlanned(trip: "spring", stops: ["sea"]))
        try await devices.sync()
        #expect(devices.phone.view(Stops.self).stops["spring"]?.value == ["sea"])
        #expect(devices.phone.view(Stops.self) == devices.tablet.view(Stops.self))
        #expect(devices.server.events.count == 2)
        try await devices.close()
    }
}

@Suite(.filterIssues { !Property.captureIssue(String(reflecting: $0)) })
struct RecordedIssueTests {
    @Test(arguments: [true, false])
    func `an issue in a property is the cause of its failure and reported nowhere else`(
        isRequired: Bool
    ) async throws {
        func check(_ number: Int) throws {
            if isRequired { try #require(number < 7) } else { #expect(number < 7) }
        }
        let failure = try #require(throws: PropertyFailure.self) {
            try Property.check("a number") { try check($0.int(in: 0...100)) }
        }
        #expect(failure.choices == [7])
        #expect("\(failure.cause)".contains("(number → 7) < 7"))
        let asynchronous = try await #require(throws: PropertyFailure.self) {
            try await Property.check("a number") { choices in
                await Task.yield()
                try check(choices.int(in: 0...100))
            }
        }
        #expect(asynchronous.choices == [7])
    }

    @Test func `an issue outside of a property is left to the framework`() {
        #expect(!Property.captureIssue("an issue"))
    }
}
