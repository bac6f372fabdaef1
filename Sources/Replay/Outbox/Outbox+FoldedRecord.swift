// The one record that stands for all records so far, so that compaction can take those out.
// Spec/sync-records.md, OUT-7.

import EventSourcing
import Foundation
import LogFormat

extension Outbox {
    /// Bytes of a folded record's data at most: it must fit a line.
    private static let foldedBytesMax = FormatLimit.lineBytesMax - 4_096

    /// The record that stands for all records of this log so far, for the incarnation that is to
    /// write it. It must be recorded before any other record is: best in a transaction of the store.
    ///
    /// - Returns: nil if there is nothing to fold, or if it would be too large for a line.
    /// - Complexity: O(n).
    package func foldedRecord(by incarnation: UUID) -> SyncSettled? {
        guard lastRecord > .zero, folded?.stamp.sequence != lastRecord.rawValue else { return nil }
        var record = SyncSettled(by: incarnation)
        record.replaces = lastRecord
        record.applied = settledRanges
        record.clockOffset = clockOffset == 0 ? nil : clockOffset
        record.entries = entries().compactMap { entry in
            entry.answer.map { answer in
                SyncSettled.Entry(
                    position: entry.position.rawValue, id: entry.id, outcome: answer.outcome,
                    retryCount: answer.retryCount, code: answer.code, detail: answer.detail,
                    at: answer.at, current: answer.current)
            }
        }
        return record.json().count <= Self.foldedBytesMax ? record : nil
    }

    /// Everything before the last record but what it may not cover: actions that are not settled,
    /// and events of types that somebody else may ship.
    private var settledRanges: [ClosedRange<UInt64>] {
        var ranges: [ClosedRange<UInt64>] = []
        var next: UInt64 = 1
        var runs = unknown.runs[...]
        func close(before barrier: ClosedRange<UInt64>) {
            let end = min(barrier.lowerBound, lastRecord.rawValue)
            if next < end { ranges.append(next...end - 1) }
            next = max(next, barrier.upperBound + 1)
        }
        for entry in entries() {
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
