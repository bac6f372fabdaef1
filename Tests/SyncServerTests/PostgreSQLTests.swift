// The failures of a database that several servers share: order, races, lost connections, schemas. The tests
// for all storages are VerdictTests and StorageTests.

import EventSourcing
import Foundation
import SyncServerStorage
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct PostgreSQLTests {
    /// Runs append_batch like another server, in a transaction that stays open.
    private func append(
        _ samples: [Sample], account: String = "ana", on connection: PostgreSQLConnection
    ) async throws {
        let batch = PostgreSQLBatch(
            try StorageFixture.batch("[\(samples.map(\.line).joined(separator: ","))]"))
        let rows = try await connection.run(
            PostgreSQLBatch.call, [account], arrays: batch.arguments)
        #expect(try batch.verdicts(rows).map(\.status) == samples.map { _ in .applied })
    }

    /// Waits until a connection of this database waits for a lock.
    private func waitForLock(_ fixture: PostgreSQLFixture) async throws {
        let watcher = try fixture.connect()
        try await eventually("connections that wait for a lock", is: 1) {
            try await watcher.run(
                """
                SELECT FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'
                """
            ).count
        }
    }

    // MARK: Order

    /// ```
    /// first                    second                   reader
    /// BEGIN
    /// append e1: position 1
    ///                          append e2: waits
    ///                                                   sees nothing
    /// COMMIT
    ///                          position 2, committed
    ///                                                   sees e1, e2
    /// ```
    @Test(.verifies("SYNC-19", "SYNC-35", "PG-3"), arguments: ["COMMIT", "ROLLBACK"])
    func `the lower position commits last`(end: String) async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        let events = Sample.cities(2)
        let first = try fixture.connect()
        _ = try await first.run("BEGIN")
        try await append([events[0]], on: first)
        async let second = storage.append([events[1]])
        try await waitForLock(fixture)
        let start = try await storage.page(account: "ana", source: nil, after: nil, limit: 10)
        #expect(start.lines.isEmpty)
        _ = try await first.run(end)
        #expect(try await second.map(\.status) == [.applied])
        let page = try await storage.page(
            account: "ana", source: nil, after: start.next, limit: 10)
        let expected = end == "COMMIT" ? events : [events[1]]
        #expect(page.lines.map { String(decoding: $0, as: UTF8.self) } == expected.map(\.line))
        #expect(page.next == .serial(Int64(expected.count)))
    }

    @Test(.verifies("SYNC-19", "SYNC-35", "PG-3"))
    func `a transaction that began first and appends last gets the higher position`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        let events = Sample.cities(3)
        _ = try await storage.append([events[0]])
        let first = try fixture.connect()
        _ = try await first.run("BEGIN")
        _ = try await first.run("SELECT count(*) FROM daybook.event")
        _ = try await storage.append([events[1]])
        let page = try await storage.page(account: "ana", source: nil, after: nil, limit: 10)
        #expect(page.lines.count == 2)
        try await append([events[2]], on: first)
        _ = try await first.run("COMMIT")
        let rest = try await storage.page(
            account: "ana", source: nil, after: page.next, limit: 10)
        #expect(rest.lines.map { String(decoding: $0, as: UTF8.self) } == [events[2].line])
    }

    @Test(.verifies("PG-3")) func `accounts do not wait for each other`() async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        let holder = try fixture.connect()
        _ = try await holder.run("BEGIN")
        try await append(Sample.cities(1), on: holder)
        let verdicts = try await storage.append(Sample.cities(1), account: "bob")
        #expect(verdicts.map(\.status) == [.applied])
        _ = try await holder.run("COMMIT")
    }

    @Test(.verifies("SYNC-35", "PG-3"))
    func `a reader that follows an account during writes misses nothing`() async throws {
        let fixture = try await PostgreSQLFixture()
        let first = TestStorage(fixture: fixture, storage: try await fixture.open())
        let storages = [first, try await first.openSecond()]
        let all = Sample.cities(400)
        async let written: Void = withThrowingTaskGroup { group in
            for worker in 0..<8 {
                group.addTask {
                    for index in stride(from: worker, to: all.count, by: 8) {
                        _ = try await storages[worker % 2].append([all[index]])
                    }
                }
            }
            try await group.waitForAll()
        }
        var seen: [String] = []
        var cursor: EventCursor?
        try await eventually("events read", where: { (count: Int) in count >= all.count }) {
            let page = try await first.page(account: "ana", source: nil, after: cursor, limit: 7)
            seen += page.lines.map { String(decoding: $0, as: UTF8.self) }
            cursor = page.next
            return seen.count
        }
        try await written
        #expect(Set(seen) == Set(all.map(\.line)))
        #expect(seen.count == all.count)
    }

    // MARK: Races

    @Test(.verifies("SYNC-18", "PG-4"))
    func `two servers that get the same batches at once store each event once`() async throws {
        let fixture = try await PostgreSQLFixture()
        let first = TestStorage(fixture: fixture, storage: try await fixture.open())
        let storages = [first, try await first.openSecond()]
        let batches: [[Sample]] = (0..<10).map { (batch: Int) -> [Sample] in
            let note = Sample.note("added", "note-\(batch)", UInt64(1_000 + batch))
            return Sample.cities(20, from: UInt64(batch * 20 + 1)) + [note]
        }
        let applied = try await withThrowingTaskGroup(of: Int.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var applied = 0
                    for batch in worker % 2 == 0 ? batches : batches.reversed() {
                        // In another order, too.
                        let batch = worker < 4 ? batch : batch.reversed()
                        let verdicts = try await storages[worker % 2].append(batch)
                        #expect(verdicts.allSatisfy { !$0.status.holdsLane && $0.code == nil })
                        applied += verdicts.count { $0.status == .applied }
                    }
                    return applied
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(applied == 210)
        #expect(Set(try await first.all()) == Set(batches.joined().map(\.line)))
        #expect(try await first.all().count == 210)
        let heads = try await fixture.connect().run("SELECT count(*) FROM daybook.note_head")
        #expect(heads == [["10"]])
    }

    @Test(.verifies("SYNC-27", "PG-4"))
    func `of two concurrent changes on one base at two servers, one is a conflict`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let first = TestStorage(fixture: fixture, storage: try await fixture.open())
        let second = try await first.openSecond()
        for round in 0..<10 {
            let number = UInt64(round * 3)
            let added = Sample.note("added", "n\(round)", number + 1)
            _ = try await first.append([added])
            let mine = Sample.note("updated", "n\(round)", number + 2, base: added.id)
            let theirs = Sample.note("updated", "n\(round)", number + 3, base: added.id)
            async let one = first.append([mine])
            async let two = second.append([theirs])
            let statuses = try await [one[0].status, two[0].status]
            #expect(Set(statuses) == [.applied, .conflict])
        }
    }

    // MARK: Connections

    @Test(.verifies("SYNC-17", "PG-6"))
    func `a connection lost in a commit gives no verdict, and a repetition is safe`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        let events = Sample.cities(3)
        let holder = try fixture.connect()
        _ = try await holder.run("BEGIN")
        try await append([events[0]], on: holder)
        let lost = Task { try await storage.append(events) }
        try await waitForLock(fixture)
        _ = try await fixture.connect().run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
            """)
        await #expect(throws: StorageError.self) { try await lost.value }
        _ = try await holder.run("COMMIT")
        let again = try await storage.append(events)
        #expect(again.map(\.status) == [.duplicate, .applied, .applied])
        #expect(try await storage.all() == events.map(\.line))
    }

    @Test(.verifies("PG-6"))
    func `idle connections that were closed are opened again`() async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        for sequence in UInt64(1)...3 {
            _ = try await fixture.connect().run(
                """
                SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                """)
            let verdicts = try await storage.append(Sample.cities(1, from: sequence))
            #expect(verdicts.map(\.status) == [.applied])
        }
    }

    @Test(.verifies("PG-7"))
    func `a statement that waits too long is cancelled without effect`() async throws {
        let fixture = try await PostgreSQLFixture()
        _ = try await fixture.connect().run("ALTER DATABASE \(fixture.name) RESET ALL")
        let limits = try await fixture.connect().run("SHOW statement_timeout")
        #expect(limits == [["10s"]])
        _ = try await fixture.connect().run(
            "ALTER DATABASE \(fixture.name) SET statement_timeout = 5000")
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        let events = Sample.cities(2)
        let holder = try fixture.connect()
        _ = try await holder.run("BEGIN")
        try await append([events[0]], on: holder)
        await #expect(throws: StorageError.self) { try await storage.append([events[1]]) }
        _ = try await holder.run("COMMIT")
        #expect(try await storage.all() == [events[0].line])
        #expect(try await storage.append([events[1]]).map(\.status) == [.applied])
    }

    @Test(.verifies("PG-7")) func `many requests share few connections`() async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        let watcher = try fixture.connect()
        let most = try await withThrowingTaskGroup(of: Void.self) { group in
            for account in 0..<100 {
                group.addTask {
                    // Retries a request that timed out on a busy machine.
                    let applied = Array(repeating: "applied", count: 5)
                    try await eventually("verdicts", is: applied) {
                        let verdicts = try? await storage.append(
                            Sample.cities(5), account: "account-\(account)")
                        return verdicts?.map(\.status.rawValue) ?? []
                    }
                }
            }
            try await group.waitForAll()
            return try await watcher.run(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND backend_type = 'client backend'
                """)
        }
        let count = try #require(most.first?[0].flatMap { Int($0) })
        #expect((2...PostgreSQLPool.connectionsMax).contains(count))
    }

    @Test(.verifies("SYNC-17", "PG-5"))
    func `a commit is synced before it is answered, whatever the database's default`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let name = fixture.name
        for (setting, expected) in [
            ("off", "on"), ("local", "on"), ("remote_apply", "remote_apply"),
        ] {
            _ = try await fixture.connect().run(
                "ALTER DATABASE \(name) SET synchronous_commit = \(setting)")
            #expect(try await fixture.connect().run("SHOW synchronous_commit") == [[expected]])
        }
    }

    // MARK: Accounts

    @Test(.verifies("OPS-10"))
    func `an erased account is gone, the others stay, and old cursors miss nothing`() async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = try await PostgreSQLEventStorage(
            PostgreSQLLocation(fixture.location), catalogue: StorageFixture.catalogue)
        let notes = (UInt64(1)...5).map { Sample.note("added", "n\($0)", $0) }
        for account in ["ana", "bob"] { _ = try await storage.append(notes, account: account) }
        let page = try await storage.page(account: "ana", source: nil, after: nil, limit: 5)
        func erase(_ options: String...) throws -> Int32 {
            try ServerProcess.run(
                ["erase", "--account", "ana", "--database", fixture.location] + options
            ).status
        }
        #expect(try erase() == 1)
        #expect(try await storage.eventCount(account: "ana") == 5)
        #expect(try erase("--yes") == 0)
        for table in ["account", "event", "note_head"] {
            let rows = try await fixture.connect().run(
                "SELECT DISTINCT account FROM daybook.\(table)")
            #expect(rows == [["bob"]])
        }
        _ = try await storage.append(Array(notes.prefix(2)), account: "ana")
        let rest = try await storage.page(
            account: "ana", source: nil, after: page.next, limit: 5)
        #expect(rest.lines.count == 2)
        try storage.close()
    }

    @Test(.verifies("OPS-11"))
    func `an unused account is pruned, one that is only read is not`() async throws {
        let fixture = try await PostgreSQLFixture()
        let first = try await PostgreSQLEventStorage(
            PostgreSQLLocation(fixture.location), catalogue: StorageFixture.catalogue)
        for account in ["unused", "read", "written"] {
            _ = try await first.append(Sample.cities(2), account: account)
        }
        try first.close()
        try await fixture.connect().runScript(
            "UPDATE daybook.account SET last_used = current_date - 450")
        // Another server, which has recorded no use yet.
        let storage = try await PostgreSQLEventStorage(
            PostgreSQLLocation(fixture.location), catalogue: StorageFixture.catalogue)
        _ = try await storage.page(account: "read", source: nil, after: nil, limit: 1)
        _ = try await storage.append([ReceivedEvent](), account: "written")
        func prune(_ options: String...) throws -> Int32 {
            try ServerProcess.run(["prune", "--database", fixture.location] + options).status
        }
        #expect(try prune("--unused-for", "451d", "--yes") == 0)
        #expect(try prune("--unused-for", "400d") == 1)
        #expect(try await storage.eventCount(account: "unused") == 2)
        #expect(try prune("--unused-for", "400d", "--yes") == 0)
        #expect(try await storage.eventCount(account: "unused") == 0)
        #expect(try await storage.eventCount(account: "read") == 2)
        #expect(try await storage.eventCount(account: "written") == 2)
        try storage.close()
    }

    @Test(.verifies("OPS-11"))
    func `an account that is used again during pruning is kept`() async throws {
        for kind in StorageKind.all {
            let store = try await kind.open()
            _ = try await store.append(Sample.cities(2))
            let maintenance = try #require(store.storage as? any StorageMaintenance)
            // Listed as unused, and used since.
            let yesterday = Date(timeIntervalSinceNow: -86_400)
            let isErased = try await maintenance.erase(account: "ana", unusedSince: yesterday)
            #expect(!isErased)
            #expect(try await maintenance.eventCount(account: "ana") == 2)
            #expect(try await maintenance.erase(account: "ana", unusedSince: nil))
            #expect(try await maintenance.eventCount(account: "ana") == 0)
            #expect(try await !maintenance.erase(account: "ana", unusedSince: nil))
            try store.close()
        }
    }

    @Test(.verifies("PG-6", "PG-7"))
    func `a database that has stopped silently times out, and is used again`() async throws {
        let fixture = try await PostgreSQLFixture()
        let url = fixture.location
        let storage = try await PostgreSQLEventStorage(
            PostgreSQLLocation(
                url + (url.contains("?") ? "&" : "?") + "options=-c%20statement_timeout%3D3000"),
            catalogue: StorageFixture.catalogue)
        let samples = Sample.cities(2)
        #expect(try await storage.append(Array(samples.prefix(1))).map(\.status) == [.applied])
        // The announcement of the batch may open a connection of its own.
        try await eventually("idle connections after an announcement", where: { $0 > 0 }) {
            try await fixture.connect().run(
                "SELECT FROM pg_stat_activity WHERE application_name = 'syncserver' "
                    + "AND datname = current_database() AND query ILIKE '%pg_notify%' "
                    + "AND state = 'idle' AND pid <> pg_backend_pid()"
            ).count
        }
        let others = try await fixture.connect().run(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'syncserver' "
                + "AND datname = current_database() AND pid <> pg_backend_pid()")
        let stopped = others.compactMap { $0[0].flatMap { pid_t($0) } }
        try #require(!stopped.isEmpty)
        for process in stopped { kill(process, SIGSTOP) }
        defer { for process in stopped { kill(process, SIGCONT) } }
        await #expect(throws: StorageError.self) {
            _ = try await storage.append(samples)
        }
        // The next one opens a connection of its own.
        let verdicts = try await storage.append(samples)
        #expect(verdicts.map(\.status) == [.duplicate, .applied], "\(verdicts)")
        try storage.close()
    }

    // MARK: Schemas

    @Test(.verifies("PG-1")) func `servers that start together make one schema`() async throws {
        let fixture = try await PostgreSQLFixture()
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 { group.addTask { try await fixture.open().close() } }
            try await group.waitForAll()
        }
        let steps = try await fixture.connect().run("SELECT number FROM daybook.migration")
        #expect(steps == PostgreSQLSchema.steps.map { ["\($0.number)"] })
        #expect(try await PostgreSQLSchema.migrate(fixture.connect()).isEmpty)
    }

    @Test(.verifies("PG-1"))
    func `a later migration runs once, keeps the events, and changes nothing if it fails`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let storage = try await fixture.open()
        let samples = Sample.cities(3)
        _ = try await storage.append(samples)
        let number = PostgreSQLSchema.steps.count + 1
        func later(_ sql: String) -> [PostgreSQLSchema.Step] {
            let record = "INSERT INTO daybook.migration (number, name) VALUES (\(number), 'later');"
            return PostgreSQLSchema.steps + [.init(number: number, sql: record + sql)]
        }
        await #expect(throws: StorageError.self) {
            try await PostgreSQLSchema.migrate(fixture.connect(), later("SELECT 1 / 0"))
        }
        #expect(
            try await PostgreSQLSchema.version(fixture.connect()) == PostgreSQLSchema.steps.count)
        let steps = later("ALTER TABLE daybook.event ADD COLUMN received date")
        #expect(try await PostgreSQLSchema.migrate(fixture.connect(), steps) == [number])
        #expect(try await PostgreSQLSchema.migrate(fixture.connect(), steps).isEmpty)
        // A server that was started before goes on.
        #expect(try await storage.append(samples).allSatisfy { $0.status == .duplicate })
        try storage.close()
        await expectWrongDatabase("newer") { try await fixture.open().close() }
    }

    @Test(.verifies("PG-11")) func `the events have 16 partitions`() async throws {
        let fixture = try await PostgreSQLFixture()
        try await fixture.open().close()
        let partitions = try await fixture.connect().run(
            "SELECT inhrelid FROM pg_inherits WHERE inhparent = 'daybook.event'::regclass")
        #expect(partitions.count == 16)
    }

    @Test(.verifies("PG-1")) func `the steps of the schema are the files of the specification`()
        throws
    {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Spec/sql").standardizedFileURL
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.first?.isNumber == true }.sorted()
        #expect(names.map { Int($0.prefix(4)) } == PostgreSQLSchema.steps.map { $0.number })
        #expect(try names.map(PostgreSQLFixture.sql) == PostgreSQLSchema.steps.map { $0.sql })
    }

    @Test(.verifies("PG-1"))
    func `a database of another application or in another encoding is refused`() async throws {
        let foreign = try await PostgreSQLFixture()
        _ = try await foreign.connect().run("CREATE SCHEMA daybook")
        await expectWrongDatabase("another application") { try await foreign.open().close() }

        let latin = "\(foreign.name)_latin"
        let server = try foreign.cluster.administratorConnection()
        _ = try await server.run(
            "CREATE DATABASE \(latin) ENCODING 'LATIN1' TEMPLATE template0")
        let url = foreign.cluster.url(latin)
        await expectWrongDatabase("UTF-8") {
            try await PostgreSQLEventStorage(
                PostgreSQLLocation(url), catalogue: StorageFixture.catalogue
            ).close()
        }
        _ = try await server.run("DROP DATABASE \(latin) WITH (FORCE)")
    }

    private func expectWrongDatabase(_ word: String, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("opened")
        } catch let error as StorageError {
            #expect(error.code == .wrongDatabase)
            #expect(error.detail.contains(word))
        } catch { Issue.record(error) }
    }

    @Test func `a test cluster ends with its parent process`() async throws {
        var cluster: PostgreSQLCluster? = try PostgreSQLCluster()
        let folder = try #require(cluster?.folder.path(percentEncoded: false))
        #expect(FileManager.default.fileExists(atPath: folder))
        cluster = nil
        try await eventually("the folder of the cluster exists", is: false) {
            FileManager.default.fileExists(atPath: folder)
        }
    }

    // MARK: Secrets

    @Test(
        .verifies("PG-8"),
        arguments: [
            "postgres://ana:xyzzy%zz@localhost/db", "postgres://ana:xyzzy@[::1/db",
            "postgres://ana:xyzzy@127.0.0.1:1/db", "postgres://ana:xyzzy@/xyzzy?host=/nowhere",
            "postgres://ana@127.0.0.1:1/db?password=xyzzy&nonsense=1",
        ])
    func `the password is in no message`(url: String) throws {
        let end = try ServerProcess.run(["--port", "0", "--database", url])
        #expect([65, 74].contains(end.status))
        #expect(end.message.hasPrefix("syncserver: "))
        #expect(!end.message.contains("xyzzy"))
    }

    @Test(.verifies("SYNC-43", "PG-8"))
    func `the error of a failed batch contains nothing of its events`() async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = TestStorage(fixture: fixture, storage: try await fixture.open())
        _ = try await fixture.connect().run(
            "ALTER TABLE daybook.event ADD CONSTRAINT few CHECK (line NOT LIKE '%xyzzy%')")
        do {
            _ = try await storage.append([Sample.note("added", "note-xyzzy", 1)])
            Issue.record("appended")
        } catch let error as StorageError {
            #expect(error.detail.contains("23514"))
            #expect(!error.detail.contains("xyzzy"))
        }
    }
}
