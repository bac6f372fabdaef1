// Appends the folded record, which replaces all earlier sync records, so that compaction can remove them.
// Spec/protocol/sync-records.md, OUT-7, and Spec/format/compaction.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension EventStore {
    /// Appends a record that replaces all sync records so far, if compaction can then remove at least two.
    /// The store must have the outbox among its views. Durable on return.
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
        try await write(drawingOnReserve: true) { transaction in
            if let record = transaction.view(Outbox.self).foldedRecord(by: incarnation) {
                transaction.append(record: try EventDraft(record, id: id))
            }
        }
    }
}

extension Outbox {
    /// The record that `foldSyncRecords()` would append.
    ///
    /// - Parameters:
    ///   - state: the views at the log's end, the outbox among them.
    ///   - source: the log's incarnation.
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
