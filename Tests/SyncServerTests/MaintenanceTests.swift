// Erasure, retention and migration of whole databases. Spec/operations/operating.md.

import Foundation
import GRDB
import SyncServerStorage
import TestSupport
import Testing

@Suite struct MaintenanceTests {
    let fixture: StorageFixture

    init() throws { fixture = try StorageFixture() }

    private func command(_ arguments: String...) throws -> Int32 {
        try ServerProcess.run(arguments + ["--database", "sqlite:\(fixture.path)"]).status
    }

    /// All bytes of the database and its side files.
    private func bytes() throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path)
            .filter { $0.hasPrefix("events.db") }
            .reduce(into: Data()) {
                $0 += try Data(contentsOf: fixture.folder.appending($1))
            }
    }

    @Test(.verifies("OPS-10"))
    func `a mistyped path creates no empty database`() throws {
        let path = fixture.folder.appending("typo.db").path
        for command in [["erase", "--account", "ana"], ["prune", "--unused-for", "1d"]] {
            let done = try ServerProcess.run(command + ["--yes", "--database", "sqlite:\(path)"])
            #expect(done.status == 66)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test(.verifies("OPS-10"))
    func `an erased account leaves no trace, and the others stay`() async throws {
        let server = try ServerProcess(database: fixture.path, "--token-file", try tokens())
        let ana = ServerClient(base: server.base, token: "first")
        let bob = ServerClient(base: server.base, token: "second")
        var notes = (UInt64(1)...50).map {
            Sample.note("added", "secret-note-\($0)", $0, text: "secret-text")
        }
        #expect(try await ana.post(notes.body).status == 200)
        let cities = Sample.cities(5)
        #expect(try await bob.post(cities.body).status == 200)
        #expect(try bytes().range(of: Data("secret-text".utf8)) != nil)
        // Only counts without --yes.
        #expect(try command("erase", "--account", "ana") == 1)
        #expect(try await ana.allIDs().count == 50)
        let page = try await ana.get("/v1/events?limit=30")
        let next = try #require(page.next)

        #expect(try command("erase", "--account", "ana", "--yes") == 0)
        #expect(try await ana.allIDs().isEmpty)
        #expect(try await bob.allIDs() == cities.map(\.id.text))
        for word in ["secret-text", "secret-note-7", notes[6].lane ?? ""] {
            #expect(try bytes().range(of: Data(word.utf8)) == nil, "\(word)")
        }
        // If the account comes back, a reader with an old cursor misses nothing.
        notes = Array(notes.prefix(3))
        #expect(try await ana.post(notes.body).statuses == Array(repeating: "applied", count: 3))
        #expect(try await ana.allIDs(next) == notes.map(\.id.text))
        #expect(try command("erase", "--account", "nobody", "--yes") == 0)
    }

    /// Concurrent writes move rows between pages, which leaves copies.
    @Test(.verifies("OPS-10"), .timeLimit(.minutes(30)))
    func `an account that is erased under load leaves no trace either`() async throws {
        let runs =
            ProcessInfo.processInfo.environment["DAYBOOK_ERASURES"].flatMap { Int($0) } ?? 3
        let server = try ServerProcess(database: fixture.path, "--token-file", try tokens())
        let bob = ServerClient(base: server.base, token: "second")
        let load = Task {
            var sequence: UInt64 = 1
            while !Task.isCancelled {
                let notes = (sequence..<sequence + 10).map {
                    Sample.note(
                        "added", "bob-\($0 % 500)", $0,
                        text: String(repeating: "b", count: Int($0 * 37 % 3_000)))
                }
                sequence += 10
                // 503 while the file is rewritten.
                _ = try await bob.post(notes.body)
                // Without a pause the file grows faster than it is rewritten.
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        for run in 1...runs {
            let storage: SQLiteEventStorage = try fixture.open()
            for part in UInt64(0)..<4 {
                let notes = (part * 30 + 1...part * 30 + 30).map {
                    Sample.note(
                        "added", "secret-note-\(run)-\($0)", $0,
                        text: String(repeating: "secret-text-\(run) ", count: Int($0 * 7 % 300)))
                }
                _ = try await storage.append(notes)
            }
            try storage.close()
            #expect(try bytes().range(of: Data("secret-".utf8)) != nil)
            #expect(try command("erase", "--account", "ana", "--yes") == 0)
            for word in ["secret-note-", "secret-text-"] {
                #expect(try bytes().range(of: Data(word.utf8)) == nil, "run \(run): \(word)")
            }
        }
        load.cancel()
        try? await load.value
        #expect(try await bob.get("/v1/events?limit=1").ids.count == 1)
        #expect(server.stop() == 0)
    }

    @Test(.verifies("OPS-13"))
    func `an unfinished erasure reports the remaining traces, and the next one removes them`()
        async throws
    {
        let storage: SQLiteEventStorage = try fixture.open()
        let notes = (UInt64(1)...50).map {
            Sample.note("added", "secret-note-\($0)", $0, text: "secret-text")
        }
        _ = try await storage.append(notes)
        let other = try DatabasePool(path: fixture.path)
        let arguments = ["erase", "--account", "ana", "--yes", "--wait", "1", "--database"]
        // A write transaction that stays open.
        try await other.writeWithoutTransaction { db in
            try db.inTransaction(.immediate) {
                let end = try ServerProcess.run(arguments + ["sqlite:\(fixture.path)"])
                #expect(end.status == 74)
                #expect(end.message.contains("ana was not erased: another process has kept"))
                return .rollback
            }
        }
        #expect(try await storage.eventCount(account: "ana") == 50)
        // A read transaction that stays open, for which SQLite keeps the old pages.
        try await other.read { db in
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM event")
            let end = try ServerProcess.run(arguments + ["sqlite:\(fixture.path)"])
            #expect(end.status == 74)
            #expect(end.message.contains("the events are deleted"))
            #expect(end.message.contains("\(fixture.path)-wal"))
        }
        #expect(try await storage.eventCount(account: "ana") == 0)
        #expect(try bytes().range(of: Data("secret-text".utf8)) != nil)
        #expect(try command("prune", "--unused-for", "400d", "--yes") == 0)
        #expect(try bytes().range(of: Data("secret-text".utf8)) == nil)
    }

    @Test(.verifies("OPS-13"))
    func `a pruning that fails at one account reports it, and removes the traces of those before`()
        async throws
    {
        let start = Date(timeIntervalSinceNow: -500 * 86_400)
        let storage = try SQLiteEventStorage(
            path: fixture.path, catalogue: StorageFixture.catalogue
        ) { start }
        for account in ["ana", "bob", "eva"] {
            let notes = (UInt64(1)...50).map {
                Sample.note("added", "note-\($0)", $0, text: "secret-of-\(account)")
            }
            _ = try await storage.append(notes, account: account)
        }
        try storage.close()
        let other = try DatabaseQueue(path: fixture.path)
        try await other.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER failure BEFORE DELETE ON account WHEN OLD.name = 'bob'
                    BEGIN SELECT RAISE(ABORT, 'failure'); END
                    """)
        }
        let arguments = [
            "prune", "--unused-for", "400d", "--yes", "--database", "sqlite:\(fixture.path)",
        ]
        let end = try ServerProcess.run(arguments)
        #expect(end.status == 74)
        #expect(end.message.hasPrefix("syncserver: bob was not erased: SQLite: failure"))
        #expect(!end.message.contains("nothing was erased"))
        #expect(try bytes().range(of: Data("secret-of-ana".utf8)) == nil)
        #expect(try bytes().range(of: Data("secret-of-bob".utf8)) != nil)
        try await other.write { try $0.execute(sql: "DROP TRIGGER failure") }
        try other.close()
        #expect(try ServerProcess.run(arguments).status == 0)
        #expect(try bytes().range(of: Data("secret-of-".utf8)) == nil)
    }

    @Test(.verifies("OPS-13"))
    func `an erasure that cannot open its database reports that nothing was erased`() throws {
        try Data("no database, but long enough to be looked at as one".utf8)
            .write(to: URL(filePath: fixture.path))
        for command in [["erase", "--account", "ana"], ["prune", "--unused-for", "400d"]] {
            let end = try ServerProcess.run(
                command + ["--yes", "--database", "sqlite:\(fixture.path)"])
            #expect(end.status == 65)
            #expect(end.message.hasPrefix("syncserver: nothing was erased: SQLite: "))
        }
    }

    @Test(.verifies("OPS-10", "OPS-21"))
    func `reading goes on while batches wait for a lock that an erasure holds`() async throws {
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        let first = Sample.cities(3).body
        #expect(try await client.post(first).status == 200)
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: fixture.path, configuration: configuration)
        // The first page of a day records the use of the account.
        try await other.write { try $0.execute(sql: "UPDATE account SET last_used = 0") }
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        var batches: [RawConnection] = []
        var bytes = first.count
        var isBeforeBatches = false
        // A batch is refused after 5 s, on a busy machine also before a page that did not wait.
        for attempt in UInt64(0)..<10 where !isBeforeBatches {
            var waiting: [RawConnection] = []
            for number in 0..<UInt64(16) {
                let body = Sample.cities(1, from: 10 + attempt * 16 + number).body
                let connection = try RawConnection(server.base)
                connection.send(
                    "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        + "Content-Type: application/cloudevents-batch+json\r\n"
                        + "Content-Length: \(body.count)\r\n\r\n")
                connection.send(body)
                waiting.append(connection)
                bytes += body.count
            }
            let sent = bytes
            try await eventually("bytes of bodies", where: { $0 >= sent }) {
                try await client.metric("daybook_body_bytes_total{direction=\"in\"}") ?? 0
            }
            #expect(try await client.get("/v1/events").ids.count == 3)
            isBeforeBatches = !waiting.contains { $0.hasInput }
            batches += waiting
        }
        #expect(isBeforeBatches)
        for _ in 0..<20 { #expect(try await client.get("/v1/events").ids.count == 3) }
        try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        for batch in batches { #expect(try batch.readToEnd().hasPrefix("HTTP/1.1 ")) }
        #expect(server.stop() == 0)
        let lastUsed = try await other.read {
            try Int.fetchOne($0, sql: "SELECT last_used FROM account") ?? 0
        }
        #expect(lastUsed > 0)
    }

    private func tokens() throws -> String {
        let file = fixture.folder.appending("tokens")
        try "first ana\nsecond bob\n".write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    @Test(.verifies("OPS-11"))
    func `an unused account is pruned, one that is only read is not`() async throws {
        let start = Date(timeIntervalSinceNow: -500 * 86_400)
        func storage(at day: Int) throws -> SQLiteEventStorage {
            let now = start.addingTimeInterval(Double(day) * 86_400)
            return try SQLiteEventStorage(path: fixture.path, catalogue: StorageFixture.catalogue) {
                now
            }
        }
        var open = try storage(at: 0)
        for account in ["unused", "read", "written"] {
            _ = try await open.append(Sample.cities(2), account: account)
        }
        try open.close()
        open = try storage(at: 450)
        _ = try await open.page(account: "read", source: nil, after: nil, limit: 1)
        _ = try await open.page(account: "unknown", source: nil, after: nil, limit: 1)
        _ = try await open.append(Sample.cities(1), account: "written")
        try open.close()

        #expect(try command("prune", "--unused-for", "501d", "--yes") == 0)
        #expect(try command("prune", "--unused-for", "400d") == 1)
        #expect(try command("prune", "--unused-for", "400") == 64)
        #expect(try command("prune", "--unused-for", "0d") == 64)
        open = try fixture.open()
        #expect(try await open.eventCount(account: "unused") == 2)
        try open.close()
        #expect(try command("prune", "--unused-for", "400d", "--yes") == 0)
        open = try fixture.open()
        #expect(try await open.eventCount(account: "unused") == 0)
        #expect(try await open.eventCount(account: "read") == 2)
        #expect(try await open.eventCount(account: "written") == 3)
    }

    @Test(.verifies("OPS-12"))
    func `a later migration runs once and keeps the events`() async throws {
        #expect(try command("migrate") == 0)
        #expect(try command("migrate") == 0)
        let samples = Sample.cities(3)
        var storage: SQLiteEventStorage = try fixture.open()
        _ = try await storage.append(samples)
        try storage.close()
        var later = SQLiteSchema.migrator
        later.registerMigration("2 later") { db in
            try db.execute(sql: "ALTER TABLE event ADD COLUMN received TEXT")
        }
        for _ in 0..<2 {
            storage = try SQLiteEventStorage(
                path: fixture.path, catalogue: StorageFixture.catalogue, migrator: later)
            #expect(try await storage.schemaVersion() == "2 later")
            #expect(try await storage.append(samples).allSatisfy { $0.status == .duplicate })
            try storage.close()
        }
        // The server of before.
        #expect(try command("migrate") == 65)
    }
}
