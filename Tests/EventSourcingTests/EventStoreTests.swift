// The store: idempotent appends, atomic batches, shared commits, relaxed events, the time of an event, and
// the state after an error.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import EventSourcing

/// Counts events and sums their values. It depends on the order on purpose: it keeps the last value.
private struct Tally: Projection {
    static let name = "tally"
    static let version = 1
    var count = 0
    var last: String?
    init() {}
    mutating func fold(_ event: Event) {
        count += 1
        last = event.subject
    }
}

/// A view that folds one type only.
private struct Visits: Projection {
    static let name = "visits"
    static let version = 1
    static let eventTypes: Set<String>? = [Visited.type]
    var places: [String] = []
    init() {}
    mutating func fold(_ event: Event) {
        if let visited = try? event.payload(as: Visited.self) { places.append(visited.place) }
    }
}

private struct Visited: EventPayload, Codable {
    static let type = "com.example.visited"
    var place: String
    var subject: String? { place }
}

private struct Weighed: EventPayload, Codable {
    static let type = "com.example.weighed"
    var kilograms: Double
}

/// A payload whose subject and lane can never be absent.
private struct Ridden: EventPayload, Codable {
    static let type = "com.example.ridden"
    var horse: String
    var lane: String
    var subject: String { horse }
}

private func open(
    _ files: InMemoryFileSystem, now: @escaping @Sendable () -> Int64 = { 1_800_000_000_000 }
) async throws -> EventStore {
    let numbers = Mutex(SeededRandom(seed: 1))
    return try await EventStore.open(
        at: "/log",
        catalogue: EventCatalogue([
            EventRule(type: "shipped", action: "SHIP") { (draft) throws(EventError) in
                if draft.subject == nil { throw EventError(.invalidData, "no subject") }
            }
        ]),
        views: [Tally.self, Visits.self],
        environment: LogEnvironment(
            fileSystem: files, now: now,
            random: { numbers.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
            sleep: noTimers))
}

private func draft(_ subject: String, type: String = "t", bytes: Int = 0) -> EventDraft {
    EventDraft(
        type: type, subject: subject,
        data: .json(Array("{\"x\":\"\(String(repeating: "a", count: bytes))\"}".utf8)))
}

@Suite struct EventStoreTests {
    @Test(.verifies("EVT-2", "LINE-3"))
    func `appended events are in the views, also after reopening`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let one = try await store.append(Visited(place: "Lisbon"))
        #expect(one.position == Position(1))
        #expect(one.isNew)
        #expect(store.view(Tally.self).last == "Lisbon")
        try await store.close()
        let again = try await open(files)
        #expect(again.view(Tally.self).count == 1)
        let event = try #require(try await again.event(at: Position(1)))
        #expect(try Visited(json: event.content.json ?? []).place == "Lisbon")
        #expect(event.lane == "Lisbon")
        #expect(event.isOwn)
        try await again.close()
    }

    @Test(.verifies("EVT-2"))
    func `a subject and a lane that can never be absent are the event's`() throws {
        let catalogue = EventCatalogue([.of(Ridden.self)])
        var imported = EventDraft(
            type: Ridden.type, data: .json(Array(#"{"horse":"Ada","lane":"inner"}"#.utf8)))
        try catalogue.normalise(&imported)
        for draft in [imported, try EventDraft(Ridden(horse: "Ada", lane: "inner"))] {
            #expect(draft.subject == "Ada")
            #expect(draft.lane == "inner")
        }
    }

    @Test(.verifies("VIEW-26"))
    func `a view counts events that it does not fold as folded`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await store.append(contentsOf: [draft("a"), draft("b")])
        #expect(store.views.throughs[Visits.name] == Position(2))
        try await store.append(Visited(place: "Lisbon"))
        try await store.append(contentsOf: [draft("c")], durability: .relaxed)
        #expect(store.views.throughs[Visits.name] == Position(4))
        #expect(store.view(Visits.self).places == ["Lisbon"])
        #expect(store.views.throughs[Tally.name] == Position(4))
        #expect(store.view(Tally.self).count == 4)
        try await store.close()
    }

    @Test(arguments: [false, true])
    func `while writers keep a store busy, its other jobs run`(asTransactions: Bool)
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        final class End: Sendable { let isReached = Mutex(false) }
        let end = End()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    while !end.isReached.withLock({ $0 }) {
                        if asTransactions {
                            try await store.write { try $0.append(Visited(place: "here")) }
                        } else {
                            try await store.append(Visited(place: "here"))
                        }
                    }
                }
            }
            // Long enough for jobs to accumulate, if they do.
            while await store.lastDurable < Position(2_000) { await Task.yield() }
            // A pause of this test's own thread counts too; a job that waits does so each time.
            var fewest = UInt64.max
            for _ in 0..<200 where fewest >= 500 {
                let before = await store.lastDurable
                _ = try await store.event(at: Position(1))
                let after = await store.lastDurable
                fewest = min(fewest, after.rawValue - before.rawValue)
            }
            #expect(fewest < 500)
            end.isReached.withLock { $0 = true }
            try await group.waitForAll()
        }
        try await store.close()
    }

    @Test(.verifies("LINE-6"))
    func `a known id with the same content returns the recorded position`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        let a = draft("a")
        let first = try await store.append(contentsOf: [a, draft("b")])[0]
        #expect(
            try await store.append(contentsOf: [a]) == [
                Appended(id: a.id, position: first.position, isNew: false)
            ])
        try await store.close()
        store = try await open(files)
        #expect(try await store.append(contentsOf: [a])[0].position == first.position)
        #expect(store.view(Tally.self).count == 2)
        try await store.close()
    }

    @Test(.verifies("LINE-6"))
    func `a known id with different content is refused, and nothing of its batch is recorded`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        let a = draft("a")
        try await store.append(contentsOf: [a])
        var other = a
        other.subject = "b"
        await #expect { try await store.append(contentsOf: [draft("c"), other]) } throws: {
            ($0 as? EventError)?.code == .idReused
        }
        var twin = draft("x")
        twin.id = UUID()
        var different = twin
        different.subject = "y"
        await #expect(throws: EventError.self) {
            try await store.append(contentsOf: [twin, different])
        }
        #expect(store.view(Tally.self).count == 1)
        #expect(
            try await store.append(contentsOf: [twin, twin]).map(\.position.rawValue) == [2, 2])
        try await store.close()
    }

    @Test(.verifies("EVT-9")) func `an event that its rule refuses is not recorded`() async throws {
        let store = try await open(InMemoryFileSystem())
        await #expect(throws: EventError.self) {
            try await store.append(contentsOf: [EventDraft(type: "shipped")])
        }
        #expect(await store.lastDurable == .zero)
        try await store.close()
    }

    @Test func `an event that could not be read back is refused before it is recorded`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        var versionZero = draft("s")
        versionZero.id = try #require(UUID(uuidString: "0A3E8FF8-BB52-054E-9574-3045281726AD"))
        let deep = String(repeating: "[", count: 70) + String(repeating: "]", count: 70)
        let refused = [
            EventDraft(type: "t", subject: ""), EventDraft(type: "t", lane: ""),
            EventDraft(type: "t", data: .json(Array("{oops".utf8))),
            EventDraft(type: "t", data: .json([])),
            EventDraft(type: "t", data: .json(Array(deep.utf8))),
            EventDraft(type: "t", data: .base64(Array("\"%\"".utf8))),
            EventDraft(type: "t", extensions: [.init(name: "Bad-Name", string: "x")]),
            EventDraft(type: "t", extensions: [.init(name: "a", json: Array("1\n".utf8))]),
            EventDraft(
                type: "t",
                extensions: [.init(name: "a", string: "x"), .init(name: "a", string: "y")]),
            versionZero,
        ]
        for draft in refused {
            await #expect(throws: EventError.self) { try await store.append(contentsOf: [draft]) }
        }
        let pretty = EventDraft(
            type: "t", dataContentType: "application/json",
            data: .json(Array("{\n \"a\": 1\r\n}".utf8)))
        try await store.append(contentsOf: [pretty])
        try await store.close()
        let again = try await open(files)
        #expect(again.view(Tally.self).count == 1)
        try await again.close()
    }

    @Test(.verifies("EVT-3", "FRM-3", "LINE-1"))
    func `limits hold: 256 KiB for shipped types, 1 MiB for others, 4 MiB for a batch`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await store.append(contentsOf: [draft("s", type: "shipped", bytes: 255 * 1024)])
        try await store.append(contentsOf: [draft("s", bytes: 1023 * 1024)])
        for refused in [
            [draft("s", type: "shipped", bytes: 256 * 1024)], [draft("s", bytes: 1024 * 1024)],
            (0..<5).map { _ in draft("s", bytes: 900 * 1024) },
        ] {
            await #expect { try await store.append(contentsOf: refused) } throws: {
                ($0 as? EventError)?.code == .tooLarge
            }
        }
        #expect(store.view(Tally.self).count == 2)
        try await store.close()
    }

    @Test func `typed events of several types are recorded together, or none of them`() async throws
    {
        let store = try await open(InMemoryFileSystem())
        let appended = try await store.append(contentsOf: [
            Visited(place: "Porto"), Weighed(kilograms: 7.5),
        ])
        #expect(appended.map(\.position) == [Position(1), Position(2)])
        #expect(store.view(Visits.self).places == ["Porto"])
        await #expect(throws: EventError.self) {
            try await store.append(contentsOf: [Visited(place: "Faro"), Weighed(kilograms: .nan)])
        }
        #expect(await store.lastDurable == Position(2))
        #expect(store.view(Visits.self).places == ["Porto"])
        try await store.close()
    }

    @Test func `appends that wait together share commits and all return`() async throws {
        let store = try await open(InMemoryFileSystem())
        let positions = try await withThrowingTaskGroup(of: Position.self) { group in
            for number in 0..<200 {
                group.addTask {
                    try await store.append(contentsOf: [draft("\(number)")])[0].position
                }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(positions == Set((1...200).map { Position($0) }))
        #expect(store.view(Tally.self).count == 200)
        try await store.close()
    }

    @Test func `a relaxed event is in the views at once and on the disk with the next commit`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: [draft("r")], durability: .relaxed)
        #expect(store.view(Tally.self).last == "r")
        #expect(await store.lastDurable == .zero)
        try await store.append(contentsOf: [draft("d")])
        #expect(await store.lastDurable == Position(2))
        #expect(store.view(Tally.self).count == 2)
        try await store.append(contentsOf: [draft("r2")], durability: .relaxed)
        try await store.close()
        let again = try await open(files)
        #expect(again.view(Tally.self).count == 3)
        try await again.close()
    }

    @Test(.verifies("REC-8"))
    func `a full disk fails the append, keeps relaxed events waiting, and passes`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: [draft("a")])
        files.setQuota(files.image.values.reduce(0) { $0 + $1.count })
        try await store.append(contentsOf: [draft("r")], durability: .relaxed)
        // Larger than the segment's preallocated space.
        let large = draft("large", bytes: 200_000)
        await #expect { try await store.append(contentsOf: [large]) } throws: {
            ($0 as? LogError)?.code == .diskFull
        }
        #expect(store.view(Tally.self).count == 2)
        files.setQuota(nil)
        #expect(try await store.append(contentsOf: [large])[0].position == Position(3))
        try await store.close()
        let again = try await open(files)
        #expect(again.view(Tally.self).count == 3)
        try await again.close()
    }

    @Test(.verifies("EVT-9"))
    func `a transaction sees all earlier appends and records all or nothing`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    try await store.write { transaction in
                        // Only one of fifty may find the store empty.
                        guard transaction.view(Tally.self).count == 0 else { return }
                        transaction.append(draft("first \(number)"))
                        transaction.append(draft("second \(number)"))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(store.view(Tally.self).count == 2)
        struct Refusal: Error {}
        await #expect(throws: Refusal.self) {
            try await store.write { transaction in
                transaction.append(draft("never"))
                throw Refusal()
            }
        }
        #expect(store.view(Tally.self).count == 2)
        try await store.close()
    }

    @Test(.verifies("LINE-5"))
    func `a new event's time never steps back, and a far future in the log is ignored`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_000_000)
        let store = try await open(InMemoryFileSystem(), now: { clock.milliseconds })
        var ahead = draft("ahead")
        ahead.time = Timestamp(milliseconds: 1_000_000 + 4 * 60_000)
        var absurd = draft("absurd")
        absurd.time = Timestamp(milliseconds: 1_000_000 + 86_400_000)
        try await store.append(contentsOf: [ahead, absurd, draft("now")])
        let third = try #require(try await store.event(at: Position(3)))
        #expect(third.time == ahead.time)
        clock.milliseconds = 990_000
        try await store.append(contentsOf: [draft("back a little")])
        let fourth = try #require(try await store.event(at: Position(4)))
        #expect(fourth.time == third.time)
        // The clock was wrong and has been corrected: now the times in the log are far ahead.
        clock.milliseconds = 100_000
        try await store.append(contentsOf: [draft("back a lot")])
        let fifth = try #require(try await store.event(at: Position(5)))
        #expect(fifth.time == Timestamp(milliseconds: 100_000))
        try await store.close()
    }

    @Test(.verifies("LINE-5"))
    func `the time of an event that could not be recorded is ignored`() async throws {
        let clock = VirtualClock(milliseconds: 1_000_000)
        let files = InMemoryFileSystem()
        let store = try await open(files, now: { clock.milliseconds })
        try await store.append(contentsOf: [draft("a")])
        clock.milliseconds += 60_000
        files.setQuota(files.image.values.reduce(0) { $0 + $1.count })
        let large = draft("large", bytes: 200_000)
        await #expect(throws: LogError.self) { try await store.append(contentsOf: [large]) }
        files.setQuota(nil)
        clock.milliseconds -= 30_000
        try await store.append(contentsOf: [draft("b")])
        let second = try #require(try await store.event(at: Position(2)))
        #expect(second.time == Timestamp(milliseconds: clock.milliseconds))
        try await store.close()
    }

    @Test func `a closed store refuses work`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await store.close()
        try await store.close()
        await #expect { try await store.append(contentsOf: [draft("a")]) } throws: {
            ($0 as? LogError)?.code == .closed
        }
    }

    @Test func `random histories read back as they were written`() async throws {
        try await Property.check("append, reopen, read", runs: 60) { choices in
            let files = InMemoryFileSystem()
            var store = try await open(files)
            var expected: [UUID] = []
            for _ in 0..<choices.int(in: 1...12) {
                if choices.bool(oneIn: 4) {
                    try await store.close()
                    store = try await open(files)
                }
                let drafts = choices.array(1...5) { choices in
                    draft(
                        "s", bytes: choices.int(in: 0...choices.element(of: [10, 1_000, 90_000])))
                }
                let durability: Durability = choices.bool(oneIn: 3) ? .relaxed : .durable
                try await store.append(contentsOf: drafts, durability: durability)
                expected += drafts.map(\.id)
            }
            try await store.close()
            var read: [UUID] = []
            try LogReader("/log", fileSystem: files).forEachEvent(catalogue: EventCatalogue()) {
                read.append($0.id)
                return true
            }
            try #require(read == expected)
        }
    }

    @Test(.verifies("SEG-10"))
    func `on a full disk the server's answers are recorded, and reading continues`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        #expect(files["/log/reserve"]?.count == 64 * 1_024)
        files.setQuota(files.usedBytes + 30_000)
        var count = 0
        await #expect {
            while true {
                try await store.append(contentsOf: [draft("\(count)", bytes: 2_000)])
                count += 1
            }
        } throws: { ($0 as? LogError)?.code == .diskFull }
        // Far more answers than fit the segment's preallocated space.
        for number in 0..<300 {
            try await store.record(Visited(place: "\(number) \(UUID())"))
            try await store.flush()
        }
        #expect(store.view(Tally.self).count == count + 300)
        #expect(files["/log/reserve"]?.count ?? 0 == 0)
        await #expect(throws: LogError.self) {
            try await store.append(contentsOf: [draft("x", bytes: 90_000)])
        }
        #expect(try await store.event(at: Position(1)) != nil)
        files.setQuota(nil)
        try await store.append(contentsOf: [draft("y")])
        #expect(files["/log/reserve"]?.count == 64 * 1_024)
        try await store.close()
        store = try await open(files)
        #expect(store.view(Tally.self).count == count + 301)
        try await store.close()
    }
}
