// The values of queries over time: the current one first, only the newest, no repetition, the end, and no
// leaked subscribers. Spec/format/following.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// Counts events; `Equatable`.
private struct Count: Projection, Equatable {
    static let name = "count"
    static let version = 1
    var all = 0
    var big = 0
    mutating func fold(_ event: Event) {
        all += 1
        if event.subject == "big" { big += 1 }
    }
}

/// Keeps the last subject; not `Equatable`.
private struct Last: Projection {
    static let name = "last"
    static let version = 1
    var subject: String?
    mutating func fold(_ event: Event) { if event.type == "t" { subject = event.subject } }
}

/// The subjects of events of one type, in order.
private struct Named: Projection {
    static let name = "named"
    static let version = 1
    static let eventTypes: Set<String>? = ["named"]
    var names = SortedIndex<String>()
    mutating func fold(_ event: Event) { names.insert(event.subject ?? "") }
}

private func open(_ files: InMemoryFileSystem = InMemoryFileSystem()) async throws -> EventStore {
    try await EventStore.open(
        at: "/log", catalogue: EventCatalogue([]), views: [Count.self, Last.self],
        environment: LogEnvironment(fileSystem: files, sleep: noTimers))
}

private enum Sizes: TransientState {
    typealias Key = String
    typealias Value = Int
}

private func draft(_ subject: String = "small") -> EventDraft {
    EventDraft(type: "t", subject: subject)
}

@Suite struct ObservationTests {
    @Test(.verifies("FOL-7"))
    func `changes begin with the current value, keep the newest only, and repeat none`()
        async throws
    {
        let store = try await open()
        try await store.append(contentsOf: [draft("big")])
        let query = store.query(Count.self) { $0.big }
        #expect(query.current == 1)
        var changes = query.changes.makeAsyncIterator()
        #expect(await changes.next() == 1)
        // Three commits without a read in between are one new value.
        for _ in 1...3 { try await store.append(contentsOf: [draft("big")]) }
        #expect(await changes.next() == 4)
        // A commit that does not change the value gives no new one.
        for _ in 1...3 { try await store.append(contentsOf: [draft()]) }
        let next = Task { [changes] in
            var changes = changes
            return await changes.next()
        }
        try await store.append(contentsOf: [draft()])
        try await store.append(contentsOf: [draft("big")])
        #expect(await next.value == 5)
        try await store.close()
    }

