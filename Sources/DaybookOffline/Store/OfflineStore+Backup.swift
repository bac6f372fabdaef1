// A copy of the log and its files that can be opened as a store.

import Daybook
import Foundation

extension OfflineStore {
    /// Copies the log and the files beside it into a new folder that can be opened as a store. What is in the
    /// cache folder can be fetched again and is not copied, and secrets are not in the log. Durable on return.
    /// See `EventStore.backup(to:progress:)`.
    @discardableResult
    public func backup(
        to url: URL, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> BackupSummary {
        try await events.backup(to: url, progress: progress)
    }
}
