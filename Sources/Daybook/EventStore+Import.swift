// Events of an export, recorded again: for a user who brings a file.

import EventSourcing
import Foundation

extension EventStore {
    /// Records the events of a file that `export(to:)` or `logtool export` has written, as if they had
    /// been made here (`Spec/operations/logtool.md`, TOOL-4). They keep their ids and times, are in the
    /// views, and wait to be sent. Events that the log has already are counted, so a file can be imported
    /// twice. Durable on return.
    ///
    /// - Parameters:
    ///   - file: one JSON object a line.
    ///   - progress: called after each commit with what has been imported so far.
    /// - Returns: what was imported.
    /// - Throws: `EventError` (`refused`) for a URL that is not one of a file on this device. `ImportError`
    ///   for a line that is not an event or that is refused, naming it. `LogError`: `io` for a file that
    ///   cannot be read, and as `append(_:durability:)`. `CancellationError` if the task is cancelled. In
    ///   all cases what came before is recorded.
    /// - Complexity: O(bytes), and an index lookup for each event; memory for one commit.
    @discardableResult
    public nonisolated func importEvents(
        from file: URL, progress: (@Sendable (ImportSummary) -> Void)? = nil
    ) async throws -> ImportSummary {
        let lines = try LineReader(opening: file.localPath())
        var events = EventImport(into: self)
        return try await events.run(lines, progress: { progress?($0) })
    }
}
