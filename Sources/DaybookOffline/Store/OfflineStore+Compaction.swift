// Removes events from the log that no view needs. Spec/format/compaction.md.

import Daybook

extension OfflineStore {
    /// Removes events that no view needs, and reports what was removed, what remains, and why. See
    /// `EventStore.compact(dryRun:sealing:kept:progress:)`. The store also compacts automatically by its policy; an app
    /// that has a suitable time calls this then.
    @discardableResult
    public func compact(
        dryRun: Bool = false, sealing: Bool = false,
        kept: (@Sendable (_ event: Event, _ reason: KeptReason) -> Void)? = nil,
        progress: (@Sendable (_ judged: Int, _ total: Int) -> Void)? = nil
    ) async throws -> CompactionReport {
        try await events.compact(
            dryRun: dryRun, sealing: sealing, kept: kept, progress: progress)
    }

    /// Sets the policy of automatic compaction; nil disables it.
    ///
    /// - Throws: `EventError` (`refused`) for a number that is out of range; the old policy then remains.
    public func setCompactionPolicy(_ policy: CompactionPolicy?) async throws(EventError) {
        try await events.setCompactionPolicy(policy)
    }

    /// Returns the reports of automatic maintenance from now on. Ends when the store is closed.
    public func maintenance() async -> AsyncStream<MaintenanceReport> {
        await events.maintenance()
    }
}
