// When a store compacts by itself, when it does not, and that it says so.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite(.verifies("CMP-29"), .timeLimit(.minutes(10))) struct CompactionPolicyTests {
    private func open(_ files: InMemoryFileSystem) async throws -> EventStore {
        let numbers = Mutex(SeededRandom(seed: UInt64(files.usedBytes)))
        return try await EventStore.open(
            at: "/log", catalogue: EventCatalogue(), views: [Registers.self],
            environment: LogEnvironment(
                fileSystem: files, now: { 1_800_000_000_000 },
                random: { numbers.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } }))
    }

    private var policy: CompactionPolicy {
        var policy = CompactionPolicy()
        policy.garbageBytesMin = 100
        return policy
    }

    /// Events in a sealed segment, of which all but the last of each register are garbage.
    private func fill(_ store: EventStore, registers: Int, count: Int = 100) async throws {
        try await store.append(
            (0..<count).map {
                EventDraft(
                    type: "set", subject: "\($0 % registers)", data: .json(Array("\($0)".utf8)))
            })
        try store.log.roll()
    }

    private func first(_ stream: AsyncStream<MaintenanceReport>) async -> MaintenanceReport? {
        for await report in stream { return report }
        return nil
    }

    @Test func `a policy that is set looks, and compacts what is worth it`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 5)
        let reports = await store.maintenance()
        try await store.setCompactionPolicy(policy)
        guard case .compacted(let report)? = await first(reports) else {
            Issue.record("it did not compact")
            return
        }
        #expect(report.removed == 95)
        try await store.close()
    }

    @Test func `it looks again when a segment is sealed and the log has grown by a quarter`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 90)
        var reports = await store.maintenance().makeAsyncIterator()
        try await store.setCompactionPolicy(policy)
        guard case .notWorthIt(let estimate)? = await reports.next() else {
            Issue.record("a tenth is not worth it")
            return
        }
        #expect(estimate.share > 0.05 && estimate.share < 0.3)
        #expect(estimate.bytes > 0 && estimate.heldBackBy == [])
        // A little more, sealed: nobody looks. Then much more, all of it garbage, and in one segment:
        // whenever the store looks, it sees none of it or all.
        try await fill(store, registers: 1, count: 2)
        try await store.append([EventDraft(type: "t")])
        try await fill(store, registers: 3, count: 1_200)
        try await store.append([EventDraft(type: "t")])
        let next = await reports.next()
        guard case .compacted(let report)? = next else {
            Issue.record("it did not look again: \(next.debugDescription)")
            return
        }
        #expect(report.removed > 1_000)
        try await store.close()
    }

    @Test func `it waits until the device is idle, and says so`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 5)
        let isIdle = Atomic(false)
        var policy = policy
        policy.isIdle = { isIdle.load(ordering: .relaxed) }
        policy.idlePause = .milliseconds(5)
        var reports = await store.maintenance().makeAsyncIterator()
        try await store.setCompactionPolicy(policy)
        guard case .waitsForIdle(let estimate)? = await reports.next() else {
            Issue.record("it did not wait")
            return
        }
        #expect(estimate.share > 0.8)
        try await Task.sleep(for: .milliseconds(50))
        #expect(try await store.compact(dryRun: true).removed == 95)
        isIdle.store(true, ordering: .relaxed)
        guard case .compacted? = await reports.next() else {
            Issue.record("it did not compact")
            return
        }
        try await store.close()
        #expect(await reports.next() == nil)
    }

    @Test func `it does nothing without a policy, or once it was taken back`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 5)
        var never = policy
        never.isIdle = { false }
        try await store.setCompactionPolicy(never)
        try await store.setCompactionPolicy(nil)
        try await fill(store, registers: 5)
        try await store.append([EventDraft(type: "t")])
        #expect(try await store.compact(dryRun: true).removed == 195)
        try await store.close()
    }

    @Test func `what fails is said, appends go on, and the next occasion is taken`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await fill(store, registers: 5)
        files.failing { operation, path in
            guard path.hasSuffix("/compaction.new"), operation == "sync" else { return nil }
            return FileError(.io, operation: operation, path: path, reason: "as told")
        }
        var reports = await store.maintenance().makeAsyncIterator()
        try await store.setCompactionPolicy(policy)
        guard case .failed(let error)? = await reports.next() else {
            Issue.record("it did not fail")
            return
        }
        #expect((error as? LogError)?.code == .io)
        files.failing(nil)
        for _ in 0..<2 { try await fill(store, registers: 5) }
        try await store.append([EventDraft(type: "t")])
        guard case .compacted(let report)? = await reports.next() else {
            Issue.record("it did not try again")
            return
        }
        // At least what the failed one would have taken out, whenever the store looks.
        #expect(report.removed >= 95)
        try await store.close()
    }
}
