// The folded record, which replaces all records so far, and the outbox's answers to compaction.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Replay

/// A log with its outbox.
private struct Bench {
    var history = EventHistory()
    var outbox = Outbox()

    @discardableResult
    mutating func add(_ draft: EventDraft) -> Event {
        let event = history.addOwn(draft)
        outbox.fold(event)
        return event
    }

    @discardableResult
    mutating func save(_ city: String) throws -> Event {
        add(try EventDraft(CitySaved(userId: "u", cityId: city)))
    }

    @discardableResult
    mutating func record(
        at milliseconds: Int64 = 0, _ body: (inout SyncSettled) -> Void
    ) throws -> Event {
        var record = SyncSettled(by: history.incarnation)
        body(&record)
        return add(try EventDraft(record, time: Timestamp(milliseconds: milliseconds)))
    }

    static func entry(
        _ event: Event, _ outcome: SyncSettled.Outcome, code: String? = nil, detail: String? = nil
    ) -> SyncSettled.Entry {
        SyncSettled.Entry(
            position: event.position.rawValue, id: event.id, outcome: outcome, retryCount: 2,
            code: code, detail: detail)
    }
}

@Suite struct FoldedRecordTests {
    @Test(.verifies("OUT-1", "OUT-7"))
    func `a folded record has the content of all records before it`() throws {
        var bench = Bench()
        try bench.save("a")
        try bench.record { ($0.applied, $0.clockOffset) = ([1...1], 7_000) }
        let stuck = try bench.save("b")
        try bench.save("c")
        bench.add(EventDraft(type: "daybook.page.stored"))
        bench.add(EventDraft(type: "com.example.planned"))
        try bench.save("d")
        var entry = Bench.entry(stuck, .parked, code: "no", detail: "never")
        (entry.retryCount, entry.isFinal, entry.failuresAlone) = (5, true, 3)
        try bench.record(at: 77) { record in
            record.duplicate = [4...4, 7...7]
            record.clockCandidate = -9_000_000_000
            record.entries = [entry]
        }
        try bench.save("e")

        let record = try #require(bench.outbox.foldedRecord(by: bench.history.incarnation))
        #expect(record.applied == [1...2, 4...5, 7...7])
        #expect(record.duplicate.isEmpty)
        #expect(record.replaces == Position(8))
        var expected = entry
        expected.at = Timestamp(milliseconds: 77)
        #expect(record.entries == [expected])
        #expect(record.clockOffset == 7_000)
        #expect(record.clockCandidate == -9_000_000_000)
        #expect(try SyncSettled(json: record.json()) == record)

        // The folded record alone gives the same outbox as all records together.
        let before = bench.outbox
        let event = bench.add(try EventDraft(record, time: Timestamp(milliseconds: 99)))
        #expect(Array(bench.outbox.entries) == Array(before.entries))
        let left = bench.history.events.filter {
            $0.type != SyncSettled.type || $0.position == event.position
        }
        #expect(Outbox(folding: left).encodedState() == bench.outbox.encodedState())
        #expect(bench.outbox.entries.map(\.lastAttemptAt).first == Timestamp(milliseconds: 77))
        let bytes = try #require(bench.outbox.encodedState())
        #expect(try Outbox(encodedState: bytes).encodedState() == bytes)
        // Nothing is left to fold.
        #expect(bench.outbox.foldedRecord(by: bench.history.incarnation) == nil)
        #expect(Outbox().foldedRecord(by: bench.history.incarnation) == nil)
    }

    @Test(.verifies("OUT-7"))
    func `a folded record does not change the outbox`() throws {
        func shown(_ outbox: Outbox) -> [OutboxEntry] { Array(outbox.entries) }
        var folds = 0
        try Property.check("shown(L + folded record) = shown(L)", runs: 300) { choices in
            var log = RandomLog()
            for _ in 0..<choices.int(in: 1...40) { try log.step(&choices) }
            let outbox = log.outbox
            guard let record = outbox.foldedRecord(by: log.history.incarnation) else { return }
            folds += 1
            var history = log.history
            var after = outbox
            after.fold(
                history.addOwn(try EventDraft(record, time: Timestamp(milliseconds: 9_999))))
            try #require(shown(after) == shown(outbox))
            try #require(after.unknown == outbox.unknown)
            try #require(after.ignored == outbox.ignored)
        }
        #expect(folds > 100)
    }

