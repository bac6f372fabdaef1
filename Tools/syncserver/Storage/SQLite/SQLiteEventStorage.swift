// The embedded storage: one SQLite file in WAL mode through GRDB, one writer, concurrent readers.
// SQLiteAppend applies a batch, SQLiteSchema has the tables. Spec/protocol/sync-protocol.md.

import EventSourcing
import Foundation
import GRDB
import SyncWire
import Synchronization

/// Events of accounts in one SQLite file.
package final class SQLiteEventStorage: EventStorage {
    let path: String
    /// The longest wait for a lock of another process.
    let lockWait: Duration
    let migrator: DatabaseMigrator
    package let signals = AccountSignals()
    package let restores: Restores
    private let file: SQLiteFile
    private let catalogue: EventCatalogue
    private let now: @Sendable () -> Date
    /// The time of the last write that succeeded.
    private let lastWrite = Mutex<ContinuousClock.Instant?>(nil)
    /// Accounts whose use is being recorded.
    private let accountsBeingRecorded = Mutex<Set<EntityID>>([])

    /// The connections; read-only while the disk is full or cannot be written.
    var connections: any DatabaseWriter { file.connections }

    /// Opens a database, creates it if it is missing, and migrates its schema. On a disk that is full or
    /// cannot be written, a database with the current schema is opened read-only until that changes.
    ///
    /// - Parameters:
    ///   - catalogue: the rules by which batches are read, for comparing contents.
    ///   - lockWait: the longest wait for a lock of another process.
    ///   - migrator: the migrations of the schema.
    ///   - now: the clock by which the last use of accounts is recorded.
    /// - Throws: `StorageError`.
    package init(
        path: String, catalogue: EventCatalogue, lockWait: Duration = .seconds(5),
        migrator: DatabaseMigrator = SQLiteSchema.migrator,
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        self.path = path
        self.lockWait = lockWait
        self.migrator = migrator
        self.catalogue = catalogue
        self.now = now
        (file, restores) = try Self.rephrase {
            let file = try SQLiteFile(path, migrator, lockWait: lockWait)
            return (file, try file.connections.read(SQLiteSchema.restores))
        }
    }

    package func append(
        _ batch: [ReceivedEvent], account: String, check: @escaping @Sendable () throws -> Void
    ) async throws -> [EventVerdict] {
        try await Self.rephrase {
            try await file.makeWritable()
            let verdicts = try await connections.write { [catalogue, now = now()] db in
                // The transaction has the lock of the file.
                try check()
                try SQLiteSchema.recordUse(db, of: account, now)
                var append = try SQLiteAppend(db, account: account, catalogue, now: now)
                let verdicts = try append.apply(batch)
                try append.finish()
                return verdicts
            }
            lastWrite.withLock { $0 = .now }
            if verdicts.contains(where: { $0.status == .applied }) {
                signals.signal(AccountSignals.Digest(account: account))
            }
            return verdicts
        }
    }

    /// Does nothing: another process with the same file shows in `lastSerials` only.
    package func forwardSignals() async {}

    package func lastSerials(of accounts: [String]) async throws -> [EntityID: Int64] {
        try await Self.rephrase {
            try await file.read { db in
                let find = try db.cachedStatement(
                    sql: "SELECT last_serial FROM account WHERE name = ?")
                var serials: [EntityID: Int64] = [:]
                for account in accounts {
                    serials[EntityID(account)] = try Int64.fetchOne(find, arguments: [account])
                }
                return serials
            }
        }
    }

    package func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> ServedPage {
        try await Self.rephrase {
            let now = now()
            let (page, isUseRecorded) = try await file.read { db in
                (
                    try SQLitePage(db, account: account, source: source).read(
                        after: cursor ?? .start(bySource: source != nil), limit: limit),
                    try SQLiteSchema.isUseRecorded(db, of: account, now)
                )
            }
            if !isUseRecorded { recordUse(of: account, now) }
            return page
        }
    }

    /// Records once a day the use of an account that is only read. The page does not wait for the
    /// write, which waits for a lock while an account is erased; closing does. After a failure the
    /// next page tries again.
    private func recordUse(of account: String, _ now: Date) {
        guard file.isWritable else { return }
        let id = EntityID(account)
        guard accountsBeingRecorded.withLock({ $0.insert(id).inserted }) else { return }
        connections.asyncWrite {
            try SQLiteSchema.recordUse($0, of: account, now)
        } completion: { [weak self] _, _ in
            _ = self?.accountsBeingRecorded.withLock { $0.remove(id) }
        }
    }

    package func close() throws {
        try Self.rephrase {
            // Closes the readers first: SQLite empties the WAL only when the last connection closes
            // and can write.
            (connections as? DatabasePool)?.releaseMemory()
            try connections.close()
        }
    }

    package func checkReadiness() async throws {
        try await Self.rephrase {
            try await file.makeWritable()
            _ = try await file.read { db in
                try SQLitePage(db, account: "", source: nil).read(after: .serial(0), limit: 1)
            }
            guard SQLiteFile.hasSpace(for: WireLimits.bodyBytes, at: path) else {
                throw SQLiteFile.noSpace
            }
            let isRecent = lastWrite.withLock { last in
                last.map { ContinuousClock.now - $0 < Self.probeInterval } ?? false
            }
            if isRecent { return }
            // A quota, a file size limit or a medium that has become read-only shows only when a page
            // is written. This statement changes no value.
            try await connections.write {
                try $0.execute(sql: "UPDATE serial_floor SET serial = serial")
            }
            lastWrite.withLock { $0 = .now }
        }
    }

    /// How long a successful write counts as proof that the database can be written.
    private static let probeInterval = Duration.seconds(5)

    /// Reads a pragma on the writer's connection.
    package func writerPragma(_ name: String) throws -> String? {
        try connections.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA \(name)") }
    }

    /// Converts SQLite's errors, leaving out the statement and its arguments.
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
    init(_ error: DatabaseError) {
        let code = error.extendedResultCode
        let kind: Code =
            switch code.primaryResultCode {
            case .SQLITE_NOTADB: .wrongDatabase
            case .SQLITE_FULL: .noSpace
            case .SQLITE_READONLY: .readOnly
            default: .failed
            }
        self.init(
            kind,
            "SQLite: \(error.message ?? code.description) (\(code.rawValue))")
    }
}
