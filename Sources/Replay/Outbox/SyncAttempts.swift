// Attempts to send that no record speaks of: without a network, refused as a whole, not looked at. In
// memory, so that a long flight writes nothing to the log. Spec/protocol/sync-records.md, OUT-10.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The last attempt with an event that brought no verdict.
package struct SyncAttempt: Hashable, Sendable {
    /// When it ended, by the corrected clock.
    package var at: Timestamp
    /// Why there was no verdict; nil where nothing more is known.
    package var message: String?
}

/// The attempts of this process, by the event's position, until the event has left the outbox.
package enum SyncAttempts: TransientState {
    package typealias Key = Position
    package typealias Value = SyncAttempt
}

/// What the records say of an event that has left the outbox.
struct SettledAttempts: Sendable {
    /// `retry` verdicts before it was settled.
    var retryCount = 0
    /// When the record that settled it was made; nil once compaction has folded that record.
    var settledAt: Timestamp?
}

extension EventStore {
    /// Looks up what the records after an own event say of it, up to the one that settles it.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes from the event to that record).
    nonisolated func settledAttempts(of id: UUID, at position: Position) async throws
        -> SettledAttempts
    {
        let (log, catalogue) = (log, catalogue)
        let type = Array("\(SyncSettled.type)\"".utf8)
        return try await BlockingWork.run(.utility) {
            var attempts = SettledAttempts()
            try log.forEachLine(from: position.next) { prefix, line in
                guard line.matches(type, at: prefix.byteCount) else { return true }
                let event = try LogReader.event(line, catalogue, directory: log.directory)
                guard let record = try? SyncSettled(json: event.content.json ?? []),
                    Outbox.isOwn(record, event)
                else { return true }
                for entry in record.entries
                where entry.position == position.rawValue && entry.id == id {
                    attempts.retryCount = entry.retryCount
                }
                guard record.covers(position) else { return true }
                attempts.settledAt = record.replaces == nil ? event.time : nil
                return false
            }
            return attempts
        }
    }
}

extension SyncSettled {
    /// True if a range of settled positions holds `position`.
    fileprivate func covers(_ position: Position) -> Bool {
        (applied + duplicate).contains { $0.contains(position.rawValue) }
    }
}
