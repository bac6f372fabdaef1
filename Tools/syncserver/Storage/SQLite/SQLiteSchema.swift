// The tables of the embedded database and the steps that lead to them. Steps are only ever added: a
// released one never changes, and there is no way back. Used when SQLiteEventStorage opens.

import Foundation
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
        migrator.registerMigration("2 last use of accounts") { db in
            // `last_used` is a day since 1970. `serial_floor` is where the serials of a new account
            // begin: behind those of all that were erased, so that a reader of an erased account
            // that comes back misses nothing.
            try db.execute(
                sql: """
                    ALTER TABLE account ADD COLUMN last_used INTEGER NOT NULL DEFAULT 0;
                    UPDATE account SET last_used = \(day(Date()));
                    CREATE INDEX account_by_last_use ON account (last_used);
                    CREATE TABLE serial_floor (serial INTEGER NOT NULL) STRICT;
                    INSERT INTO serial_floor (serial) VALUES (0);
                    """)
        }
        return migrator
    }

    /// The day of a moment, as `last_used` has it.
    static func day(_ date: Date) -> Int { Int(date.timeIntervalSince1970 / 86_400) }

    /// Whether the use of an account is noted for today. There is nothing to note of one that is
    /// not there.
    static func isUseNoted(_ db: Database, of account: String, _ now: Date) throws -> Bool {
        let lastUsed = try Int.fetchOne(
            db.cachedStatement(sql: "SELECT last_used FROM account WHERE name = ?"),
            arguments: [account])
        return lastUsed.map { $0 >= day(now) } ?? true
    }

    /// Notes that an account is in use.
    static func noteUse(_ db: Database, of account: String, _ now: Date) throws {
        if try isUseNoted(db, of: account, now) { return }
        try db.execute(
            sql: "UPDATE account SET last_used = ? WHERE name = ?", arguments: [day(now), account])
    }

    // MARK: Traces of deleted events

    /// What the database says about traces: it counts erasures in `user_version`, and changes the
    /// sign once nothing is left of them. 0 is a database from before, which may hold anything. The
    /// counter never falls, so a process that is late cannot take another's erasure for its own.
    static func traces(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    }

    /// Whether the files may hold what was deleted.
    static func isLeft(_ traces: Int) -> Bool { traces >= 0 }

    /// Notes in the transaction that deletes events that they leave traces.
    static func noteTraces(_ db: Database) throws {
        try db.execute(sql: "PRAGMA user_version = \(abs(try traces(db)) + 1)")
    }

    /// Notes that nothing is left, unless something was deleted since the traces were read.
    static func noteRemoved(_ removed: Int, _ db: Database) throws {
        guard try traces(db) == removed else { return }
        try db.execute(sql: "PRAGMA user_version = \(-max(removed, 1))")
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
