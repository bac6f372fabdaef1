// Erases a log with its secrets. Spec/protocol/accounts.md, ACC-4 to ACC-8.

import EventSourcing
import Foundation
import Replay

extension EventStore {
    /// Deletes the log with everything in its folder and all secrets of its secret store, and closes the
    /// store. An app calls it when a user signs out of the device. The deletion is durable on return; the empty
    /// folder stays. If the process ends before that, the next opening of the folder, with the secret store,
    /// deletes the rest and begins a new log.
    ///
    /// Files in the folder are deleted whatever wrote them there; symbolic links are removed and not
    /// followed.
    ///
    /// - Parameters:
    ///   - discardingUnsynced: whether to continue if the outbox is not empty.
    ///   - folders: folders with files that can be fetched again, such as the app's caches for this
    ///     log. They are deleted, too. None may overlap with the log's folder.
    /// - Throws: `UnsyncedError` with the number of unsynced events, unless `discardingUnsynced`; the store
    ///   stays open. `LogError`: if the store is still open, no event was deleted, but files of `folders` may
    ///   be; if it is closed, the next opening deletes the rest. `SecretStoreError`: the store is closed, and
    ///   the next opening deletes all. `EventError` (`refused`), with nothing changed, for a URL that is not
    ///   a folder on this device, and for a folder that overlaps with the log's.
    public func erase(
        discardingUnsynced: Bool = false, removing folders: [URL] = []
    ) async throws {
        let paths = try folders.map { try $0.localPath() }
        for path in paths where FolderPath(path).overlaps(FolderPath(directory)) {
            throw EventError(
                .refused,
                "the folder \(path) overlaps with the log's folder \(directory); choose another")
        }
        try await absorbBeforeErasure(discardingUnsynced: discardingUnsynced)
        try await erase(
            unless: { state in
                let count = state.view(Outbox.self).count
                guard count == 0 || discardingUnsynced else { throw UnsyncedError(count: count) }
            }, removing: paths)
    }

    /// Records what companions have recorded, so that it counts as unsynced. ACC-4, COMP-13.
    ///
    /// - Throws: `UnsyncedError` with the number of events that cannot be absorbed. A spool that cannot be read counts
    ///   as one event: its events may exist nowhere else.
    private func absorbBeforeErasure(discardingUnsynced: Bool) async throws {
        guard !discardingUnsynced else { return }
        let left: [CompanionSpool]
        do { left = try await absorbWaiting().left } catch is LogError {
            // Such as a full disk, which does not keep a log from being erased if nothing waits.
            left = (try? CompanionSpool.all(of: directory, environment: environment)) ?? []
        }
        // The log has the events of a spool that was set aside, but for those that it refuses.
        let count = left.reduce(0) { count, spool in
            switch spool.state {
            case .waiting: count + (spool.backlog?.events ?? 0)
            case .unreadable: count + 1
            case .aside, .foreign: count
            }
        }
        guard count == 0 else { throw UnsyncedError(count: count) }
    }
}
