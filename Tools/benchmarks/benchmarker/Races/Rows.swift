// The speed of rows in SQL: computed for the first time and anew, the delay of one row, and a question asked of rows
// and of a view.

import DaybookOfflineSQL
import Foundation
import GRDB

/// The races of rows.
struct Rows {
    let folder: URL
    /// The events of the log, one row each.
    var events: Int
    /// The appends whose delay is measured.
    let appends: Int

    private static let cities = 1_000
    private static let grdb = "GRDB, the same rows"

    /// Opens a store with notes in a thousand cities, and waits until its views have them.
    private func store(_ name: String) async throws -> OfflineStore {
        let store = try await OfflineStore.open(
            at: folder.appending(path: name), account: "local", compaction: nil)
        for start in stride(from: 0, to: events, by: 1_000) {
            try await store.events.append(
                contentsOf: (start..<min(start + 1_000, events)).map { number in
                    try EventDraft(
                        NoteAdded(
                            noteId: Input.id(number).text, cityId: "city-\(number % Self.cities)",
                            content: "Great coffee at number \(number)", createdBy: "ana"))
                })
        }
        try await store.settle()
        return store
    }

    private func pool() throws -> DatabasePool {
        try DatabasePool(path: Folder(in: folder).url.appending(path: "rows.sqlite").path)
    }

