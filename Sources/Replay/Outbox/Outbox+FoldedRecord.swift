// The folded record: it replaces all sync records so far, so that compaction can remove them.
// Spec/protocol/sync-records.md, OUT-7.

import EventSourcing
import Foundation
import LogFormat

extension Outbox {
    /// The largest size of a folded record's data in bytes: it must fit into a line.
    private static let foldedBytesMax = WriterSizes.lineBytesMax - 4_096

    /// The record that replaces all records of this log so far, written by `incarnation`. The caller must
    /// append it before any other record, in one transaction of the store.
    ///
    /// - Returns: nil if there is nothing to fold, or if the record would be too large for a line.
    /// - Complexity: O(n).
    package func foldedRecord(by incarnation: UUID) -> SyncSettled? {
        guard lastRecord > .zero, folded?.lwwTimestamp.sequence != lastRecord.rawValue else {
            return nil
        }
        var record = SyncSettled(by: incarnation)
        record.replaces = lastRecord
        record.applied = settledRanges
        record.clockOffset = clockOffset == 0 ? nil : clockOffset
        record.clockCandidate = clockCandidate
        record.entries = entries.compactMap { entry in
            entry.answer.map { $0.entry(at: entry.position.rawValue, entry.id) }
        }
        record.entries += unknownAnswers.map { $1.answer.entry(at: $0, $1.id) }
        record.entries.sort { $0.position < $1.position }
        return record.json().count <= Self.foldedBytesMax ? record : nil
    }

    /// The positions before the last record, without unsettled actions and without events of unknown types:
    /// another release may know those types and ship the events.
    private var settledRanges: [ClosedRange<UInt64>] {
        var ranges: [ClosedRange<UInt64>] = []
        var next: UInt64 = 1
        var runs = unknown.runs[...]
        func close(before barrier: ClosedRange<UInt64>) {
            let end = min(barrier.lowerBound, lastRecord.rawValue)
            if next < end { ranges.append(next...end - 1) }
            next = max(next, barrier.upperBound + 1)
        }
        for entry in entries {
            let position = entry.position.rawValue
            while let run = runs.first, run.upperBound < position {
                close(before: run)
                runs.removeFirst()
            }
            close(before: position...position)
        }
        for run in runs { close(before: run) }
        close(before: lastRecord.rawValue...lastRecord.rawValue)
        return ranges
    }
}

extension OutboxEntry.Answer {
    /// The answer as an entry of a folded record.
    fileprivate func entry(at position: UInt64, _ id: UUID) -> SyncSettled.Entry {
        SyncSettled.Entry(
            position: position, id: id, outcome: outcome, retryCount: retryCount, code: code,
            detail: detail, at: at, current: current, isFinal: isFinal, failuresAlone: failuresAlone
        )
    }
}
