// When a store compacts automatically, when it does not, and its reports.

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
            contentsOf: (0..<count).map {
                EventDraft(
                    type: "set", subject: "\($0 % registers)", data: .json(Array("\($0)".utf8)))
            })
        try store.log.roll()
    }

    private func first(_ stream: AsyncStream<MaintenanceReport>) async -> MaintenanceReport? {
        for await report in stream { return report }
        return nil
    }

    @Test func `setting a policy starts a scan, and a compaction if there is enough garbage`()
        async throws
    {
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

    @Test func `a store scans again when a segment is sealed and the log has grown by a quarter`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 90)
        var reports = await store.maintenance().makeAsyncIterator()
        try await store.setCompactionPolicy(policy)
        guard case .notWorthIt(let estimate)? = await reports.next() else {
            Issue.record("a tenth of the log is too little garbage")
            return
        }
        #expect(estimate.share > 0.05)
        #expect(estimate.share < 0.3)
        #expect(estimate.bytes > 0)
        #expect(estimate.heldBackBy == [])
        // A few more events, sealed: the store does not scan. Then many more, all of them garbage and in one
        // segment: whenever the store scans, it sees none of them or all.
        try await fill(store, registers: 1, count: 2)
        try await store.append(contentsOf: [EventDraft(type: "t")])
        try await fill(store, registers: 3, count: 1_200)
        try await store.append(contentsOf: [EventDraft(type: "t")])
        let next = await reports.next()
        guard case .compacted(let report)? = next else {
            Issue.record("it did not scan again: \(next.debugDescription)")
            return
        }
        #expect(report.removed > 1_000)
        try await store.close()
    }

    @Test func `compaction waits until the device is idle, and reports that`() async throws {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 5)
        let isIdle = Atomic(false)
        var policy = policy
        let questions = Mutex(0)
        policy.isIdle = {
            questions.withLock { $0 += 1 }
            return isIdle.load(ordering: .relaxed)
        }
        policy.idlePause = .milliseconds(5)
        var reports = await store.maintenance().makeAsyncIterator()
        try await store.setCompactionPolicy(policy)
        guard case .waitsForIdle(let estimate)? = await reports.next() else {
            Issue.record("it did not wait")
            return
        }
        #expect(estimate.share > 0.8)
        try await eventually("questions whether the device is idle", where: { $0 >= 5 }) {
            questions.withLock { $0 }
        }
        #expect(try await store.compact(dryRun: true).removed == 95)
        isIdle.store(true, ordering: .relaxed)
        guard case .compacted? = await reports.next() else {
            Issue.record("it did not compact")
            return
        }
        try await store.close()
        #expect(await reports.next() == nil)
    }

    @Test func `a store without a policy, or whose policy was removed, does not compact`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await fill(store, registers: 5)
        var never = policy
        never.isIdle = { false }
        try await store.setCompactionPolicy(never)
        try await store.setCompactionPolicy(nil)
        try await fill(store, registers: 5)
        try await store.append(contentsOf: [EventDraft(type: "t")])
        #expect(try await store.compact(dryRun: true).removed == 195)
        try await store.close()
    }

    @Test func `a failed compaction is reported, appends continue, and the store tries again`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await fill(store, registers: 5)
        files.failing { operation, path in
            guard path.hasSuffix("/compaction.new"), operation == "sync" else { return nil }
            return FileError(.io, operation: operation, path: path, reason: "injected")
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
        try await store.append(contentsOf: [EventDraft(type: "t")])
        guard case .compacted(let report)? = await reports.next() else {
            Issue.record("it did not try again")
            return
        }
        // At least as many events as the failed one would have removed, whenever the store scans.
        #expect(report.removed >= 95)
        try await store.close()
    }
}
