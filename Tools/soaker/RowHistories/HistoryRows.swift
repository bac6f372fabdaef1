// The events and projections of the searches for wrong rows, and a naive fold that gives the same rows. An event
// that is applied twice, or not at all, gives other rows: each leaves its position in a table.

import Daybook
import DaybookSQL
import Foundation
import GRDB
import LogStorage

/// A text of a note. The last writer wins.
struct NoteWritten: EventPayload, Codable {
    static let type = "com.example.note.written"
    var note: String
    var text: String?
    var subject: String? { note }
}

/// An amount, which is added to a sum.
struct AmountAdded: EventPayload, Codable {
    static let type = "com.example.amount.added"
    var amount: Int
}

/// Texts of notes, and the position of each event that was applied.
struct NoteRows: SQLProjection {
    static let name = "notes", version = 1
    static let events: [any EventPayload.Type] = [NoteWritten.self]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE note (id TEXT NOT NULL PRIMARY KEY, text TEXT, lww BLOB) STRICT;
                CREATE TABLE change (
                    number INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL) STRICT;
                CREATE INDEX noteText ON note (text);
                """)
    }

    func apply(_ event: Event, in db: Database) throws {
        let written = try event.payload(as: NoteWritten.self)
        try db.upsert(into: "note", ["id": written.note], set: ["text": written.text], by: event)
        try db.execute(
            sql: "INSERT INTO change (position) VALUES (?)",
            arguments: [Int64(event.position.rawValue)])
        // After the changes, which must be undone.
        guard written.text != "unwanted" else {
            throw EventError(.refused, "the text is not wanted")
        }
    }
}

/// The second version of the same tables.
struct NoteRows2: SQLProjection {
    static let name = "notes", version = 2
    static let events: [any EventPayload.Type] = [NoteWritten.self]

    static func create(in db: Database) throws {
        try NoteRows.create(in: db)
        try db.execute(sql: "ALTER TABLE note ADD COLUMN length INTEGER")
    }

    func apply(_ event: Event, in db: Database) throws {
        try NoteRows().apply(event, in: db)
        try db.execute(sql: "UPDATE note SET length = length(text)")
    }
}

/// The sum of the amounts.
struct SumRows: SQLProjection {
    static let name = "sum", version = 1
    static let events: [any EventPayload.Type] = [AmountAdded.self]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE amount (id INTEGER PRIMARY KEY, position INTEGER NOT NULL) STRICT;
                CREATE TABLE total (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL) STRICT;
                INSERT INTO total VALUES (1, 0);
                """)
    }

    func apply(_ event: Event, in db: Database) throws {
        let added = try event.payload(as: AmountAdded.self)
        try db.execute(sql: "UPDATE total SET amount = amount + ?", arguments: [added.amount])
        try db.execute(
            sql: "INSERT INTO amount (position) VALUES (?)",
            arguments: [Int64(event.position.rawValue)])
    }
}

/// The rows of both projections.
struct HistoryRows: Equatable {
    var texts: [String: String?] = [:]
    var changes: [UInt64] = []
    var amounts: [UInt64] = []
    var total = 0
    /// The positions of parked events, ascending.
    var parked: [UInt64] = []

    /// The events that the rows of a projection include.
    struct Extent: Equatable {
        var through: UInt64
        var retracted: Set<UInt64>
    }

    init() {}

    /// Computes the rows from events, one after the other.
    ///
    /// - Parameters:
    ///   - events: all events of the log.
    ///   - extents: by the name of the projection; one that is missing has no rows.
    init(folding events: [Event], _ extents: [String: Extent]) throws {
        var lwwTimestamps: [String: LWWTimestamp] = [:]
        func includes(_ event: Event, _ projection: String) -> Bool {
            guard let extent = extents[projection] else { return false }
            let position = event.position.rawValue
            return position <= extent.through && !extent.retracted.contains(position)
        }
        for event in events {
            if event.type == NoteWritten.type, includes(event, NoteRows.name) {
                let written = try event.payload(as: NoteWritten.self)
                guard written.text != "unwanted" else {
                    parked.append(event.position.rawValue)
                    continue
                }
                changes.append(event.position.rawValue)
                let isNewer =
                    lwwTimestamps[written.note].map { $0 < event.lwwTimestamp } ?? true
                guard isNewer else { continue }
                lwwTimestamps[written.note] = event.lwwTimestamp
                texts[written.note] = .some(written.text)
            }
            if event.type == AmountAdded.type, includes(event, SumRows.name) {
                amounts.append(event.position.rawValue)
                total += try event.payload(as: AmountAdded.self).amount
            }
        }
    }

