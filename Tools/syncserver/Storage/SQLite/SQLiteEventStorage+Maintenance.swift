// Erasure and retention in the embedded database. Spec/operations/operating.md.

import Foundation
import GRDB

extension SQLiteEventStorage: StorageMaintenance {
    package func schemaVersion() async throws -> String {
        try await Self.rephrase {
            try await connections.read { [migrator] db in
                try migrator.appliedIdentifiers(db).sorted().last ?? "empty"
            }
        }
    }

    package func eventCount(account: String) async throws -> Int {
        try await Self.rephrase {
            try await connections.read { db in
                try Int.fetchOne(
                    db,
                    sql: """
                        SELECT count(*) FROM event
                        WHERE account = (SELECT number FROM account WHERE name = ?)
                        """, arguments: [account]) ?? 0
            }
        }
    }

    package func erase(account: String, unusedSince limit: Date?) async throws -> Bool {
        do {
            return try await connections.write { db in
                guard try Self.erase(account, unusedSince: limit, db) else { return false }
                try SQLiteSchema.recordTraces(db)
                return true
            }
        } catch let error as DatabaseError {
            let cause = StorageError(error)
            let reason =
                error.resultCode == .SQLITE_BUSY
                ? "another process has kept \(path) locked for \(lockWait)" : cause.detail
            throw StorageError(
                cause.code, "\(account) was not erased: \(reason); run the command again")
        }
    }

    /// Rewrites the database without its free space, copies the result into the file, and empties
    /// the write-ahead log. `secure_delete` is not enough: every process that writes would have to set
    /// it, and it leaves copies of rows that SQLite has moved between pages.
    package func removeTraces() async throws {
        do {
            try await Self.rephrase {
                try await connections.writeWithoutTransaction { [lockWait] db in
                    let traces = try SQLiteSchema.traces(db)
                    guard SQLiteSchema.areTracesLeft(traces) else { return }
                    try db.execute(sql: "VACUUM")
                    // Fails while another process reads an older state, which the WAL would keep.
                    try SQLiteFile.checkpoint(db, .truncate, within: lockWait)
                    try db.inTransaction(.immediate) {
                        try SQLiteSchema.recordTracesRemoved(traces, db)
                        return .commit
                    }
                }
            }
        } catch let error as StorageError {
            throw StorageError(
                error.code,
                "the events are deleted, but \(path) and \(path)-wal may still hold their text "
                    + "(\(error.detail)): run the command again when the disk has space for a copy "
                    + "of the database and no other process keeps it locked")
        }
    }

    package func accounts(unusedSince limit: Date) async throws -> [String] {
        try await Self.rephrase {
            try await connections.read { db in
                try String.fetchAll(
                    db, sql: "SELECT name FROM account WHERE last_used < ? ORDER BY name",
                    arguments: [SQLiteSchema.day(limit)])
            }
        }
    }

    package func record(_ restore: Restores.Restore) async throws {
        try await Self.rephrase {
            try await connections.write { db in
                try db.execute(
                    sql: "INSERT INTO restore (generation, restored_to) VALUES (?, ?)",
                    arguments: [restore.generation, restore.restoredTo.milliseconds])
            }
        }
    }

    private static func erase(
        _ name: String, unusedSince limit: Date?, _ db: Database
    ) throws -> Bool {
        guard
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT number, last_serial FROM account
                    WHERE name = ? AND (? IS NULL OR last_used < ?)
                    """,
                arguments: [name, limit.map(SQLiteSchema.day), limit.map(SQLiteSchema.day)])
        else { return false }
        let (account, lastSerial): (Int64, Int64) = (row[0], row[1])
        for table in ["event", "note_head"] {
            try db.execute(sql: "DELETE FROM \(table) WHERE account = ?", arguments: [account])
        }
        try db.execute(sql: "DELETE FROM account WHERE number = ?", arguments: [account])
        try db.execute(
            sql: "UPDATE serial_floor SET serial = max(serial, ?)", arguments: [lastSerial])
        return true
    }
}