    /// Reads all rows of a table.
    private static func rows(
        of table: String, _ database: any DatabaseReader
    ) async throws -> [[DatabaseValue]] {
        try await database.read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM \(table) ORDER BY rowid")
                .map { Array($0.databaseValues) }
        }
    }

    /// Inserts rows into an empty table of a new database, in one transaction.
    private func insert(
        _ rows: [[DatabaseValue]], into table: String,
        create: @escaping @Sendable (Database) throws -> Void
    ) async throws -> Cost {
        let pool = try pool()
        try await pool.write { try create($0) }
        let marks = (rows.first ?? []).map { _ in "?" }.joined(separator: ", ")
        return try await measured {
            try await pool.write { db in
                let statement = try db.makeStatement(
                    sql: "INSERT INTO \(table) VALUES (\(marks))")
                for row in rows { try statement.execute(arguments: StatementArguments(row)) }
            }
        }
    }

    /// Measures until the rows of projections in a database have reached the end of the log.
    private static func reach(
        _ projections: [any SQLProjection], of store: OfflineStore, in pool: DatabasePool
    ) async throws -> Cost {
        var rows: ProjectedRows?
        let cost = try await measured {
            rows = try await store.project(into: pool, projections)
            try await rows?.reach()
        }
        await rows?.close()
        return cost
    }

    private func checkCount(_ pool: DatabasePool, of table: String) async throws {
        let count = try await pool.read {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)")
        }
        guard count == events else { throw RaceFailure("\(count ?? 0) rows of \(events)") }
    }

    /// The rows of a projection, in an empty database.
    func first() async throws -> Race {
        try await race("rows of a projection, first", NoteTable()) { store in
            { try await filled(NoteTable(), of: store).cost }
        }
    }

    /// The rows of a projection, computed anew for another version.
    func rebuilt() async throws -> Race {
        try await race("rows of a projection, new version", NoteTable()) { store in
            let pool = try await filled(NoteTable(), of: store).pool
            return {
                let cost = try await Self.reach([NoteTable2()], of: store, in: pool)
                try await checkCount(pool, of: NoteTable.name)
                _ = try await Self.reach([NoteTable()], of: store, in: pool)
                return cost
            }
        }
    }

    /// The table of the notes' view, with its indexes, the full-text index included.
    func viewTable() async throws -> Race {
        try await race("table of a view", NoteRows()) { store in
            { try await filled(NoteRows(), of: store).cost }
        }
    }

    /// A race of rows with GRDB, which inserts the rows of a projection.
    ///
    /// - Parameter turn: makes our turn for a store.
    private func race(
        _ name: String, _ projection: any SQLProjection,
        _ turn: (OfflineStore) async throws -> () async throws -> Cost
    ) async throws -> Race {
        let store = try await store(name)
        let type = type(of: projection)
        let rows = try await Self.rows(of: type.name, filled(projection, of: store).pool)
        return Race(
            name: name, unit: "µs a row", scale: 1e6 / Double(events),
            budgets: [.atMost(1 / 0.8, of: Self.grdb)],
            contenders: [
                Contender(name: RaceResult.ours, turn: try await turn(store)),
                Contender(name: Self.grdb) {
                    try await insert(rows, into: type.name) { try type.create(in: $0) }
                },
            ])
    }

    /// Computes the rows of a projection in a new database.
    private func filled(
        _ projection: any SQLProjection, of store: OfflineStore
    ) async throws -> (pool: DatabasePool, cost: Cost) {
        let pool = try pool()
        let cost = try await Self.reach([projection], of: store, in: pool)
        try await checkCount(pool, of: type(of: projection).name)
        return (pool, cost)
    }

    /// The time from the return of `append` until the row is read.
    func delay() async throws -> Race {
        let store = try await store("rows-delay")
        let pool = try pool()
        let rows = try await store.project(into: pool, [NoteTable(), NoteRows()])
        try await rows.reach()
        return Race(
            name: "a row is visible", unit: "ms after append (median)", scale: 1e3,
            budgets: [.within(5, entry: RaceResult.ours, and: nil)],
            contenders: [
                Contender(name: RaceResult.ours) {
                    var costs: [Double] = []
                    for _ in 0..<appends {
                        let id = UUID().text
                        let added = try await store.append(
                            NoteAdded(
                                noteId: id, cityId: "city-0", content: "Open late",
                                createdBy: "ana"))
                        costs.append(
                            try await seconds {
                                try await rows.reach(added.position)
                                let found = try await pool.read { db in
                                    try String.fetchOne(
                                        db, sql: "SELECT content FROM notes WHERE noteId = ?",
                                        arguments: [id])
                                }
                                guard found != nil else { throw RaceFailure("a row is missing") }
                            })
                    }
                    return Cost(value: costs.median)
                }
            ])
    }

    /// The notes of each city, from rows and from the view in memory. Every note's content is read.
    func query() async throws -> Race {
        let store = try await store("rows-query")
        let pool = try await filled(NoteRows(), of: store).pool
        let count = events / Self.cities
        func perCity(_ contents: (String) async throws -> [String]) async throws -> Cost {
            try await measured {
                for city in 0..<Self.cities {
                    guard try await contents("city-\(city)").count == count else {
                        throw RaceFailure("notes are missing")
                    }
                }
            }
        }
        return Race(
            name: "the \(count) notes of a city", unit: "µs a query",
            scale: 1e6 / Double(Self.cities), budgets: [],
            contenders: [
                Contender(name: RaceResult.ours) {
                    try await perCity { city in
                        store.notes(in: city).current.map(\.content)
                    }
                },
                Contender(name: "rows in SQLite") {
                    try await perCity { city in
                        try await pool.read { db in
                            try String.fetchAll(
                                db.cachedStatement(
                                    sql: """
                                        SELECT content FROM notes WHERE cityId = ?
                                        ORDER BY createdAt, noteId
                                        """), arguments: [city])
                        }
                    }
                },
            ])
    }
}

/// One row for each note, with a unique index.
private struct NoteTable: SQLProjection {
    static let name = "note", version = 1
    static let events: [any EventPayload.Type] = [NoteAdded.self]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE note (
                    id TEXT NOT NULL PRIMARY KEY, city TEXT NOT NULL, content TEXT NOT NULL,
                    author TEXT NOT NULL) STRICT
                """)
    }

    func apply(_ event: Event, in db: Database) throws {
        let note = try event.payload(as: NoteAdded.self)
        try db.cachedStatement(sql: "INSERT INTO note VALUES (?, ?, ?, ?)")
            .execute(arguments: [note.noteId, note.cityId, note.content, note.createdBy])
    }
}

/// Another version of that table.
private struct NoteTable2: SQLProjection {
    static let name = NoteTable.name, version = 2
    static let events = NoteTable.events
    static func create(in db: Database) throws { try NoteTable.create(in: db) }
    func apply(_ event: Event, in db: Database) throws { try NoteTable().apply(event, in: db) }
}
