// The embedded storage: one SQLite file in WAL mode through GRDB, one writer, concurrent readers.
// The appending itself is SQLiteAppend, the tables are SQLiteSchema. Spec/sync-protocol.md.

import EventSourcing
import Foundation
import GRDB

/// Events of accounts in one SQLite file.
package final class SQLiteEventStorage: EventStorage {
    let pool: DatabasePool
    private let catalogue: EventCatalogue
    private let now: @Sendable () -> Date

    /// Opens a database, creates it if there is none, and brings it up to date.
    ///
    /// - Parameters:
    ///   - catalogue: the rules by which batches are read, for comparing contents.
    ///   - now: the time, for telling which accounts are in use.
    /// - Throws: `StorageError`.
    package init(
        path: String, catalogue: EventCatalogue, now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        self.catalogue = catalogue
        self.now = now
        pool = try Self.rephrase {
            try Self.createFile(path)
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            configuration.foreignKeysEnabled = false
            let pool = try DatabasePool(path: path, configuration: configuration)
            try pool.writeWithoutTransaction { db in
                // GRDB's set-up has chosen NORMAL, which loses commits at a power cut.
                try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
                try SQLiteSchema.prepare(db)
            }
            try SQLiteSchema.migrator.migrate(pool)
            // A process killed between writing and syncing leaves commits that can be read but may
            // not be on the disk; a checkpoint syncs them before a duplicate is answered.
            try pool.writeWithoutTransaction { _ = try $0.checkpoint(.passive) }
            return pool
        }
    }

    /// Creates the file, readable for its owner only; SQLite's own files beside it follow it.
    private static func createFile(_ path: String) throws {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StorageError(.failed, "cannot open \(path): \(String(cString: strerror(errno)))")
        }
        _ = Foundation.close(descriptor)
    }

    package func append(_ batch: [ReceivedEvent], account: String) async throws -> [Verdict] {
        try await Self.rephrase {
            try await pool.write { [catalogue, now = now()] db in
                try SQLiteSchema.noteUse(db, of: account, now)
                var append = try SQLiteAppend(db, account: account, catalogue, now: now)
                let verdicts = try append.take(batch)
                try append.finish()
                return verdicts
            }
        }
    }

    package func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> EventPage {
        try await Self.rephrase {
            let now = now()
            let (page, isNoted) = try await pool.read { db in
                (
                    try SQLitePage(db, account: account, source: source).read(
                        after: cursor ?? .start(bySource: source != nil), limit: limit),
                    try SQLiteSchema.isUseNoted(db, of: account, now)
                )
            }
            // Once a day for an account that is only read. Reading does not fail because of it: the
            // next read tries again.
            if !isNoted {
                try? await pool.write { try SQLiteSchema.noteUse($0, of: account, now) }
            }
            return page
        }
    }

    package func close() throws {
        try Self.rephrase {
            // Readers go first: only a writer that is the last to close empties the WAL file.
            pool.releaseMemory()
            try pool.close()
        }
    }

    /// The value of a pragma on the connection that writes.
    package func writerPragma(_ name: String) throws -> String? {
        try pool.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA \(name)") }
    }

    /// Names SQLite's failures without the statement and its arguments.
    static func rephrase<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch let error as DatabaseError { throw StorageError(error) }
    }

    static func rephrase<T>(_ body: () async throws -> T) async throws -> T {
        do { return try await body() } catch let error as DatabaseError {
            throw StorageError(error)
        }
    }
}

extension StorageError {
    fileprivate init(_ error: DatabaseError) {
        let code = error.extendedResultCode
        self.init(
            code.primaryResultCode == .SQLITE_NOTADB ? .wrongDatabase : .failed,
            "SQLite: \(error.message ?? code.description) (\(code.rawValue))")
    }
}
