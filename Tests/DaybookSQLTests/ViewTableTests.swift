// The built-in views as tables: after any history their rows are those of the views.

import Daybook
import DaybookOffline
import DaybookOfflineSQL
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import GRDB
import LogFormat
import TestSupport
import Testing

@testable import DaybookSQL

@Suite(.verifies("SQL-8", "SQL-9")) struct ViewTableTests {
    @Test func `tables equal the views after any history`() async throws {
        try await Property.check("view tables", runs: 10) { choices in
            let history = try TableHistory()
            do {
                try await history.open()
                for _ in 0..<choices.int(in: 1...20) {
                    try await history.step(&choices)
                    if choices.bool(oneIn: 2) { try await history.check() }
                }
                try await history.check()
            } catch {
                try? await history.close()
                throw error
            }
            try await history.close()
        }
    }

    @Test func `notes are found by their words, joined and counted`() async throws {
        let store = try await OfflineStore.inMemory()
        let database = try DatabaseQueue()
        let rows = try await store.project(into: database)
        try await store.cities.save("rome", by: "u")
        let note = try await store.notes.add("Great coffee", city: "rome", by: "u")
        try await store.notes.add("closed on Mondays", city: "rome", by: "u")
        try await store.notes.update(note.id, "Great café, near the station", by: "u")
        try await store.notes.add("Cafe", city: "oslo", by: "u")
        try await rows.reach()
        let found = try await database.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT notes.content FROM notes JOIN notes_fts ON notes_fts.rowid = notes.rowid
                    JOIN cities USING (cityId) WHERE notes_fts MATCH 'cafe'
                    """)
        }
        #expect(found == ["Great café, near the station"])
        let plan = try await database.read { db in
            try String.fetchAll(
                db,
                sql: """
                    EXPLAIN QUERY PLAN
                    SELECT * FROM notes WHERE cityId = 'rome' ORDER BY createdAt, noteId
                    """, adapter: ColumnMapping(["detail": "detail"]))
        }
        #expect(plan.count == 1)
        #expect(plan.first?.contains("notes_cityId_createdAt_noteId") == true, "\(plan)")
        let pending = try await database.read {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM outbox")
        }
        #expect(pending == 5)
        try await store.close()
        await rows.close()
    }

    @Test
    func
        `a row that changes keeps its rowid, and only the tables that an event concerns are written`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        let database = try DatabaseQueue()
        let rows = try await store.project(into: database, [NoteRows(), CityRows()])
        let first = try await store.notes.add("one", city: "rome", by: "u")
        try await store.notes.add("two", city: "rome", by: "u")
        try await rows.reach()
        let rowID = SQLRequest<Int64>(
            sql: "SELECT rowid FROM notes WHERE noteId = ?", arguments: [first.id])
        let before = try await database.read { try rowID.fetchOne($0) }
        let changes = Changes()
        database.add(transactionObserver: changes, extent: .observerLifetime)
        try await store.notes.update(first.id, "three", by: "u")
        try await rows.reach()
        #expect(try await database.read { try rowID.fetchOne($0) } == before)
        #expect(!changes.tables.contains("cities"))
        #expect(changes.tables.contains("notes"))
        #expect(changes.count == 1)
        try await store.close()
        await rows.close()
    }

    private final class Changes: TransactionObserver {
        var tables: Set<String> = []
        var count = 0
        func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
        func databaseDidChange(with event: DatabaseEvent) {
            tables.insert(event.tableName)
            if event.tableName == "notes" { count += 1 }
        }
        func databaseDidCommit(_ db: Database) {}
        func databaseDidRollback(_ db: Database) {}
    }

    @Test func `keys that only look alike have a row each`() async throws {
        let store = try await OfflineStore.inMemory()
        let database = try DatabaseQueue()
        try await store.settings.put(SettingKey<String>("caf\u{E9}"), "one")
        let rows = try await store.project(into: database, [SettingRows()])
        try await store.write { transaction in
            try transaction.put(SettingKey<String>("e\u{301}"), "2")
            try transaction.put(SettingKey<String>("\u{E9}"), "3")
        }
        try await rows.reach()
        let values = try await database.read {
            try String.fetchAll($0, sql: "SELECT value FROM settings ORDER BY value")
        }
        #expect(values == ["2", "3", "one"])
        await rows.close()
        try await store.close()
    }

    @Test func `an event that a release learns to read appears in the tables of earlier ones`()
        async throws
    {
        let files = InMemoryFileSystem()
        let database = try DatabaseQueue()
        func open(_ upcasters: [Upcaster]) async throws -> (EventStore, ProjectedRows) {
            let store = try await EventStore.open(
                at: URL(filePath: "/log"), upcasters: upcasters, views: OfflineModel.views,
                extending: OfflineModel.catalogue,
                environment: LogEnvironment(
                    fileSystem: files,
                    // A wait that ended at once would repeat failed work in a busy loop.
                    sleep: { try await Task.sleep(for: min($0, .milliseconds(20))) }))
            let rows = try await store.project(into: database, [NoteRows()])
            try await rows.reach()
            return (store, rows)
        }
        let (store, rows) = try await open([])
        let old = EventDraft(
            type: "com.example.remark", subject: "n", data: .json(Array(#"{"id":"n"}"#.utf8)))
        try await store.append(old)
        try await rows.reach()
        let count = SQLRequest<Int>(sql: "SELECT count(*) FROM notes")
        #expect(try await database.read { try count.fetchOne($0) } == 0)
        await rows.close()
        try await store.close()
        let upcaster = Upcaster(from: "com.example.remark", to: NoteAdded.type) { _ in
            [UInt8](#"{"noteId":"n","cityId":"c","content":"x","createdBy":"u"}"#.utf8)
        }
        let (newStore, newRows) = try await open([upcaster])
        #expect(try await database.read { try count.fetchOne($0) } == 1)
        await newRows.close()
        try await newStore.close()
    }

    @Test func `events retracted while the tables catch up leave no rows`() async throws {
        for turn in 0..<6 {
            let store = try await OfflineStore.inMemory()
            let database = try DatabaseQueue()
            var rows = try await store.project(into: database, [NoteRows()])
            try await store.notes.add("first", city: "rome", by: "u")
            try await rows.reach()
            await rows.close()
            var late: Position?
            for number in 0..<600 {
                let note = NoteAdded(
                    noteId: "n\(number % 300)", cityId: "rome", content: "\(number)", createdBy: "u"
                )
                late = try await store.append(note, durability: .relaxed).position
            }
            rows = try await store.project(into: database, [NoteRows()])
            // In real time: another moment of the catch-up in each turn, whose steps give no signal.
            if turn > 0 { try await Task.sleep(for: .milliseconds(turn * 2)) }
            try await store.events.flush()
            let position = try #require(late)
            let event = try #require(try await store.events.event(at: position))
            try await store.events.append(
                record: EventsDiscarded(
                    by: store.events.incarnation,
                    events: [EventTarget(position: position, id: event.id)], reason: .discarded))
            try await rows.reach()
            let content = try await database.read {
                try String.fetchOne($0, sql: "SELECT content FROM notes WHERE noteId = 'n299'")
            }
            #expect(content == "299")
            await rows.close()
            try await store.close()
        }
    }

    @Test func `an event that is retracted just before the view is copied leaves no row`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        let database = try DatabaseQueue()
        let rows = try await store.project(into: database, [NoteRows()])
        try await store.notes.add("first", city: "rome", by: "u")
        try await rows.reach()
        await rows.close()
        let writer = ProjectionWriter(
            [Projecting(NoteRows(), store.events.catalogue)], of: store.events)
        let records = try await database.read { try ProjectionRecord.all(in: $0) }
        var catchUp = CatchUp(store.events, database, writer, records)
        let before = await store.events.durableState
        try await store.events.retractOrReinstate(at: before.last)
        let isBehind = try await catchUp.advance(
            through: before.last, retracted: before.retracted)
        // The next step computes the table anew.
        let after = await store.events.durableState
        let stale = try await catchUp.staleProjections(after.retracted)
        #expect(isBehind)
        #expect(stale.map(\.name) == ["notes"])
        try await store.close()
    }

    struct UnnamedView: ListableView {
        static let name = "unnamed", version = 1
        mutating func fold(_ event: Event) {}
        func rows() -> ViewRows { [] }
    }

    @Test func `a view without columns, or that the store does not have, is refused`() async throws
    {
        struct UnnamedRows: ViewTable { typealias View = UnnamedView }
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), views: [UnnamedView.self],
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        await #expect(throws: EventError.self) {
            _ = try await store.project(into: DatabaseQueue(), [UnnamedRows()])
        }
        await #expect(throws: EventError.self) {
            _ = try await store.project(into: DatabaseQueue(), [NoteRows()])
        }
        try await store.close()
    }
}

/// A log of the built-in events, the tables of its views, and what happens to them.
private final class TableHistory {
    private let files = InMemoryFileSystem()
    private var database: DatabaseQueue
    private var oldDatabase: DatabaseQueue?
    private var store: EventStore?
    private var rows: ProjectedRows?
    /// The number of events of another device.
    private var received: UInt64 = 0

    init() throws { database = try DatabaseQueue() }

    func open() async throws {
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), views: OfflineModel.views,
            extending: OfflineModel.catalogue, compaction: nil,
            environment: LogEnvironment(
                fileSystem: files,
                // A wait that ended at once would repeat failed work in a busy loop.
                sleep: { try await Task.sleep(for: min($0, .milliseconds(20))) }))
        self.store = store
        rows = try await store.project(into: database, OfflineTables.all)
    }

    func close() async throws {
        await rows?.close()
        try await store?.close()
    }

    func step(_ choices: inout Choices) async throws {
        let store = try #require(store)
        switch choices.int(in: 0...13) {
        case 0...4:
            choices.note("append")
            for _ in 0..<choices.int(in: 1...20) {
                let draft = try Self.draft(&choices)
                let durability: Durability = choices.bool(oneIn: 4) ? .durable : .relaxed
                // Some drafts break the rules of their types.
                _ = try? await store.append(draft, durability: durability)
            }
        case 5, 6:
            choices.note("receive")
            var events: [ForeignEvent] = []
            for _ in 0..<choices.int(in: 1...10) {
                var draft = try Self.draft(&choices)
                draft.lane = draft.subject ?? draft.type
                received += 1
                let prefix = LinePrefix(
                    id: draft.id.integer, source: 12, sequence: received, position: Position(1))
                var line: [UInt8] = []
                LineEncoder.append(draft, prefix, to: &line)
                line.removeLast()
                events.append(try ForeignEvent(line.span.bytes))
            }
            _ = try await store.receive(events)
        case 7, 8:
            choices.note("settle")
            let outbox = store.view(Outbox.self)
            var record = SyncSettled(by: store.incarnation)
            record.applied = outbox.ranges(
                of: outbox.entries.map(\.position).filter { _ in choices.bool() })
            if let entry = outbox.entries.first, choices.bool() {
                record.entries = [
                    SyncSettled.Entry(
                        position: entry.position.rawValue, id: entry.id, outcome: .parked,
                        retryCount: choices.int(in: 0...5))
                ]
            }
            try await store.append(record: record)
        case 9:
            choices.note("retract or reinstate")
            let last = await store.lastDurable
            guard last > .zero else { return }
            let position = Position(UInt64(choices.int(in: 1...Int(last.rawValue))))
            try await store.retractOrReinstate(at: position)
        case 10:
            choices.note("reopen")
            try await close()
            try await open()
        case 11:
            choices.note("older database, or none")
            try await close()
            database = try DatabaseQueue()
            if let oldDatabase { try oldDatabase.backup(to: database) }
            try await open()
        case 12:
            choices.note("keep a copy")
            let copy = try DatabaseQueue()
            try database.backup(to: copy)
            oldDatabase = copy
        default:
            choices.note("compact")
            try await store.compact()
        }
    }

    /// Draws an event whose id is a UUID of version 4.
    private static func draft(_ choices: inout Choices) throws -> EventDraft {
        var draft = try choices.draft()
        var id = draft.id.integer
        id = id & ~(0xF << 76) | 4 << 76
        id = id & ~(3 << 62) | 2 << 62
        draft.id = UUID(integer: id)
        return draft
    }

    func check() async throws {
        let (store, rows) = (try #require(store), try #require(rows))
        try await rows.reach()
        for view in OfflineModel.views + [Outbox.self] { try await check(view, store) }
        try await database.write { db in
            try db.execute(
                sql: "INSERT INTO notes_fts(notes_fts, rank) VALUES ('integrity-check', 1)")
        }
    }

    private func check<View: ListableView>(_ view: View.Type, _ store: EventStore) async throws {
        let expected = try store.view(view).rows().map { row in
            try row.filled { try store.data(ofEvent: $0) }
        }
        func text(_ value: DatabaseValue) -> String { "\(value)" }
        let expectedRows = expected.map { row in
            view.columns.map { column in
                let field = row.fields.first { $0.name == column }
                return switch field?.scalar {
                case .integer(let value): text(value.databaseValue)
                case .real(let value): text(value.databaseValue)
                // Text in SQLite ends at its first NUL.
                case .text(let value): text(String(value.prefix { $0 != "\0" }).databaseValue)
                case .null, nil: text(.null)
                }
            }.joined(separator: " | ")
        }
        let present = try await database.read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM \(view.name)").map { row in
                row.databaseValues.map { "\($0)" }.joined(separator: " | ")
            }
        }
        let isEqual = present.sorted() == expectedRows.sorted()
        try #require(isEqual, "\(view.name): \(Set(present).symmetricDifference(expectedRows))")
    }
}
