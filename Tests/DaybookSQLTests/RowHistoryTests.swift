// Random histories of a log and a database: after each, the rows are those of a naive fold.

import Daybook
import DaybookSQL
import DaybookTestKit
import EventGenerators
import Foundation
import GRDB
import TestSupport
import Testing

@Suite(.verifies("SQL-2", "SQL-3", "SQL-4", "SQL-5", "SQL-6", "SQL-7")) struct RowHistoryTests {
    @Test func `rows equal the fold after any history of the log and of the database`() async throws
    {
        try await Property.check("rows", runs: 12) { choices in
            let history = try RowHistory()
            defer { history.remove() }
            do {
                try await history.open()
                for _ in 0..<choices.int(in: 1...25) {
                    try await history.step(&choices)
                    if choices.bool(oneIn: 3) { try await history.check() }
                }
                try await history.check()
            } catch {
                try? await history.close()
                throw error
            }
            try await history.close()
        }
    }
}

/// A log, a database, and what happens to them.
private final class RowHistory {
    private let folder: TemporaryFolder
    private var database: any DatabaseWriter
    private var store: EventStore?
    private var rows: ProjectedRows?
    private var version = 1
    private var logName = "log"
    private var copies = 0
    private var usesPool = true
    /// The files of an earlier moment.
    private var oldDatabase: String?
    private var oldLog: String?

    init() throws {
        folder = try TemporaryFolder()
        database = try DatabaseQueue()
    }

    private var path: String { folder.path + "/rows.sqlite" }

    func remove() { folder.remove() }

    func open() async throws {
        var environment = LogEnvironment()
        // A wait that ended at once would repeat failed work in a busy loop.
        environment.sleep = { try await Task.sleep(for: min($0, .milliseconds(20))) }
        let store = try await EventStore.open(
            at: URL(filePath: folder.path + "/" + logName), compaction: nil,
            environment: environment)
        self.store = store
        database = usesPool ? try DatabasePool(path: path) : try DatabaseQueue(path: path)
        let trips: any SQLProjection = version == 1 ? TripRows() : TripRows2()
        rows = try await store.project(into: database, [trips, WordRows()])
    }

    func close() async throws {
        try await store?.close()
        await rows?.close()
        try database.close()
    }

    func check() async throws {
        let (store, rows) = (try #require(store), try #require(rows))
        try await store.flush()
        // An interrupted or full database fails once, and is tried again.
        var failures = 0
        while true {
            do {
                try await rows.reach(await store.lastDurable)
                break
            } catch  where failures < 20 { failures += 1 }
        }
        let expected = try await ExpectedRows(store)
        try #require(try await ExpectedRows(database) == expected)
        let parked = Set(try await rows.parked().map(\.position))
        var failing: Set<Position> = []
        for try await event in store.recordedEvents() where event.type == StopNamed.type {
            let isRetracted = await store.isRetracted(event.position)
            if !isRetracted, try event.payload(as: StopNamed.self).name?.hasPrefix("fail") == true {
                failing.insert(event.position)
            }
        }
        try #require(parked == failing)
    }

    func step(_ choices: inout Choices) async throws {
        let store = try #require(store)
        switch choices.int(in: 0...15) {
        case 0...5: try await append(choices.int(in: 1...30), &choices, to: store)
        case 6, 7:
            choices.note("retract")
            let last = await store.lastDurable
            guard last > .zero else { return }
            let position = Position(UInt64(choices.int(in: 1...Int(last.rawValue))))
            try await store.retractOrReinstate(at: position)
        case 8, 9:
            choices.note("reopen")
            try await close()
            version = choices.int(in: 1...2)
            usesPool = choices.bool()
            try await open()
        case 10:
            choices.note("older database, or none")
            try await close()
            try removeDatabase()
            if let oldDatabase, choices.bool(oneIn: 2) {
                try FileManager.default.copyItem(atPath: oldDatabase, toPath: path)
            }
            try await open()
        case 11:
            choices.note("keep copies")
            try await close()
            copies += 1
            oldDatabase = folder.path + "/database-\(copies)"
            oldLog = folder.path + "/copy-\(copies)"
            // Closed by its last connection, the database is one file.
            try FileManager.default.copyItem(atPath: path, toPath: oldDatabase ?? "")
            try FileManager.default.copyItem(
                atPath: folder.path + "/" + logName, toPath: oldLog ?? "")
            try await open()
        case 12:
            guard let oldLog else { return }
            choices.note("older log")
            try await close()
            copies += 1
            logName = "log-\(copies)"
            try FileManager.default.copyItem(
                atPath: oldLog, toPath: folder.path + "/" + logName)
            try await open()
        case 13:
            choices.note("interrupt")
            try await append(20, &choices, to: store)
            database.interrupt()
        case 14:
            choices.note("full")
            let limit = try await database.writeWithoutTransaction { db in
                let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                return try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(pages + 1)")
            }
            choices.note("at most \(limit ?? 0) pages")
            try await append(200, &choices, to: store)
            try? await rows?.reach(await store.lastDurable)
            try await database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA max_page_count = 1073741823")
            }
        default:
            choices.note("compact")
            try await store.compact()
        }
    }

    private func append(_ count: Int, _ choices: inout Choices, to store: EventStore) async throws {
        choices.note("append \(count)")
        for number in 0..<count {
            let name = choices.element(of: ["pier", "harbour", "fail", "fail late", "north pier"])
            var draft =
                choices.bool(oneIn: 4)
                ? try EventDraft(WordWritten(text: "\(number)"))
                : try EventDraft(
                    StopNamed(
                        trip: "trip-\(choices.int(in: 0...5))", name: choices.bool() ? name : nil))
            draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...50)))
            try await store.append(draft, durability: .relaxed)
        }
        if choices.bool() { try await store.flush() }
    }

    private func removeDatabase() throws {
        for suffix in ["", "-wal", "-shm"]
        where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.removeItem(atPath: path + suffix)
        }
    }
}
