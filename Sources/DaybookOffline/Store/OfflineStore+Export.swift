// A copy of the events for the user, as a file.

import Daybook
import Foundation

extension OfflineStore {
    /// Writes the recorded events to a file, one JSON object per line. The file contains no secrets, because
    /// the log has none, and no files beside the log, such as images. Durable on return. See
    /// `EventStore.export(to:types:from:replacing:progress:)`.
    @discardableResult
    public func export(
        to file: URL, types: Set<String>? = nil, from first: Position = Position(1),
        replacing: Bool = false, progress: (@Sendable (ExportSummary) -> Void)? = nil
    ) async throws -> ExportSummary {
        try await events.export(
            to: file, types: types, from: first, replacing: replacing, progress: progress)
    }
}
