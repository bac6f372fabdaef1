// One history of a log and a database with projections, on one simulated disk: the process is killed, or the power
// fails, before any operation of either, also in recovery. After each death the rows are those of the positions that
// the database records; after each opening they become those of the whole log. RowHistory+Steps has what happens
// while the process lives. DaybookSQLTests and `Tools/soak rows` run it. Spec/model/sql.md, SQL-2.

import Daybook
import DaybookSQL
import DaybookTestKit
import Foundation
import GRDB

/// A log, a database, and the processes that write them one after the other.
package final class RowHistory {
    /// The labels that a series of histories must have counted.
    package static let labels = [
        "kill: database", "kill: log", "power cut: database", "power cut: log",
        "deaths in recovery", "recoveries",
    ]

    enum Death: String { case kill, powerCut = "power cut" }

    /// The journals of SQLite that need no shared memory.
    private enum Journal: String, CaseIterable { case delete, truncate, persist, wal }

    let clock = VirtualClock()
    private let seed: UInt64
    private let journal: Journal
    private let cacheSize: Int
    private(set) var files: SimulatedFileSystem
    let databaseFiles: SimulatedDatabaseFiles
    private(set) var store: EventStore?
    private(set) var rows: ProjectedRows?
    private(set) var database: DatabaseQueue?
    var version = 1
    private var lives: UInt64 = 0
    private var logFolder = "/log"
    /// The operation before which the process dies.
    private var death: (kind: Death, at: Int)?
    /// The last position that the store has acknowledged as durable.
    private var acknowledged = Position.zero
    /// The acknowledged positions of this process, with the number of operations at that time.
    private var acknowledgements: [(operations: Int, position: Position)] = []
    /// True if the log was replaced since the rows were last compared: they may be of events that it lacks.
    private(set) var isLogReplaced = false
    private var oldDatabase: [String: [UInt8]]?
    private var oldLog: SimulatedFileSystem?
    private var oldLogFolder = ""
    /// A copy of the rows' database, made while it was open.
    var snapshot: DatabaseQueue?
    /// The number of events of other devices so far.
    var foreignCount = 0

    static let path = "/rows.sqlite"

    private init(_ choices: inout Choices) {
        seed = choices.next(below: 1 << 20)
        journal = choices.element(of: Journal.allCases)
        // A small cache writes pages before the commit.
        cacheSize = choices.element(of: [2_000, 10, 3])
        files = SimulatedFileSystem()
        databaseFiles = SimulatedDatabaseFiles(files)
    }

    /// Runs one history.
    ///
    /// - Throws: `RowHistoryFailure` if rows are not those of the log; unexpected errors of the log and of the
    ///   database.
    package static func run(_ choices: inout Choices) async throws {
        let history = RowHistory(&choices)
        for _ in 0..<choices.int(in: 1...4) {
            if choices.bool(oneIn: 3), !history.isLogReplaced {
                try await history.dieEverywhere(&choices)
            } else {
                try await history.live(&choices, isLast: false)
            }
            try history.disturb(&choices)
        }
        try await history.live(&choices, isLast: true)
    }

    // MARK: Life and death

    /// True if the process has come to its death.
    var isDead: Bool { death.map { files.operations >= $0.at } ?? false }

    /// Runs one process.
    private func live(_ choices: inout Choices, isLast: Bool) async throws {
        if !isLast, !choices.bool(oneIn: 8) {
            let operations = choices.int(in: 0...choices.element(of: [160, 40]))
            let kind: Death = choices.bool() ? .kill : .powerCut
            choices.note("\(kind.rawValue) in \(operations) operations")
            death = (kind, files.operations + operations)
            files.cutPower(at: files.operations + operations)
        }
        do {
            try await open(&choices)
            for _ in 0..<choices.int(in: 0...8) { try await step(&choices) }
            if isLast || choices.bool() { try await check() }
        } catch {
            guard isDead, !(error is RowHistoryFailure) else {
                await abandon()
                throw error
            }
        }
        await end(&choices)
    }

    /// Runs one process to its end, and then lets it die before each of its operations, or before one in eight.
    private func dieEverywhere(_ choices: inout Choices) async throws {
        choices.note("a death at every operation")
        acknowledgements = [(0, acknowledged)]
        files.record()
        do {
            try await open(&choices)
            for _ in 0..<choices.int(in: 0...5) { try await step(&choices) }
            await close()
        } catch {
            await abandon()
            throw error
        }
        let (points, present) = (files.crashPoints, (files.afterKill(), acknowledged, version))
        // The processes after the deaths acknowledge as well.
        let acknowledgements = acknowledgements
        let oneIn = choices.element(of: [1, 8] as [UInt64])
        for point in points where choices.bool(oneIn: oneIn) {
            for death in [Death.kill, .powerCut] {
                files = death == .kill ? point.afterKill() : point.afterPowerCut(&choices)
                databaseFiles.replace(by: files)
                acknowledged =
                    acknowledgements.last { $0.operations <= point.operation }?.position ?? .zero
                version = choices.int(in: 1...2)
                choices.count("deaths")
                choices.count(
                    "\(death.rawValue): \(point.next.contains(Self.path) ? "database" : "log")")
                do { try await recover(&choices) } catch {
                    choices.note("\(death.rawValue) before \(point.operation), \(point.next)")
                    await abandon()
                    throw error
                }
            }
        }
        (files, acknowledged, version) = present
        databaseFiles.replace(by: files)
    }

    /// Checks what a death has left. In some cases the next process opens it, and may die as well.
    private func recover(_ choices: inout Choices) async throws {
        guard choices.bool(oneIn: 6) else {
            let database = try DatabaseQueue(
                path: databaseFiles.uri(of: Self.path), configuration: configuration())
            defer { try? database.close() }
            return try await checkRecorded(database)
        }
        if choices.bool(oneIn: 3) {
            let operations = choices.int(in: 0...60)
            death = (choices.bool() ? .powerCut : .kill, files.operations + operations)
            files.cutPower(at: files.operations + operations)
            do {
                try await open(&choices)
                try await check()
            } catch {
                guard isDead, !(error is RowHistoryFailure) else { throw error }
                choices.count("deaths in recovery")
            }
            await end(&choices)
        }
        choices.count("recoveries")
        try await open(&choices)
        try await check()
        await close()
    }

    private func end(_ choices: inout Choices) async {
        guard let death else { return await close() }
        files.cutPower(at: min(death.at, files.operations))
        choices.count("deaths")
        let isOfDatabase = files.trace.last?.contains(Self.path) ?? false
        choices.count("\(death.kind.rawValue): \(isOfDatabase ? "database" : "log")")
        await abandon()
        files = death.kind == .kill ? files.afterKill() : files.afterPowerCut(&choices)
        databaseFiles.replace(by: files)
        self.death = nil
    }

    /// Opens the log and the database in a new process, and checks what the last one has left.
    func open(_ choices: inout Choices) async throws {
        lives += 1
        var environment = clock.environment(fileSystem: files, seed: seed + lives << 32)
        environment.sleep = { try await Task.sleep(for: min($0, .milliseconds(1))) }
        let store = try await EventStore.open(
            at: URL(filePath: logFolder, directoryHint: .isDirectory), views: [NoteTexts.self],
            compaction: nil, environment: environment)
        self.store = store
        guard await store.lastDurable >= acknowledged else {
            throw RowHistoryFailure(
                "the log ends at \(await store.lastDurable), but \(acknowledged) was acknowledged")
        }
        let database = try DatabaseQueue(
            path: databaseFiles.uri(of: Self.path), configuration: configuration())
        self.database = database
        try await checkRecorded(database)
        let rows = try await store.project(into: database, historyProjections(version))
        self.rows = rows
        for reason in rows.status.rebuilding.values {
            if case .version = reason { choices.count("rebuilt: version") }
        }
    }

    private func configuration() -> Configuration {
        var configuration = Configuration()
        let mode = journal.rawValue
        // WAL has no shared memory here.
        let locking = journal == .wal ? "EXCLUSIVE" : "NORMAL"
        configuration.prepareDatabase { [cacheSize] db in
            try db.execute(
                sql: """
                    PRAGMA locking_mode = \(locking); PRAGMA journal_mode = \(mode);
                    PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
                    PRAGMA cache_size = \(cacheSize); PRAGMA wal_autocheckpoint = 12;
                    """)
        }
        return configuration
    }

    /// Ends the process in order.
    func close() async {
        try? await store?.close()
        await abandon()
    }

    /// Drops all objects. If the process is dead, nothing of it reaches the disk.
    private func abandon() async {
        await rows?.close()
        try? await store?.close()
        try? database?.close()
        (rows, store, database) = (nil, nil, nil)
    }

    // MARK: Checks

    /// Notes what the store has made durable.
    func acknowledge() async {
        guard let store else { return }
        acknowledged = max(acknowledged, await store.lastDurable)
        acknowledgements.append((files.operations, acknowledged))
    }

    /// Compares the rows with the events up to the positions that the database records.
    func checkRecorded(_ database: DatabaseQueue) async throws {
        guard !isLogReplaced else { return }
        try await HistoryRows.checkRecorded(database, logFolder, files)
    }

    /// Waits until the rows include all events, and compares them.
    func check() async throws {
        guard let store, let rows, let database else { return }
        try await store.flush()
        await acknowledge()
        try await reach(await store.lastDurable, rows)
        isLogReplaced = false
        try await HistoryRows.checkAll(database, of: store)
    }

    /// Waits for a position, and fails if the rows do not come to it. An error that has passed, such as a full disk
    /// or an interruption in an earlier step, fails once.
    func reach(_ position: Position, _ rows: ProjectedRows) async throws {
        var failures = 0
        while true {
            do {
                return try await HistoryRows.reach(position, rows)
            } catch  where !isDead && failures < 50 && !(error is RowHistoryFailure) {
                failures += 1
            }
        }
    }

    // MARK: Between two processes

    /// Replaces files while no process runs.
    private func disturb(_ choices: inout Choices) throws {
        switch choices.int(in: 0...11) {
        case 0:
            choices.count("database deleted")
            try removeDatabase()
        case 1, 2:
            // Rows of a replaced log would be compared with the new one.
            guard !isLogReplaced else { return }
            // With its journals.
            oldDatabase = files.image.filter { $0.key.hasPrefix(Self.path) }
        case 3, 4:
            guard let oldDatabase else { return }
            choices.count("older database")
            try removeDatabase()
            for (path, bytes) in oldDatabase { try write(bytes, to: path) }
            try files.syncDirectory("/")
        case 5, 6: (oldLog, oldLogFolder) = (files.afterKill(), logFolder)
        case 7:
            guard let oldLog else { return }
            choices.count("older log")
            logFolder = "/log-\(lives)"
            try copyFolder(oldLogFolder, of: oldLog, to: logFolder)
            (acknowledged, isLogReplaced) = (.zero, true)
            // The copies have rows of the replaced log.
            (oldDatabase, snapshot) = (nil, nil)
        default: break
        }
    }

    private func removeDatabase() throws {
        for path in files.image.keys where path.hasPrefix(Self.path) { try files.remove(path) }
        try files.syncDirectory("/")
    }

    private func read(_ path: String, from files: SimulatedFileSystem) throws -> [UInt8]? {
        guard let file = try? files.open(path, .read) else { return nil }
        return try file.read(at: 0, count: try file.size())
    }

    private func write(_ bytes: [UInt8], to path: String) throws {
        let file = try files.open(path, .createNew)
        try file.write(bytes, at: 0)
        try file.sync()
    }

    private func copyFolder(
        _ folder: String, of source: SimulatedFileSystem, to target: String
    ) throws {
        if (try? source.list(folder)) == nil { return }
        try files.createDirectory(target)
        for name in try source.list(folder) {
            if (try? source.list("\(folder)/\(name)")) != nil {
                try copyFolder("\(folder)/\(name)", of: source, to: "\(target)/\(name)")
            } else if let bytes = try read("\(folder)/\(name)", from: source) {
                try write(bytes, to: "\(target)/\(name)")
            }
        }
        try files.syncDirectory(target)
    }
}
