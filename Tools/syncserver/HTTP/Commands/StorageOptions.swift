// --database, for every command that needs one, and what is behind it: the one place where a further
// kind of database is opened. It has an EventStorage for serving and a StorageMaintenance for
// looking after it.

import ArgumentParser
import DaybookOffline
import EventSourcing
import Foundation
import SyncServerPostgreSQL
import SyncServerStorage

/// The option that names the database.
struct StorageOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where the events are kept: sqlite:PATH, created if it is not there, or "
                + "postgres://USER@HOST/DATABASE, whose schema is brought up to date.",
            valueName: "location"))
    var database: DatabaseLocation

    /// Opens the storage and brings it up to date.
    ///
    /// - Throws: `StorageError`.
    func open(_ catalogue: EventCatalogue) async throws -> any EventStorage {
        switch database {
        case .sqlite(let path): try SQLiteEventStorage(path: path, catalogue: catalogue)
        case .postgres(let url):
            try await PostgreSQLEventStorage(PostgreSQLLocation(url), catalogue: catalogue)
        }
    }

    /// Opens the storage for what is done to whole accounts. Brings it up to date, too.
    ///
    /// - Parameters:
    ///   - creating: whether an SQLite file is created if it is missing.
    ///   - lockSeconds: how long to wait for a server that holds a lock.
    /// - Throws: `StorageError`.
    func openForMaintenance(
        creating: Bool, lockSeconds: Int = 60
    ) async throws -> any StorageMaintenance {
        switch database {
        case .sqlite(let path):
            guard creating || FileManager.default.fileExists(atPath: path) else {
                throw StorageError(
                    .missing, "there is no database at \(path); check --database")
            }
            return try SQLiteEventStorage(
                path: path, catalogue: OfflineModel.catalogue, lockWait: .seconds(lockSeconds))
        case .postgres(let url):
            return try await PostgreSQLEventStorage(
                PostgreSQLLocation(url), catalogue: OfflineModel.catalogue)
        }
    }
}
