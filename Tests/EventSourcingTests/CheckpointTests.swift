// States are stored and restored; a changed view is rebuilt; past states can be read; a store can be
// suspended.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// A sum, which counts the folds of this process.
private struct Sums: Projection, Codable, Equatable {
    static let name = "sums"
    static let version = 1
    var total = 0
    var last = 0
    var foldsHere = 0

    enum CodingKeys: CodingKey { case total, last }

    mutating func fold(_ event: Event) {
        guard let number = Int(event.subject ?? "") else { return }
        total += number
        last = number
        foldsHere += 1
    }
}

/// The same view in a later release of the app.
private struct NewerSums: Projection, Codable {
    static let name = "sums"
    static let version = 2
    var product = 1
    mutating func fold(_ event: Event) {
        product = product &* (Int(event.subject ?? "") ?? 1) % 1_000_003
    }
}

/// Another later release, whose state has the same form and another meaning.
private struct DoubledSums: Projection, Codable {
    static let name = "sums"
    static let version = 2
    var total = 0
    var last = 0
    mutating func fold(_ event: Event) { total += 2 * (Int(event.subject ?? "") ?? 0) }
}

/// A view that is not stored.
private struct Count: Projection {
    static let name = "count"
    static let version = 1
    var count = 0
    mutating func fold(_ event: Event) { count += 1 }
}

