// Exports the events of one account to a file without opening a store, whether the account is logged in or
// not.

import EventSourcing
import Foundation
import LogStorage

extension DeviceStorage {
    /// Writes the recorded events of one account into a file, one JSON object a line, as
    /// `EventStore.export` does. Opens no store and folds no view: the log may be closed, or open in
    /// this process or another. Durable on return.
    ///
    /// Relaxed events that a store has not committed yet are missing: call its `flush()` before.
    ///
    /// - Parameters:
    ///   - account: the account that owns the log, as given to `EventStore.open`.
    ///   - file: the destination; its folder must exist and must not be in the log's.
    ///   - types: only events of these types; nil for all.
    ///   - replacing: whether an existing file is replaced.
    ///   - progress: called every 1,000 events with what has been written so far, on another thread.
    /// - Returns: what was written.
    /// - Throws: as `EventStore.export`, but for `closed` and `suspended`; `LogError` (`noSuchLog`) if
    ///   no log in the folders is readable and belongs to the account; `EventError` (`refused`) if
    ///   several do, naming them.
    /// - Complexity: O(logs + bytes of the account's log); memory for one frame.
    @discardableResult
    public func export(
        account: String, to file: URL, types: Set<String>? = nil, replacing: Bool = false,
        progress: (@Sendable (ExportSummary) -> Void)? = nil
    ) async throws -> ExportSummary {
        let path = try file.localPath()
        for folder in [database, cache] { _ = try folder.localPath() }
        let log = try await BlockingWork.run { try logFolder(of: account) }
        var export = EventExport()
        export.types = types
        return try await export.write(
            logAt: log, environment.fileSystem, to: path,
            replacing: replacing ? nil : "export with replacing: true", progress: progress)
    }

    /// The folder of an account's log.
    private func logFolder(of account: String) throws -> String {
        let fileSystem = environment.fileSystem
        // A log that cannot be read, or is being erased, must not prevent the export of another account's.
        let owned = folders.flatMap { (try? logs(in: $0)) ?? [] }.filter { log in
            (try? LogReader(log, fileSystem: fileSystem).files())?.account == account
        }
        guard let log = owned.first else {
            throw LogError(
                .noSuchLog, path: database.path,
                "no readable log belongs to the account \(account)")
        }
        guard owned.count == 1 else {
            throw EventError(
                .refused,
                "several logs belong to the account \(account): \(owned.joined(separator: ", ")); "
                    + "open and export each by itself")
        }
        return log
    }
}
