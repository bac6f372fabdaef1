// The option --database, and the one place where a further kind of database is opened: its EventStorage
// for serving and its StorageMaintenance.

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
            "The database: sqlite:PATH, created if it is missing, or "
                + "postgres://USER@HOST/DATABASE, whose schema is migrated.",
            valueName: "location"))
    var database: DatabaseLocation

    /// Opens the storage and migrates its schema.
    ///
    /// - Throws: `StorageError`.
    func open(_ catalogue: EventCatalogue) async throws -> any EventStorage {
        switch database {
        case .sqlite(let path): try SQLiteEventStorage(path: path, catalogue: catalogue)
        case .postgres(let url):
            try await PostgreSQLEventStorage(PostgreSQLLocation(url), catalogue: catalogue)
        }
    }

    /// Opens the storage for maintenance and migrates its schema.
    ///
    /// - Parameters:
    ///   - creating: whether an SQLite file is created if it is missing.
    ///   - lockSeconds: the longest wait for a server's lock, in seconds.
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