private func open(
    _ files: InMemoryFileSystem, _ views: [any Projection.Type] = [Sums.self, Count.self],
    keepingUnknownStates: Bool = false,
    progress: (@Sendable (Int, Int) -> Void)? = nil
) async throws -> EventStore {
    let numbers = Mutex(SeededRandom(seed: 1))
    return try await EventStore.open(
        at: "/log", catalogue: EventCatalogue(), views: views,
        keepingUnknownStates: keepingUnknownStates,
        environment: LogEnvironment(
            fileSystem: files, now: { 1_800_000_000_000 },
            random: { numbers.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
            sleep: noTimers),
        progress: progress)
}

private func drafts(_ numbers: some Sequence<Int>) -> [EventDraft] {
    numbers.map { EventDraft(type: "t", subject: "\($0)") }
}

/// The sum with another fold, under the same version.
private struct ChangedSums: Projection, Codable {
    static let name = "sums"
    static let version = 1
    var total = 0
    var last = 0
    mutating func fold(_ event: Event) { total += 2 * (Int(event.subject ?? "") ?? 0) }
}

@Suite struct ChangedFoldTests {
    /// Stores states at two positions, or at one.
    private func files(_ parts: [ClosedRange<Int>]) async throws -> InMemoryFileSystem {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        for part in parts {
            try await store.append(contentsOf: drafts(part))
            try await store.checkpoint()
        }
        try await store.close()
        return files
    }

    @Test(.verifies("VIEW-33"), arguments: [[1...3, 4...9], [1...3]])
    func `a changed fold with the same version is found at opening`(
        parts: [ClosedRange<Int>]
    ) async throws {
        let files = try await files(parts)
        let same = try await open(files)
        #expect(same.changedFolds == [])
        try await same.close()
        let changed = try await open(files, [ChangedSums.self, Count.self])
        #expect(changed.changedFolds == ["sums"])
        try await changed.close()
    }

    @Test(.verifies("VIEW-33"))
    func `a changed fold with another version is folded again, and no finding`() async throws {
        let store = try await open(try await files([1...3, 4...9]), [DoubledSums.self])
        #expect(store.changedFolds == [])
        #expect(store.view(DoubledSums.self).total == 90)
        try await store.close()
    }
}

@Suite struct StoredStateTests {
    @Test(.verifies("CHK-1"))
    func `a checkpoint waits for one that its own commit has begun`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        // Together enough for a checkpoint to be due, with the second part not committed yet.
        try await store.append(contentsOf: drafts(1...900))
        try await store.append(contentsOf: drafts(901...1_100), durability: .relaxed)
        let calls = Mutex<[String]>([])
        files.failing { operation, path in
            let call = "\(operation) \(path)"
            guard ["open /log/checkpoints/a", "rename /log/checkpoints/new"].contains(call) else {
                return nil
            }
            calls.withLock { $0.append(operation) }
            Thread.sleep(forTimeInterval: 0.02)
            return nil
        }
        try await store.checkpoint()
        files.failing(nil)
        #expect(calls.withLock { $0 } == ["open", "rename", "open", "rename"])
        try await store.close()
    }

    @Test(.verifies("CHK-1", "CHK-3"))
    func `a store opens from its newest checkpoint and folds only later events`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        try await store.append(contentsOf: drafts(1...500))
        try await store.checkpoint()
        try await store.append(contentsOf: drafts(501...520))
        let sums = store.view(Sums.self)
        try await store.close()
        store = try await open(files)
        let again = store.view(Sums.self)
        #expect(again.total == sums.total)
        #expect(again.last == 520)
        #expect(again.foldsHere == 20)
        #expect(store.view(Count.self).count == 520)
        try await store.close()
    }

    @Test(.verifies("CHK-3"))
    func `checkpoints are written automatically, in the background and at closing`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files, [Sums.self])
        for start in 0..<30 {
            try await store.append(contentsOf: drafts(start * 100..<start * 100 + 100))
        }
        try await store.close()
        store = try await open(files, [Sums.self])
        #expect(store.view(Sums.self).foldsHere < 1_200)
        try await store.append(contentsOf: drafts(0..<100))
        try await store.close()
        store = try await open(files, [Sums.self])
        #expect(store.view(Sums.self).foldsHere == 0)
        // A few events are not worth a checkpoint.
        try await store.append(contentsOf: drafts(0..<3))
        let before = files["/log/checkpoints/a"]
        let other = files["/log/checkpoints/b"]
        try await store.close()
        #expect(files["/log/checkpoints/a"] == before)
        #expect(files["/log/checkpoints/b"] == other)
    }

    @Test(.verifies("CHK-4"))
    func `a view of another version is rebuilt, with progress, once`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files, [Sums.self])
        for _ in 0..<3 { try await store.append(contentsOf: drafts(1...9_000)) }
        try await store.checkpoint()
        try await store.close()
        let calls = Mutex<[(Int, Int)]>([])
        store = try await open(files, [NewerSums.self]) { folded, total in
            calls.withLock { $0.append((folded, total)) }
        }
        let product = store.view(NewerSums.self).product
        #expect(calls.withLock { $0.map(\.0) } == [10_000, 20_000])
        #expect(calls.withLock { $0.allSatisfy { $0.1 == 27_000 } })
        try await store.close()
        store = try await open(files, [NewerSums.self]) { _, _ in Issue.record("rebuilt again") }
        #expect(store.view(NewerSums.self).product == product)
        try await store.close()
    }

    @Test(.verifies("CHK-2"))
    func `of two checkpoints at one position the later is used, even if the clock stands still`()
        async throws
    {
        for earlier in 1...2 {
            let files = InMemoryFileSystem()
            var store = try await open(files, [Sums.self])
            try await store.append(contentsOf: drafts(1...200))
            // So that the first slot is the newer one in one iteration, and the second in the other.
            for _ in 0..<earlier { try await store.checkpoint() }
            try await store.close()
            store = try await open(files, [NewerSums.self])
            try await store.checkpoint()
            try await store.close()
            let newest = CheckpointSlots("/log", fileSystem: files).usable().first { _ in true }
            #expect(newest?.states.contains { $0.name == "sums" && $0.version == 2 } ?? false)
        }
    }

    @Test(.verifies("CHK-1"))
    func `a state of another version is not used, even if it could be decoded`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files, [Sums.self])
        try await store.append(contentsOf: drafts(1...10))
        try await store.checkpoint()
        try await store.close()
        store = try await open(files, [DoubledSums.self])
        #expect(store.view(DoubledSums.self).total == 110)
        try await store.close()
    }

    @Test(.verifies("CHK-4"))
    func `a tool keeps the states of views that it does not know, an app drops them`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files, [Sums.self])
        try await store.append(contentsOf: drafts(1...50))
        try await store.checkpoint()
        try await store.close()
        for round in 1...2 {
            store = try await open(files, [Count.self], keepingUnknownStates: true)
            try await store.append(contentsOf: drafts([round]))
            try await store.checkpoint()
            try await store.close()
        }
        store = try await open(files, [Sums.self])
        #expect(store.view(Sums.self).foldsHere == 2)
        #expect(store.view(Sums.self).total == 1_275 + 3)
        try await store.close()
        for round in 1...2 {
            store = try await open(files, [Count.self])
            try await store.append(contentsOf: drafts([round]))
            try await store.checkpoint()
            try await store.close()
        }
        store = try await open(files, [Sums.self])
        #expect(store.view(Sums.self).foldsHere == 54)
        try await store.close()
    }

    @Test(.verifies("CHK-1", "VIEW-20"))
    func `any past state can be read, whatever checkpoints there are`() async throws {
        try await Property.check("state(at:)", runs: 30) { choices in
            let files = InMemoryFileSystem()
            var store = try await open(files)
            var numbers: [Int] = []
            for _ in 0..<choices.int(in: 1...8) {
                switch choices.int(in: 0...3) {
                case 1: try await store.checkpoint()
                case 2:
                    try await store.close()
                    store = try await open(files)
                default:
                    let more = choices.array(1...6) { $0.int(in: 0...99) }
                    numbers += more
                    try await store.append(contentsOf: drafts(more))
                }
            }
            for position in 0...numbers.count {
                let past = try await store.state(at: Position(UInt64(position)))
                let view = past.view(Sums.self)
                try #require(view.total == numbers.prefix(position).reduce(0, +))
                try #require(past.view(Count.self).count == position)
            }
            await #expect(throws: EventError.self) {
                try await store.state(at: Position(UInt64(numbers.count + 1)))
            }
            try await store.close()
        }
    }

    @Test
    func `a suspended store can be read, refuses appends, and resumes after the events of others`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: drafts(1...10))
        try await store.append(contentsOf: drafts([7]), durability: .relaxed)
        try await store.suspend()
        #expect(store.view(Count.self).count == 11)
        await #expect {
            try await store.append(contentsOf: drafts([1]))
        } throws: { ($0 as? LogError)?.code == .suspended }
        let other = try await open(files)
        #expect(other.view(Count.self).count == 11)
        try await other.append(contentsOf: drafts([100]))
        await #expect {
            try await store.resume()
        } throws: { ($0 as? LogError)?.code == .locked }
        try await other.close()
        try await store.resume()
        #expect(store.view(Sums.self).last == 100)
        try await store.append(contentsOf: drafts([101]))
        #expect(store.view(Count.self).count == 13)
        try await store.close()
        let last = try await open(files)
        #expect(last.view(Count.self).count == 13)
        try await last.close()
    }

    @Test(.verifies("CHK-3"))
    func `a checkpoint that cannot be written has no effect on the log`() async throws {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        files.failing { operation, path in
            path.contains("checkpoints") && operation == "write"
                ? FileError(.io, operation: operation, path: path, reason: "no") : nil
        }
        for _ in 0..<3 { try await store.append(contentsOf: drafts(1...1_000)) }
        await #expect(throws: LogError.self) { try await store.checkpoint() }
        try await store.close()
        files.failing(nil)
        store = try await open(files)
        #expect(store.view(Count.self).count == 3_000)
        #expect(files["/log/checkpoints/new"] == nil)
        try await store.close()
    }
}

