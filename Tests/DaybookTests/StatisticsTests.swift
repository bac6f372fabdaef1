// The statistics of a log. Spec/operations/logtool.md.

import Daybook
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite struct StatisticsTests {
    private let files = InMemoryFileSystem()

    /// Bytes of the segments in the folder.
    private var segmentBytes: Int {
        files.image.reduce(0) { $0 + ($1.key.hasSuffix(".lz4") ? $1.value.count : 0) }
    }

    @Test func `statistics count events and bytes, by type and as a whole`() async throws {
        let store = try await HikeLog.write(files, account: "ada")
        try await store.appendHikes(250)
        try await store.settleAll()
        var (events, bytes) = (0, 0)
        for try await event in store.recordedEvents() {
            events += 1
            bytes += event.lineBytes + 1
        }
        let statistics = try await store.statistics()
        #expect(statistics.logID == store.logID)
        #expect(statistics.account == "ada")
        #expect(statistics.events == 251)
        #expect(events == 251)
        #expect(statistics.lineBytes == bytes)
        #expect(statistics.segments == 1)
        #expect(statistics.diskBytes == segmentBytes)
        #expect(statistics.compressionRatio == Double(bytes) / Double(segmentBytes))
        #expect(statistics.positions == Position(1)...Position(251))
        #expect(statistics.last == Position(251))
        #expect(statistics.types.keys.sorted() == [Hike.type, SyncSettled.type])
        #expect(statistics.types[Hike.type]?.events == 250)
        #expect(statistics.types.values.reduce(0) { $0 + $1.lineBytes } == bytes)
        let times = try #require(statistics.times)
        #expect(times.lowerBound <= times.upperBound)
        try await store.close()
    }

    @Test func `statistics count unsynced events, relaxed ones included`()
        async throws
    {
        let store = try await HikeLog.write(files)
        let hikes = try await store.append(
            contentsOf: ["lake", "forest", "hill"].map { try EventDraft(Hike(path: $0)) })
        try await store.record(.parked, of: hikes[0], code: "too_long")
        try await store.record(.conflict, of: hikes[1], code: "stale_base")
        try await store.append(Hike(path: "shore"), durability: .relaxed)
        let statistics = try await store.statistics()
        #expect(statistics.unsynced == 4)
        #expect(statistics.parked == 1)
        #expect(statistics.inConflict == 1)
        try await store.close()
    }

    @Test
    func `statistics of a read-only log have its checkpoints, and whether a writer has it open`()
        async throws
    {
        let store = try await HikeLog.write(files)
        try await store.appendHikes(10)
        let reader = try await HikeLog.read(files)
        let before = try await reader.statistics()
        #expect(before.isOpen)
        #expect(before.tornTail == nil)
        try await store.checkpoint()
        try await store.appendHikes(5)
        try await store.close()
        let after = try await reader.statistics()
        #expect(!after.isOpen)
        #expect(after.events == 15)
        func positions(_ statistics: LogStatistics) -> [Position] {
            statistics.checkpoints.compactMap { checkpoint in
                guard case .states(let position, _) = checkpoint.content else { return nil }
                return position
            }
        }
        #expect(positions(after).max() == Position(10))
        for checkpoint in after.checkpoints { files["/log/checkpoints/\(checkpoint.slot)"] = [0] }
        let damaged = try await reader.statistics()
        #expect(damaged.checkpoints.map(\.slot) == after.checkpoints.map(\.slot))
        #expect(positions(damaged).isEmpty)
    }

    @Test func `an empty log has statistics, a damaged one an error`() async throws {
        let store = try await HikeLog.write(files)
        let empty = try await store.statistics()
        #expect(empty.events == 0)
        #expect(empty.positions == nil)
        #expect(empty.times == nil)
        #expect(empty.last == .zero)
        #expect(empty.types.isEmpty)
        try await store.appendHikes(2_000)
        try await store.close()
        let reader = try await HikeLog.read(files)
        let segment = "/log/00000000000000000001.lz4"
        files.flip(bit: try #require(files[segment]).count / 2 * 8, of: segment)
        let error = await #expect(throws: LogError.self) { try await reader.statistics() }
        #expect(error?.code == .corrupt)
    }

    @Test func `progress rises to 1, and a cancelled read ends with an error`() async throws {
        let store = try await HikeLog.write(files)
        try await store.appendHikes(2_000)
        let parts = Mutex<[Double]>([])
        _ = try await store.statistics { part in parts.withLock { $0.append(part) } }
        #expect(parts.withLock { $0 == $0.sorted() && $0.last == 1 })
        await expectCancellation { report in
            _ = try await store.statistics { _ in report() }
        }
        try await store.close()
    }
}
