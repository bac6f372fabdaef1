// Erasure and retention in a PostgreSQL database. The SQL is in Spec/sql.
// Spec/operations/operating.md.

import EventSourcing
import Foundation
import SyncServerStorage

extension PostgreSQLEventStorage: StorageMaintenance {
    package func schemaVersion() async throws -> String {
        try await pool.withConnection { "step \(try await PostgreSQLSchema.version($0))" }
    }

    package func eventCount(account: String) async throws -> Int {
        let account = try Self.checked(account)
        let rows = try await pool.withConnection {
            try await $0.run("SELECT count(*) FROM daybook.event WHERE account = $1", [account])
        }
        return rows.first?[0].flatMap { Int($0) } ?? 0
    }

    package func erase(account: String, unusedSince limit: Date?) async throws -> Bool {
        let account = try Self.checked(account)
        return try await pool.withConnection { connection in
            // A large account takes longer than a request may. Closing ends the setting.
            let result: Result<Bool, any Error>
            do {
                try await connection.runScript("SET statement_timeout = 0")
                let rows = try await connection.run(
                    "SELECT daybook.erase_account($1, $2::date)", [account, limit.map(Self.day)])
                result = .success(rows.first?[0] == "t")
            } catch { result = .failure(error) }
            await connection.close()
            do { return try result.get() } catch let error as StorageError {
                // After a lost connection it is unknown whether the statement was executed.
                throw StorageError(
                    error.code,
                    "it is not confirmed that \(account) was erased: \(error.detail); run the "
                        + "command again")
            }
        }
    }

    /// Does nothing: autovacuum removes deleted rows once no transaction can see them.
    package func removeTraces() async throws {}

    package func accounts(unusedSince limit: Date) async throws -> [String] {
        let rows = try await pool.withConnection {
            try await $0.run(
                "SELECT account FROM daybook.account WHERE last_used < $1::date ORDER BY account",
                [Self.day(limit)])
        }
        return rows.compactMap { $0[0] }
    }

    package func record(_ restore: Restores.Restore) async throws {
        _ = try await pool.withConnection {
            try await $0.run(
                """
                INSERT INTO daybook.restore (number, generation, restored_to)
                SELECT coalesce(max(number), 0) + 1, $1, $2::bigint FROM daybook.restore
                """, [restore.generation, "\(restore.restoredTo.milliseconds)"])
        }
    }

    private static func day(_ date: Date) -> String {
        String(Timestamp(date).description.prefix(10))
    }
}
