// The index of events, the filter, the search for text and the reading of single lines.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Studio

private func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }

@Suite struct IndexTests {
    // MARK: Names

    @Test(.verifies("STU-7")) func `two names share a number if their bytes are equal`() throws {
        try Property.check("names", runs: 200) { choices in
            var table = NameTable()
            let names = choices.array(0...20) { choices in
                choices.element(of: Choices.hostileIdentifiers)
            }
            let numbers = names.map { table.number(of: Array($0.utf8).span.bytes) }
            for (name, number) in zip(names, numbers) {
                try #require(number != NameTable.none)
                try #require(bytes(table.name(number)) == bytes(name))
                try #require(table.existingNumber(of: name) == number)
            }
            try #require(Set(numbers).count == Set(names.map { Array($0.utf8) }).count)
            try #require(table.existingNumber(of: "another name") == nil)
        }
        #expect(NameTable().name(NameTable.none) == nil)
    }

    // MARK: Columns

    @Test(.verifies("STU-7"))
    func `the columns and the statuses are those of a naive fold of the events`() throws {
        try Property.check("index", runs: 40) { choices in
            let events = try Histories.random(&choices, 0...40)
            let log = try SampleLog(events)
            defer { log.remove() }
            try log.followed.readToEnd()
            let index = log.followed.withState { $0.index }
            let statuses = try log.naiveStatuses(events)
            try #require(log.followed.statuses == statuses)
            try #require(index.positions == events.map(\.position.rawValue))
            try #require(index.times == events.map(\.time.milliseconds))
            try #require(index.lineBytes == events.map { UInt32($0.lineBytes) })
            try #require(index.totalLineBytes == events.reduce(0) { $0 + $1.lineBytes + 1 })
            for (ordinal, event) in events.enumerated() {
                func name(_ column: [UInt32]) -> [UInt8]? {
                    bytes(index.names.name(column[ordinal]))
                }
                try #require(name(index.types) == bytes(event.type))
                try #require(name(index.subjects) == bytes(event.subject))
                try #require(name(index.lanes) == bytes(event.lane))
                try #require(name(index.sources) == bytes("urn:uuid:" + event.source.text))
                try #require(index.ordinal(of: event.id) == ordinal)
                try #require(index.ordinal(at: event.position.rawValue) == ordinal)
            }
            let overview = try API(log.followed, isWritable: false).json("log")
            let types = Dictionary(grouping: events) { Array($0.type.utf8) }.mapValues(\.count)
            try #require(overview.counts("types") == types)
            let byStatus = Dictionary(grouping: statuses) { Array($0.rawValue.utf8) }
            try #require(overview.counts("statuses") == byStatus.mapValues(\.count))
        }
    }

    @Test(.verifies("STU-7")) func `ids with the same second half are different events`() throws {
        // As are the ids of version 1 that one program makes.
        let ids = (1...3 as ClosedRange<UInt128>).map {
            UUID(integer: $0 << 96 | 0x4000_8000_0000_0000_0001)
        }
        var history = EventHistory()
        for id in ids {
            history.addOwn(
                EventDraft(
                    id: id, type: "com.example.visit", subject: "s", lane: "l",
                    data: .json(Array("{}".utf8))))
        }
        let log = try SampleLog(history.events.stored)
        defer { log.remove() }
        try log.followed.readToEnd()
        let index = log.followed.withState { $0.index }
        #expect(ids.map { index.ordinal(of: $0) } == [0, 1, 2])
    }

    @Test(.verifies("STU-7")) func `every status is shown`() throws {
        let log = try SampleLog(Histories.statuses())
        defer { log.remove() }
        try log.followed.readToEnd()
        #expect(log.followed.statuses == Histories.expectedStatuses)
        #expect(Set(Histories.expectedStatuses) == Set(EventStatus.allCases))
    }

    @Test(.verifies("STU-7"))
    func `a status follows the log, and a late retraction counts`() throws {
        let events = try Histories.statuses()
        let log = try SampleLog(Array(events[..<9]))
        defer { log.remove() }
        try log.followed.readToEnd()
        #expect(log.followed.statuses.prefix(6).allSatisfy { $0 == .pending })
        try log.append(events[9...])
        try log.followed.readToEnd()
        #expect(log.followed.statuses == Histories.expectedStatuses)
    }

    @Test(.verifies("STU-12")) func `events that name an event are found by its id`() throws {
        let log = try SampleLog(Histories.statuses())
        defer { log.remove() }
        try log.followed.readToEnd()
        let index = log.followed.withState { $0.index }
        #expect(index.dependents(of: Histories.id(1)) == [4])
        #expect(index.dependents(of: Histories.id(2)).isEmpty)
        #expect(index.ordinal(of: UUID()) == nil)
        #expect(index.positions(ofTypes: [NoteAdded.type]) == [1, 3, 6, 7])
    }

    // MARK: Filters

    private typealias Condition = (name: String, value: String, accepts: (Int) -> Bool)