    /// Reads the rows of a database, and the extents that it records with them, in one transaction.
    static func read(
        _ database: any DatabaseReader
    ) async throws -> (rows: HistoryRows, extents: [String: Extent]) {
        try await database.read { db in try (read(db), extents(db)) }
    }

    private static func read(_ db: Database) throws -> HistoryRows {
        var rows = HistoryRows()
        if try db.tableExists("note") {
            for row in try Row.fetchAll(db, sql: "SELECT id, text FROM note") {
                rows.texts[row["id"]] = .some(row["text"])
            }
            rows.changes = try positions(db, "SELECT position FROM change ORDER BY number")
        }
        if try db.tableExists("total") {
            rows.amounts = try positions(db, "SELECT position FROM amount ORDER BY id")
            rows.total = try Int.fetchOne(db, sql: "SELECT amount FROM total") ?? 0
        }
        if try db.tableExists("daybook_parked") {
            rows.parked = try positions(db, "SELECT position FROM daybook_parked ORDER BY position")
        }
        return rows
    }

    private static func positions(_ db: Database, _ sql: String) throws -> [UInt64] {
        try Int64.fetchAll(db, sql: sql).map { UInt64($0) }
    }

    private static func extents(_ db: Database) throws -> [String: Extent] {
        guard try db.tableExists("daybook_projections") else { return [:] }
        var extents: [String: Extent] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT * FROM daybook_projections") {
            let retracted = try JSONDecoder().decode(
                [UInt64].self, from: Data((row["retracted"] as String).utf8))
            extents[row["name"]] = Extent(
                through: UInt64(row["position"] as Int64), retracted: Set(retracted))
        }
        return extents
    }
}

/// Rows that are not those of the log.
package struct RowHistoryFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

extension HistoryRows {
    /// Checks that the rows of a database are those of all events. All are durable, and no event follows.
    static func checkAll(_ database: any DatabaseReader, of store: EventStore) async throws {
        let retracted = Set(await store.durableState.retracted.map(\.rawValue))
        let extent = Extent(through: .max, retracted: retracted)
        let expected = try HistoryRows(
            folding: events(store.directory, store.environment.fileSystem),
            [NoteRows.name: extent, SumRows.name: extent])
        let found = try await read(database).rows
        guard found == expected else {
            throw RowHistoryFailure("the rows are \(found), those of the log \(expected)")
        }
    }

    /// Checks that the rows of a database are those of the events up to the positions that it records.
    ///
    /// - Parameter folder: the log's folder.
    static func checkRecorded(
        _ database: any DatabaseReader, _ folder: String, _ fileSystem: any FileSystem
    ) async throws {
        // The rows are read first: the log may grow meanwhile.
        let (found, extents) = try await read(database)
        guard !extents.isEmpty else { return }
        let events = try events(folder, fileSystem)
        let end = events.last?.position.rawValue ?? 0
        for (name, extent) in extents where extent.through > end {
            throw RowHistoryFailure(
                "the rows of \(name) include position \(extent.through), the log ends at \(end)")
        }
        let expected = try HistoryRows(folding: events, extents)
        guard found == expected else {
            throw RowHistoryFailure(
                "the rows are \(found), those of the recorded positions \(extents) \(expected)")
        }
    }

    /// All events of the log, as a reader finds them.
    private static func events(_ folder: String, _ fileSystem: any FileSystem) throws -> [Event] {
        var events: [Event] = []
        try LogReader(folder, fileSystem: fileSystem).forEachEvent(catalogue: .ownTypes) { event in
            events.append(event)
            return true
        }
        return events
    }
}
