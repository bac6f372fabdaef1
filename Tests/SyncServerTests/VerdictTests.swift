// The verdicts of every storage on each kind of event, and the events that it then has.

import DaybookOffline
import EventSourcing
import Foundation
import SyncServerStorage
import TestSupport
import Testing

@Suite(.verifies("PG-2")) struct VerdictTests {
    /// The server's verdict type; the client has its own.
    private typealias EventVerdict = SyncServerStorage.EventVerdict

    private func statuses(_ verdicts: [EventVerdict]) -> [Verdict.Status] {
        verdicts.map(\.status)
    }

    @Test(.verifies("SYNC-22", "SYNC-24"), arguments: StorageKind.all)
    func `a new event is applied, and the same again is a duplicate`(kind: StorageKind) async throws
    {
        let storage = try await kind.open()
        let event = Sample(sequence: 1)
        #expect(try await storage.append([event]) == [EventVerdict(event.id, .applied)])
        #expect(try await storage.append([event]) == [EventVerdict(event.id, .duplicate)])
        #expect(try await storage.all() == [event.line])
    }

    @Test(.verifies("SYNC-16", "SYNC-18"), arguments: StorageKind.all)
    func `an event that is twice in a batch is stored once`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let event = Sample(sequence: 1)
        let verdicts = try await storage.append([event, event])
        #expect(statuses(verdicts) == [.applied, .duplicate])
        #expect(try await storage.all() == [event.line])
    }

    @Test(.verifies("SYNC-24"), arguments: StorageKind.all)
    func `the same content from another source and in another spelling is a duplicate`(
        kind: StorageKind
    )
        async throws
    {
        let storage = try await kind.open()
        var event = Sample(sequence: 1)
        _ = try await storage.append([event])
        event.source = UUID()
        event.sequence = 9
        event.lane = nil
        event.time = nil
        event.data = #"{ "cityId" : "lis\u0062on", "userId":"ana" }"#
        #expect(statuses(try await storage.append([event])) == [.duplicate])
    }

    @Test(.verifies("SYNC-25"), arguments: StorageKind.all)
    func `the same id with other content is rejected as id_reused`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        var event = Sample(sequence: 1)
        _ = try await storage.append([event])
        let line = event.line
        event.data = #"{"userId":"bob","cityId":"lisbon"}"#
        let verdict = try #require(try await storage.append([event]).first)
        #expect(verdict.status == .rejected)
        #expect(verdict.code == .idReused)
        #expect(try await storage.all() == [line])
    }

    @Test(.verifies("SYNC-23"), arguments: StorageKind.all)
    func `two events under one source and sequence are both kept, with source_fork`(
        kind: StorageKind
    )
        async throws
    {
        let storage = try await kind.open()
        let one = Sample(sequence: 1)
        let other = Sample(sequence: 1, subject: "porto", data: #"{"userId":"a","cityId":"porto"}"#)
        let verdicts = try await storage.append([one, other])
        #expect(statuses(verdicts) == [.applied, .applied])
        #expect(verdicts.map(\.code) == [nil, .sourceFork])
        #expect(try await storage.all().count == 2)
        // The reply may have been lost: repeated events get the same verdicts, without other effects.
        let third = Sample(sequence: 2)
        let again = try await storage.append([other, third, third])
        #expect(statuses(again) == [.duplicate, .applied, .duplicate])
        #expect(again.map(\.code) == [.sourceFork, nil, nil])
    }

    @Test(
        .verifies("SYNC-11", "SYNC-14", "SYNC-26"),
        arguments: StorageKind.all,
        [
            (#""specversion":"1.0""#, #""specversion":"0.3""#),
            (#""type":"daybook.city.saved""#, #""type":"""#),
            (#""source":"urn:uuid:"#, #""source":"device/"#),
            (#""sequence":"0000"#, #""sequence":"-000"#),
            (#""cityId":"lisbon""#, #""cityId":"""#),
            (#""time":"2026"#, #""time":"next year"#),
        ])
    func `an event that breaks a rule is rejected as invalid_event`(
        kind: StorageKind, change: (rule: String, broken: String)
    ) async throws {
        let storage = try await kind.open()
        let event = Sample(sequence: 1)
        let line = event.line.replacing(change.rule, with: change.broken)
        #expect(line != event.line)
        let verdict = try #require(try await storage.append(lines: [line]).first)
        #expect(verdict.id == event.id)
        #expect(verdict.status == .rejected)
        #expect(verdict.code == .invalidEvent)
        #expect(verdict.detail?.isEmpty == false)
        #expect(try await storage.all().isEmpty)
    }

    @Test(.verifies("SYNC-13", "SYNC-26"), arguments: StorageKind.all)
    func `an event above 256 KiB is rejected as too_large`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        var event = Sample(sequence: 1)
        event.data =
            #"{"userId":"ana","cityId":"lisbon","x":"\#(String(repeating: "x", count: 256 * 1024))"}"#
        let verdict = try #require(try await storage.append([event]).first)
        #expect(verdict.status == .rejected)
        #expect(verdict.code == .tooLarge)
    }

    @Test(.verifies("SYNC-27"), arguments: StorageKind.all)
    func `a change based on the head is applied, on anything else a conflict`(kind: StorageKind)
        async throws
    {
        let storage = try await kind.open()
        let added = Sample.note("added", "n", 1)
        let mine = Sample.note("updated", "n", 2, base: added.id, text: "mine")
        let theirs = Sample.note("updated", "n", 3, base: added.id, text: "theirs")
        #expect(statuses(try await storage.append([added, mine])) == [.applied, .applied])
        let verdict = try #require(try await storage.append([theirs]).first)
        #expect(verdict.status == .conflict)
        #expect(verdict.current.map { String(decoding: $0, as: UTF8.self) } == mine.line)
        // Sent again after a lost reply, the applied event does not conflict with itself.
        #expect(statuses(try await storage.append([mine])) == [.duplicate])
        let deleted = Sample.note("deleted", "n", 4, base: mine.id)
        #expect(statuses(try await storage.append([deleted])) == [.applied])
    }

    @Test(.verifies("SYNC-27"), arguments: StorageKind.all)
    func `a change with a base to a note that the server does not know is a conflict`(
        kind: StorageKind
    )
        async throws
    {
        let storage = try await kind.open()
        let change = Sample.note("updated", "n", 2, base: UUID())
        let verdict = try #require(try await storage.append([change]).first)
        #expect(verdict.status == .conflict)
        #expect(verdict.current == nil)
    }

    @Test(.verifies("SYNC-27"), arguments: StorageKind.all)
    func `of two events of a note that are based on nothing, the second is a conflict`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        let first = Sample.note("added", "n", 1, base: EventDraft.noBase)
        let second = Sample.note("added", "n", 2, base: EventDraft.noBase)
        #expect(statuses(try await storage.append([first])) == [.applied])
        let verdict = try #require(try await storage.append([second]).first)
        #expect(verdict.status == .conflict)
        #expect(verdict.current.map { String(decoding: $0, as: UTF8.self) } == first.line)
        #expect(statuses(try await storage.append([first])) == [.duplicate])
        let change = Sample.note("updated", "n", 3, base: EventDraft.noBase)
        #expect(statuses(try await storage.append([change])) == [.conflict])
    }

    @Test(.verifies("SYNC-28"), arguments: StorageKind.all)
    func `a change without a base is applied whatever the head`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let events = [
            Sample.note("added", "n", 1), Sample.note("updated", "n", 2),
            Sample.note("updated", "n", 3),
        ]
        #expect(statuses(try await storage.append(events)) == [.applied, .applied, .applied])
        let late = Sample.note("updated", "n", 4, base: events[1].id)
        let verdict = try #require(try await storage.append([late]).first)
        #expect(verdict.current.map { String(decoding: $0, as: UTF8.self) } == events[2].line)
    }

    @Test(.verifies("SYNC-28"), arguments: StorageKind.all)
    func `the head is the event that the views show, whatever arrived last`(kind: StorageKind)
        async throws
    {
        let storage = try await kind.open()
        let added = Sample.note("added", "n", 1)
        var newer = Sample.note("updated", "n", 2)
        newer.time = "2026-02-22T12:00:00.000Z"
        let older = Sample.note("updated", "n", 3)
        #expect(
            statuses(try await storage.append([added, newer, older]))
                == [.applied, .applied, .applied])
        let stale = Sample.note("updated", "n", 4, base: older.id)
        #expect(statuses(try await storage.append([stale])) == [.conflict])
        let next = Sample.note("updated", "n", 5, base: newer.id)
        #expect(statuses(try await storage.append([next])) == [.applied])
    }

    @Test(.verifies("SYNC-28"), arguments: StorageKind.all) func `a deletion stays the head`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        let added = Sample.note("added", "n", 1)
        let deleted = Sample.note("deleted", "n", 2, base: added.id)
        var blind = Sample.note("updated", "n", 3)
        blind.time = "2026-02-22T12:00:00.000Z"
        #expect(
            statuses(try await storage.append([added, deleted, blind]))
                == [.applied, .applied, .applied])
        let late = Sample.note("updated", "n", 4, base: blind.id)
        let verdict = try #require(try await storage.append([late]).first)
        #expect(verdict.status == .conflict)
        #expect(verdict.current.map { String(decoding: $0, as: UTF8.self) } == deleted.line)
    }

    @Test(.verifies("SYNC-29"), arguments: StorageKind.all)
    func `the heads that come with conflicts leave the answer small`(kind: StorageKind) async throws
    {
        let storage = try await kind.open()
        let text = String(repeating: "x", count: 200_000)
        var verdicts: [EventVerdict] = []
        var changes: [Sample] = []
        for number in UInt64(1)...8 {
            let added = Sample.note("added", "n\(number)", number, text: text)
            verdicts += try await storage.append([added])
            changes.append(Sample.note("updated", "n\(number)", number + 8, base: UUID()))
        }
        #expect(verdicts.allSatisfy { $0.status == .applied })
        let first = statuses(try await storage.append(changes))
        #expect(first.prefix(5).allSatisfy { $0 == .conflict })
        #expect(first.dropFirst(5).allSatisfy { $0 == .unprocessed })
        let rest = statuses(try await storage.append(Array(changes.dropFirst(5))))
        #expect(rest.allSatisfy { $0 == .conflict })
    }

    @Test(.verifies("SYNC-16", "SYNC-29"), arguments: StorageKind.all)
    func `no event overtakes another in its lane, and other lanes continue`(kind: StorageKind)
        async throws
    {
        let storage = try await kind.open()
        let added = Sample.note("added", "n", 1)
        let lost = Sample.note("updated", "n", 2, base: UUID())
        let later = Sample.note("updated", "n", 3)
        let elsewhere = Sample.note("added", "m", 4)
        let verdicts = try await storage.append([added, lost, added, later, elsewhere])
        #expect(
            statuses(verdicts) == [.applied, .conflict, .unprocessed, .unprocessed, .applied])
        #expect(try await storage.all() == [added.line, elsewhere.line])
    }

    @Test(.verifies("SYNC-29"), arguments: StorageKind.all)
    func `an unreadable event blocks its lane, too`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        var events = [Sample(sequence: 1), Sample(sequence: 2)]
        events[0].type = ""
        #expect(statuses(try await storage.append(events)) == [.rejected, .unprocessed])
    }

    @Test(.verifies("SYNC-24"), arguments: StorageKind.all)
    func `an event accepted once stays a duplicate when the rules become stricter`(
        kind: StorageKind
    )
        async throws
    {
        let storage = try await kind.open()
        var event = Sample(sequence: 1)
        event.data = #"{"userId":"ana"}"#
        let lenient = try BatchReader.read(
            Array([event].body).span.bytes, catalogue: EventCatalogue(),
            now: Timestamp(milliseconds: 0))
        #expect(statuses(try await storage.append(lenient, account: "ana")) == [.applied])
        #expect(statuses(try await storage.append([event])) == [.duplicate])
    }

    @Test(.verifies("SYNC-24"), arguments: StorageKind.all)
    func `an event accepted while its type was unknown stays a duplicate once the type is known`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        // The rule of the type derives another lane from the data.
        let event = Sample(sequence: 1, lane: "mine")
        let untyped = try BatchReader.read(
            Array([event].body).span.bytes, catalogue: EventCatalogue(),
            now: Timestamp(milliseconds: 0))
        #expect(statuses(try await storage.append(untyped, account: "ana")) == [.applied])
        #expect(statuses(try await storage.append([event])) == [.duplicate])
    }

    @Test(.verifies("SYNC-18"), arguments: StorageKind.all)
    func `accounts with the same id do not see each other`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        var event = Sample(sequence: 1)
        let line = event.line
        #expect(statuses(try await storage.append([event], account: "ana")) == [.applied])
        event.data = #"{"userId":"bob","cityId":"lisbon"}"#
        event.lane = "city:bob:lisbon"
        #expect(statuses(try await storage.append([event], account: "bob")) == [.applied])
        #expect(try await storage.all(account: "ana") == [line])
        #expect(try await storage.all(account: "bob") == [event.line])
        let note = Sample.note("added", "n", 2)
        _ = try await storage.append([note], account: "ana")
        let change = Sample.note("updated", "n", 3, base: note.id)
        let verdict = try #require(try await storage.append([change], account: "bob").first)
        #expect(verdict.status == .conflict)
        #expect(verdict.current == nil)
    }

    /// Some databases cannot store U+0000, and have their own ranges of numbers.
    @Test(.verifies("SYNC-24", "SYNC-25", "SYNC-31"), arguments: StorageKind.all)
    func `values that a database cannot represent are stored, and recognized again`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        var event = Sample(
            sequence: 1, type: "test.odd", subject: #"a\u0000b"#, lane: #"l\u0000"#,
            data: #"{"text":"\u0000\ud800","number":1e999999,"wide":"é\ud83d\ude00"}"#)
        let line = event.line
        var other = Sample(sequence: 2, type: "test.odd", subject: "x", lane: #"l\u0000m"#)
        other.base = UUID()
        #expect(statuses(try await storage.append([event, other])) == [.applied, .applied])
        event.source = UUID()
        #expect(statuses(try await storage.append([event])) == [.duplicate])
        event.data = #"{"text":"\u0001\ud800","number":1e999999}"#
        #expect(try await storage.append([event]).map(\.code) == [.idReused])
        #expect(try await storage.all() == [line, other.line])
    }

    @Test(.verifies("SYNC-28"), arguments: StorageKind.all)
    func `a note's name may be longer than an index entry`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        let name = String((0..<20_000).map { _ in "abcdefghijklmnop".randomElement() ?? "a" })
        let added = Sample.note("added", name, 1)
        let changed = Sample.note("updated", name, 2, base: added.id)
        #expect(statuses(try await storage.append([added, changed])) == [.applied, .applied])
        let late = Sample.note("updated", name, 3, base: added.id)
        #expect(statuses(try await storage.append([late])) == [.conflict])
    }

    @Test(.verifies("SYNC-44", "EVT-7"), arguments: StorageKind.all)
    func `types that stay on the device are refused, and unknown types are accepted`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        let kept = OfflineModel.catalogue.types.filter { OfflineModel.catalogue[$0]?.action == nil }
        #expect(kept.contains("daybook.page.stored"))
        #expect(kept.contains("daybook.sync.settled"))
        var sequence: UInt64 = 0
        func sample(_ type: String) -> Sample {
            sequence += 1
            return Sample(
                sequence: sequence, type: type, subject: "s\(sequence)", lane: "s\(sequence)",
                data: "{}")
        }
        // Also with valid data and with escapes in the type.
        var page = sample("daybook.content.removed")
        page.subject = "lisbon"
        page.lane = "lisbon"
        page.data = #"{"city":"lisbon"}"#
        var escaped = page
        escaped.id = UUID()
        escaped.type = #"daybook.\u0063ontent.removed"#
        for event in kept.map(sample) + [page, escaped] {
            let verdict = try #require(try await storage.append([event]).first)
            #expect(verdict.status == .rejected, "\(event.type)")
            #expect(verdict.code == .invalidEvent, "\(event.type)")
        }
        #expect(try await storage.all().isEmpty)
        let others = ["daybook.of.a.newer.release", "shop.page.stored"].map(sample)
        #expect(statuses(try await storage.append(others)) == [.applied, .applied])
        // Stored by an older server, and sent again after a lost reply.
        let lenient = try BatchReader.read(
            Array([page].body).span.bytes, catalogue: EventCatalogue(),
            now: Timestamp(milliseconds: 0))
        #expect(statuses(try await storage.append(lenient, account: "ana")) == [.applied])
        #expect(statuses(try await storage.append([page])) == [.duplicate])
    }

    @Test(.verifies("SYNC-29", "SYNC-44"), arguments: StorageKind.all)
    func `an event of a type that stays on the device holds the lane that it was sent with`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        var page = Sample(sequence: 1, type: "daybook.content.removed", subject: "x", lane: "mine")
        page.data = #"{"city":"lisbon"}"#
        let mine = Sample(sequence: 2, type: "test.odd", subject: "y", lane: "mine")
        let city = Sample(sequence: 3, type: "test.odd", subject: "z", lane: "lisbon")
        #expect(
            statuses(try await storage.append([page, mine, city]))
                == [.rejected, .unprocessed, .applied])
    }

    @Test(.verifies("SYNC-24", "SYNC-45"), arguments: StorageKind.all)
    func `an event of older rules is a duplicate, also with text that jsonb does not hold`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        var city = Sample(sequence: 1)
        city.data = #"{"userId":"ana","cityId":"lisbon","x":"\u0000"}"#
        city.lane = nil
        let lenient = try BatchReader.read(
            Array([city].body).span.bytes, catalogue: EventCatalogue(),
            now: Timestamp(milliseconds: 0))
        #expect(statuses(try await storage.append(lenient, account: "ana")) == [.applied])
        #expect(statuses(try await storage.append([city])) == [.duplicate])
    }

    @Test(.verifies("SYNC-45"), arguments: StorageKind.all)
    func `two spellings of one accent are two lanes`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let broken = Sample(sequence: 1, type: "", subject: "x", lane: "caf\u{E9}")
        let other = Sample(sequence: 2, type: "shop.a", subject: "x", lane: "cafe\u{301}")
        let same = Sample(sequence: 3, type: "shop.a", subject: "x", lane: #"caf\u00e9"#)
        #expect(
            statuses(try await storage.append([broken, other, same]))
                == [.rejected, .applied, .unprocessed])
        // A lane that is derived from the data has the data's spelling.
        var city = Sample(sequence: 4, subject: "caf\u{E9}", lane: "city:ana:cafe\u{301}")
        city.data = #"{"userId":"ana","cityId":"caf\#u{E9}"}"#
        #expect(statuses(try await storage.append([city])) == [.applied])
        city.lane = "city:ana:caf\u{E9}"
        let line = try #require(try await storage.all().last)
        #expect(Array(line.utf8) == Array(city.line.utf8))
    }

    @Test(.verifies("SYNC-27", "SYNC-45"), arguments: StorageKind.all)
    func `a base with characters after its 36 matches no head`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        let added = Sample.note("added", "n", 1)
        _ = try await storage.append([added])
        let change = Sample.note("updated", "n", 2, base: added.id)
        for tail in [#"\u0000"#, #"\u0000x"#, " ", "0"] {
            let line = change.line.replacing(added.id.text, with: added.id.text + tail)
            #expect(statuses(try await storage.append(lines: [line])) == [.conflict], "\(tail)")
        }
        #expect(statuses(try await storage.append([change])) == [.applied])
    }

    @Test(.verifies("SYNC-24", "SYNC-25", "PG-2"), arguments: StorageKind.all)
    func `numbers are compared by value, whatever their exponents`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        var sequence: UInt64 = 0
        for (stored, same, other) in [
            ("1e999999999999999999", "10e999999999999999998", "1e999999999999999998"),
            ("1e-99999999999999999999", "0.1e-99999999999999999998", "1e-99999999999999999998"),
            ("1e1000000000", "0.1E+1000000001", "1e1000000001"),
            ("1e-20000", "10e-20001", "2e-20000"), ("1e-20000", "1.0e-20000", "0"),
            ("1e200000", "10e199999", "1e200001"), ("1.50", "15e-1", "1.51"),
        ] {
            sequence += 1
            var event = Sample(sequence: sequence, type: "shop.a", subject: "s", lane: "s")
            event.data = #"{"n":\#(stored)}"#
            #expect(statuses(try await storage.append([event])) == [.applied], "\(stored)")
            event.data = #"{"n":\#(same)}"#
            #expect(
                try await storage.append([event]) == [EventVerdict(event.id, .duplicate)], "\(same)"
            )
            event.data = #"{"n":\#(other)}"#
            #expect(try await storage.append([event]).map(\.code) == [.idReused], "\(other)")
        }
        var event = Sample(sequence: 90, type: "shop.a", subject: "s", lane: "s")
        event.data = #"{"n":1e200000}"#
        let twin = Sample(sequence: 90, type: "shop.a", subject: "s", lane: "s")
        #expect(try await storage.append([event, twin]).map(\.code) == [nil, .sourceFork])
        event.data = #"{"n":10e199999}"#
        let again = try await storage.append([event])
        #expect(statuses(again) == [.duplicate])
        #expect(again.map(\.code) == [.sourceFork])
    }
}
