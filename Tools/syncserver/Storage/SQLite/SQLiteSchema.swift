// The tables of the embedded database and the steps that lead to them. Steps are only ever added: a
// released one never changes, and there is no way back. Used when SQLiteEventStorage opens.

import GRDB

/// The tables of the embedded database.
enum SQLiteSchema {
    /// Marks the file as ours ("Dybk"), so that no other application's database is taken over.
    static let applicationID = 0x4479_626B

    /// The steps.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 events and note heads") { db in
            // Every key begins with the account. `serial` counts an account's events in the order
            // of their commits: SQLite has one writer, so none can appear behind a reader.
            try db.execute(
                sql: """
                    PRAGMA application_id = \(applicationID);
                    CREATE TABLE account (
                        number INTEGER PRIMARY KEY,
                        name TEXT NOT NULL UNIQUE,
                        last_serial INTEGER NOT NULL
                    ) STRICT;
                    CREATE TABLE event (
                        account INTEGER NOT NULL,
                        serial INTEGER NOT NULL,
                        id BLOB NOT NULL,
                        source BLOB NOT NULL,
                        sequence INTEGER NOT NULL,
                        line BLOB NOT NULL,
                        PRIMARY KEY (account, serial)
                    ) STRICT, WITHOUT ROWID;
                    CREATE UNIQUE INDEX event_by_id ON event (account, id);
                    CREATE INDEX event_by_source ON event (account, source, sequence);
                    CREATE TABLE note_head (
                        account INTEGER NOT NULL,
                        note TEXT NOT NULL,
                        event BLOB NOT NULL,
                        is_deletion INTEGER NOT NULL,
                        time INTEGER NOT NULL,
                        source BLOB NOT NULL,
                        sequence INTEGER NOT NULL,
                        PRIMARY KEY (account, note)
                    ) STRICT, WITHOUT ROWID;
                    """)
        }
        return migrator
    }

    /// Brings a database up to date.
    ///
    /// - Throws: `StorageError` (`wrongDatabase`) for a database of something else or of a newer
    ///   server.
    static func prepare(_ db: Database) throws {
        let application = try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        guard application == applicationID || tables == 0 else {
            throw StorageError(.wrongDatabase, "the database belongs to another application")
        }
        guard try tables == 0 || !migrator.hasBeenSuperseded(db) else {
            throw StorageError(
                .wrongDatabase, "the database was written by a newer version of this server")
        }
    }
}
