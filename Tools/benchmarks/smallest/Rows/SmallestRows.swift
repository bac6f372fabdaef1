// The smallest program that uses DaybookSQL, for what an app pays: Tools/checks/price builds it.

import DaybookSQL
import Foundation
import GRDB

@main
enum SmallestRows {
    static func main() async throws {
        let store = try await EventStore.open(at: URL(filePath: CommandLine.arguments[1]))
        let database = try DatabasePool(path: CommandLine.arguments[2])
        let rows = try await store.project(into: database, [NoteRows()])
        try await rows.reach()
        await rows.close()
        try await store.close()
    }
}

/// The text of each note.
struct NoteRows: SQLProjection {
    static let name = "notes", version = 1
    static let events: [any EventPayload.Type] = [NoteWritten.self]

    static func create(in db: Database) throws {
        try db.execute(sql: "CREATE TABLE note (id TEXT NOT NULL PRIMARY KEY, text TEXT) STRICT")
    }

    func apply(_ event: Event, in db: Database) throws {
        let note = try event.payload(as: NoteWritten.self)
        try db.upsert(into: "note", ["id": note.id], set: ["text": note.text], by: event)
    }
}

struct NoteWritten: EventPayload, Codable {
    static let type = "com.example.note.written"
    var id: String
    var text: String
}
