// Backs up the log of an open store, or of a log that any program has open. Spec/format/backup.md.

import EventSourcing
import Foundation
import LogStorage

extension EventStore {
    /// Copies the log into a new folder that can be opened as a log. The store can record meanwhile: an event
    /// that was recorded before the call, relaxed ones included, is in the backup, a later one may be. Every
    /// event of the backup is on the disk of the log, too. Durable on return.
    ///
    /// The backup has the events, the stored states of the views, and the folder `files` with contents that are
    /// too large for an event. It has no secrets, since they are not in the log, and nothing of a cache folder.
    /// Only its owner may read it. A store that opens it writes under another incarnation, so that the log and its
    /// backup can both be synced.
    ///
    /// To restore a backup, close the store, move the log's folder away, copy the backup's folder to its place
    /// and open it. The next sync receives the events that the server got after the backup.
    ///
    /// - Parameters:
    ///   - url: the folder of the backup, which must not exist; its parent must. On the log's own device, files
    ///     that no longer change are cloned or linked where the file system can, and take no space.
    ///   - progress: called with the part of the log that has been read, from 0 to 1, on another thread.
    /// - Returns: what the backup has.
    /// - Throws: `EventError` (`refused`) for a URL that is not a folder on this device. `LogError`: `io` for a
    ///   folder that exists or would be in the log's, and if the log's files were removed meanwhile; `corrupt`
    ///   for damage that opening would refuse; `diskFull`, `readOnly`, `closed`, `suspended`.
    ///   `CancellationError` if the task is cancelled. After an error nothing is left of the backup.
    /// - Complexity: O(bytes of the live segment and the checkpoints), and O(files) where they can be cloned or
    ///   linked, else O(bytes); memory for about 1 MiB.
    @discardableResult
    public nonisolated func backup(
        to url: URL, progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> BackupSummary {
        let path = try url.localPath()
        try await flush()
        return try await LogBackup.run(of: directory, to: path, environment, progress)
    }
}

extension LogBackup {
    /// Makes a backup outside the cooperative pool.
    ///
    /// - Throws: as `run()`, also for a folder that is in the log's through a symbolic link; `CancellationError`.
    package static func run(
        of directory: String, to path: String, _ environment: LogEnvironment,
        _ progress: (@Sendable (_ part: Double) -> Void)?
    ) async throws -> BackupSummary {
        let parent = URL(filePath: path, directoryHint: .isDirectory).standardizedFileURL
            .deletingLastPathComponent()
        guard !FolderPath(parent.path).isInside(FolderPath(directory)) else {
            throw LogDirectory.isInside(path)
        }
        return try await LongRead.run(
            of: directory, environment.fileSystem, progress: progress
        ) { files in
            try LogBackup(of: directory, to: path, environment: environment, reading: files).run()
        }
    }
}
