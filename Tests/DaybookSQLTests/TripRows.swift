// The projections of the tests, and a naive reading of a log that gives the same rows.

import Daybook
import DaybookSQL
import Foundation
import GRDB

struct StopNamed: EventPayload, Codable {
    static let type = "com.example.stop.named"
    var trip: String
    var name: String?
    var subject: String? { trip }
}

struct WordWritten: EventPayload, Codable {
    static let type = "com.example.word.written"
    var text: String
}

/// The names of trips, with an index for full-text search, and the number of changes.
struct TripRows: SQLProjection {
    static let name = "trips", version = 1
    static let events: [any EventPayload.Type] = [StopNamed.self]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE trip (id TEXT NOT NULL PRIMARY KEY, name TEXT, lww BLOB) STRICT;
                CREATE TABLE change (number INTEGER PRIMARY KEY AUTOINCREMENT, trip TEXT NOT NULL) STRICT;
                CREATE INDEX tripName ON trip (name);
                """)
        try db.create(virtualTable: "tripText", using: FTS5()) { table in
            table.synchronize(withTable: "trip")
            table.column("name")
        }
    }

    func apply(_ event: Event, in db: Database) throws {
        let stop = try event.payload(as: StopNamed.self)
        guard stop.name != "fail" else { throw EventError(.refused, "the name is not wanted") }
        try db.upsert(into: "trip", ["id": stop.trip], set: ["name": stop.name], by: event)
        try db.execute(sql: "INSERT INTO change (trip) VALUES (?)", arguments: [stop.trip])
        guard stop.name != "fail late" else { throw EventError(.refused, "too late") }
    }
}

/// Words in tables of every form. The second word is removed, so that rowids have a gap.
struct FormRows: SQLProjection {
    static let name = "forms", version = 1
    static let events: [any EventPayload.Type] = [WordWritten.self]

    /// The columns of each table, without those that are generated.
    private static let tables = [
        "plain": "word", "indexed": "word", "keyed": "word", "uniqued": "word",
        "numbered": "id, word", "counted": "id, word", "generating": "word",
        "composite": "word, other", "bare": "word", "searched": "word",
    ]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE plain (word TEXT);
                CREATE TABLE indexed (word TEXT);
                CREATE INDEX indexedWord ON indexed (word) WHERE word > 'b';
                CREATE TABLE keyed (word TEXT PRIMARY KEY);
                CREATE TABLE uniqued (word TEXT UNIQUE CHECK (word <> ''));
                CREATE TABLE numbered (id INTEGER PRIMARY KEY, word TEXT);
                CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT);
                CREATE TABLE generating (word TEXT UNIQUE, twice AS (word || word) STORED);
                CREATE TABLE composite (
                    word TEXT, other TEXT, PRIMARY KEY (word, other)) WITHOUT ROWID;
                CREATE TABLE bare (
                    word TEXT PRIMARY KEY, twice AS (word || word)) WITHOUT ROWID;
                CREATE VIRTUAL TABLE searched USING fts5(word);
                """)
    }

    func apply(_ event: Event, in db: Database) throws {
        let word = try event.payload(as: WordWritten.self).text
        for (table, columns) in Self.tables.sorted(by: { $0.key < $1.key }) {
            let values = columns.replacing("id", with: "NULL").replacing("other", with: "'z'")
                .replacing("word", with: ":word")
            try db.execute(
                sql: "INSERT INTO \(table) (\(columns)) VALUES (\(values))",
                arguments: ["word": word])
            if word == "c" { try db.execute(sql: "DELETE FROM \(table) WHERE word = 'b'") }
        }
    }

    /// The rows of each table, with their rowids if there are any.
    static func dump(_ db: Database) throws -> [String: [String]] {
        var dump: [String: [String]] = [:]
        for table in tables.keys {
            let hasRowIDs = table != "composite" && table != "bare"
            let rows = try Row.fetchAll(
                db, sql: "SELECT \(hasRowIDs ? "rowid, " : "")* FROM \(table) ORDER BY 1")
            dump[table] = rows.map { row in
                row.databaseValues.map { String.fromDatabaseValue($0) ?? "\($0)" }
                    .joined(separator: " ")
            }
        }
        return dump
    }
}

/// Another version of the same tables.
struct FormRows2: SQLProjection {
    static let name = FormRows.name, version = 2
    static let events = FormRows.events
    static func create(in db: Database) throws { try FormRows.create(in: db) }
    func apply(_ event: Event, in db: Database) throws { try FormRows().apply(event, in: db) }
}

/// The second version of the same tables.
struct TripRows2: SQLProjection {
    static let name = "trips", version = 2
    static let events: [any EventPayload.Type] = [StopNamed.self]

    static func create(in db: Database) throws {
        try TripRows.create(in: db)
        try db.execute(sql: "ALTER TABLE trip ADD COLUMN length INTEGER")
    }

    func apply(_ event: Event, in db: Database) throws {
        try TripRows().apply(event, in: db)
        try db.execute(sql: "UPDATE trip SET length = length(name)")
    }
}

struct WordRows: SQLProjection {
    static let name = "words", version = 1
    static let events: [any EventPayload.Type] = [WordWritten.self]

    static func create(in db: Database) throws {
        try db.execute(sql: "CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    }

    func apply(_ event: Event, in db: Database) throws {
        let word = try event.payload(as: WordWritten.self)
        try db.execute(sql: "INSERT INTO word (text) VALUES (?)", arguments: [word.text])
    }
}

/// What the tables must contain.
struct ExpectedRows: Equatable {
    var trips: [String: String?] = [:]
    var changes: [String] = []
    var words: [String] = []

    init() {}

    /// Computes the rows from the log's events, without those that are retracted.
    init(_ store: EventStore) async throws {
        var lwwTimestamps: [String: LWWTimestamp] = [:]
        for try await event in store.recordedEvents() {
            guard await !store.isRetracted(event.position) else { continue }
            if let stop = try? event.payload(as: StopNamed.self), event.type == StopNamed.type {
                guard stop.name?.hasPrefix("fail") != true else { continue }
                changes.append(stop.trip)
                guard lwwTimestamps[stop.trip].map({ $0 < event.lwwTimestamp }) ?? true else {
                    continue
                }
                lwwTimestamps[stop.trip] = event.lwwTimestamp
                trips[stop.trip] = .some(stop.name)
            }
            if event.type == WordWritten.type {
                words.append(try event.payload(as: WordWritten.self).text)
            }
        }
    }

    /// Reads the rows of a database.
    init(_ database: any DatabaseReader) async throws {
        self = try await database.read { db in
            var rows = ExpectedRows()
            for row in try Row.fetchAll(db, sql: "SELECT id, name FROM trip") {
                rows.trips[row["id"]] = .some(row["name"])
            }
            rows.changes = try String.fetchAll(db, sql: "SELECT trip FROM change ORDER BY number")
            rows.words = try String.fetchAll(db, sql: "SELECT text FROM word ORDER BY id")
            return rows
        }
    }
}
