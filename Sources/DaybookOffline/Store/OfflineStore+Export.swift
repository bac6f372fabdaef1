// A copy of the events for the user, as a file.

import Daybook
import Foundation

extension OfflineStore {
    /// Writes the recorded events into a file, one JSON object a line. Secrets are not in the log, so
    /// they are not in the file; files beside the log, such as images, are not in it, either. Durable on
    /// return. See `EventStore.export(to:types:from:replacing:progress:)`.
    @discardableResult
    public func export(
        to file: URL, types: Set<String>? = nil, from first: Position = Position(1),
        replacing: Bool = false, progress: (@Sendable (ExportSummary) -> Void)? = nil
    ) async throws -> ExportSummary {
        try await events.export(
            to: file, types: types, from: first, replacing: replacing, progress: progress)
    }
}
