// Compaction of a store: which events are removed, which are kept and why, and how removed ids stay known.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

private let catalogue = EventCatalogue([
    EventRule(type: "set", action: nil) { _ in },
    EventRule(type: "shipped", action: "SHIP") { _ in },
    EventRule(type: "settled", action: nil) { _ in },
    EventRule(type: "other", action: nil) { _ in },
])

private func open(
    _ files: InMemoryFileSystem,
    _ clock: VirtualClock = VirtualClock(milliseconds: 1_800_000_000_000),
    views: [any Projection.Type] = [Registers.self, Settled.self],
    catalogue: EventCatalogue = catalogue, keepingUnknownStates: Bool = false
) async throws -> EventStore {
    let numbers = Mutex(SeededRandom(seed: UInt64(files.usedBytes)))
    return try await EventStore.open(
        at: "/log", catalogue: catalogue, views: views,
        keepingUnknownStates: keepingUnknownStates,
        environment: LogEnvironment(
            fileSystem: files, now: { clock.milliseconds },
            random: { numbers.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } }))
}

private func set(
    _ subject: String, _ value: Int, type: String = "set", padding: Int = 0
) -> EventDraft {
    let text = String(repeating: "\(value)", count: padding)
    return EventDraft(
        type: type, subject: subject, data: .json(Array("{\"v\":\(value),\"p\":\"\(text)\"}".utf8)))
}

private func settled(_ through: UInt64) -> EventDraft {
    EventDraft(type: "settled", subject: "\(through)")
}

/// Two registers, set ten times each, all settled, in a sealed segment.
private func fill(_ store: EventStore) async throws -> [EventDraft] {
    var drafts: [EventDraft] = []
    for value in 1...10 { drafts += [set("a", value), set("b", value)] }
    for draft in drafts { try await store.append(contentsOf: [draft]) }
    try await store.append(contentsOf: [settled(1_000)])
    try store.log.roll()
    return drafts
}

private func segments(_ files: InMemoryFileSystem) -> [String: [UInt8]] {
    files.image.filter { $0.key.hasSuffix(".lz4") }
}

