// The tables of the embedded database and their migrations. Migrations are only ever added: a released
// one never changes, and there are no downgrades.

import EventSourcing
import Foundation
import GRDB

/// The tables of the embedded database.
enum SQLiteSchema {
    /// The application id of the file ("Dybk"). Prevents writing to another application's database.
    static let applicationID = 0x4479_626B

    /// The migrations.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 events and note heads") { db in
            // Every key begins with the account. `serial` counts an account's events in the order
            // of their commits: SQLite has one writer, so no event gets a serial below one that a
            // reader has passed.
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
        migrator.registerMigration("2 last use of accounts") { db in
            // `last_used` is a day since 1970. The serials of a new account begin after
            // `serial_floor`, the highest serial of all erased accounts: if an erased account comes
            // back, a reader with an old cursor misses nothing.
            try db.execute(
                sql: """
                    ALTER TABLE account ADD COLUMN last_used INTEGER NOT NULL DEFAULT 0;
                    UPDATE account SET last_used = \(day(Date()));
                    CREATE INDEX account_by_last_use ON account (last_used);
                    CREATE TABLE serial_floor (serial INTEGER NOT NULL) STRICT;
                    INSERT INTO serial_floor (serial) VALUES (0);
                    """)
        }
        migrator.registerMigration("3 restores") { db in
            // `server` has one row: the random name of the database (SYNC-50).
            try db.execute(
                sql: """
                    CREATE TABLE restore (
                        number INTEGER PRIMARY KEY,
                        generation TEXT NOT NULL,
                        restored_to INTEGER NOT NULL
                    ) STRICT;
                    CREATE TABLE server (name TEXT NOT NULL) STRICT;
                    INSERT INTO server (name) VALUES (lower(hex(randomblob(16))));
                    """)
        }
        return migrator
    }

    /// The recorded restores, in their order, and the name of the database.
    static func restores(_ db: Database) throws -> Restores {
        Restores(
            try Row.fetchAll(db, sql: "SELECT generation, restored_to FROM restore ORDER BY number")
                .map {
                    Restores.Restore(
                        generation: $0[0], restoredTo: Timestamp(milliseconds: $0[1]))
                }, database: try String.fetchOne(db, sql: "SELECT name FROM server"))
    }

    /// The day of a date, as stored in `last_used`.
    static func day(_ date: Date) -> Int { Int(date.timeIntervalSince1970 / 86_400) }

    /// Whether today's use of an account is recorded. True for an account that does not exist.
    static func isUseRecorded(_ db: Database, of account: String, _ now: Date) throws -> Bool {
        let lastUsed = try Int.fetchOne(
            db.cachedStatement(sql: "SELECT last_used FROM account WHERE name = ?"),
            arguments: [account])
        return lastUsed.map { $0 >= day(now) } ?? true
    }

    /// Records that an account is used today.
    static func recordUse(_ db: Database, of account: String, _ now: Date) throws {
        if try isUseRecorded(db, of: account, now) { return }
        try db.execute(
            sql: "UPDATE account SET last_used = ? WHERE name = ?", arguments: [day(now), account])
    }

    // MARK: Traces of deleted events

    /// The trace counter. `user_version` counts erasures; its sign becomes negative once no traces of
    /// them are left. 0 is a database of an older release, which may hold traces. The counter never
    /// falls, so a slow process cannot mistake another process's erasure for its own.
    static func traces(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    }

    /// Whether the files may still hold deleted events.
    static func areTracesLeft(_ traces: Int) -> Bool { traces >= 0 }

    /// Records that deleted events leave traces, in the transaction that deletes them.
    static func recordTraces(_ db: Database) throws {
        try db.execute(sql: "PRAGMA user_version = \(abs(try traces(db)) + 1)")
    }

    /// Records that no traces are left, unless events were deleted since `removed` was read.
    static func recordTracesRemoved(_ removed: Int, _ db: Database) throws {
        guard try traces(db) == removed else { return }
        try db.execute(sql: "PRAGMA user_version = \(-max(removed, 1))")
    }

    /// Checks that a database is empty or ours. Changes nothing.
    ///
    /// - Throws: `StorageError` (`wrongDatabase`) for a database of another application or of a newer
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
