// Exports the events of an open store to a file.

import EventSourcing
import Foundation

extension EventStore {
    /// Writes the recorded events into a file, one JSON object a line, as `logtool export` does and
    /// `logtool import` reads them (`Spec/operations/logtool.md`, TOOL-10). Durable on return.
    ///
    /// The file gets its name when it is complete, and only its owner may read it. Secrets are not in the
    /// log, so they are not in the file; nor are files beside the log, such as images. The store can record
    /// meanwhile: an event that was recorded before the call is in the file, a later one may be.
    ///
    /// - Parameters:
    ///   - file: the destination; its folder must exist and must not be in the log's.
    ///   - types: only events of these types; nil for all.
    ///   - first: the first position to export.
    ///   - replacing: whether an existing file is replaced.
    ///   - progress: called every 1,000 events with what has been written so far, on another thread.
    /// - Returns: what was written.
    /// - Throws: `EventError` (`refused`) for a URL that is not a file on this device. `LogError`: `io` for a
    ///   file that exists, that cannot be created, or that would be in the log's folder; `diskFull`;
    ///   `corrupt` if the log is damaged: everything before the damage is in the file, unless there was a
    ///   file already, which then stays; `closed`, `suspended`. `CancellationError` if the task is
    ///   cancelled; then there is no file.
    /// - Complexity: O(bytes of the log from `first` on); memory for one frame.
    @discardableResult
    public nonisolated func export(
        to file: URL, types: Set<String>? = nil, from first: Position = Position(1),
        replacing: Bool = false, progress: (@Sendable (ExportSummary) -> Void)? = nil
    ) async throws -> ExportSummary {
        let path = try file.localPath()
        try await flush()
        var export = EventExport()
        export.types = types
        export.from = max(Position(1), first)
        return try await export.write(
            logAt: directory, environment.fileSystem, to: path,
            replacing: replacing ? nil : "export with replacing: true", progress: progress)
    }
}
