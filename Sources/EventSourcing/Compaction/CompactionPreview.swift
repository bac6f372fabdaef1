// A dry run of compaction for a program that does not hold the log's lock: folds the log, then classifies
// its events. Spec/operations/logtool.md, TOOL-20.

import Foundation
import LogFormat
import LogStorage

/// A dry run of compaction without a store.
package struct CompactionPreview {
    private let reader: LogReader
    private let fileSystem: any FileSystem
    private let catalogue: EventCatalogue
    private let views: ViewSet

    /// Creates a dry run. Nothing is opened yet.
    package init(
        _ directory: String, fileSystem: any FileSystem = POSIXFileSystem(),
        catalogue: EventCatalogue, views: [any Projection.Type]
    ) {
        reader = LogReader(directory, fileSystem: fileSystem)
        self.fileSystem = fileSystem
        self.catalogue = catalogue
        self.views = ViewSet(views, catalogue)
    }

    /// Reads the log twice: to fold the views, then to classify the events.
    ///
    /// - Parameters:
    ///   - now: the time, in milliseconds since 1970.
    ///   - summary: returns the summary that a store would record before compaction, from the states at the
    ///     end, the source of own events and the number of events by type; nil for none.
    ///   - progress: called with the number of events read so far, over both reads.
    /// - Throws: `LogError`, and what `summary` throws.
    /// - Complexity: O(bytes), in memory for the views.
    package func report(
        now: Int64,
        summary: (PastState, _ source: UUID, _ events: [String: Int]) throws -> EventDraft?,
        progress: (Int) -> Void
    ) throws -> CompactionReport {
        var last = Position.zero
        var source = UUID(integer: 0)
        var events: [String: Int] = [:]
        var count = 0
        let end = try reader.runs(catalogue: catalogue).forEach { run in
            views.fold(run[...])
            for event in run {
                last = event.position
                if event.isOwn { source = event.source }
                events[event.type, default: 0] += 1
                count += 1
                progress(count)
            }
        }
        last = max(last, end)
        if views.isStale {
            try views.rebuild(from: []) { reader.runs(from: $0, catalogue: catalogue) }
        }
        let state = PastState(position: last, views: views)
        if var draft = try summary(state, source, events) {
            draft.lane = catalogue.lane(of: draft)
            draft.time = Timestamp(milliseconds: now)
            let prefix = LinePrefix(own: draft.id.integer, source: source.integer, at: last.next)
            views.fold(Event(prefix, content: draft, catalogue: catalogue, lineBytes: 0))
        }
        let directory = reader.directory
        let states =
            CheckpointSlots(directory, fileSystem: fileSystem).usable()
            .first { $0.position <= last }?.states ?? []
        let unknown = states.filter { !$0.isOfStore && !views.names.contains($0.name) }
        let needs = views.needs.merging(storedIn: states, except: views.names)
        let horizon = CompactionHorizon.present(views, at: last, unknown: unknown, needs: needs)
        let survey = CompactionSurvey(reader, horizon, catalogue: catalogue, isLiveSealed: true)
        var report = try survey.report(now: now, progress: { progress(count + $0) })
        report.heldBackBy = horizon.heldBackBy
        return report
    }
}
