// The migrations of the schema, which `syncserver` runs when it opens a database. The SQL is that of
// Spec/sql, built into the binary.

import CServerSQL
import SyncServerStorage

/// The tables and functions of the database.
enum PostgreSQLSchema {
    /// A migration.
    struct Step {
        let number: Int
        let sql: String
    }

    /// The migrations in their order.
    static let steps: [Step] = {
        var steps: [Step] = []
        var next = postgresql_migrations()
        while let sql = next?.pointee {
            steps.append(Step(number: steps.count + 1, sql: String(cString: sql)))
            next = next?.successor()
        }
        return steps
    }()

    /// Reads the last migration that a database has; 0 if it has none.
    ///
    /// - Parameter newest: the newest migration that this server knows.
    /// - Throws: `StorageError`; `wrongDatabase` for a schema of a newer server or of another
    ///   application, and for a database with another encoding than UTF-8.
    static func version(
        _ connection: PostgreSQLConnection, newest: Int = steps.count
    ) async throws -> Int {
        let facts = try await connection.run(
            """
            SELECT current_setting('server_encoding'), to_regnamespace('daybook') IS NOT NULL,
                to_regclass('daybook.migration') IS NOT NULL
            """)
        guard let fact = facts.first, fact[0] == "UTF8" else {
            throw StorageError(
                .wrongDatabase, "the database is not UTF-8: create it with ENCODING 'UTF8'")
        }
        guard fact[2] == "t" else {
            guard fact[1] == "f" else {
                throw StorageError(
                    .wrongDatabase, "the schema daybook belongs to another application")
            }
            return 0
        }
        let rows = try await connection.run("SELECT max(number) FROM daybook.migration")
        let version = rows.first?[0].flatMap { Int($0) } ?? 0
        guard version <= newest else {
            throw StorageError(
                .wrongDatabase,
                "the database was written by a newer version of this server: its schema is at "
                    + "step \(version), this server knows \(newest)")
        }
        return version
    }

    /// Runs the missing migrations. An advisory lock lets one server at a time do so.
    ///
    /// - Returns: the numbers of the migrations that were run.
    /// - Throws: `StorageError`; the migration that failed has changed nothing.
    @discardableResult
    static func migrate(
        _ connection: PostgreSQLConnection, _ steps: [Step] = steps
    ) async throws -> [Int] {
        let newest = steps.count
        guard try await version(connection, newest: newest) < newest else { return [] }
        do {
            // A migration may take long, and so may waiting for another server's.
            try await connection.runScript("SET statement_timeout = 0")
            try await connection.runScript(
                "SELECT pg_advisory_lock(hashtextextended('daybook.migration', 0))")
            let version = try await version(connection, newest: newest)
            let missing = steps.filter { $0.number > version }
            for step in missing { try await connection.runScript(step.sql) }
            // Closing releases the lock and the setting; the next use opens another connection.
            await connection.close()
            return missing.map { $0.number }
        } catch {
            await connection.close()
            throw error
        }
    }
}
