// Records the one sync record that stands for all so far, where compaction can then take others out.
// Spec/protocol/sync-records.md, OUT-7, and Spec/format/compaction.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension EventStore {
    /// Records what stands for all sync records so far, unless compaction could then take out fewer
    /// than two. For a store with the outbox among its views. Durable on return.
    ///
    /// - Throws: as `write(_:)`.
    /// - Complexity: O(outbox); the first time in a log O(bytes up to its second record).
    package func foldSyncRecords() async throws {
        let outbox = view(Outbox.self)
        guard outbox.foldedRecord(by: incarnation) != nil else { return }
        if outbox.folded == nil {
            let log = log
            guard try await BlockingWork.run(.utility, { try log.hasTwoSyncRecords() }) else {
                return
            }
        }
        let (incarnation, id) = (incarnation, newID())
        try await write { transaction in
            if let record = transaction.view(Outbox.self).foldedRecord(by: incarnation) {
                transaction.append(record: try EventDraft(record, id: id))
            }
        }
    }
}

extension Outbox {
    /// The folded record that `foldSyncRecords()` would record.
    ///
    /// - Parameters:
    ///   - state: the views at the log's end, the outbox among them.
    ///   - source: the source of own events.
    ///   - events: the number of events by type.
    package static func foldedRecord(
        of state: PastState, by source: UUID, events: [String: Int]
    ) throws -> EventDraft? {
        guard events[SyncSettled.type] ?? 0 >= 2 else { return nil }
        return try state.view(Outbox.self).foldedRecord(by: source).map { try EventDraft($0) }
    }
}

extension Log {
    fileprivate func hasTwoSyncRecords() throws -> Bool {
        let type = Array("\(SyncSettled.type)\"".utf8)
        var count = 0
        try forEachLine(from: Position(1)) { prefix, line in
            if line.matches(type, at: prefix.byteCount) { count += 1 }
            return count < 2
        }
        return count >= 2
    }
}
