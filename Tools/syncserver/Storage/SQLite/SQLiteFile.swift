// The connections to the embedded database: a writer and readers in WAL mode, or, while the disk is full or
// cannot be written, one read-only connection. Spec/operations/operating.md, OPS-14 and OPS-28.

import Dispatch
import EventSourcing
import Foundation
import GRDB
import SyncWire
import Synchronization

/// An open SQLite file.
final class SQLiteFile: Sendable {
    private struct Handle {
        let connections: any DatabaseWriter
        /// The reason why the file is open read-only; nil if it is open for writing.
        let failure: (any Error)?
        /// True if the file could be opened neither for writing nor read-only. Then `connections` is
        /// closed, and a read through it would crash in SQLite.
        var isClosed = false
    }

    private let path: String
    private let migrator: DatabaseMigrator
    private let lockWait: Duration
    private let handle: Mutex<Handle>
    /// Closes and opens connections, which waits for SQLite's locks: not under the mutex, and not on
    /// a thread of the cooperative pool. While the file is open read-only, reads run here too, so
    /// that none uses a connection that has just been closed.
    private let openingQueue = DispatchQueue(label: "openings")

    /// Opens the file, creates it if it is missing, and migrates its schema. On a disk that is full or cannot
    /// be written, a file with the current schema is opened read-only.
    ///
    /// - Throws: `DatabaseError`, `StorageError`.
    init(_ path: String, _ migrator: DatabaseMigrator, lockWait: Duration) throws {
        self.path = path
        self.migrator = migrator
        self.lockWait = lockWait
        handle = Mutex(try Self.openForWritingElseReading(path, migrator, lockWait))
    }

    /// The open connections.
    var connections: any DatabaseWriter { handle.withLock { $0.connections } }

    /// True if the file is open for writing. Never becomes false again.
    var isWritable: Bool { handle.withLock { $0.failure == nil } }