@Suite struct CheckpointVerifierTests {
    private func verify(_ files: InMemoryFileSystem) throws -> CheckpointVerifier {
        var verifier = CheckpointVerifier(
            "/log", fileSystem: files, catalogue: EventCatalogue(),
            views: [Sums.self, Count.self])
        let outcome = try LogReader("/log", fileSystem: files)
            .forEachEvent(catalogue: EventCatalogue()) { event in
                verifier.fold(event)
                return true
            }
        verifier.finish(at: outcome.last)
        return verifier
    }

    @Test(.verifies("CHK-6"))
    func `a stored state that differs from the fold of the events is a finding`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await store.append(contentsOf: drafts(1...20))
        try await store.checkpoint()
        try await store.append(contentsOf: drafts(21...40))
        try await store.checkpoint()
        try await store.close()
        let sound = try verify(files)
        #expect(sound.findings == [])
        #expect(sound.compared == 2)
        #expect(sound.notes == [])

        // A checkpoint that is valid but wrong.
        let slots = CheckpointSlots("/log", fileSystem: files)
        let stored = slots.contents().compactMap { _, content in
            if case .checkpoint(let checkpoint) = content { checkpoint } else { nil }
        }
        var wrong = try #require(stored.min { $0.position < $1.position })
        let index = try #require(wrong.states.firstIndex { $0.name == "sums" })
        wrong.states[index].bytes = Array(#"{"last":20,"total":211}"#.utf8)
        try slots.write(wrong)
        let found = try verify(files)
        #expect(found.findings.map(\.positions) == [Position(20)...Position(20)])
        #expect(found.findings[0].code == "checkpoint")
        #expect(found.compared == 1)

        files["/log/checkpoints/a"] = [0]
        files["/log/checkpoints/b"]?.removeLast()
        #expect(try verify(files).findings.count == 2)
    }
}
