// The embedded storage: one SQLite file in WAL mode through GRDB, one writer, concurrent readers.
// The appending itself is SQLiteAppend, the tables are SQLiteSchema. Spec/protocol/sync-protocol.md.

import EventSourcing
import Foundation
import GRDB
import Synchronization

/// Events of accounts in one SQLite file.
package final class SQLiteEventStorage: EventStorage {
    let path: String
    /// How long to wait for another process that holds a lock.
    let lockWait: Duration
    private let file: SQLiteFile
    private let catalogue: EventCatalogue
    private let now: @Sendable () -> Date
    /// When a write was last seen to succeed.
    private let lastWrite = Mutex<ContinuousClock.Instant?>(nil)
    /// Accounts whose use waits to be noted.
    private let accountsBeingNoted = Mutex<Set<EntityID>>([])

    /// The connections; for reading only while there is no room.
    var connections: any DatabaseWriter { file.connections }

    /// Opens a database, creates it if there is none, and brings it up to date. On a full disk one
    /// that is up to date is opened for reading, until there is room again.
    ///
    /// - Parameters:
    ///   - catalogue: the rules by which batches are read, for comparing contents.
    ///   - lockWait: how long to wait for another process that holds a lock.
    ///   - now: the time, for telling which accounts are in use.
    /// - Throws: `StorageError`.
    package init(
        path: String, catalogue: EventCatalogue, lockWait: Duration = .seconds(5),
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        self.path = path
        self.lockWait = lockWait
        self.catalogue = catalogue
        self.now = now
        file = try Self.rephrase { try SQLiteFile(path, lockWait: lockWait) }
    }

    package func append(_ batch: [ReceivedEvent], account: String) async throws -> [Verdict] {
        try await Self.rephrase {
            try await file.makeWritable()
            let verdicts = try await connections.write { [catalogue, now = now()] db in
                try SQLiteSchema.noteUse(db, of: account, now)
                var append = try SQLiteAppend(db, account: account, catalogue, now: now)
                let verdicts = try append.take(batch)
                try append.finish()
                return verdicts
            }
            lastWrite.withLock { $0 = .now }
            return verdicts
        }
    }

    package func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> EventPage {
        try await Self.rephrase {
            let now = now()
            let (page, isNoted) = try await file.read { db in
                (
                    try SQLitePage(db, account: account, source: source).read(
                        after: cursor ?? .start(bySource: source != nil), limit: limit),
                    try SQLiteSchema.isUseNoted(db, of: account, now)
                )
            }
            if !isNoted { noteUse(of: account, now) }
            return page
        }
    }

    /// Notes the use of an account once a day if it is only read. The page does not wait for it: while
    /// an account is erased, a write waits for a lock. Closing waits for it. If it fails, the next page
    /// tries again.
    private func noteUse(of account: String, _ now: Date) {
        guard file.isWritable else { return }
        let id = EntityID(account)
        guard accountsBeingNoted.withLock({ $0.insert(id).inserted }) else { return }
        connections.asyncWrite {
            try SQLiteSchema.noteUse($0, of: account, now)
        } completion: { [weak self] _, _ in
            _ = self?.accountsBeingNoted.withLock { $0.remove(id) }
        }
    }

    package func close() throws {
        try Self.rephrase {
            // Readers go first: only a writer that is the last to close empties the WAL file.
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
            guard SQLiteFile.hasRoom(for: BatchReader.bodyBytesMax, at: path) else {
                throw SQLiteFile.noRoom
            }
            let isRecent = lastWrite.withLock { last in
                last.map { ContinuousClock.now - $0 < Self.probeInterval } ?? false
            }
            if isRecent { return }
            // A quota, a limit on the size of files or a medium that has turned read-only shows
            // only when a page is written. Nothing changes by it.
            try await connections.write {
                try $0.execute(sql: "UPDATE serial_floor SET serial = serial")
            }
            lastWrite.withLock { $0 = .now }
        }
    }

    /// How long a write that succeeded speaks for the next one.
    private static let probeInterval = Duration.seconds(5)

    /// The value of a pragma on the connection that writes.
    package func writerPragma(_ name: String) throws -> String? {
        try connections.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA \(name)") }
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
    init(_ error: DatabaseError) {
        let code = error.extendedResultCode
        let kind: Code =
            switch code.primaryResultCode {
            case .SQLITE_NOTADB: .wrongDatabase
            case .SQLITE_FULL: .noRoom
            default: .failed
            }
        self.init(
            kind,
            "SQLite: \(error.message ?? code.description) (\(code.rawValue))")
    }
}
