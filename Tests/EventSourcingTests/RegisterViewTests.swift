// Register views, of which an app writes only the declaration. Spec/model/views.md, VIEW-28.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import TestSupport
import Testing

/// A measurement with members of several kinds: a signed number, a list, a flag with a default.
private struct Measured: DeclaredPayload, Equatable {
    static let type = "com.example.measured"
    var place: String
    var sensor: String
    var degrees: Int?
    var humidity: Double?
    var comment: String?
    var tags: [String] = []
    var isChecked = false

    static var example: Self { Self(place: "-", sensor: "-") }

    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("place", &place, .identifier)
        try members.required("sensor", &sensor, .identifier)
        try members.optional("degrees", &degrees, SignedKind())
        try members.optional("humidity", &humidity, .number(0...1))
        try members.optional("comment", &comment, .text)
        try members.optional("tags", &tags, .identifiers, missing: [])
        try members.optional("isChecked", &isChecked, .flag, missing: false)
    }
}

/// An app's own kind: a whole number of either sign.
private struct SignedKind: MemberKind {
    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> Int {
        Int(try object.finite(name))
    }

    func write(
        _ value: Int, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value)
    }

    var schema: MemberSchema.Kind { .number(-100...100) }
}

private struct Measurements: RegisterView {
    static let name = "measurements"
    static let version = 1
    static let eventTypes: Set<String>? = [Measured.type]
    static let keyNames = ["place", "sensor"]
    var registers = RegisterTable(initial: Measured.example)

    init() {}

    static func change(in event: Event) throws -> RegisterChange<Measured> {
        let measured = try event.payload(as: Measured.self)
        let key = [measured.place, measured.sensor]
        return RegisterChange(of: measured.comment == "broken" ? ["one"] : key, to: measured)
    }
}

/// An object with optional members only: a change may have none.
private struct Wishes: RegisterView {
    struct Wished: DeclaredPayload {
        static let type = "com.example.wished"
        var food: String?
        static var example: Self { Self() }
        mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
            try members.optional("food", &food, .text)
        }
    }

    static let name = "wishes"
    static let version = 1
    static let eventTypes: Set<String>? = [Wished.type]
    static let keyNames = ["key"]
    var registers = RegisterTable(initial: Wished.example)

    init() {}

    static func change(in event: Event) throws -> RegisterChange<Wished> {
        RegisterChange(of: ["k"], to: try event.payload(as: Wished.self))
    }
}

@Suite(.verifies("VIEW-28")) struct RegisterViewTests {
    private static func rows(_ view: some ListableView) -> [String] {
        view.rows().map { String(decoding: $0.json, as: UTF8.self) }
    }

    private static func draft(_ payload: some EventPayload, at time: Int64) throws -> EventDraft {
        try EventDraft(payload, time: Timestamp(milliseconds: time))
    }

    @Test func `the newest value of each member wins, and a missing member leaves the old value`()
        throws
    {
        var history = EventHistory()
        var first = Measured(place: "a", sensor: "s")
        (first.degrees, first.humidity) = (-3, 0.5)
        var second = Measured(place: "a", sensor: "s")
        (second.degrees, second.comment) = (4, "warm")
        history.addOwn(try Self.draft(second, at: 2_000))
        history.addOwn(try Self.draft(first, at: 1_000))
        let view = Measurements(folding: history.events)
        #expect(
            Self.rows(view) == [
                #"{"place":"a","sensor":"s","degrees":4,"humidity":0.5,"comment":"warm","tags":[],"#
                    + #""isChecked":false,"updatedAt":"1970-01-01T00:00:02.000Z"}"#
            ])
        #expect(view.keys == [["a", "s"]])
        #expect(view.registers["a", "s"]?.values.degrees == 4)
        #expect(view.retention(of: history.events[0]) == .needed(.current))
        #expect(
            view.retention(of: history.events[1]) == .needed(.current),
            "it is the winner of the humidity")
    }

    @Test func `rows are the same in any order, and after a restart`() throws {
        try Property.check("register views", runs: 200) { choices in
            var history = EventHistory()
            for _ in 0..<choices.int(in: 0...8) {
                var measured = try choices.payload(Measured.self, identifiers: ["a", "[\"a\"]"])
                if let humidity = measured.humidity { measured.humidity = humidity / 3 }
                history.addOwn(try Self.draft(measured, at: Int64(choices.int(in: 0...3))))
            }
            let view = Measurements(folding: history.events)
            let backwards = Measurements(folding: history.events.reversed())
            let state = try #require(try view.encodedState())
            try #require(try backwards.encodedState() == state)
            let again = try Measurements(encodedState: state)
            try #require(Self.rows(again) == Self.rows(view))
            try #require(Self.rows(backwards) == Self.rows(view))
            try #require(try again.encodedState() == state)
            // Superseded events can be removed.
            let needed = history.events.filter {
                if case .superseded = view.retention(of: $0) { return false }
                return true
            }
            try #require(Self.rows(Measurements(folding: needed)) == Self.rows(view))
        }
    }

    @Test func `a key of another number of parts is ignored and kept`() throws {
        var history = EventHistory()
        var broken = Measured(place: "a", sensor: "s")
        broken.comment = "broken"
        history.addOwn(try Self.draft(broken, at: 1))
        let view = Measurements(folding: history.events)
        #expect(view.rows().isEmpty)
        #expect(view.registers.ignored == 1)
        #expect(view.retention(of: history.events[0]) == .needed(.notUnderstood))
    }

    @Test func `a change without a member sets nothing, and its state can be read`() throws {
        var history = EventHistory()
        history.addOwn(try Self.draft(Wishes.Wished(), at: 1))
        let view = Wishes(folding: history.events)
        #expect(view.rows().isEmpty)
        #expect(view.registers.ignored == 0)
        let state = try #require(try view.encodedState())
        #expect(try Wishes(encodedState: state).rows().isEmpty)
    }

    @Test func `a state truncated anywhere is refused`() throws {
        var history = EventHistory()
        var measured = Measured(place: "a", sensor: "s", tags: ["t"])
        (measured.degrees, measured.humidity, measured.comment) = (.min, 1, "x")
        history.addOwn(try Self.draft(measured, at: 1))
        let state = try #require(try Measurements(folding: history.events).encodedState())
        for count in state.indices {
            #expect(throws: EventError.self) {
                try Measurements(encodedState: Array(state[..<count]))
            }
        }
    }
}