@Suite struct StoreCompactionTests {
    @Test(.verifies("CMP-27", "CMP-28"))
    func `replaced events are removed, and the views do not change, also after reopening`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        _ = try await fill(store)
        let before = store.view(Registers.self)
        var lineBytes = 0
        try LogReader("/log", fileSystem: files).forEachEvent(catalogue: EventCatalogue()) {
            lineBytes += $0.lineBytes + 1
            return true
        }
        let report = try await store.compact()
        #expect(report.removed == 18)
        #expect(report.types.map(\.type) == ["set", "settled"])
        #expect(report.types[0].events == 20)
        #expect(report.types[0].kept == [.current: 2])
        #expect(report.types[1].removed == 0)
        #expect(report.types[1].kept == [.noRule: 1])
        let keptBytes = report.keptBytes.values.reduce(0, +)
        #expect(Set(report.keptBytes.keys) == [.current, .noRule])
        #expect(keptBytes + report.freedBytes == lineBytes)
        #expect(report.freedBytes == report.types[0].freedBytes)
        #expect(report.freedBytes > 18 * 150)
        #expect(report.segments == 1)
        #expect(report.segmentsRewritten == 1)
        #expect(report.bytesAfter < report.bytesBefore)
        #expect(report.idsRemembered == 18)
        #expect(report.compactedThrough == Position(21))
        #expect(report.limit == Position(21))
        #expect(report.heldBackBy == [])
        #expect(!report.isDryRun)
        #expect(store.view(Registers.self) == before)
        try await store.append(contentsOf: [set("a", 11)])
        try await store.close()
        // From a checkpoint, and from the first event.
        for path in files.image.keys where path.hasPrefix("/log/checkpoints/") {
            store = try await open(files)
            #expect(store.view(Registers.self).values["a"]?.text.contains("11") == true)
            #expect(store.view(Registers.self).values["b"] == before.values["b"])
            #expect(await store.lastDurable == Position(22))
            try await store.close()
            files[path] = nil
        }
        store = try await open(files)
        #expect(store.view(Registers.self).values["b"] == before.values["b"])
        // Now the event that the next one has replaced is removed, then no further ones.
        #expect(try await store.compact().removed == 1)
        let again = try await store.compact()
        #expect(again.removed == 0)
        #expect(again.segmentsRewritten == 0)
        try await store.close()
    }

    @Test(.verifies("CMP-25", "CMP-26", "LINE-6"))
    func `a removed id is known for 90 days, with its content`() async throws {
        let files = InMemoryFileSystem()
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        var store = try await open(files, clock)
        var drafts = try await fill(store)
        drafts[0].time = try await store.event(at: Position(1))?.time
        try await store.compact()
        #expect(try await store.event(at: Position(1)) == nil)
        for reopened in [false, true] {
            if reopened {
                try await store.close()
                store = try await open(files, clock)
            }
            // Without a time, and with the recorded one; data as equal JSON in another notation.
            var other = drafts[2]
            other.data = .json(Array(#"{ "p":"", "v": 2.0 }"#.utf8))
            other.lane = "another lane, which is ignored"
            let known = try await store.append(contentsOf: [drafts[0], drafts[1], other])
            #expect(known.map(\.position.rawValue) == [1, 2, 3])
            #expect(known.allSatisfy { !$0.isNew })
            var later = drafts[0]
            later.time = Timestamp(milliseconds: 5)
            var different = drafts[1]
            different.data = .json(Array(#"{"v":2,"p":""}"#.utf8))
            var retyped = drafts[1]
            retyped.type = "other"
            for refused in [later, different, retyped] {
                await #expect { try await store.append(contentsOf: [refused]) } throws: {
                    ($0 as? EventError)?.code == .idReused
                }
            }
            #expect(await store.lastDurable == Position(21))
        }
        clock.advance(by: .days(90) - .milliseconds(1))
        #expect(try await store.append(contentsOf: [drafts[0]])[0].isNew == false)
        clock.advance(by: .milliseconds(1))
        #expect(
            try await store.append(contentsOf: [drafts[0]])[0]
                == Appended(
                    id: drafts[0].id, position: Position(22), isNew: true))
        try await store.close()
    }

    @Test(.verifies("CMP-27", "CMP-28"))
    func `events that are unsettled, in doubt, or not sealed are kept, with the reason`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: [
            set("a", 1), set("a", 2), set("s", 1, type: "other"), set("x", 1, type: "unheard-of"),
            settled(1),
        ])
        try store.log.roll()
        try await store.append(contentsOf: [set("a", 3)])
        var report = try await store.compact()
        #expect(
            report.kept == [
                .successorUnsettled: 1, .unsettled: 1, .noRule: 2, .unknownType: 1,
                .liveSegment: 1,
            ])
        #expect(report.removed == 0)
        #expect(report.segmentsRewritten == 0)
        try await store.append(contentsOf: [settled(2)])
        report = try await store.compact()
        #expect(report.kept[.successorUnsettled] == 2)
        try await store.append(contentsOf: [settled(1_000)])
        report = try await store.compact()
        #expect(report.removed == 2)
        #expect(report.types.first { $0.type == "set" }?.kept == [.liveSegment: 1])
        try await store.close()
    }

    @Test(.verifies("CMP-27")) func `without a SettlementView, no shipped event is settled`()
        async throws
    {
        for (catalogue, removed) in [(catalogue, 0), (EventCatalogue(), 18)] {
            let files = InMemoryFileSystem()
            let store = try await open(files, views: [Registers.self], catalogue: catalogue)
            _ = try await fill(store)
            #expect(try await store.compact().removed == removed)
            try await store.close()
        }
    }

    @Test(.verifies("CMP-27"))
    func `a view without a retention keeps its state, and an unstored view prevents removal`()
        async throws
    {
        let files = InMemoryFileSystem()
        let views: [any Projection.Type] = [Registers.self, Settled.self, Counter.self]
        var store = try await open(files, views: views)
        _ = try await fill(store)
        #expect(try await store.compact().removed == 18)
        try await store.close()
        store = try await open(files, views: views)
        #expect(store.view(Counter.self).count == 21)
        try await store.close()

        let others = InMemoryFileSystem()
        store = try await open(others, views: views + [UnstoredCounter.self])
        _ = try await fill(store)
        for dryRun in [true, false] {
            let report = try await store.compact(dryRun: dryRun)
            #expect(report.removed == 0)
            #expect(report.heldBackBy == ["unstored"])
            #expect(report.limit == .zero)
            #expect(report.kept == [.afterCheckpoint: 21])
        }
        try await store.close()
        store = try await open(others, views: views + [UnstoredCounter.self])
        #expect(store.view(UnstoredCounter.self).count == 21)
        try await store.close()
    }

    @Test(.verifies("CMP-27")) func `with a new view, compaction waits until its state is stored`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        _ = try await fill(store)
        try await store.checkpoint()
        try await store.close()
        // The tool keeps the counter's state, at its own position.
        store = try await open(files, views: [Registers.self, Settled.self, Counter.self])
        try await store.checkpoint()
        try await store.checkpoint()
        try await store.close()
        store = try await open(files, keepingUnknownStates: true)
        for value in 11...20 { try await store.append(contentsOf: [set("a", value)]) }
        try store.log.roll()
        let report = try await store.compact()
        #expect(report.limit == Position(21))
        #expect(report.heldBackBy == ["counter"])
        #expect(report.removed == 19)
        try await store.close()
        store = try await open(files, views: [Registers.self, Settled.self, Counter.self])
        #expect(store.view(Counter.self).count == 31)
        try await store.close()
    }

    @Test(.verifies("CMP-27"))
    func `a state before the position of compaction is refused, and the error names the position`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        _ = try await fill(store)
        #expect(
            try await store.state(at: Position(3)).view(Registers.self).values["a"]?.text
                .contains(#""v":2"#) == true)
        try await store.compact()
        let error = await #expect(throws: EventError.self) {
            try await store.state(at: Position(20))
        }
        #expect(error?.code == .refused)
        #expect(error?.detail.contains("position 21") == true)
        let now = try await store.state(at: Position(21)).view(Registers.self)
        #expect(now == store.view(Registers.self))
        try await store.close()
    }

    @Test(.verifies("CMP-28"))
    func `a dry run reports what would be removed, and changes nothing`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        _ = try await fill(store)
        let before = files.image
        let look = try await store.compact(dryRun: true)
        let isUnchanged = files.image == before
        #expect(isUnchanged)
        let report = try await store.compact()
        #expect(look.isDryRun)
        #expect(look.removed == 18)
        #expect(report.removed == 18)
        #expect(look.bytesBefore == report.bytesBefore)
        #expect(look.types.first?.freedBytes == report.types.first?.freedBytes)
        #expect(look.segmentsRewritten == 1)
        #expect(look.idsRemembered == 18)
        #expect(look.compactedThrough == Position(21))
        #expect(look.bytesAfter < look.bytesBefore)
        try await store.close()
    }

    @Test(.verifies("CMP-23", "CMP-24"))
    func `appends continue during a compaction, and compactions wait for each other`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files, views: [Registers.self, Settled.self, Counter.self])
        for _ in 0..<4 { _ = try await fill(store) }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 { group.addTask { try await store.compact().removed } }
            for number in 0..<60 {
                group.addTask {
                    try await store.append(contentsOf: [set("c\(number % 7)", number)])
                    return 0
                }
            }
            let removed = try await group.reduce(0, +)
            #expect(removed == 78)
        }
        #expect(store.view(Counter.self).count == 4 * 21 + 60)
        let values = store.view(Registers.self)
        try await store.close()
        let again = try await open(files, views: [Registers.self, Settled.self, Counter.self])
        #expect(again.view(Registers.self) == values)
        #expect(again.view(Counter.self).count == 4 * 21 + 60)
        try await again.close()
    }

    @Test(.verifies("CMP-23"))
    func `a compaction ends when it is cancelled, and when the store is closed or suspended`()
        async throws
    {
        for way in ["cancel", "close", "suspend"] {
            let files = InMemoryFileSystem()
            let store = try await open(files)
            for _ in 0..<3 { _ = try await fill(store) }
            let started = AsyncStream.makeStream(of: Void.self)
            let isStopped = DispatchSemaphore(value: 0)
            files.failing { operation, path in
                if operation == "write", path == "/log/compaction.new" {
                    started.continuation.yield()
                    isStopped.wait()
                    isStopped.signal()
                }
                return nil
            }
            let work = Task { try await store.compact() }
            for await _ in started.stream { break }
            switch way {
            case "cancel":
                work.cancel()
                isStopped.signal()
            default:
                let end = Task {
                    if way == "close" { try await store.close() } else { try await store.suspend() }
                }
                // Once it refuses appends, it has stopped the compaction.
                while (try? await store.flush()) != nil { await Task.yield() }
                isStopped.signal()
                try await end.value
            }
            await #expect(throws: CancellationError.self) { try await work.value }
            if way == "suspend" {
                await #expect(throws: LogError.self) { try await store.compact() }
                try await store.resume()
            }
            files.failing(nil)
            #expect(files["/log/compaction.new"] == nil)
            try await store.close()
            #expect(files.openFileCount == 0)
            await #expect { try await store.compact() } throws: {
                ($0 as? LogError)?.code == .closed
            }
            let again = try await open(files)
            #expect(try await again.compact().kept[.current] == 2)
            try await again.close()
        }
    }

    @Test(.verifies("CMP-23"))
    func `a compaction that is cancelled after its last segment gives no report of half the log`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        _ = try await fill(store)
        try await store.append(contentsOf: [set("c", 1)])
        let work = Mutex<Task<CompactionReport, any Error>?>(nil)
        files.failing { operation, path in
            if operation == "rename", path == "/log/compaction.new" {
                work.withLock { $0?.cancel() }
            }
            return nil
        }
        let task = work.withLock { work in
            let task = Task { try await store.compact() }
            work = task
            return task
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        files.failing(nil)
        #expect(try await store.compact().kept[.liveSegment] == 1)
        try await store.close()
    }

    @Test(.verifies("CMP-23", "SEG-10"))
    func `a full disk leaves the log unchanged, and the reserve file may suffice`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        _ = try await fill(store)
        let image = segments(files)
        files.failing { operation, path in
            guard path.hasSuffix("/compaction.new"), operation == "write" else { return nil }
            return FileError(.noSpace, operation: operation, path: path, reason: "full")
        }
        await #expect { try await store.compact() } throws: {
            ($0 as? LogError)?.code == .diskFull
        }
        let isUnchanged = segments(files) == image
        #expect(isUnchanged)
        #expect(files["/log/compaction.new"] == nil)
        files.failing(nil)
        // No space is left but the reserve file.
        #expect((files["/log/reserve"]?.count ?? 0) > 0)
        files.setQuota(files.usedBytes)
        #expect(try await store.compact().removed == 18)
        files.setQuota(nil)
        try await store.close()
    }

    @Test(.verifies("CMP-23", "SEG-10"))
    func `with little space left, compaction stores the views' states in the reserve's space`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        _ = try await fill(store)
        files.setQuota(files.usedBytes + 100)
        #expect(try await store.compact().removed == 18)
        files.setQuota(nil)
        try await store.append(contentsOf: [set("a", 11)])
        #expect(files["/log/reserve"]?.count == 65_536)
        try await store.close()
    }

    @Test(.verifies("CMP-23"))
    func `segments that fit into a full disk are compacted, and then those that did not fit`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        var random = SeededRandom(seed: 4)
        func append(_ subject: String, _ value: Int) async throws {
            let noise = (0..<3_000).map { _ in
                String(UnicodeScalar(UInt8(97 + random.next() % 16)))
            }.joined()
            var draft = set(subject, value)
            draft.data = .json(Array("\"\(noise)\"".utf8))
            try await store.append(contentsOf: [draft])
        }
        // Most of the first segment stays, and nothing of the second.
        for number in 0..<30 { try await append("other\(number)", 1) }
        try await append("a", 1)
        try store.log.roll()
        for value in 2..<40 { try await append("a", value) }
        try store.log.roll()
        try await append("a", 40)
        try await store.append(contentsOf: [settled(1_000)])
        for _ in 0..<2 { try await store.checkpoint() }
        let first = try #require(segments(files).min { $0.key < $1.key })
        files["/log/reserve"] = nil
        files.setQuota(files.usedBytes + first.value.count / 2)
        #expect(try await store.compact().removed == 39)
        files.setQuota(nil)
        try await store.close()
    }

    @Test(.verifies("CMP-31"))
    func `the live segment is sealed only if an event in it can be removed`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: [set("a", 1), set("b", 1), settled(1_000)])
        for _ in 0..<3 {
            let report = try await store.compact(sealing: true)
            #expect(report.segments == 1)
            #expect(report.kept[.liveSegment] == nil)
        }
        #expect(store.log.sealedCount == 0)
        try await store.append(contentsOf: [set("a", 2)])
        #expect(try await store.compact(sealing: true).removed == 1)
        #expect(store.log.sealedCount == 1)
        try await store.close()
    }

    @Test(.verifies("CMP-31"))
    func `a caller who asks for it gets small segments, but no endless row of them`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: [settled(1_000)])
        for round in 0..<80 {
            try await store.append(contentsOf: [set("a", 2 * round), set("a", 2 * round + 1)])
            let report = try await store.compact(sealing: true)
            #expect((report.removed > 0) == (round <= 64), "round \(round)")
            #expect((report.kept[.liveSegment] == nil) == (round < 64), "round \(round)")
        }
        #expect(store.log.sealedCount == 64)
        try await store.close()
    }

    @Test(.verifies("CMP-28"))
    func `for each event that stays the caller gets the reason, as the report counts them`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        _ = try await fill(store)
        try await store.append(contentsOf: [
            set("a", 11), set("other", 1, type: "other"), set("b", 11),
        ])
        for (dryRun, sealing) in [(true, true), (false, false), (false, true)] {
            let told = Mutex<[(position: Position, reason: KeptReason)]>([])
            let report = try await store.compact(dryRun: dryRun, sealing: sealing) {
                event, reason in
                told.withLock { $0.append((event.position, reason)) }
            }
            let all = told.withLock { $0 }
            #expect(all.map(\.position) == all.map(\.position).sorted())
            #expect(
                Dictionary(all.map { ($0.reason, 1) }, uniquingKeysWith: +) == report.kept)
        }
        try await store.close()
    }

    @Test func `a large live segment is sealed, so that its events can be removed too`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        var random = SeededRandom(seed: 3)
        for value in 0..<30 {
            let noise = (0..<60_000).map { _ in
                String(UnicodeScalar(UInt8(truncatingIfNeeded: random.next() % 64 + 48)))
            }.joined().replacing("\\", with: "/")
            var draft = set("a", value)
            draft.data = .json(Array("\"\(noise)\"".utf8))
            try await store.append(contentsOf: [draft])
        }
        try await store.append(contentsOf: [settled(1_000)])
        let report = try await store.compact()
        #expect(report.removed == 29)
        #expect(report.bytesAfter < report.bytesBefore / 2)
        try await store.close()
    }
}
