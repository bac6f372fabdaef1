// Rows in SQL: each event is applied exactly once, and the rows are those of the log.

import Daybook
import DaybookSQL
import DaybookTestKit
import EventGenerators
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@Suite(.verifies("SQL-1")) struct ProjectionTests {
    @Test func `an appended event has its row when its position is reached`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        let named = try await store.append(StopNamed(trip: "spring", name: "north pier"))
        try await store.append(WordWritten(text: "hello"))
        let last = try await store.append(StopNamed(trip: "spring", name: "harbour"))
        try await rows.reach(named.position)
        try await rows.reach(last.position)
        let found = try await ExpectedRows(bench.pool)
        #expect(found.trips == ["spring": "harbour"])
        #expect(found.changes == ["spring", "spring"])
        #expect(found.words == ["hello"])
        let hits = try await bench.pool.read { db in
            try String.fetchAll(
                db,
                sql: "SELECT trip.id FROM tripText JOIN trip ON trip.rowid = tripText.rowid "
                    + "WHERE tripText MATCH 'harbour'")
        }
        #expect(hits == ["spring"])
        try await store.close()
    }

    @Test func `a relaxed event is durable before its row is written`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        let word = try await store.append(WordWritten(text: "soon"), durability: .relaxed)
        try await rows.reach(word.position)
        #expect(await store.lastDurable >= word.position)
        #expect(try await ExpectedRows(bench.pool).words == ["soon"])
        await #expect(throws: EventError.self) {
            try await rows.reach(word.position.advanced(by: 1))
        }
        try await store.close()
    }

    @Test func `opening again with nothing new writes nothing`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        var store = try await bench.open()
        var rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(try await store.append(WordWritten(text: "one")).position)
        try await store.close()
        await rows.close()
        let before = try await bench.dataVersion()
        store = try await bench.open()
        rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(await store.lastDurable)
        // An event of another type changes no row, and is not written either.
        let other = try await store.append(EventDraft(type: "com.example.other"))
        try await rows.reach(other.position)
        #expect(try await bench.dataVersion() == before)
        try await store.close()
    }

    @Test func `an event that fails is parked with its error, and the others go on`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        var drafts: [StopNamed] = []
        for number in 0..<40 {
            drafts.append(
                StopNamed(trip: "trip-\(number)", name: number == 7 ? "fail late" : "stop"))
        }
        let appended = try await store.append(contentsOf: try drafts.map { try EventDraft($0) })
        try await rows.reach(try #require(appended.last).position)
        let parked = try await rows.parked()
        #expect(parked.map(\.position) == [appended[7].position])
        #expect(parked.first?.id == appended[7].id)
        #expect(parked.first?.projection == "trips")
        #expect(parked.first?.error.contains("too late") == true)
        let found = try await ExpectedRows(bench.pool)
        // What it had changed before it failed is undone.
        #expect(found.changes.count == 39)
        #expect(found.trips["trip-7"] == nil)
        #expect(try await rows.retryParked() == 0)
        #expect(try await rows.parked().count == 1)
        try await store.close()
    }

    @Test func `a parked event is applied by a retry once the projection can`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        var store = try await bench.open()
        var rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        let last = try await store.append(StopNamed(trip: "a", name: "fail"))
        try await rows.reach(last.position)
        try await store.close()
        await rows.close()
        store = try await bench.open()
        rows = try await store.project(into: bench.pool, [LenientTripRows(), WordRows()])
        #expect(try await rows.retryParked() == 1)
        #expect(try await rows.parked().isEmpty)
        #expect(try await ExpectedRows(bench.pool).trips == ["a": "fail"])
        try await store.close()
    }

    @Test func `observers see one change for a batch`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(.zero)
        let observation = ValueObservation.tracking { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM word") ?? 0
        }.removeDuplicates()
        var counts = observation.values(in: bench.pool).makeAsyncIterator()
        #expect(try await counts.next() == 0)
        let appended = try await store.append(
            contentsOf:
                try (0..<200).map { try EventDraft(WordWritten(text: "\($0)")) })
        try await rows.reach(try #require(appended.last).position)
        #expect(try await counts.next() == 200)
        try await store.close()
    }

    enum Misfit: CaseIterable { case version, otherLog, retraction, missingTables }

    @Test(.verifies("SQL-4", "SQL-5"), arguments: Misfit.allCases)
    func `rows that do not fit the log are computed anew`(_ reason: Misfit) async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        var store = try await bench.open()
        var rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        for number in 0..<300 {
            let name = "stop \(number)"
            try await store.append(
                StopNamed(trip: "trip-\(number % 70)", name: name), durability: .relaxed)
            try await store.append(WordWritten(text: name), durability: .relaxed)
        }
        try await store.flush()
        try await rows.reach(await store.lastDurable)
        #expect(try await ExpectedRows(bench.pool) == ExpectedRows(store))
        var trips: any SQLProjection = TripRows()
        switch reason {
        case .version: trips = TripRows2()
        case .retraction:
            let event = try #require(try await store.event(at: Position(5)))
            try await store.append(
                record: EventsDiscarded(
                    by: store.incarnation,
                    events: [EventTarget(position: event.position, id: event.id)],
                    reason: .discarded))
        case .missingTables:
            try await bench.pool.write { db in try db.execute(sql: "DROP TABLE change") }
        default: break
        }
        try await rows.reach(await store.lastDurable)
        if reason != .retraction {
            try await store.close()
            await rows.close()
            store = try await bench.open(reason == .otherLog ? "other" : "log")
            rows = try await store.project(into: bench.pool, [trips, WordRows()])
            if reason == .otherLog { try await store.append(WordWritten(text: "other")) }
            try await rows.reach(await store.lastDurable)
        }
        #expect(try await ExpectedRows(bench.pool) == ExpectedRows(store))
        #expect(rows.status.rebuilding.isEmpty)
        #expect(rows.status.problem == nil)
        if reason == .version {
            let lengths = try await bench.pool.read { db in
                try Int.fetchAll(db, sql: "SELECT length FROM trip WHERE name IS NOT NULL")
            }
            #expect(lengths.count == 70)
        }
        // The full-text index is that of the new rows.
        try await bench.pool.write { db in
            try db.execute(sql: "INSERT INTO tripText (tripText) VALUES ('integrity-check')")
        }
        // No file of the building remains.
        #expect(try bench.files() == ["rows.sqlite"])
        try await store.close()
    }

    @Test(.verifies("SQL-4")) func `position 0 of an older, empty log is reached without rows`()
        async throws
    {
        let bench = try SQLBench()
        defer { bench.remove() }
        try await bench.open().close()
        let folder = URL(filePath: bench.pool.path).deletingLastPathComponent().path
        try FileManager.default.copyItem(atPath: folder + "/log", toPath: folder + "/older")
        var store = try await bench.open()
        var rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(try await store.append(WordWritten(text: "one")).position)
        try await store.close()
        await rows.close()
        store = try await bench.open("older")
        rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(await store.lastDurable)
        #expect(try await ExpectedRows(bench.pool).words.isEmpty)
        try await store.close()
        await rows.close()
    }

    @Test(.verifies("SQL-2"))
    func `an event that is reinstated before its row was written has one`()
        async throws
    {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let named = try await store.append(StopNamed(trip: "a", name: "pier"))
        let targets = [EventTarget(position: named.position, id: named.id)]
        try await store.append(
            record: EventsDiscarded(by: store.incarnation, events: targets, reason: .discarded))
        let rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(await store.lastDurable)
        #expect(try await ExpectedRows(bench.pool).trips.isEmpty)
        try await store.append(record: EventsReinstated(by: store.incarnation, events: targets))
        try await rows.reach(await store.lastDurable)
        #expect(try await ExpectedRows(bench.pool).trips == ["a": "pier"])
        try await store.close()
        await rows.close()
    }

    @Test(.verifies("SQL-3")) func `an event that only the commit refuses is parked`() async throws
    {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let rows = try await store.project(into: bench.pool, [StrictRows()])
        let appended = try await store.append(
            contentsOf:
                try ["a", "unknown", "b"].map { try EventDraft(WordWritten(text: $0)) })
        try await rows.reach(appended[2].position)
        #expect(try await rows.parked().map(\.position) == [appended[1].position])
        let words = try await bench.pool.read { db in
            try String.fetchAll(db, sql: "SELECT text FROM use ORDER BY text")
        }
        #expect(words == ["a", "b"])
        try await store.close()
        await rows.close()
    }

    @Test(.verifies("SQL-5")) func `tables of every form keep their rows, and these their rowids`()
        async throws
    {
        let bench = try SQLBench()
        defer { bench.remove() }
        var store = try await bench.open()
        var rows = try await store.project(into: bench.pool, [FormRows()])
        for word in ["a", "b", "c", "d"] { try await store.append(WordWritten(text: word)) }
        try await rows.reach()
        let before = try await bench.pool.read { try FormRows.dump($0) }
        #expect(before["composite"] == ["a z", "c z", "d z"])
        #expect(before["plain"] == ["1 a", "3 c", "4 d"])
        #expect(before["keyed"] == before["plain"])
        await rows.close()
        try await store.close()
        store = try await bench.open()
        rows = try await store.project(into: bench.pool, [FormRows2()])
        #expect(rows.status.rebuilding == ["forms": .version(1)])
        try await rows.reach()
        #expect(try await bench.pool.read { try FormRows.dump($0) } == before)
        await rows.close()
        try await store.close()
    }

    @Test(.verifies("SQL-4")) func `the rows of a long log appear at once`() async throws {
        let bench = try SQLBench()
        defer { bench.remove() }
        let store = try await bench.open()
        let count = 66_000
        for start in stride(from: 0, to: count, by: 3_000) {
            try await store.append(
                contentsOf: (start..<start + 3_000).map {
                    try EventDraft(WordWritten(text: "word \($0)"))
                })
        }
        let counts = Mutex<Set<Int>>([])
        let rows = try await store.project(into: bench.pool, [WordRows(), TripRows()])
        let observation = ValueObservation.tracking { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM word") ?? 0
        }
        let observer = observation.start(in: bench.pool, scheduling: .async(onQueue: .global())) {
            _ in
        } onChange: { count in
            counts.withLock { _ = $0.insert(count) }
        }
        #expect(rows.status.rebuilding == ["words": .longLog, "trips": .longLog])
        // In the middle of the building, which goes on after that.
        let built = "rows.sqlite-daybook-words"
        try await eventually("files", where: { $0.contains(built) }) { try bench.files() }
        try await store.suspend()
        // In real time: the builder has no signal of its pause, and works on a thread of SQLite's queue.
        try await Task.sleep(for: .milliseconds(50))
        #expect(try bench.files().contains(built))
        try await store.resume()
        try await rows.reach()
        #expect(
            try await bench.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM word") }
                == count)
        try await eventually("observed counts", where: { $0.contains(count) }) {
            counts.withLock { $0 }
        }
        #expect(counts.withLock { $0 }.isSubset(of: [0, count]))
        observer.cancel()
        #expect(rows.status.rebuilding.isEmpty)
        await rows.close()
        // Both projections have a position now, also the one whose events the log does not have.
        let again = try await store.project(into: bench.pool, [WordRows(), TripRows()])
        #expect(again.status.rebuilding.isEmpty)
        try await again.reach()
        await again.close()
        try await store.close()
    }

    @Test(.verifies("SQL-5")) func `rows of the app that refer to a projection's rows stay`()
        async throws
    {
        let bench = try SQLBench()
        defer { bench.remove() }
        var store = try await bench.open()
        var rows = try await store.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(try await store.append(StopNamed(trip: "a", name: "pier")).position)
        try await bench.pool.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE favourite (trip TEXT REFERENCES trip (id) ON DELETE CASCADE);
                    INSERT INTO favourite VALUES ('a');
                    """)
        }
        try await store.close()
        await rows.close()
        store = try await bench.open()
        rows = try await store.project(into: bench.pool, [TripRows2(), WordRows()])
        try await rows.reach(await store.lastDurable)
        let (favourites, areOn) = try await bench.pool.write { db in
            (
                try String.fetchAll(db, sql: "SELECT trip FROM favourite"),
                try Bool.fetchOne(db, sql: "PRAGMA foreign_keys")
            )
        }
        #expect(favourites == ["a"])
        #expect(areOn == true)
        try await store.close()
        await rows.close()
    }

    @Test(.verifies("SQL-4")) func `the rows of another log are gone, also for observers`()
        async throws
    {
        let bench = try SQLBench()
        defer { bench.remove() }
        let first = try await bench.open()
        let rows = try await first.project(into: bench.pool, [TripRows(), WordRows()])
        try await rows.reach(try await first.append(WordWritten(text: "secret")).position)
        let observation = ValueObservation.tracking { db in
            try String.fetchAll(db, sql: "SELECT text FROM word")
        }.removeDuplicates()
        var texts = observation.values(in: bench.pool).makeAsyncIterator()
        #expect(try await texts.next() == ["secret"])
        // The rows of the first store still follow, and must not write into the second one's tables.
        let second = try await bench.open("other")
        let others = try await second.project(into: bench.pool, [WordRows()])
        #expect(try await texts.next() == [])
        try await first.append(WordWritten(text: "late"))
        try await others.reach(try await second.append(WordWritten(text: "other")).position)
        #expect(try await texts.next() == ["other"])
        await rows.close()
        await others.close()
        let tables = try await bench.pool.read { db in try db.tableExists("trip") }
        #expect(!tables)
        try await first.close()
        try await second.close()
    }
}

/// The projection of a release that has learnt to apply the events that failed.
struct LenientTripRows: SQLProjection {
    static let name = "trips", version = 1
    static let events: [any EventPayload.Type] = [StopNamed.self]

    static func create(in db: Database) throws { try TripRows.create(in: db) }

    func apply(_ event: Event, in db: Database) throws {
        let stop = try event.payload(as: StopNamed.self)
        try db.upsert(into: "trip", ["id": stop.trip], set: ["name": stop.name], by: event)
    }
}

/// Words that a deferred foreign key refuses unless they are known.
struct StrictRows: SQLProjection {
    static let name = "strict", version = 1
    static let events: [any EventPayload.Type] = [WordWritten.self]

    static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE known (text TEXT NOT NULL PRIMARY KEY);
                INSERT INTO known VALUES ('a'), ('b');
                CREATE TABLE use (
                    text TEXT NOT NULL REFERENCES known (text) DEFERRABLE INITIALLY DEFERRED);
                """)
    }

    func apply(_ event: Event, in db: Database) throws {
        let word = try event.payload(as: WordWritten.self)
        try db.execute(sql: "INSERT INTO use VALUES (?)", arguments: [word.text])
    }
}

/// A folder with a log and a database.
final class SQLBench: Sendable {
    private let folder: TemporaryFolder
    let pool: DatabasePool

    init() throws {
        folder = try TemporaryFolder()
        pool = try DatabasePool(path: folder.path + "/rows.sqlite")
    }

    func open(_ name: String = "log") async throws -> EventStore {
        try await EventStore.open(
            at: URL(filePath: folder.path + "/" + name), rules: [], compaction: nil)
    }

    /// The number of rows that the pool's writer has changed.
    func dataVersion() async throws -> Int {
        try await pool.write { db in try Int.fetchOne(db, sql: "SELECT total_changes()") ?? 0 }
    }

    /// The names of the database's files, without those of SQLite's journal.
    func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasPrefix("rows") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
    }

    func remove() {
        try? pool.close()
        folder.remove()
    }
}
