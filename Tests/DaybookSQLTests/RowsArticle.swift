// The code of the article on rows, compiled and run. ArticleTests compares it with the article.

import Daybook
import DaybookSQL
import DaybookTestKit
import Foundation
import GRDB
import TestSupport
import Testing

// declaration begins
struct PlaceVisited: EventPayload, Codable {
    static let type = "com.example.place.visited"
    var place: String
    var name: String
    var remark: String
    var subject: String? { place }
}

struct PlaceRows: SQLProjection {
    static let name = "places", version = 1
    static let events: [any EventPayload.Type] = [PlaceVisited.self]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE place (id TEXT PRIMARY KEY, name TEXT, remark TEXT, lww BLOB) STRICT;
                CREATE INDEX placeName ON place (name);
                """)
    }

    func apply(_ event: Event, in db: Database) throws {
        let visited = try event.payload(as: PlaceVisited.self)
        try db.upsert(
            into: "place", ["id": visited.place],
            set: ["name": visited.name, "remark": visited.remark], by: event)
    }
}
// declaration ends

// row begins
struct Place: Codable, Equatable, FetchableRecord {
    var id: String
    var name: String
    var remark: String
}
// row ends

// version 2 begins
struct SearchablePlaceRows: SQLProjection {
    static let name = "places", version = 2
    static let events = PlaceRows.events

    static func create(in db: Database) throws {
        try PlaceRows.create(in: db)
        try db.execute(
            sql: """
                CREATE VIRTUAL TABLE place_fts USING fts5(remark, content=place);
                CREATE TRIGGER placeAdded AFTER INSERT ON place BEGIN
                    INSERT INTO place_fts(rowid, remark) VALUES (new.rowid, new.remark);
                END;
                CREATE TRIGGER placeChanged AFTER UPDATE ON place BEGIN
                    INSERT INTO place_fts(place_fts, rowid, remark)
                    VALUES ('delete', old.rowid, old.remark);
                    INSERT INTO place_fts(rowid, remark) VALUES (new.rowid, new.remark);
                END;
                """)
    }

    func apply(_ event: Event, in db: Database) throws { try PlaceRows().apply(event, in: db) }
}
// version 2 ends

@Suite struct RowsArticle {
    @Test func `a list is shown, searched after a new version, and keeps its rows`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await EventStore.open(
            at: URL(filePath: folder.path + "/log"), compaction: nil)
        let pool = try DatabasePool(path: folder.path + "/app.sqlite")

        // first rows begins
        let rows = try await store.project(into: pool, [PlaceRows()])
        let visit = PlaceVisited(place: "pier", name: "North pier", remark: "Great coffee")
        let appended = try await store.append(visit)
        try await rows.reach(appended.position)
        let names = try await pool.read { try String.fetchAll($0, sql: "SELECT name FROM place") }
        // first rows ends
        #expect(names == ["North pier"])

        // observation begins
        let list = ValueObservation.tracking { db in
            try Place.fetchAll(db, sql: "SELECT id, name, remark FROM place ORDER BY name")
        }
        for try await places in list.values(in: pool) {
            print(places.map(\.name))  // now, and after every change
            break
        }
        // observation ends

        // parked begins
        for parked in try await rows.parked() {
            print(parked.projection, parked.position, parked.error)
        }
        let applied = try await rows.retryParked()
        // parked ends
        #expect(applied == 0)

        await rows.close()
        let newRows = try await store.project(into: pool, [SearchablePlaceRows()])
        try await newRows.reach()
        // search begins
        let found = try await pool.read { db in
            try Place.fetchAll(
                db,
                sql: """
                    SELECT place.id, place.name, place.remark FROM place_fts
                    JOIN place ON place.rowid = place_fts.rowid WHERE place_fts MATCH ? ORDER BY rank
                    """, arguments: [FTS5Pattern(matchingAllPrefixesIn: "coff")])
        }
        // search ends
        #expect(found == [Place(id: "pier", name: "North pier", remark: "Great coffee")])
        await newRows.close()
        try await store.close()
        try pool.close()
    }
}
