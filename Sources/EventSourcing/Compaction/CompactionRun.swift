// The work of a compaction: every sealed segment, one after the other, off the store's queue. Judged
// by CompactionJudge, carried out by Log.compact. Spec/format/compaction.md.

import LogFormat
import LogStorage
import Synchronization

/// Whether somebody wants a compaction to stop.
final class StopSign: Sendable {
    private let isUp = Atomic(false)

    var isSet: Bool { isUp.load(ordering: .relaxed) }
    func set() { isUp.store(true, ordering: .relaxed) }
}

/// One compaction of a log.
struct CompactionRun: Sendable {
    let log: Log
    let catalogue: EventCatalogue
    let environment: LogEnvironment
    let horizon: CompactionHorizon
    let stop: StopSign
    /// Called with the number of events judged so far and their total.
    let progress: (@Sendable (_ judged: Int, _ total: Int) -> Void)?

    /// Compacts all sealed segments.
    ///
    /// - Throws: `LogError`, `CancellationError`; segments that were finished stay compacted.
    func run() throws -> CompactionReport {
        defer { log.refillReserve() }
        let reader = LogReader(log.directory, fileSystem: environment.fileSystem)
        let judge = CompactionJudge(horizon, catalogue: catalogue)
        var segments = try log.sealedSegments()
        var report = CompactionReport()
        report.bytesBefore = try reader.outline().reduce(0) { $0 + $1.bytes }
        report.limit = horizon.limit
        report.heldBackBy = horizon.heldBackBy
        var tally = CompactionTally()
        let total = segments.reduce(0) { $0 + Int(clamping: $1.footer.eventCount) }
        var judged = 0
        let live = (segments.last?.footer.coveredThrough ?? .zero).next
        segments.reverse()
        // Each is let go of when it is done: what was in it is not held any more.
        while let segment = segments.popLast() {
            let (result, part) = try compact(segment, judge) {
                judged += 1
                if judged % 10_000 == 0 { progress?(judged, total) }
            }
            tally.add(part)
            report.segments += 1
            if result.isRewritten { report.segmentsRewritten += 1 }
        }
        try log.forEachEvent(from: live, catalogue: catalogue) { event in
            if stop.isSet { throw CancellationError() }
            tally.add(event, .stays(.liveSegment))
            return true
        }
        report.keptForViews = tally.keptForViews
        report.types = tally.types.values.sorted { EntityID($0.type) < EntityID($1.type) }
        report.bytesAfter = try reader.outline().reduce(0) { $0 + $1.bytes }
        report.compactedThrough = try log.compactedThrough()
        report.idsRemembered = try reader.rememberedIDs(now: environment.now())
        return report
    }

    private func compact(
        _ segment: SealedSegment, _ judge: CompactionJudge, judged: () -> Void
    ) throws -> (CompactedSegment, CompactionTally) {
        while true {
            var tally = CompactionTally()
            do {
                let result = try log.compact(
                    segment, horizon: horizon.position, isCancelled: { stop.isSet }
                ) { prefix, line, hasRoom in
                    let event = try LogReader.event(
                        line, prefix, catalogue, directory: log.directory)
                    var verdict = judge.verdict(on: event)
                    if verdict == .goes, !hasRoom { verdict = .stays(.idListFull) }
                    tally.add(event, verdict)
                    judged()
                    guard verdict == .goes else { return .keep }
                    return .remove(try event.contentHashes(catalogue))
                }
                if result.hadNoRoom { tally.keepAll(.idListFull) }
                return (result, tally)
            } catch let error as LogError where error.code == .diskFull && log.releaseReserve() {
                // The room that is kept aside may be enough for this one, and frees more than that.
            }
        }
    }
}

extension Event {
    /// What is remembered of the event when it goes, as the rules of its type have it.
    fileprivate func contentHashes(_ catalogue: EventCatalogue) throws -> ContentHashes {
        var content = content
        try? catalogue.normalise(&content)
        return try content.contentHashes()
    }
}
