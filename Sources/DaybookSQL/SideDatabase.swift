// Tables that are built beside the old ones, which serve meanwhile: in a database file of their own, whose content
// replaces the old tables in one transaction. Spec/model/sql.md, SQL-5; Spec/decisions/0051.

import Daybook
import Foundation
import GRDB

/// A database file in which the tables of one projection are built.
struct SideDatabase: Sendable {
    let projection: Projecting
    private let path: String
    private let writer: ProjectionWriter

    private static let schema = "daybook_built"
    private static let suffix = "-daybook-"

    /// Removes the files that an earlier process has left beside a database.
    static func removeAll(beside database: any DatabaseWriter) {
        let url = URL(filePath: database.path)
        let folder = url.deletingLastPathComponent().path
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where name.hasPrefix(url.lastPathComponent + suffix) {
            try? FileManager.default.removeItem(atPath: folder + "/" + name)
        }
    }

    /// - Parameter database: the database that gets the tables.
    init(_ projection: Projecting, beside database: any DatabaseWriter, of store: EventStore) {
        self.projection = projection
        writer = ProjectionWriter([projection], of: store)
        let isFile = FileManager.default.fileExists(atPath: database.path)
        path =
            isFile
            ? database.path + Self.suffix + Self.fileName(projection.name)
            : FileManager.default.temporaryDirectory
                .appending(component: "daybook-\(UUID().uuidString)").path
    }

    /// The name as part of a file's name.
    private static func fileName(_ name: String) -> String {
        name.utf8.map { byte in
            let isPlain =
                (48...57).contains(byte) || (97...122).contains(byte) || (65...90).contains(byte)
            return isPlain ? String(UnicodeScalar(byte)) : "_" + String(byte, radix: 16)
        }.joined()
    }

    /// Builds the tables from the log's first event to its durable end.
    ///
    /// - Throws: as `CatchUp.advance`; then there is no file.
    func build(_ store: EventStore, _ appConfiguration: Configuration) async throws {
        do {
            while try await !tryToBuild(store, appConfiguration) {}
        } catch {
            try? remove()
            throw error
        }
    }

    /// - Returns: false if an event was retracted after it was applied.
    private func tryToBuild(
        _ store: EventStore, _ appConfiguration: Configuration
    ) async throws -> Bool {
        try remove()
        // SQLite would create it readable for others.
        _ = try POSIXFileSystem().open(path, .createNew)
        var configuration = appConfiguration
        configuration.journalMode = .default
        configuration.prepareDatabase { db in
            // The file is used only when it is complete, so it need not survive a power cut.
            try db.execute(sql: "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        let (writer, projection) = (writer, projection)
        let record = try await queue.write { db in
            try ProjectionRecord.createTables(in: db)
            return try writer.create(projection, in: db)
        }
        var catchUp = CatchUp(store, queue, writer, [projection.name: record])
        // Subscribed before the first step, so that no `resume()` is missed.
        var signals = await store.commits().makeAsyncIterator()
        while true {
            try Task.checkCancellation()
            do {
                try await store.checkOpen()
                let (end, retracted) = await store.durableState
                guard try await catchUp.staleProjections(retracted).isEmpty else { return false }
                guard try await catchUp.advance(through: end, retracted: retracted) else {
                    return true
                }
            } catch let error as LogError where error.code == .suspended {
                // The build continues after its last batch: an app may be suspended often.
                guard await signals.next() != nil else { throw error }
            }
        }
    }

    /// Replaces the projection's tables in a database by those that were built, with the record and the parked
    /// events, in one transaction. Then removes the file.
    ///
    /// - Returns: the record.
    func swap(into database: any DatabaseWriter) async throws -> ProjectionRecord {
        let (path, name) = (path, projection.name)
        let record = try await database.writeWithoutTransaction { db in
            // Still attached if an interruption has ended the last try.
            try? db.execute(sql: "DETACH DATABASE \(Self.schema)")
            try db.execute(sql: "ATTACH DATABASE ? AS \(Self.schema)", arguments: [path])
            defer { try? db.execute(sql: "DETACH DATABASE \(Self.schema)") }
            return try db.withoutForeignKeys {
                try ProjectionRecord.createTables(in: db)
                try ProjectionRecord.all(in: db)[name]?.objects.drop(from: db)
                guard
                    let record = try ProjectionRecord.fetchOne(
                        db,
                        sql: "SELECT * FROM \(Self.schema).daybook_projections WHERE name = ?",
                        arguments: [name])
                else { throw DatabaseError(message: "the built tables have no record") }
                try record.objects.copy(from: Self.schema, in: db)
                try record.insert(db, onConflict: .replace)
                try ParkedProjection.deleteAll(of: name, in: db)
                try db.execute(
                    sql: """
                        INSERT INTO daybook_parked SELECT * FROM \(Self.schema).daybook_parked
                        WHERE projection = ?
                        """, arguments: [name])
                return record
            }
        }
        try remove()
        return record
    }

    /// Removes the file, if there is one.
    func remove() throws {
        for suffix in ["", "-journal", "-wal", "-shm"]
        where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.removeItem(atPath: path + suffix)
        }
    }
}

extension Database {
    /// Runs a transaction that does not act on foreign keys: tables are dropped and created anew in it, and rows of
    /// the app that refer to them stay.
    func withoutForeignKeys<Value>(_ body: () throws -> Value) throws -> Value {
        let areOn = try Bool.fetchOne(self, sql: "PRAGMA foreign_keys") ?? false
        try execute(sql: "PRAGMA foreign_keys = OFF")
        defer { if areOn { try? execute(sql: "PRAGMA foreign_keys = ON") } }
        var value: Value?
        try inTransaction(.immediate) {
            value = try body()
            return .commit
        }
        guard let value else { throw DatabaseError(message: "the transaction did not run") }
        return value
    }
}
