// What a compaction would do, found out without changing anything and without the log's lock.
// Spec/format/compaction.md, CMP-28.

import LogFormat
import LogStorage

/// A look at all that a log holds.
struct CompactionSurvey {
    private let reader: LogReader
    private let catalogue: EventCatalogue
    private let judge: CompactionJudge
    private let limit: Position
    private let isLiveSealed: Bool

    /// Creates a look.
    ///
    /// - Parameters:
    ///   - horizon: what to judge by, at the log's end.
    ///   - isLiveSealed: whether the live segment counts as if it were sealed.
    init(
        _ reader: LogReader, _ horizon: CompactionHorizon, catalogue: EventCatalogue,
        isLiveSealed: Bool
    ) {
        self.reader = reader
        self.catalogue = catalogue
        limit = horizon.limit
        self.isLiveSealed = isLiveSealed
        judge = CompactionJudge(horizon, catalogue: catalogue)
    }

    /// Judges every event.
    ///
    /// - Parameters:
    ///   - now: the time, in milliseconds since 1970.
    ///   - judged: called with the number of events so far; what it throws ends the look.
    /// - Throws: `LogError`.
    /// - Complexity: O(bytes).
    func report(
        now: Int64, judged: (Int) throws -> Void = { _ in }
    ) throws -> CompactionReport {
        let segments = try reader.outline()
        var tallies = segments.map { _ in CompactionTally() }
        var number = 0
        var count = 0
        try reader.forEachEvent(catalogue: catalogue) { event in
            while number + 1 < segments.count, segments[number + 1].base <= event.position {
                number += 1
            }
            let verdict =
                segments[number].isSealed || isLiveSealed
                ? judge.verdict(on: event) : .stays(.liveSegment)
            tallies[number].add(event, verdict)
            count += 1
            try judged(count)
            return true
        }
        var report = CompactionReport()
        report.isDryRun = true
        var sum = CompactionTally()
        for (segment, tally) in zip(segments, tallies) {
            sum.add(tally)
            report.bytesBefore += segment.bytes
            report.bytesAfter += Self.estimate(segment.bytes, tally)
            report.compactedThrough = max(report.compactedThrough, segment.compactedThrough)
            if segment.isSealed || isLiveSealed { report.segments += 1 }
            if tally.removed > 0 { report.segmentsRewritten += 1 }
        }
        if sum.removed > 0 { report.compactedThrough = max(report.compactedThrough, limit) }
        report.idsRemembered = try reader.rememberedIDs(now: now) + sum.removed
        report.limit = limit
        report.keptForViews = sum.keptForViews
        report.types = sum.types.values.sorted { EntityID($0.type) < EntityID($1.type) }
        return report
    }

    /// What a segment would have on disk: lines compress alike, and ids are remembered.
    private static func estimate(_ bytes: Int, _ tally: CompactionTally) -> Int {
        guard tally.removed > 0 else { return bytes }
        let share = Double(tally.lineBytes - tally.freedBytes) / Double(tally.lineBytes)
        return min(
            bytes,
            Int(Double(bytes) * share) + RemovedIDs.encodedBytes(count: tally.removed))
    }
}
