// The work of a compaction: each sealed segment in turn, outside the store's queue. CompactionClassifier
// decides, Log.compact rewrites. Spec/format/compaction.md.

import LogFormat
import LogStorage

/// One compaction of a log.
struct CompactionRun: Sendable {
    let log: Log
    let catalogue: EventCatalogue
    let environment: LogEnvironment
    let horizon: CompactionHorizon
    /// The size from which the live segment is sealed, if an event in it can be removed.
    let sealedBytesMin: Int
    let stop: CancellationFlag
    /// Called with each event that stays, and the reason.
    let kept: (@Sendable (Event, KeptReason) -> Void)?
    /// Called with the number of events classified so far and their total.
    let progress: (@Sendable (_ classified: Int, _ total: Int) -> Void)?

    /// Compacts all sealed segments.
    ///
    /// - Throws: `LogError`, `CancellationError`; finished segments stay compacted.
    func run() throws -> CompactionReport {
        let reader = LogReader(log.directory, fileSystem: environment.fileSystem)
        let classifier = CompactionClassifier(horizon, catalogue: catalogue)
        let isLiveExamined = log.liveBytes >= sealedBytesMin
        if isLiveExamined { try sealLive(classifier) }
        var report = CompactionReport()
        report.bytesBefore = try reader.outline().reduce(0) { $0 + $1.bytes }
        report.limit = horizon.limit
        report.heldBackBy = horizon.heldBackBy
        var tally = CompactionTally()
        let live = try compactSealed(classifier, &report, &tally)
        var isLiveEmpty = true
        try log.forEachEvent(from: live, catalogue: catalogue) { event in
            if stop.isSet { throw CancellationError() }
            let verdict = classifier.verdict(on: event, isExamined: isLiveExamined)
            tally.count(event, as: verdict == .removed ? .kept(.liveSegment) : verdict)
            isLiveEmpty = false
            return true
        }
        if isLiveExamined, !isLiveEmpty { report.segments += 1 }
        report.keptForViews = tally.keptForViews
        report.types = tally.types.values.sorted { EntityID($0.type) < EntityID($1.type) }
        report.bytesAfter = try reader.outline().reduce(0) { $0 + $1.bytes }
        report.compactedThrough = try log.compactedThrough()
        report.idsRemembered = try reader.removedIDCount(now: environment.now())
        if let kept {
            // After all changes: an event that could be removed may have stayed with its whole segment.
            try log.forEachEvent(from: Position(1), catalogue: catalogue) { event in
                if stop.isSet { throw CancellationError() }
                let isLive = event.position >= live
                let verdict = classifier.verdict(on: event, isExamined: !isLive || isLiveExamined)
                kept(event, verdict.keptReason ?? (isLive ? .liveSegment : .idListFull))
                return true
            }
        }
        return report
    }

    /// Seals the live segment if an event in it can be removed: of segments in which nothing changes there would
    /// be more with each compaction.
    private func sealLive(_ classifier: CompactionClassifier) throws {
        var isWorthIt = false
        try log.forEachEvent(from: try log.sealedSegments().next, catalogue: catalogue) { event in
            if stop.isSet { throw CancellationError() }
            isWorthIt = classifier.verdict(on: event) == .removed
            return !isWorthIt
        }
        guard isWorthIt else { return }
        do { try log.roll() } catch {
            guard error.code == .diskFull, log.releaseReserve() else { throw error }
            try log.roll()
        }
    }

    /// Compacts the sealed segments, oldest first. A segment for which the disk has no space is tried again when
    /// others have freed some.
    ///
    /// - Returns: the position after the last segment.
    private func compactSealed(
        _ classifier: CompactionClassifier, _ report: inout CompactionReport,
        _ tally: inout CompactionTally
    ) throws -> Position {
        var remaining = try log.sealedSegments()
        let next = remaining.next
        let total = remaining.reduce(0) { $0 + Int(clamping: $1.footer.eventCount) }
        remaining.reverse()
        var classified = 0
        var waiting: [SealedSegment] = []
        var rewrittenBefore = 0
        // Each segment is released when it is done: its file and its memory.
        while let segment = remaining.popLast() {
            let before = classified
            do {
                let (result, part) = try compact(segment, classifier) {
                    classified += 1
                    if classified % 10_000 == 0 { progress?(classified, total) }
                }
                tally.merge(part)
                report.segments += 1
                if result.isRewritten { report.segmentsRewritten += 1 }
            } catch let error as LogError where error.code == .diskFull {
                classified = before
                waiting.append(segment)
                if remaining.isEmpty, report.segmentsRewritten == rewrittenBefore { throw error }
            }
            guard remaining.isEmpty else { continue }
            rewrittenBefore = report.segmentsRewritten
            (remaining, waiting) = (waiting.reversed(), [])
        }
        return next
    }

    private func compact(
        _ segment: SealedSegment, _ classifier: CompactionClassifier, classified: () -> Void
    ) throws -> (CompactedSegment, CompactionTally) {
        while true {
            var tally = CompactionTally()
            do {
                let result = try log.compact(
                    segment, horizon: horizon.position, isCancelled: { stop.isSet }
                ) { prefix, line, hasCapacity in
                    let event = try LogReader.event(
                        line, prefix, catalogue, directory: log.directory)
                    var verdict = classifier.verdict(on: event)
                    if verdict == .removed, !hasCapacity { verdict = .kept(.idListFull) }
                    tally.count(event, as: verdict)
                    classified()
                    guard verdict == .removed else { return .keep }
                    return .remove(try event.contentHashes(catalogue))
                }
                if result.exceedsSegmentLimit { tally.keepAll(.idListFull) }
                return (result, tally)
            } catch let error as LogError where error.code == .diskFull && log.releaseReserve() {
                // The reserve may suffice to compact this segment, which frees more space than it needs.
            }
        }
    }
}

extension [SealedSegment] {
    /// The position after the last segment.
    fileprivate var next: Position { (last?.footer.coveredThrough ?? .zero).next }
}

extension Event {
    /// The hashes that the log keeps of a removed event, of its content as its type's rule normalises it.
    fileprivate func contentHashes(_ catalogue: EventCatalogue) throws -> ContentHashes {
        var content = content
        try? catalogue.normalise(&content)
        return try content.contentHashes()
    }
}