    private func condition(
        _ choices: inout Choices, _ events: [Event], _ statuses: [EventStatus]
    ) -> Condition {
        let event = choices.element(of: events)
        let (position, time) = (event.position, event.time)
        switch choices.int(in: 0...8) {
        case 0: return ("type", event.type, { bytes(events[$0].type) == bytes(event.type) })
        case 1:
            guard let subject = event.subject, !subject.isEmpty else { fallthrough }
            return ("subject", subject, { bytes(events[$0].subject) == bytes(subject) })
        case 2: return ("lane", event.lane, { bytes(events[$0].lane) == bytes(event.lane) })
        case 3:
            return (
                "source", "urn:uuid:" + event.source.text, { events[$0].source == event.source }
            )
        case 4:
            let status = choices.element(of: EventStatus.allCases)
            return ("status", status.rawValue, { statuses[$0] == status })
        case 5: return ("from", "\(position)", { events[$0].position >= position })
        case 6: return ("to", "\(position)", { events[$0].position <= position })
        case 7: return ("since", time.description, { events[$0].time >= time })
        default: return ("until", time.description, { events[$0].time < time })
        }
    }

    @Test(.verifies("STU-7")) func `a filter accepts what meets all its conditions`() throws {
        try Property.check("filters", runs: 60, covering: ["some", "none"]) { choices in
            let events = try Histories.random(&choices, 1...40)
            guard !events.isEmpty else { return }
            let log = try SampleLog(events)
            defer { log.remove() }
            try log.followed.readToEnd()
            let statuses = log.followed.statuses
            for _ in 0..<10 {
                var conditions: [String: Condition] = [:]
                for _ in 0...choices.int(in: 0...2) {
                    let condition = condition(&choices, events, statuses)
                    conditions[condition.name] = condition
                }
                let filter = try EventFilter(
                    conditions.values.map { (name: $0.name, value: $0.value) })
                let index = log.followed.withState { $0.index }
                let found = filter.ordinals(in: index) { statuses[$0] }
                let expected = events.indices.filter { ordinal in
                    conditions.values.allSatisfy { $0.accepts(ordinal) }
                }
                try #require(
                    found.map { $0.map(Int.init) } ?? Array(events.indices) == expected,
                    "\(conditions.values.map { ($0.name, $0.value) })")
                choices.count(expected.isEmpty ? "none" : "some")
            }
        }
    }

    @Test(.verifies("STU-7"))
    func `a repeated parameter accepts any of its values, and an empty one anything`() throws {
        let log = try SampleLog(Histories.statuses())
        defer { log.remove() }
        let api = try API(reading: log.directory)
        let both = "type=daybook.city.saved&type=com.example.visit&order=oldest"
        #expect(try api.positions("events?\(both)") == [2, 9])
        #expect(try api.positions("events?type=&text=&status=pending&order=oldest") == [2, 4])
        #expect(try api.positions("events?subject=none").isEmpty)
        #expect(try api.positions("events?account=ada") == [2])
    }

    @Test(
        .verifies("STU-7"),
        arguments: [
            #"{"userId":"ada"}"#, #"{ "userId" : "ada" }"#, #"{"userId":"\u0061da"}"#,
            #"{"a":{"userId":"bob"},"userId":"ada"}"#,
        ])
    func `an account is found however the data are written`(data: String) throws {
        var history = EventHistory()
        history.addOwn(
            EventDraft(
                id: Histories.id(1), type: "com.example.visit", subject: "s",
                data: .json(Array(data.utf8))))
        let log = try SampleLog(history.events.stored)
        defer { log.remove() }
        let api = try API(reading: log.directory)
        #expect(try api.positions("events?account=ada") == [1])
        #expect(try api.positions("events?account=bob").isEmpty)
    }

    // MARK: Text

    @Test(.verifies("STU-7"))
    func `a search finds what a naive one finds, with ASCII letters in any case`() throws {
        let alphabet = Array("aAbBz@[`{é".utf8) + [0xFF]
        func naive(_ needle: [UInt8], _ line: [UInt8]) -> Bool {
            guard needle.count <= line.count else { return false }
            return (0...(line.count - needle.count)).contains { start in
                line[start..<start + needle.count].map(\.lowercasedASCII) == needle
            }
        }
        try Property.check(
            "search", runs: 3_000, covering: ["found", "absent", "longer", "repeated"]
        ) { choices in
            let letters = choices.bool(oneIn: 4) ? [UInt8(ascii: "a")] : alphabet
            let line = choices.array(0...40) { $0.element(of: letters) }
            var needle = choices.array(1...8) { $0.element(of: letters) }
            if !line.isEmpty, choices.bool() {
                let start = choices.int(in: 0...line.count - 1)
                needle = Array(line[start...].prefix(choices.int(in: 1...9)))
            }
            needle = needle.map(\.lowercasedASCII)
            let isFound = naive(needle, line)
            choices.count(isFound ? "found" : "absent")
            if needle.count > line.count { choices.count("longer") }
            if needle.count > 1, Set(needle).count == 1 { choices.count("repeated") }
            try #require(TextSearch(lowercased: needle).matches(line.span.bytes) == isFound)
        }
    }

    // MARK: Lines

    @Test(.verifies("STU-7"))
    func `the lines at some positions are read, and no others`() throws {
        let events = try Histories.settings(Array(0..<1_500))
        let log = try SampleLog(events, commit: 100)
        defer { log.remove() }
        try log.roll()
        try Property.check("lines", runs: 30) { choices in
            let positions = Set(
                choices.array(0...12) { UInt64($0.int(in: 1...1_600)) }
            ).sorted()
            var found: [UInt64] = []
            try LineReading.forEachLine(
                at: positions, in: LogFolder(log.directory)
            ) { prefix, line in
                let event = events[Int(prefix.position.rawValue) - 1]
                let bytes = line.array + [UInt8(ascii: "\n")]
                try #require(bytes == event.storedLine)
                found.append(prefix.position.rawValue)
            }
            try #require(found == positions.filter { $0 <= 1_500 })
        }
    }
}
