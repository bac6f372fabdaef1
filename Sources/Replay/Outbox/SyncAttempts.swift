// Attempts that brought no verdict: without a network, with a refused batch, or unprocessed. They are kept
// in memory, so that days without a network write nothing to the log. Spec/protocol/sync-records.md, OUT-10.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The last attempt with an event that brought no verdict.
package struct SyncAttempt: Hashable, Sendable {
    /// The time of its end, by the corrected clock.
    package var at: Timestamp
    /// The reason why there was no verdict; nil if unknown.
    package var message: String?
}

/// The attempts of this process, by the event's position, until the event has left the outbox.
package enum SyncAttempts: TransientState {
    package typealias Key = Position
    package typealias Value = SyncAttempt
}

/// The recorded attempts with a settled event.
struct SettledAttempts: Sendable {
    /// The number of `retry` verdicts before the event was settled.
    var retryCount = 0
    /// The time of the record that settled it; nil once a folded record has replaced that record.
    var settledAt: Timestamp?
}

extension EventStore {
    /// Reads the records of an own event, up to the one that settles it.
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
    /// True if a range of settled positions contains `position`.
    fileprivate func covers(_ position: Position) -> Bool {
        (applied + duplicate).contains { $0.contains(position.rawValue) }
    }
}
