// Erasure and retention in the embedded database. Spec/operating.md.

import Foundation
import GRDB

extension SQLiteEventStorage: StorageMaintenance {
    package func schemaVersion() async throws -> String {
        try await Self.rephrase {
            try await pool.read { db in
                try SQLiteSchema.migrator.appliedIdentifiers(db).sorted().last ?? "empty"
            }
        }
    }

    package func eventCount(account: String) async throws -> Int {
        try await Self.rephrase {
            try await pool.read { db in
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
        try await Self.rephrase {
            try await pool.writeWithoutTransaction { db in
                // What is deleted is written over with zeros.
                try db.execute(sql: "PRAGMA secure_delete = ON")
                var isErased = false
                try db.inTransaction(.immediate) {
                    isErased = try Self.erase(account, unusedSince: limit, db)
                    return .commit
                }
                try db.checkpoint(.truncate)
                return isErased
            }
        }
    }

    package func accounts(unusedSince limit: Date) async throws -> [String] {
        try await Self.rephrase {
            try await pool.read { db in
                try String.fetchAll(
                    db, sql: "SELECT name FROM account WHERE last_used < ? ORDER BY name",
                    arguments: [SQLiteSchema.day(limit)])
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
