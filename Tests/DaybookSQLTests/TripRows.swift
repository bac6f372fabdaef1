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
