// The dry run of a compaction: changes nothing and takes no lock. Spec/format/compaction.md, CMP-28.

import LogFormat
import LogStorage

/// A dry run over all events of a log.
struct CompactionSurvey {
    private let reader: LogReader
    private let catalogue: EventCatalogue
    private let classifier: CompactionClassifier
    private let limit: Position
    private let isLiveSealed: Bool

    /// Creates a dry run.
    ///
    /// - Parameters:
    ///   - horizon: the states to classify by, at the log's end.
    ///   - isLiveSealed: true to treat the live segment as sealed.
    init(
        _ reader: LogReader, _ horizon: CompactionHorizon, catalogue: EventCatalogue,
        isLiveSealed: Bool
    ) {
        self.reader = reader
        self.catalogue = catalogue
        limit = horizon.limit
        self.isLiveSealed = isLiveSealed
        classifier = CompactionClassifier(horizon, catalogue: catalogue)
    }

    /// Classifies every event.
    ///
    /// - Parameters:
    ///   - now: the time, in milliseconds since 1970.
    ///   - kept: called with each event that would stay, and the reason.
    ///   - progress: called with the number of events so far; its error ends the run.
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes).
    func report(
        now: Int64, kept: ((Event, KeptReason) -> Void)? = nil,
        progress: (Int) throws -> Void = { _ in }
    ) throws -> CompactionReport {
        let segments = try reader.outline()
        var tallies = segments.map { _ in CompactionTally() }
        var number = 0
        var count = 0
        try reader.forEachEvent(catalogue: catalogue) { event in
            while number + 1 < segments.count, segments[number + 1].base <= event.position {
                number += 1
            }
            let verdict = classifier.verdict(
                on: event, isExamined: segments[number].isSealed || isLiveSealed)
            tallies[number].count(event, as: verdict)
            if let kept, let reason = verdict.keptReason { kept(event, reason) }
            count += 1
            try progress(count)
            return true
        }
        var report = CompactionReport()
        report.isDryRun = true
        var sum = CompactionTally()
        for (segment, tally) in zip(segments, tallies) {
            sum.merge(tally)
            report.bytesBefore += segment.bytes
            report.bytesAfter += Self.estimate(segment.bytes, tally)
            report.compactedThrough = max(report.compactedThrough, segment.compactedThrough)
            if segment.isSealed || isLiveSealed { report.segments += 1 }
            if tally.removed > 0 { report.segmentsRewritten += 1 }
        }
        if sum.removed > 0 { report.compactedThrough = max(report.compactedThrough, limit) }
        report.idsRemembered = try reader.removedIDCount(now: now) + sum.removed
        report.limit = limit
        report.keptForViews = sum.keptForViews
        report.types = sum.types.values.sorted { EntityID($0.type) < EntityID($1.type) }
        return report
    }

    /// Estimates a segment's bytes on disk after compaction, for lines that compress equally, plus the
    /// removed ids.
    private static func estimate(_ bytes: Int, _ tally: CompactionTally) -> Int {
        guard tally.removed > 0 else { return bytes }
        let share = Double(tally.lineBytes - tally.freedBytes) / Double(tally.lineBytes)
        return min(
            bytes,
            Int(Double(bytes) * share) + RemovedIDs.encodedBytes(count: tally.removed))
    }
}
