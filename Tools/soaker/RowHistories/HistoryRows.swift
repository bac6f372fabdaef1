// The events and projections of the searches for wrong rows, and a naive fold that gives the same rows. An event
// that is applied twice, or not at all, gives other rows: each leaves its position in a table, or is counted.

import Daybook
import DaybookSQL
import EventSourcing
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

/// The newest text of each note, and the number of events that wrote it.
struct NoteTexts: KeyedView {
    static let name = "texts", version = 1
    static let eventTypes: Set<String>? = [NoteWritten.type]
    static let keyNames = ["note"]
    static let columns = ["note", "text", "count"]

    struct Text: Equatable {
        var text: String?
        var count = 0
        var lwwTimestamp: LWWTimestamp?

        mutating func set(_ text: String?, _ lwwTimestamp: LWWTimestamp) {
            count += 1
            if let present = self.lwwTimestamp, lwwTimestamp <= present { return }
            (self.text, self.lwwTimestamp) = (text, lwwTimestamp)
        }
    }

    private var texts: [String: Text] = [:]

    mutating func fold(_ event: Event) {
        guard event.type == NoteWritten.type,
            let written = try? event.payload(as: NoteWritten.self)
        else { return }
        texts[written.note, default: Text()].set(written.text, event.lwwTimestamp)
    }

    func rows() -> ViewRows { ViewRows(texts.keys.sorted().compactMap { row(key: [$0]) }) }

    func rowKeys(changedBy event: Event) -> [[String]]? {
        guard event.type == NoteWritten.type else { return [] }
        return (try? event.payload(as: NoteWritten.self)).map { [[$0.note]] } ?? []
    }

    func row(key: [String]) -> ViewRow? {
        guard let text = texts[key[0]] else { return nil }
        var row = ViewRow()
        row.appendField("note", key[0])
        row.appendField("text", text.text)
        row.appendField("count", text.count)
        return row
    }
}

/// The table of that view, with a full-text index.
struct NoteTextRows: ViewTable {
    typealias View = NoteTexts
    static let indexes = [["text"]]
    static let fullTextColumns = ["text"]
}

/// The projections of the searches.
///
/// - Parameter version: the version of the projection of notes.
func historyProjections(_ version: Int) -> [any SQLProjection] {
    [version == 1 ? NoteRows() : NoteRows2(), SumRows(), NoteTextRows()]
}

/// The rows of all projections.
struct HistoryRows: Equatable {
    var texts: [String: String?] = [:]
    var changes: [UInt64] = []
    /// The rows of the view's table.
    var viewTexts: [String: String?] = [:]
    var viewCounts: [String: Int] = [:]
    /// The notes that the full-text index finds by a word.
    var found: Set<String> = []
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
        var view: [String: NoteTexts.Text] = [:]
        func includes(_ event: Event, _ projection: String) -> Bool {
            guard let extent = extents[projection] else { return false }
            let position = event.position.rawValue
            return position <= extent.through && !extent.retracted.contains(position)
        }
        for event in events {
            if event.type == NoteWritten.type, includes(event, NoteTextRows.name) {
                let written = try event.payload(as: NoteWritten.self)
                view[written.note, default: .init()].set(written.text, event.lwwTimestamp)
            }
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
        for (note, text) in view {
            viewTexts[note] = .some(text.text)
            viewCounts[note] = text.count
            if text.text?.split(separator: " ").contains("text") == true { found.insert(note) }
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
        if try db.tableExists("texts") {
            for row in try Row.fetchAll(db, sql: "SELECT * FROM texts") {
                rows.viewTexts[row["note"]] = .some(row["text"])
                rows.viewCounts[row["note"]] = row["count"]
            }
            rows.found = try String.fetchSet(
                db,
                sql: """
                    SELECT note FROM texts JOIN texts_fts ON texts_fts.rowid = texts.rowid
                    WHERE texts_fts MATCH 'text'
                    """)
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
    /// Waits for a position.
    ///
    /// - Throws: `RowHistoryFailure` if the rows have not come to it within two minutes, which is more than the
    ///   longest pause after an error; as `ProjectedRows.reach(_:)`.
    static func reach(_ position: Position, _ rows: ProjectedRows) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await rows.reach(position) }
            group.addTask {
                try await Task.sleep(for: .seconds(120))
                throw RowHistoryFailure(
                    "the rows have not come to position \(position): \(rows.status)")
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Checks that the rows of a database are those of all events, and its indexes those of the rows. All events are
    /// durable, and no event follows.
    static func checkAll(_ database: any DatabaseWriter, of store: EventStore) async throws {
        let retracted = Set(await store.durableState.retracted.map(\.rawValue))
        let extent = Extent(through: .max, retracted: retracted)
        let expected = try HistoryRows(
            folding: events(store.directory, store.environment.fileSystem),
            [NoteRows.name: extent, SumRows.name: extent, NoteTextRows.name: extent])
        let found = try await read(database).rows
        guard found == expected else {
            throw RowHistoryFailure("the rows are \(found), those of the log \(expected)")
        }
        try await database.write { db in
            let faults = try String.fetchAll(db, sql: "PRAGMA integrity_check")
            guard faults == ["ok"] else { throw RowHistoryFailure("integrity check: \(faults)") }
            try db.execute(
                sql: "INSERT INTO texts_fts (texts_fts, rank) VALUES ('integrity-check', 1)")
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
        guard !extents.isEmpty else {
            // The log may not exist yet.
            guard found == HistoryRows() else {
                throw RowHistoryFailure("rows without a recorded position: \(found)")
            }
            return
        }
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