    /// Reads from a snapshot.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        if isWritable { return try await connections.read(body) }
        return try await onOpeningQueue { file in
            let current = file.handle.withLock { $0 }
            if (current.failure as? StorageError)?.code == .readOnly {
                // Anew each time: through another mount of the disk the file may have changed.
                let connection = try Self.openForReading(file.path, file.migrator, file.lockWait)
                defer { try? connection.close() }
                return try connection.read(body)
            }
            if current.isClosed {
                let connection = try Self.openForReading(file.path, file.migrator, file.lockWait)
                file.handle.withLock {
                    $0 = Handle(connections: connection, failure: current.failure)
                }
            }
            return try file.connections.read(body)
        }
    }

    /// Opens a read-only file for writing if the disk has space again and can be written.
    ///
    /// - Throws: `StorageError`, `DatabaseError`; then the file stays open read-only.
    func makeWritable() async throws {
        let current = handle.withLock { $0 }
        guard current.failure != nil else { return }
        if let reason = Self.reasonNotToWrite(path) { throw reason }
        guard Self.hasSpace(for: WireLimits.bodyBytes, at: path) else { throw Self.noSpace }
        try await onOpeningQueue { try $0.replace(current.connections) }
    }

    private func onOpeningQueue<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteFile) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            openingQueue.async { [self] in
                continuation.resume(with: Result { try body(self) })
            }
        }
    }

    /// Replaces a read-only connection with connections that write, or with a new read-only one.
    ///
    /// - Throws: the reason why the file is not open for writing.
    private func replace(_ old: any DatabaseWriter) throws {
        var current = handle.withLock { $0 }
        // Of several concurrent requests, the first opens the file for all.
        if current.connections === old, current.failure != nil {
            // The old connection holds an exclusive lock, so it is closed first.
            try old.close()
            do {
                current = try Self.openForWritingElseReading(path, migrator, lockWait)
            } catch {
                let connection = try? Self.openForReading(path, migrator, lockWait)
                current = Handle(
                    connections: connection ?? old, failure: error, isClosed: connection == nil)
            }
            handle.withLock { [current] in $0 = current }
        }
        if let failure = current.failure { throw failure }
    }

    /// The error for a full disk.
    static let noSpace = StorageError(.noSpace, "SQLite: no space left on the disk")

    /// Whether the file system of a file has so many free bytes.
    static func hasSpace(for bytes: Int, at path: String) -> Bool {
        var system = statvfs()
        guard statvfs(path, &system) == 0 else { return true }
        // Some blocks are reserved for the superuser.
        let blocks = geteuid() == 0 ? system.f_bfree : system.f_bavail
        return UInt64(blocks) * UInt64(system.f_frsize) >= UInt64(bytes)
    }

    // MARK: Opening

    private static func openForWritingElseReading(
        _ path: String, _ migrator: DatabaseMigrator, _ lockWait: Duration
    ) throws -> Handle {
        do {
            return Handle(connections: try openForWriting(path, migrator, lockWait), failure: nil)
        } catch let error as DatabaseError
            where [.SQLITE_FULL, .SQLITE_IOERR].contains(error.resultCode)
        {
            guard let connection = try? openForReading(path, migrator, lockWait) else {
                throw error
            }
            return Handle(connections: connection, failure: error)
        } catch {
            guard let reason = reasonNotToWrite(path), access(path, R_OK) == 0 else { throw error }
            return Handle(
                connections: try openForReading(path, migrator, lockWait), failure: reason)
        }
    }

    /// The reason why an existing file cannot be written: a read-only mount, permissions, an attribute. The
    /// folder counts, too, because SQLite creates files beside the database. Nil if the file can be written,
    /// or does not exist.
    private static func reasonNotToWrite(_ path: String) -> StorageError? {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        guard access(path, F_OK) == 0, access(path, W_OK) != 0 || access(folder, W_OK) != 0
        else { return nil }
        let reason = String(cString: strerror(errno))
        return StorageError(
            .readOnly, "\(path) can only be read (\(reason)): pages are served, batches are refused"
        )
    }

    private static func openForWriting(
        _ path: String, _ migrator: DatabaseMigrator, _ lockWait: Duration
    ) throws -> DatabasePool {
        try createFile(path)
        var configuration = Configuration()
        configuration.busyMode = waiting(lockWait)
        configuration.foreignKeysEnabled = false
        let pool = try DatabasePool(path: path, configuration: configuration)
        try pool.writeWithoutTransaction { db in
            // GRDB sets NORMAL, which loses commits at a power cut.
            try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
            try SQLiteSchema.prepare(db, migrator)
        }
        try migrator.migrate(pool)
        // A process that was killed between writing and syncing leaves commits that can be read but
        // may not be on the disk. A checkpoint syncs them before one is answered as a duplicate.
        try pool.writeWithoutTransaction { try checkpoint($0, .passive, within: lockWait) }
        return pool
    }

    /// Opens the file read-only. WAL mode shares an index of the WAL in a file of 32 KiB:
    ///
    /// - On a full disk there may be no space for it. An exclusive lock keeps the index in memory.
    /// - A file that cannot be written allows no such lock. If there is an index, it is used, also together
    ///   with a process that writes the file through another mount. If there is only a WAL, the index is in
    ///   memory without a lock. If there is no WAL, as after a clean end, SQLite would create one, unless the
    ///   file is declared immutable; the WAL that a writer creates ends that with the next read.
    ///
    /// - Throws: `DatabaseError`; `StorageError` for a schema that is not current.
    private static func openForReading(
        _ path: String, _ migrator: DatabaseMigrator, _ lockWait: Duration
    ) throws -> DatabaseQueue {
        let reason = reasonNotToWrite(path)
        let hasWAL = access(path + "-wal", F_OK) == 0
        let isShared = hasWAL && access(path + "-shm", F_OK) == 0
        var configuration = Configuration()
        configuration.busyMode = waiting(lockWait)
        configuration.readonly = reason != nil
        let locking = reason != nil && (isShared || !hasWAL) ? "NORMAL" : "EXCLUSIVE"
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA locking_mode = \(locking); PRAGMA query_only = ON")
        }
        let location =
            reason == nil || isShared
            ? path : uri(of: path, hasWAL ? "vfs=unix-none" : "immutable=1")
        let queue = try DatabaseQueue(path: location, configuration: configuration)
        try queue.read { db in
            try SQLiteSchema.prepare(db, migrator)
            guard try migrator.hasCompletedMigrations(db) else {
                throw reason.map {
                    StorageError($0.code, "\(path) must be migrated, and can only be read")
                } ?? noSpace
            }
        }
        return queue
    }

    /// A path with a parameter of SQLite.
    private static func uri(of path: String, _ parameter: String) -> String {
        let bytes = path.utf8.map { byte in
            let character = Character(Unicode.Scalar(byte))
            return character.isASCII && (character.isLetter || character.isNumber)
                || "/-._~".contains(character) ? String(character) : "%" + [byte].hexadecimalDigits
        }
        return (path.hasPrefix("/") ? "file://" : "file:") + bytes.joined() + "?" + parameter
    }

    /// Retries a lock every millisecond. SQLite's own busy timeout ends up retrying every 100 ms, and
    /// a busy server releases its lock for far less between two transactions: under load, one erasure
    /// in five never got the lock.
    private static func waiting(_ limit: Duration) -> Database.BusyMode {
        let triesMax = Int(limit / .milliseconds(1))
        return .callback { tries in
            usleep(1_000)
            return tries < triesMax
        }
    }

    /// Copies the write-ahead log into the file. Waits for another process's checkpoint, which SQLite
    /// itself does not.
    static func checkpoint(
        _ db: Database, _ mode: Database.CheckpointMode, within limit: Duration
    ) throws {
        let deadline = ContinuousClock.now + limit
        while true {
            do {
                try db.checkpoint(mode)
                return
            } catch let error as DatabaseError
                where error.resultCode == .SQLITE_BUSY && ContinuousClock.now < deadline
            {
                usleep(10_000)
            }
        }
    }

    /// Creates the file with mode 600; SQLite gives its WAL and index files the same mode.
    private static func createFile(_ path: String) throws {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StorageError(.failed, "cannot open \(path): \(String(cString: strerror(errno)))")
        }
        _ = Foundation.close(descriptor)
    }
}
