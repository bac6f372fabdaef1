// A queue in a table of SQLite, written as apps write it on GRDB. Its faults are those of public reports. The article
// "Replacing a queue" converts it to RequestQueue.

import DaybookTestKit
import Foundation
import GRDB

struct PendingMutation: Codable, FetchableRecord, PersistableRecord {
    var key = UUID().uuidString
    var entity: String
    var number: Int
    var status = "pending"
    var change: TrialChange { TrialChange(entity, number) }
}

/// Marks a row as being sent and does not look for such rows after a start (KanishJebaMathewM/Truxify#9633),
/// stops at the first failure (khushi897920-lang/hercycle-ai#308), sends one page of rows
/// (crspybits/SharedImages#146), deletes a database that cannot be opened, and empties the table at logout.
/// Its idempotency key is stored with the row.
actor TableQueue: OfflineQueue {
    private let api: ScriptedAPI
    private let folder: TemporaryFolder
    private(set) var database: DatabaseQueue
    private var user = "alice"

    init(sendingTo api: ScriptedAPI) throws {
        self.api = api
        folder = try TemporaryFolder()
        database = try Self.database(in: folder)
    }

    private static func database(in folder: TemporaryFolder) throws -> DatabaseQueue {
        let path = folder.appending("outbox.sqlite").path
        do { return try database(at: path) } catch {
            try FileManager.default.removeItem(atPath: path)
            return try database(at: path)
        }
    }

    private static func database(at path: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        // Syncs took 17 of 18 seconds of a trial, and a kill loses nothing without them.
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF") }
        let database = try DatabaseQueue(path: path, configuration: configuration)
        try database.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS pendingMutation
                        (id INTEGER PRIMARY KEY, key TEXT, entity TEXT, number INTEGER, status TEXT)
                    """)
        }
        return database
    }

    func enqueue(_ change: TrialChange) async throws {
        try await database.write { db in
            try PendingMutation(entity: change.entity, number: change.number).insert(db)
        }
    }

    func run(after signal: QueueSignal) async {
        let page = try? await database.read { db in
            try PendingMutation.filter(sql: "status = 'pending'").order(sql: "id").limit(100)
                .fetchAll(db)
        }
        for row in page ?? [] {
            try? await mark(row, "sending")
            let reply = try? await api.send(row.change, key: row.key, user: user)
            guard let reply, 200..<300 ~= reply.status else {
                try? await mark(row, "pending")
                return
            }
            try? await database.write { db in
                try db.execute(
                    sql: "DELETE FROM pendingMutation WHERE key = ?", arguments: [row.key])
            }
        }
    }

    private func mark(_ row: PendingMutation, _ status: String) async throws {
        try await database.write { db in
            try db.execute(
                sql: "UPDATE pendingMutation SET status = ? WHERE key = ?",
                arguments: [status, row.key])
        }
    }

    func pending() async throws -> [PendingChange] {
        try await database.read { db in
            try PendingMutation.order(sql: "id").fetchAll(db).map { PendingChange($0.change) }
        }
    }

    func killAndReopen() throws { database = try Self.database(in: folder) }

    func setStorage(_ condition: StorageCondition) async throws {
        try await database.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA query_only = \(condition == .full)")
        }
        let file = folder.appending("outbox.sqlite")
        let content = try Data(contentsOf: file)
        let isReadable = content.starts(with: Data("SQLite".utf8))
        // The bytes of a file whose key the locked device does not have.
        if isReadable == (condition == .unreadable) {
            try Data(content.map { ~$0 }).write(to: file)
        }
    }

    func signIn(as user: String) async throws {
        self.user = user
        try await database.write { db in try db.execute(sql: "DELETE FROM pendingMutation") }
    }
}