    @Test(.verifies("OUT-2", "OUT-7"))
    func `events that a record of a newer version has settled stay settled`() throws {
        var bench = Bench()
        for _ in 0..<4 { bench.add(EventDraft(type: "com.example.planned")) }
        // A newer release, which knew the type, shipped two of the events.
        try bench.record { $0.applied = [2...3] }
        let record = try #require(bench.outbox.foldedRecord(by: bench.history.incarnation))
        #expect(record.applied == [2...3])
    }

    @Test(.verifies("OUT-7", "OUT-8"))
    func `an answer to an event is kept by a release that does not know the event's type`()
        throws
    {
        let type = "com.example.planned"
        let knowing = OfflineModel.catalogue.adding([
            EventRule(type: type, action: "PLAN") { _ in }
        ])
        var newer = Bench(history: EventHistory(catalogue: knowing))
        let parked = newer.add(EventDraft(type: type))
        let sent = newer.add(EventDraft(type: type))
        let retried = newer.add(EventDraft(type: type))
        try newer.record(at: 5) { record in
            record.entries = [
                Bench.entry(parked, .parked, code: "no"), Bench.entry(sent, .parked, code: "no"),
                Bench.entry(retried, .retry, code: "busy"),
            ]
        }
        try newer.record(at: 6) { $0.applied = [2...2] }
        #expect(newer.outbox.entries.map(\.status) == [.failed, .pending])

        // The same lines, read by a release without the rule; its state is stored meanwhile.
        var older = Bench()
        for event in newer.history.events { older.add(event.content) }
        #expect(older.outbox.count == 0)
        let bytes = try #require(older.outbox.encodedState())
        let stored = try Outbox(encodedState: bytes)
        #expect(stored.encodedState() == bytes)
        let record = try #require(stored.foldedRecord(by: older.history.incarnation))
        #expect(record.applied == [2...2, 4...4])
        #expect(record.entries.map(\.position) == [1, 3])
        #expect(older.outbox.foldedRecord(by: older.history.incarnation) == record)

        // Compaction removes the replaced records; the newer release reads the rest.
        var events = newer.history.events.filter { $0.type == type }
        var history = newer.history
        events.append(history.addOwn(try EventDraft(record)))
        let after = Outbox(folding: events)
        #expect(Array(after.entries) == Array(newer.outbox.entries))
    }

    @Test(.verifies("OUT-7"))
    func `a reader that does not know folded records settles the same events by one`() throws {
        var bench = Bench()
        for city in ["a", "b", "c"] { try bench.save(city) }
        try bench.record { $0.applied = [1...1] }
        try bench.record { $0.applied = [3...3] }
        var record = try #require(bench.outbox.foldedRecord(by: bench.history.incarnation))
        record.replaces = nil
        bench.add(try EventDraft(record))
        #expect(bench.outbox.entries.map(\.position) == [Position(2)])
    }

    @Test(.verifies("OUT-7", "CMP-3"))
    func `a folded record that was computed before later records has no effect`() throws {
        var bench = Bench()
        let stuck = try bench.save("a")
        try bench.record { $0.entries = [Bench.entry(stuck, .retry)] }
        let late = try #require(bench.outbox.foldedRecord(by: bench.history.incarnation))
        try bench.record { $0.entries = [Bench.entry(stuck, .parked)] }
        bench.add(try EventDraft(late))
        #expect(bench.outbox.entries.map(\.status) == [.failed])
        #expect(bench.outbox.ignored == 0)
        for event in bench.history.events[1...] {
            #expect(bench.outbox.retention(of: event) == .needed(.current))
        }
        let record = try #require(bench.outbox.foldedRecord(by: bench.history.incarnation))
        let folded = bench.add(try EventDraft(record))
        #expect(bench.outbox.entries.map(\.status) == [.failed])
        for event in bench.history.events[1...3] {
            #expect(bench.outbox.retention(of: event) == .superseded(by: [folded.lwwTimestamp]))
        }
        #expect(bench.outbox.retention(of: folded) == .needed(.current))
    }

    @Test(.verifies("OUT-3", "OUT-7"), arguments: ["0", "-1", "1.5", "\"7\"", "null"])
    func `a record that replaces no position is ignored and counted`(replaces: String) throws {
        var bench = Bench()
        try bench.save("a")
        let data =
            #"{"by":"\#(bench.history.incarnation)","applied":[[1,1]],"replaces":\#(replaces)}"#
        bench.add(EventDraft(type: SyncSettled.type, data: .json(Array(data.utf8))))
        #expect(bench.outbox.count == 1)
        #expect(bench.outbox.ignored == 1)
    }

