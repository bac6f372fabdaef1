// The connections to the embedded database: a writer and readers in WAL mode, or, while the disk is
// full, one connection that reads. Opened by SQLiteEventStorage. Spec/operating.md, OPS-14.

import Foundation
import GRDB
import Synchronization

/// An SQLite file that is open.
final class SQLiteFile: Sendable {
    private struct Handle {
        let connections: any DatabaseWriter
        let isReadOnly: Bool
    }

    private let path: String
    private let lockWait: Duration
    private let handle: Mutex<Handle>

    /// Opens the file, creates it if there is none, and brings it up to date. On a full disk one
    /// that is up to date is opened for reading.
    ///
    /// - Throws: `DatabaseError`, `StorageError`.
    init(_ path: String, lockWait: Duration) throws {
        self.path = path
        self.lockWait = lockWait
        handle = Mutex(try Self.openAnyhow(path, lockWait))
    }

    /// The connections that are open now.
    var connections: any DatabaseWriter { handle.withLock { $0.connections } }

    /// Reads from a snapshot.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        let connections = connections
        do {
            return try await connections.read(body)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_MISUSE {
            // Closed between two lines: there is room again, and a pool took its place.
            guard self.connections !== connections else { throw error }
            return try await self.connections.read(body)
        }
    }

    /// Opens a file for writing that was opened on a full disk, if there is room now.
    ///
    /// - Throws: `StorageError` (`noRoom`).
    func makeWritable() throws {
        try handle.withLock { handle in
            guard handle.isReadOnly else { return }
            guard Self.hasRoom(for: BatchReader.bodyBytesMax, at: path) else { throw Self.noRoom }
            // It has the file for itself, so it goes first.
            try handle.connections.close()
            handle = try Self.openAnyhow(path, lockWait)
            if handle.isReadOnly { throw Self.noRoom }
        }
    }

    /// Why nothing can be stored.
    static let noRoom = StorageError(.noRoom, "SQLite: there is no room on the disk")

    /// Whether the file system of a file has room.
    static func hasRoom(for bytes: Int, at path: String) -> Bool {
        var system = statvfs()
        guard statvfs(path, &system) == 0 else { return true }
        // Some blocks are kept for the superuser.
        let blocks = geteuid() == 0 ? system.f_bfree : system.f_bavail
        return UInt64(blocks) * UInt64(system.f_frsize) >= UInt64(bytes)
    }

    // MARK: Opening

    private static func openAnyhow(_ path: String, _ lockWait: Duration) throws -> Handle {
        do {
            return Handle(connections: try openForWriting(path, lockWait), isReadOnly: false)
        } catch let error as DatabaseError
            where [.SQLITE_FULL, .SQLITE_IOERR].contains(error.resultCode)
        {
            guard let connection = try? openForReading(path, lockWait) else { throw error }
            return Handle(connections: connection, isReadOnly: true)
        }
    }

    private static func openForWriting(
        _ path: String, _ lockWait: Duration
    ) throws -> DatabasePool {
        try createFile(path)
        var configuration = Configuration()
        configuration.busyMode = waiting(lockWait)
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
        try pool.writeWithoutTransaction { try checkpoint($0, .passive, within: lockWait) }
        return pool
    }

    /// WAL mode shares an index of the log in a file of 32 KiB, for which there may be no room. A
    /// connection that has the file for itself keeps that index in memory.
    private static func openForReading(_ path: String, _ lockWait: Duration) throws -> DatabaseQueue
    {
        var configuration = Configuration()
        configuration.busyMode = waiting(lockWait)
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.read { db in
            try SQLiteSchema.prepare(db)
            guard try SQLiteSchema.migrator.hasCompletedMigrations(db) else { throw noRoom }
        }
        return queue
    }

    /// Asks again every millisecond. SQLite's own time-out comes to ask every 100 ms, and a busy
    /// server leaves its lock free for far less between two transactions: of erasures under load,
    /// one in five was never let in.
    private static func waiting(_ limit: Duration) -> Database.BusyMode {
        let triesMax = Int(limit / .milliseconds(1))
        return .callback { tries in
            usleep(1_000)
            return tries < triesMax
        }
    }

    /// Copies the write-ahead log into the file. Waits for another process that does the same, for
    /// which SQLite itself does not.
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

    /// Creates the file, readable for its owner only; SQLite's own files beside it follow it.
    private static func createFile(_ path: String) throws {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StorageError(.failed, "cannot open \(path): \(String(cString: strerror(errno)))")
        }
        _ = Foundation.close(descriptor)
    }
}
