// The views of a log that another process may be writing: opens them from stored states, and folds what was
// committed since. Read-only stores and companions are made of it. Spec/format/following.md.

import Foundation
import LogFormat
import LogStorage
import Telemetry

/// The views of a log, as of the last `refresh(_:)`. Takes no lock and changes nothing in the folder.
final class FollowedViews {
    /// The log's own id.
    let logID: UUID
    /// The account the log belongs to, if any.
    let account: String?
    let directory: String
    let catalogue: EventCatalogue
    private let environment: LogEnvironment
    let views: ViewSet
    private var cursor: LogCursor
    /// The earliest time of an event that is recorded after the folded ones.
    private(set) var floor = TimeFloor()

    /// Opens a log and folds its views, from stored states if there are any.
    ///
    /// - Parameters:
    ///   - files: the file system to read with at opening.
    ///   - keepsFloor: true to know `floor`, for which a log without its stored state is read whole.
    /// - Throws: `LogError` as `LogReader.forEachLine`, and `noSuchLog` while the log's writer is creating it.
    /// - Complexity: O(states + events after the newest checkpoint); O(events) if a view has no stored state, or
    ///   one of another version.
    init(
        _ reader: LogReader, _ files: any FileSystem, _ catalogue: EventCatalogue,
        _ views: ViewSet, _ environment: LogEnvironment, _ instruments: Instruments,
        keepsFloor: Bool = false
    ) throws {
        let directory = reader.directory
        let header = try reader.files()
        let id = UUID(text: header.logID)?.integer ?? 0
        let checkpoints = CheckpointSlots(directory, fileSystem: files).usable(for: id, reader)
        var floorThrough = Position.zero
        var floor = TimeFloor()
        if let states = checkpoints.first(where: { _ in true })?.states {
            views.discarded = DiscardedEvents(restoredFrom: states)
            instruments.measure(.restore) { views.restore(states) }
            if let restored = TimeFloor.restored(from: states) { (floor, floorThrough) = restored }
        }
        let first = keepsFloor ? min(views.next, floorThrough.next) : views.next
        let last = try instruments.fold(reader.runs(from: first, catalogue: catalogue)) { run in
            views.fold(run[...])
            for event in run where event.position > floorThrough { floor.include(event.time) }
        }
        // Checked last, so that an unsupported version in the header is reported first.
        guard id != 0 else {
            throw LogError(
                .noSuchLog, path: directory,
                "the log's first segment has no header yet. Open it again once its writer has begun"
            )
        }
        logID = UUID(integer: id)
        account = header.account
        self.directory = directory
        self.catalogue = catalogue
        self.environment = environment
        self.views = views
        self.floor = floor
        cursor = LogCursor(
            directory, of: id, after: last, fileSystem: environment.fileSystem)
    }

    /// The last position that the views have folded; `zero` for a log without events.
    var position: Position { cursor.position }

    /// Folds the events committed since the last call.
    ///
    /// - Parameter observe: called with each of them, before it is folded.
    /// - Throws: as `ReadOnlyStore.refresh()`.
    func refresh(_ observe: (Event) -> Void = { _ in }) throws {
        while true {
            try foldNew(observe)
            guard views.isStale else { return }
            // Reads to the current end, possibly beyond the cursor. The next iteration of the loop detects
            // events that are retracted there.
            let files = environment.fileSystem
            let reader = LogReader(directory, fileSystem: files)
            let states = CheckpointSlots(directory, fileSystem: files)
                .usable(for: logID.integer, reader).flatMap(\.states)
            try views.rebuild(from: states) { reader.runs(from: $0, catalogue: catalogue) }
        }
    }

    private func foldNew(_ observe: (Event) -> Void) throws {
        var run: [Event] = []
        var bytes = 0
        // Also after an error: the cursor has passed these events.
        defer { views.fold(run[...]) }
        try cursor.poll { prefix, line in
            try Task.checkCancellation()
            let event = try LogReader.event(
                line, prefix, catalogue, directory: directory, readsData: true)
            observe(event)
            floor.include(event.time)
            run.append(event)
            bytes += line.byteCount
            if EventRuns.isFull(events: run.count, bytes: bytes) {
                views.fold(run[...])
                (run, bytes) = ([], 0)
            }
            return true
        }
    }
}

extension CheckpointSlots {
    /// The checkpoints of a log's current history, the newest first. Each is read lazily.
    fileprivate func usable(for logID: UInt128, _ reader: LogReader) -> some Sequence<Checkpoint> {
        usable().lazy.filter { $0.logID == logID && reader.sharesHistory(with: $0) }
    }
}

extension LogReader {
    /// True if the log still has the last line that a checkpoint covers, or compaction has removed it. A
    /// log that was reset to an earlier state and written again has another line at that position.
    fileprivate func sharesHistory(with checkpoint: Checkpoint) -> Bool {
        guard checkpoint.position > .zero else { return true }
        var id: UInt128?
        let outcome = try? forEachLine(from: checkpoint.position) { prefix, _ in
            if prefix.position == checkpoint.position { id = prefix.id }
            return false
        }
        guard let outcome, outcome.last >= checkpoint.position else { return false }
        return id == nil || id == checkpoint.lastID
    }
}
