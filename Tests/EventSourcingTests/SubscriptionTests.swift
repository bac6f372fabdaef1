// Subscriptions: recorded events, then live ones, in order and once, at the consumer's pace, and their end.
// Spec/format/following.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

private func open(_ files: any FileSystem) async throws -> EventStore {
    let numbers = Mutex(SeededRandom(seed: 2))
    return try await EventStore.open(
        at: "/log", catalogue: EventCatalogue([]), views: [],
        environment: LogEnvironment(
            fileSystem: files, now: { 1_800_000_000_000 },
            random: {
                numbers.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) }
            },
            sleep: noTimers))
}

private func drafts(_ count: Int, bytes: Int = 10) -> [EventDraft] {
    (0..<count).map { _ in
        EventDraft(type: "t", subject: String(repeating: "s", count: bytes))
    }
}

extension EventSequence.AsyncIterator {
    /// The positions of the next `count` events.
    fileprivate mutating func readPositions(_ count: Int) async throws -> [UInt64] {
        var positions: [UInt64] = []
        while positions.count < count, let event = try await next() {
            positions.append(event.position.rawValue)
        }
        return positions
    }
}

@Suite struct SubscriptionTests {
    @Test(.verifies("FOL-5"))
    func `a subscription delivers recorded events, then committed ones, and resumes by position`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: drafts(3))
        try store.log.roll()
        try await store.append(contentsOf: drafts(2))
        var events = store.events().makeAsyncIterator()
        #expect(try await events.readPositions(5) == [1, 2, 3, 4, 5])
        try await store.append(contentsOf: drafts(2))
        #expect(try await events.readPositions(1) == [6])
        var resumed = store.events(after: Position(6)).makeAsyncIterator()
        async let live = resumed.next()
        try await store.append(contentsOf: drafts(1))
        _ = try await live
        try store.log.roll()
        try await store.append(contentsOf: drafts(1))
        #expect(try await events.readPositions(3) == [7, 8, 9])
        try await store.close()
        let again = try await open(files)
        var later = again.events(after: Position(7)).makeAsyncIterator()
        let next = try #require(try await later.next())
        #expect(next.position == Position(8))
        #expect(next.type == "t")
        #expect(next.isOwn)
        try await again.close()
    }

    @Test(.verifies("FOL-5"))
    func `several subscribers get every event once during appends, rolls and pauses`()
        async throws
    {
        try await Property.check("subscriptions", runs: 25) { choices in
            let files = InMemoryFileSystem()
            let store = try await open(files)
            let starts = choices.array(1...3) { UInt64($0.int(in: 0...3)) }
            try await store.append(contentsOf: drafts(3))
            let subscribers = starts.map { start in
                Task {
                    var seen: [UInt64] = []
                    for try await event in store.events(after: Position(start)) {
                        seen.append(event.position.rawValue)
                        if seen.count.isMultiple(of: 7) { await Task.yield() }
                    }
                    return seen
                }
            }
            for _ in 0..<choices.int(in: 0...12) {
                switch choices.int(in: 0...6) {
                case 6:
                    try await store.suspend()
                    try await store.resume()
                case 5: try store.log.roll()
                case 4: try await store.append(contentsOf: drafts(3), durability: .relaxed)
                case 3: await Task.yield()
                default: try await store.append(contentsOf: drafts(choices.int(in: 1...40)))
                }
            }
            try await store.close()
            let last = await store.lastDurable.rawValue
            for (start, subscriber) in zip(starts, subscribers) {
                try #require(try await subscriber.value == Array((start + 1)..<(last + 1)))
            }
        }
    }

    @Test(.verifies("FOL-5"))
    func `a relaxed event is delivered once it is on the disk`() async throws {
        let store = try await open(InMemoryFileSystem())
        final class Seen: Sendable { let positions = Mutex<[UInt64]>([]) }
        let taken = Seen()
        let subscriber = Task {
            for try await event in store.events() {
                taken.positions.withLock { $0.append(event.position.rawValue) }
            }
        }
        try await store.append(contentsOf: drafts(1))
        try await eventually("delivered positions", is: [UInt64(1)]) {
            taken.positions.withLock { $0 }
        }
        try await store.append(contentsOf: drafts(1), durability: .relaxed)
        await takeTurns { _ = await store.lastDurable }
        #expect(await store.lastDurable == Position(1))
        #expect(taken.positions.withLock { $0 } == [1])
        try await store.flush()
        try await eventually("delivered positions", is: [UInt64(1), 2]) {
            taken.positions.withLock { $0 }
        }
        try await store.close()
        try await subscriber.value
    }

    @Test(.verifies("FOL-5"))
    func `an event that is written and not yet synced is not delivered`() async throws {
        let files = GatedFileSystem(InMemoryFileSystem())
        let store = try await open(files)
        try await store.append(contentsOf: drafts(1))
        // A subscriber knows that one event is durable, and is stopped before it reads.
        files.reads.close()
        let before = files.reads.arrivals.withLock { $0 }
        final class Seen: Sendable { let positions = Mutex<[UInt64]>([]) }
        let seen = Seen()
        let subscriber = Task {
            for try await event in store.events() {
                seen.positions.withLock { $0.append(event.position.rawValue) }
                if event.position == Position(2) { break }
            }
        }
        try await eventually("reads at the gate", where: { $0 > before }) {
            files.reads.arrivals.withLock { $0 }
        }
        // Meanwhile the next one is written; its sync does not return.
        files.syncs.close()
        let syncs = files.syncs.arrivals.withLock { $0 }
        let appending = Task { try await store.append(contentsOf: drafts(1)) }
        try await eventually("syncs at the gate", where: { $0 > syncs }) {
            files.syncs.arrivals.withLock { $0 }
        }
        files.reads.open()
        try await eventually("delivered positions", where: { !$0.isEmpty }) {
            seen.positions.withLock { $0 }
        }
        // An event that was read with the first one would be delivered without a wait. The store itself waits for
        // the sync.
        await takeTurns {}
        #expect(seen.positions.withLock { $0 } == [1])
        files.syncs.open()
        _ = try await appending.value
        try await subscriber.value
        #expect(seen.positions.withLock { $0 } == [1, 2])
        try await store.close()
    }

    @Test(.verifies("FOL-6"))
    func `a slow consumer gets batches, and reads nothing while it has events`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        for _ in 1...6 { try await store.append(contentsOf: drafts(1_000)) }
        // A running checkpoint reads too.
        try await store.checkpoint()
        final class Reads: Sendable { let count = Mutex(0) }
        let reads = Reads()
        files.failing { operation, _ in
            if operation == "read" { reads.count.withLock { $0 += 1 } }
            return nil
        }
        var events = store.events().makeAsyncIterator()
        #expect(try await events.next()?.position == Position(1))
        let first = reads.count.withLock { $0 }
        #expect(try await events.readPositions(300).last == 301)
        #expect(reads.count.withLock { $0 } == first)
        #expect(try await events.readPositions(1_100).last == 1_401)
        let second = reads.count.withLock { $0 }
        #expect(second > first)
        // A consumer that is behind delays no other, and misses nothing.
        try await store.append(contentsOf: drafts(1))
        #expect(try await events.readPositions(4_600).last == 6_001)
        // One event larger than a batch.
        try await store.append(contentsOf: drafts(1, bytes: 400_000) + drafts(1, bytes: 400_000))
        #expect(try await events.readPositions(2) == [6_002, 6_003])
        files.failing(nil)
        try await store.close()
        #expect(try await events.next() == nil)
        #expect(try await events.next() == nil)
    }

    @Test(.verifies("FOL-6"))
    func `a subscription ends when the store is closed, with all that was recorded before`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await store.append(contentsOf: drafts(2))
        var behind = store.events().makeAsyncIterator()
        #expect(try await behind.readPositions(1) == [1])
        let waiting = Task {
            try await store.events(after: Position(2)).map(\.position).first { _ in true }
        }
        try await eventually("subscribers", is: 2) { await store.subscriberCount }
        try await store.append(contentsOf: drafts(1), durability: .relaxed)
        try await store.close()
        #expect(try await behind.readPositions(9) == [2, 3])
        #expect(try await waiting.value == Position(3))
        var late = store.events(after: Position(1)).makeAsyncIterator()
        #expect(try await late.readPositions(9) == [2, 3])
        #expect(await store.subscriberCount == 0)
    }

    @Test(.verifies("FOL-6"))
    func `a cancelled subscription ends and leaves nothing behind`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await store.append(contentsOf: drafts(1))
        let subscribers = (1...20).map { _ in
            Task {
                var count = 0
                for try await _ in store.events() { count += 1 }
                return count
            }
        }
        try await eventually("subscribers", is: 20) { await store.subscriberCount }
        for subscriber in subscribers { subscriber.cancel() }
        for subscriber in subscribers { #expect(try await subscriber.value <= 1) }
        // So does a released one.
        func takeOne() async throws {
            var events = store.events().makeAsyncIterator()
            #expect(try await events.readPositions(1) == [1])
        }
        try await takeOne()
        try await eventually("subscribers", is: 0) { await store.subscriberCount }
        try await store.close()
    }

    @Test(.verifies("FOL-5"))
    func `a position after the log's end is refused, and an unreadable log is an error`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        for _ in 1...4 { try await store.append(contentsOf: drafts(1)) }
        var ahead = store.events(after: Position(5)).makeAsyncIterator()
        let refusal = await #expect(throws: EventError.self) { try await ahead.next() }
        #expect(refusal?.code == .refused)
        #expect(try await ahead.next() == nil)

        let path = "/log/00000000000000000001.lz4"
        let file = try files.open(path, .read)
        var scanner = SegmentScanner(file, expecting: Position(1), allowsHoles: false)
        var commits: [ScannedCommit] = []
        while case .commit(let commit) = try scanner.next() { commits.append(commit) }
        files.flip(bit: (commits[2].offset + 8) * 8, of: path)
        var events = store.events().makeAsyncIterator()
        #expect(try await events.readPositions(2) == [1, 2])
        let damage = await #expect(throws: LogError.self) { try await events.next() }
        #expect(damage?.code == .corrupt)
        #expect(damage?.offset == commits[2].offset)
        #expect(try await events.next() == nil)
        try await store.close()
    }
}