    @Test(.verifies("FOL-8"))
    func `a query is not computed again after events that its view does not fold`() async throws {
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([]), views: [Named.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: noTimers))
        let asked = Atomic<Int>(0)
        let query = store.query(Named.self) { view in
            asked.add(1, ordering: .relaxed)
            return view.names.count
        }
        var changes = query.changes.makeAsyncIterator()
        #expect(await changes.next() == 0)
        for _ in 1...20 { try await store.append(contentsOf: [draft()]) }
        let next = Task { [changes] in
            var changes = changes
            return await changes.next()
        }
        for _ in 1...20 {
            try await store.append(contentsOf: [draft()])
            await Task.yield()
        }
        #expect(asked.load(ordering: .relaxed) == 1)
        try await store.append(contentsOf: [EventDraft(type: "named", subject: "a")])
        #expect(await next.value == 1)
        #expect(asked.load(ordering: .relaxed) == 2)
        try await store.close()
    }

    @Test(.verifies("FOL-12"))
    func `differences begin with all elements, then give each change`() async throws {
        let store = try await EventStore.open(
            at: "/log", catalogue: EventCatalogue([]), views: [Named.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: noTimers))
        func append(_ name: String) async throws {
            try await store.append(contentsOf: [EventDraft(type: "named", subject: name)])
        }
        try await append("b")
        let names = store.query(Named.self) { $0.names }
        #expect(names.count.current == 1)
        var differences = names.differences.makeAsyncIterator()
        var list: [String] = []
        func applyNext() async {
            if let difference = await differences.next() { list = list.applying(difference) ?? [] }
        }
        await applyNext()
        #expect(list == ["b"])
        try await append("c")
        try await append("a")
        await applyNext()
        #expect(list == ["a", "b", "c"])
        #expect(names.map { $0.page(after: "a", limit: 1) }.current == ["b"])
        try await store.close()
        #expect(await differences.next() == nil)
    }

    @Test(.verifies("FOL-9")) @MainActor
    func `a query is not computed on the main actor`() async throws {
        let store = try await open()
        let isMain = Mutex<[Bool]>([])
        let query = store.query(Count.self) { view in
            isMain.withLock { $0.append(Thread.isMainThread) }
            return view.all
        }
        var changes = query.changes.makeAsyncIterator()
        #expect(await changes.next() == 0)
        try await store.append(contentsOf: [draft()])
        #expect(await changes.next() == 1)
        #expect(isMain.withLock { $0 } == [false, false])
        try await store.close()
    }

    @Test(.verifies("FOL-11"))
    func `a query observes commits and transient values, each once, and leaves no subscriber`()
        async throws
    {
        let store = try await open()
        let sizes = store.transient(Sizes.self)
        let query = store.query(Count.self, with: Sizes.self) { "\($0.all) \($1["a"] ?? 0)" }
        do {
            var changes = query.changes.makeAsyncIterator()
            #expect(await changes.next() == "0 0")
            sizes.update("a") { _ in 7 }
            #expect(await changes.next() == "0 7")
            // An equal value, or one of another key, gives no new value.
            sizes.update("a") { _ in 7 }
            sizes.update("b") { _ in 1 }
            try await store.append(contentsOf: [draft()])
            #expect(await changes.next() == "1 7")
            sizes.update("a") { $0.map { $0 + 1 } }
            sizes.update("a") { _ in nil }
            try await store.append(contentsOf: [draft()])
            #expect(await changes.next() == "2 0")
        }
        #expect(query.current == "2 0")
        try await eventually("subscribers", is: 0) { await store.subscriberCount }
        #expect(sizes.subscriberCount == 0)
        try await store.close()
    }

    @Test(.verifies("FOL-7"))
    func `changes end when the store is closed, with the newest value before`() async throws {
        let store = try await open()
        let query = store.query(Count.self) { $0.all }
        var changes = query.changes.makeAsyncIterator()
        #expect(await changes.next() == 0)
        try await store.append(contentsOf: [draft()])
        try await store.append(contentsOf: [draft()], durability: .relaxed)
        try await store.close()
        #expect(await changes.next() == 2)
        #expect(await changes.next() == nil)
        #expect(await changes.next() == nil)
        // A closed store can still be read.
        var late = query.changes.makeAsyncIterator()
        #expect(await late.next() == 2)
        #expect(await late.next() == nil)
        #expect(query.current == 2)
    }

    @Test(.verifies("FOL-7"))
    func `a view that is not Equatable changes whenever it has folded an event`() async throws {
        let store = try await open()
        var states = store.changes(of: Last.self).makeAsyncIterator()
        #expect(await states.next()?.subject == nil)
        try await store.append(contentsOf: [draft("a"), draft("b")])
        #expect(await states.next()?.subject == "b")
        // Folded at once; the later commit is not a change.
        try await store.append(contentsOf: [draft("c")], durability: .relaxed)
        #expect(await states.next()?.subject == "c")
        try await store.flush()
        try await store.append(contentsOf: [EventDraft(type: "other")])
        #expect(await states.next()?.subject == "c")
        var counts = store.changes(of: Count.self).makeAsyncIterator()
        #expect(await counts.next()?.all == 4)
        try await store.close()
        #expect(await states.next() == nil)
        #expect(await counts.next() == nil)
    }

    @Test(.verifies("FOL-7"))
    func `a relaxed append is visible at once, before it is on the disk`() async throws {
        let store = try await open()
        let query = store.query(Count.self) { $0.all }
        var changes = query.changes.makeAsyncIterator()
        #expect(await changes.next() == 0)
        for number in 1...3 {
            try await store.append(contentsOf: [draft()], durability: .relaxed)
            #expect(query.current == number)
            #expect(await changes.next() == number)
        }
        #expect(await store.lastDurable == .zero)
        try await store.close()
    }

    @Test(.verifies("FOL-8"))
    func `a commit wakes each of many subscribers once, and appends do not wait for them`()
        async throws
    {
        let store = try await open()
        final class Asked: Sendable { let count = Mutex(0) }
        let asked = Asked()
        let subscribers = 100
        let query = store.query(Count.self) { count in
            asked.count.withLock { $0 += 1 }
            return count.all
        }
        let tasks = (1...subscribers).map { _ in
            Task {
                var seen: [Int] = []
                for await value in query.changes { seen.append(value) }
                return seen
            }
        }
        try await eventually("subscribers", is: subscribers) { await store.subscriberCount }
        try await eventually("evaluations", is: subscribers) { asked.count.withLock { $0 } }
        let commits = 20
        for _ in 1...commits { try await store.append(contentsOf: [draft(), draft()]) }
        try await store.close()
        for task in tasks {
            let seen = await task.value
            #expect(seen.first == 0)
            #expect(seen.last == 2 * commits)
            // Ascending, and never only one of two events of a commit.
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
            #expect(seen.allSatisfy { $0.isMultiple(of: 2) })
        }
        #expect(asked.count.withLock { $0 } <= subscribers * (commits + 1))
    }

    @Test(.verifies("FOL-8"))
    func `no reader sees a view with only some of the events of a commit`() async throws {
        let store = try await open()
        // On a separate thread: it never waits, and the pool has few threads.
        let watching = Watching()
        defer { watching.isOver.store(true, ordering: .relaxed) }
        Thread.detachNewThread {
            var odd = 0
            while !watching.isOver.load(ordering: .relaxed) {
                if !store.view(Count.self).all.isMultiple(of: 10) { odd += 1 }
            }
            watching.odd.continuation.yield(odd)
        }
        for round in 1...40 {
            let drafts = (1...10).map { _ in draft() }
            try await store.append(
                contentsOf:
                    drafts, durability: round.isMultiple(of: 2) ? .durable : .relaxed)
        }
        watching.isOver.store(true, ordering: .relaxed)
        for await odd in watching.odd.stream {
            #expect(odd == 0)
            break
        }
        try await store.close()
    }

    private final class Watching: Sendable {
        let isOver = Atomic(false)
        let odd = AsyncStream.makeStream(of: Int.self)
    }

    @Test(.verifies("FOL-8"))
    func `a cancelled subscriber ends, and a released one leaves no signal behind`()
        async throws
    {
        let store = try await open()
        let query = store.query(Count.self) { $0.all }
        let tasks = (1...20).map { _ in
            Task {
                var count = 0
                for await _ in query.changes { count += 1 }
                return count
            }
        }
        try await eventually("subscribers", is: 20) { await store.subscriberCount }
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value <= 1) }
        func takeOne() async {
            var changes = query.changes.makeAsyncIterator()
            #expect(await changes.next() == 0)
        }
        await takeOne()
        try await eventually("subscribers", is: 0) { await store.subscriberCount }
        try await store.append(contentsOf: [draft()])
        try await store.close()
    }
}