    @Test(.verifies("OUT-7"))
    func `a history of shipped types folds into one range, however long it is`() throws {
        var bench = Bench()
        for round in 0..<200 {
            let first = bench.history.next.rawValue
            for city in 0..<5 { try bench.save("\(round) \(city)") }
            bench.add(EventDraft(type: "daybook.page.stored"))
            try bench.record { $0.applied = [first...first + 4] }
        }
        let record = try #require(bench.outbox.foldedRecord(by: bench.history.incarnation))
        #expect(record.applied == [1...1_399])
        #expect(record.json().count < 100)
    }

    @Test(.verifies("OUT-7")) func `a folded record that would not fit into a line is not written`()
        throws
    {
        func record(_ count: UInt64) -> SyncSettled? {
            var outbox = Outbox()
            for index in 0..<count { outbox.unknown.append(2 * index + 2...2 * index + 2) }
            outbox.lastRecord = Position(2 * count + 1)
            return outbox.foldedRecord(by: UUID(integer: 1))
        }
        let fits = try #require(record(1_000))
        #expect(fits.applied.count == 1_000)
        #expect(fits.json().count < 20_000)
        #expect(record(80_000) == nil)
    }

    @Test(.verifies("OUT-4")) func `an entry is about the event with its position and its id`()
        throws
    {
        var bench = Bench()
        let event = try bench.save("a")
        var entry = Bench.entry(event, .parked)
        for (position, id) in [(0, event.id), (2, event.id), (1, UUID())] as [(UInt64, UUID)] {
            entry.position = position
            entry.id = id
            try bench.record { $0.entries = [entry] }
        }
        #expect(bench.outbox.entries.map(\.status) == [.pending])
    }

    @Test(.verifies("OUT-1")) func `truncating the server's message again does not change it`()
        throws
    {
        // At every offset: between characters of any width, with or without unused bytes.
        for offset in 0..<12 {
            let text =
                String(repeating: "x", count: offset) + String(repeating: "é\u{1}\"", count: 99)
            let once = SyncSettled.truncated(text, SyncSettled.detailBytesMax)
            #expect(once.hasSuffix("…"))
            #expect(once.utf8.count < 520)
            #expect(SyncSettled.truncated(once, SyncSettled.detailBytesMax) == once)
        }
        #expect(SyncSettled.truncated("short", SyncSettled.codeBytesMax) == "short")
        var record = SyncSettled(by: UUID())
        record.entries = [
            SyncSettled.Entry(
                position: 1, id: UUID(), outcome: .retry, retryCount: 1,
                code: String(repeating: "c", count: 100),
                detail: String(repeating: "d", count: 1_000))
        ]
        let read = try SyncSettled(json: record.json())
        #expect(try SyncSettled(json: read.json()) == read)
    }

    @Test(.verifies("CMP-2", "CMP-3", "CMP-4"))
    func `the outbox needs unsettled events, events of unknown types, and the newest line`()
        throws
    {
        var bench = Bench()
        let settled = try bench.save("a")
        let waiting = try bench.save("b")
        let unknown = bench.add(EventDraft(type: "com.example.planned"))
        let broken = bench.add(EventDraft(type: SyncSettled.type, data: .json(Array("{}".utf8))))
        let foreign = bench.history.addForeign(
            try EventDraft(CitySaved(userId: "u", cityId: "c")), source: UUID(integer: 9),
            sequence: 2)
        bench.outbox.fold(foreign)
        let others = bench.history.addForeign(
            try EventDraft(SyncSettled(by: UUID(integer: 9))), source: UUID(integer: 9),
            sequence: 3)
        bench.outbox.fold(others)
        let record = try bench.record { $0.applied = [1...1] }
        let newest = bench.add(EventDraft(type: "daybook.page.stored"))
        let outbox = bench.outbox
        #expect(outbox.retention(of: settled) == .unconcerned)
        #expect(outbox.retention(of: waiting) == .needed(.unsettled))
        #expect(outbox.retention(of: unknown) == .needed(.unknownType))
        #expect(outbox.retention(of: broken) == .needed(.notUnderstood))
        #expect(outbox.retention(of: foreign) == .unconcerned)
        #expect(outbox.retention(of: others) == .unconcerned)
        #expect(outbox.retention(of: record) == .needed(.current))
        #expect(outbox.retention(of: newest) == .needed(.current))
        for event in bench.history.events {
            #expect(outbox.isSettled(event.lwwTimestamp) == (event.position != waiting.position))
        }
        // A fork of this log writes with the same incarnation: in doubt the event is not settled.
        #expect(
            !outbox.isSettled(
                LWWTimestamp(
                    time: Timestamp(milliseconds: 5), source: waiting.source.integer,
                    sequence: waiting.sequence)))
    }
}