extension SubscriptionTests {
    @Test(.verifies("FOL-10"))
    func `recorded events are read to the end, and an empty log ends at once`() async throws {
        let store = try await open(InMemoryFileSystem())
        func positions(after position: Position) async throws -> [UInt64] {
            var found: [UInt64] = []
            for try await event in store.recordedEvents(after: position) {
                found.append(event.position.rawValue)
                // Events recorded meanwhile are neither awaited nor delivered.
                if found.count < 5 { try await store.append(contentsOf: drafts(1)) }
            }
            return found
        }
        #expect(try await positions(after: .zero) == [])
        try await store.append(contentsOf: drafts(3))
        try store.log.roll()
        #expect(try await positions(after: .zero) == [1, 2, 3])
        #expect(try await positions(after: Position(2)) == [3, 4, 5, 6])
        let last = await store.lastDurable
        #expect(try await positions(after: last) == [])
        await #expect(throws: EventError.self) {
            _ = try await positions(after: Position(last.rawValue + 1))
        }
        // More events than are read ahead at a time.
        try await store.append(contentsOf: drafts(3_000, bytes: 300))
        var count = 0
        for try await _ in store.recordedEvents() { count += 1 }
        let end = await store.lastDurable
        #expect(UInt64(count) == end.rawValue)
        try await store.close()
    }

    @Test(.verifies("FOL-5", "FOL-10"), arguments: [false, true])
    func `a committed event that can no longer be read is an error, not the end`(
        isLive: Bool
    ) async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: drafts(3))
        try await store.append(contentsOf: drafts(2))
        let path = "/log/" + SegmentName.of(Position(1))
        let last = try #require(files[path]?.lastIndex { $0 != 0 })
        files.flip(bit: (last - 30) * 8, of: path)
        let events = isLive ? store.events() : store.recordedEvents()
        var iterator = events.makeAsyncIterator()
        #expect(try await iterator.readPositions(3) == [1, 2, 3])
        let error = await #expect(throws: LogError.self) { try await iterator.next() }
        #expect(error?.code == .corrupt)
        #expect(error?.positions == Position(4)...Position(5))
    }

    @Test(.verifies("FOL-5", "REC-11"))
    func `events of another log that replaced the folder are not delivered`() async throws {
        let (files, others) = (InMemoryFileSystem(), InMemoryFileSystem())
        let store = try await open(files)
        try await store.append(contentsOf: drafts(3))
        let other = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([]), views: [],
            environment: LogEnvironment(fileSystem: others))
        try await other.append(contentsOf: drafts(3))
        for (path, bytes) in others.image { files[path] = bytes }
        var events = store.events().makeAsyncIterator()
        let error = await #expect(throws: LogError.self) { try await events.next() }
        #expect(error?.code == .noSuchLog)
    }
}
