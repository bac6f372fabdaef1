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

    /// - Parameter database: the database that gets the tables.
    init(_ projection: Projecting, beside database: any DatabaseWriter, _ writer: ProjectionWriter)
    {
        self.projection = projection
        self.writer = ProjectionWriter(
            projections: [projection], log: writer.log, writer: writer.writer)
        let isFile = FileManager.default.fileExists(atPath: database.path)
        path =
            isFile
            ? database.path + "-daybook-" + Self.fileName(projection.name)
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
    /// - Throws: as `CatchUp.advance`.
    func build(_ store: EventStore, _ appConfiguration: Configuration) async throws {
        try remove()
        // SQLite would create it readable for others.
        _ = try POSIXFileSystem().open(path, .createNew)
        var configuration = appConfiguration
        configuration.journalMode = .default
        configuration.prepareDatabase { db in
            // The file is removed unless it is complete, so it need not survive a power cut.
            try db.execute(sql: "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let (writer, projection) = (writer, projection)
        let record = try await queue.write { db in
            try ProjectionRecord.createTables(in: db)
            return try writer.create(projection, in: db)
        }
        var catchUp = CatchUp(store, queue, writer, [projection.name: record])
        var isBehind = true
        while isBehind {
            try Task.checkCancellation()
            let (end, retracted) = await store.durableState
            guard try await catchUp.staleProjections(retracted).isEmpty else {
                try queue.close()
                return try await build(store, appConfiguration)
            }
            isBehind = try await catchUp.advance(through: end, retracted: retracted)
        }
        try queue.close()
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
            var swapped: ProjectionRecord?
            try db.inTransaction(.immediate) {
                // The tables of a projection may refer to each other, and the app's to them.
                try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
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
                try db.execute(
                    sql: """
                        DELETE FROM daybook_parked WHERE projection = ?1;
                        """, arguments: [name])
                try db.execute(
                    sql: """
                        INSERT INTO daybook_parked SELECT * FROM \(Self.schema).daybook_parked
                        WHERE projection = ?1
                        """, arguments: [name])
                swapped = record
                return .commit
            }
            guard let swapped else { throw DatabaseError(message: "nothing was built") }
            return swapped
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
