// The end of a log, for good. Spec/protocol/accounts.md, ACC-4 to ACC-8.

import EventSourcing
import Foundation
import Replay

extension EventStore {
    /// Deletes the log with everything in its folder and all that is in its secret store, for good, and
    /// closes the store: what an app does when a user leaves the device. On return it is gone, power
    /// cuts included; the empty folder stays. If the process ends before, the next opening of the
    /// folder, with the secret store, deletes the rest and begins a new log.
    ///
    /// Files in the folder are deleted whatever wrote them there; symbolic links are removed and not
    /// followed.
    ///
    /// - Parameters:
    ///   - discardingUnsynced: whether to go on if the outbox is not empty.
    ///   - folders: folders with files that can be fetched again, such as the app's caches for this
    ///     log. They go with it. None may be in the log's folder, nor the log's in one of them.
    /// - Throws: `UnsyncedError` with the number of events that no server has, if it is not told to
    ///   discard them; the store stays open. `LogError`: with the store open, no event was deleted,
    ///   files of `folders` may be; with the store closed, the next opening deletes the rest.
    ///   `SecretStoreError`: the store is closed, and the next opening deletes all. `EventError`
    ///   (`refused`), with nothing changed, for a URL that is not one of a folder on this device, and
    ///   for a folder that overlaps with the log's.
    public func erase(
        discardingUnsynced: Bool = false, removing folders: [URL] = []
    ) async throws {
        let paths = try folders.map { try $0.localPath() }
        for path in paths where FolderPath(path).overlaps(FolderPath(directory)) {
            throw EventError(
                .refused, "the folder \(path) overlaps with the log's, \(directory). Name another")
        }
        try await erase(
            unless: { state in
                let count = state.view(Outbox.self).count
                guard count == 0 || discardingUnsynced else { throw UnsyncedError(count: count) }
            }, removing: paths)
    }
}
