// Imports the events of an exported file.

import EventSourcing
import Foundation

extension EventStore {
    /// Records the events of a file that `export(to:)` or `logtool export` has written as own events
    /// (`Spec/operations/logtool.md`, TOOL-4). They keep their ids and times, and are in the views and the
    /// outbox. Events that the log has already are counted and skipped, so a file can be imported twice.
    /// Durable on return.
    ///
    /// - Parameters:
    ///   - file: one JSON object a line.
    ///   - derivesIDs: true to accept events of other producers of CloudEvents, whose ids are no UUIDs: such an
    ///     event gets an id that follows from its source and its id, the same in every import, and keeps both as
    ///     the extensions `originsource` and `originid` (`Spec/format/line.md`, LINE-10).
    ///   - progress: called after each commit with what has been imported so far.
    /// - Returns: what was imported.
    /// - Throws: `EventError` (`refused`) for a URL that is not a file on this device. `ImportError` with the
    ///   number of a line that is not an event or that is refused. `LogError`: `io` for a file that cannot be
    ///   read, and as `append(_:durability:)`. `CancellationError` if the task is cancelled. In all cases the
    ///   commits before are recorded.
    /// - Complexity: O(bytes), and an index lookup for each event; memory for one commit.
    @discardableResult
    public nonisolated func importEvents(
        from file: URL, derivesIDs: Bool = false,
        progress: (@Sendable (ImportSummary) -> Void)? = nil
    ) async throws -> ImportSummary {
        let lines = try LineReader(opening: file.localPath())
        var events = EventImport(into: self, derivesIDs: derivesIDs)
        return try await events.run(lines, progress: { progress?($0) })
    }
}
