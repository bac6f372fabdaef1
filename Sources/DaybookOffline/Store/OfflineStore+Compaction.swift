// Taking out of the log what nothing needs any more. Spec/format/compaction.md.

import Daybook

extension OfflineStore {
    /// Takes out of the log what nothing needs any more, and says what was freed, what was kept, and
    /// why. See `EventStore.compact(dryRun:progress:)`. The store does it by itself as well, as its
    /// policy says; an app that has a time for such work calls this then.
    @discardableResult
    public func compact(
        dryRun: Bool = false,
        progress: (@Sendable (_ judged: Int, _ total: Int) -> Void)? = nil
    ) async throws -> CompactionReport {
        try await events.compact(dryRun: dryRun, progress: progress)
    }

    /// When the store compacts by itself from now on; nil for never.
    ///
    /// - Throws: `EventError` (`refused`) for a number that is out of range; the policy stays the old one.
    public func setCompactionPolicy(_ policy: CompactionPolicy?) async throws(EventError) {
        try await events.setCompactionPolicy(policy)
    }

    /// What the store does by itself from now on. Ends when the store is closed.
    public func maintenance() async -> AsyncStream<MaintenanceReport> {
        await events.maintenance()
    }
}
