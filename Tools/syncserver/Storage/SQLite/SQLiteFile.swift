// The connections to the embedded database: a writer and readers in WAL mode, or, while the disk is
// full, one connection that reads. Opened by SQLiteEventStorage. Spec/operations/operating.md, OPS-14.

import Dispatch
import Foundation
import GRDB
import Synchronization

/// An SQLite file that is open.
final class SQLiteFile: Sendable {
    private struct Handle {
        let connections: any DatabaseWriter
        /// Why the file is open for reading only; nil if it is open for writing.
        let failure: (any Error)?
        /// True if neither opening has succeeded: `connections` is closed, and a read of it would
        /// crash in SQLite.
        var isClosed = false
    }

    private let path: String
    private let lockWait: Duration
    private let handle: Mutex<Handle>
    /// Closes and opens connections, which takes as long as SQLite's locks: not under the mutex, and
    /// not on a thread of the cooperative pool. While the file is open for reading only, it also
    /// reads: otherwise a read could meet a connection that has just been closed.
    private let openings = DispatchQueue(label: "openings")

    /// Opens the file, creates it if there is none, and brings it up to date. On a full disk one
    /// that is up to date is opened for reading.
    ///
    /// - Throws: `DatabaseError`, `StorageError`.
    init(_ path: String, lockWait: Duration) throws {
        self.path = path
        self.lockWait = lockWait
        handle = Mutex(try Self.openForWritingElseReading(path, lockWait))
    }

    /// The connections that are open now.
    var connections: any DatabaseWriter { handle.withLock { $0.connections } }

    /// True if the file is open for writing. Then it stays so.
    var isWritable: Bool { handle.withLock { $0.failure == nil } }

    /// Reads from a snapshot.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        if isWritable { return try await connections.read(body) }
        return try await atOpenings { file in
            let current = file.handle.withLock { $0 }
            if current.isClosed {
                let connection = try Self.openForReading(file.path, file.lockWait)
                file.handle.withLock {
                    $0 = Handle(connections: connection, failure: current.failure)
                }
            }
            return try file.connections.read(body)
        }
    }

    /// Opens a file for writing that was opened on a full disk, if there is room now.
    ///
    /// - Throws: `StorageError`, `DatabaseError`; then the file stays open for reading.
    func makeWritable() async throws {
        let current = handle.withLock { $0 }
        guard current.failure != nil else { return }
        guard Self.hasRoom(for: BatchReader.bodyBytesMax, at: path) else { throw Self.noRoom }
        try await atOpenings { try $0.replace(current.connections) }
    }

    private func atOpenings<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteFile) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            openings.async { [self] in
                continuation.resume(with: Result { try body(self) })
            }
        }
    }

    /// Opens the file for writing in place of a connection that only reads, else for reading again.
    ///
    /// - Throws: why it is not open for writing.
    private func replace(_ old: any DatabaseWriter) throws {
        var current = handle.withLock { $0 }
        // Of several requests that ask, the first opens the file for all.
        if current.connections === old, current.failure != nil {
            // It has the file for itself, so it goes first.
            try old.close()
            do {
                current = try Self.openForWritingElseReading(path, lockWait)
            } catch {
                let connection = try? Self.openForReading(path, lockWait)
                current = Handle(
                    connections: connection ?? old, failure: error, isClosed: connection == nil)
            }
            handle.withLock { [current] in $0 = current }
        }
        if let failure = current.failure { throw failure }
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

    private static func openForWritingElseReading(
        _ path: String, _ lockWait: Duration
    ) throws -> Handle {
        do {
            return Handle(connections: try openForWriting(path, lockWait), failure: nil)
        } catch let error as DatabaseError
            where [.SQLITE_FULL, .SQLITE_IOERR].contains(error.resultCode)
        {
            guard let connection = try? openForReading(path, lockWait) else { throw error }
            return Handle(connections: connection, failure: error)
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
