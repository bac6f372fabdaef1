// The database under the verdicts: durability, atomicity, order, pages, versions.

import EventSourcing
import Foundation
import GRDB
import SyncServerStorage
import TestSupport
import Testing

@Suite struct StorageTests {
    let fixture: StorageFixture

    init() throws { fixture = try StorageFixture() }

    @Test(.verifies("SYNC-17")) func `every commit is synced before it is answered`() throws {
        let storage: SQLiteEventStorage = try fixture.open()
        #expect(try storage.writerPragma("synchronous") == "2")
        #expect(try storage.writerPragma("journal_mode") == "wal")
    }

    @Test func `the file can be read by its owner only`() throws {
        let storage: SQLiteEventStorage = try fixture.open()
        for suffix in ["", "-wal", "-shm"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: fixture.path + suffix)
            #expect((attributes[.posixPermissions] as? Int).map { $0 & 0o777 } == 0o600)
        }
        try storage.close()
        #expect(!FileManager.default.fileExists(atPath: fixture.path + "-wal"))
    }

    @Test(arguments: StorageKind.all)
    func `what was applied is there after reopening`(kind: StorageKind) async throws {
        let events = Sample.cities(3)
        let note = Sample.note("added", "n", 4)
        let first = try await kind.open()
        _ = try await first.append(events + [note])
        try first.close()
        let storage = try await first.openSecond()
        #expect(try await storage.all() == (events + [note]).map(\.line))
        #expect(try await storage.append(events).allSatisfy { $0.status == .duplicate })
        let change = Sample.note("updated", "n", 5, base: note.id)
        #expect(try await storage.append([change]).map(\.status) == [.applied])
    }

    @Test(.verifies("SYNC-17"), arguments: StorageKind.all)
    func `a batch that fails in the middle leaves nothing behind`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let first = Sample.cities(1)
        _ = try await storage.append(first)
        try await storage.fixture.failInserts(ofSequence: 3)
        let note = Sample.note("added", "n", 9)
        let batch = [note] + Sample.cities(2, from: 2)
        await #expect(throws: StorageError.self) { try await storage.append(batch) }
        #expect(try await storage.all() == first.map(\.line))
        try await storage.fixture.allowInserts()
        #expect(try await storage.append(batch).allSatisfy { $0.status == .applied })
        #expect(try await storage.all() == (first + batch).map(\.line))
    }

    @Test(.verifies("SYNC-19", "SYNC-35"), arguments: StorageKind.all)
    func `the server's order is the order of commits, whatever the page size`(kind: StorageKind)
        async throws
    {
        let storage = try await kind.open()
        let events = Sample.cities(25)
        for event in events.reversed() { _ = try await storage.append([event]) }
        for limit in [1, 7, 25, 500] {
            #expect(try await storage.all(limit: limit) == events.reversed().map(\.line))
        }
    }

    @Test(.verifies("SYNC-36"), arguments: StorageKind.all)
    func `the order of a source is its sequence`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        var events = Sample.cities(25)
        var foreign = Sample.cities(2)
        for index in foreign.indices { foreign[index].source = UUID() }
        events[4].sequence = 4
        _ = try await storage.append(events.reversed() + foreign)
        // Of two events with one sequence, the one that was stored first comes first.
        events.swapAt(3, 4)
        for limit in [1, 7, 500] {
            #expect(
                try await storage.all(source: Sample.device, limit: limit) == events.map(\.line))
        }
    }

    @Test(.verifies("SYNC-33"), arguments: StorageKind.all)
    func `the cursor of an empty page leads to later events`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let start = try await storage.page(account: "ana", source: nil, after: nil, limit: 10)
        #expect(start.lines.isEmpty)
        _ = try await storage.append(Sample.cities(3))
        let page = try await storage.page(
            account: "ana", source: nil, after: start.next, limit: 10)
        #expect(page.lines.count == 3)
        let end = try await storage.page(account: "ana", source: nil, after: page.next, limit: 10)
        #expect(end.lines.isEmpty)
        #expect(end.next == page.next)
    }

    @Test(.verifies("SYNC-37"), arguments: StorageKind.all)
    func `a page in the server's order says how many events come after it`(
        kind: StorageKind
    ) async throws {
        let storage = try await kind.open()
        _ = try await storage.append(Sample.cities(7))
        var cursor: EventCursor?
        var remaining: [Int?] = []
        for _ in 0..<4 {
            let page = try await storage.page(
                account: "ana", source: nil, after: cursor, limit: 3)
            remaining.append(page.remaining)
            cursor = page.next
        }
        #expect(remaining == [4, 1, 0, 0])
        let other = try await storage.page(account: "bob", source: nil, after: nil, limit: 3)
        #expect(other.remaining == 0)
        let bySource = try await storage.page(
            account: "ana", source: Sample.device, after: nil, limit: 3)
        #expect(bySource.remaining == nil)
    }

    @Test(.verifies("SYNC-38", "OPS-25"), arguments: StorageKind.all)
    func `a cursor from before a restore is answered with the time of the restored state`(
        kind: StorageKind
    ) async throws {
        let fixture = try await kind.fixture()
        func run(_ to: String) throws -> Int32 {
            try ServerProcess.run(["restored", "--database", fixture.location, "--to", to]).status
        }
        var server = try ServerProcess(database: fixture.location)
        try await ServerClient(base: server.base).append(Sample.cities(5)[...])
        let first = try #require(
            try await ServerClient(base: server.base).get("/v1/events?limit=2").next)
        #expect(first.hasSuffix("after=a2"))
        _ = server.stop()
        #expect(try run("2999-01-01T00:00:00Z") == 64)
        #expect(try run("2026-03-01T08:30:00Z") == 0)
        server = try ServerProcess(database: fixture.location)
        let refused = try await ServerClient(base: server.base).get(first)
        #expect(refused.status == 400)
        #expect(refused.errorCode == "restored")
        let restored = try #require(refused.header("Daybook-Restored"))
        let second = try #require(
            try await ServerClient(base: server.base).get("/v1/events?limit=2").next)
        #expect(second.range(of: "after=a2[.][0-9a-f]{8}$", options: .regularExpression) != nil)
        #expect(restored == "2026-03-01T08:30:00.000Z; generation=\(second.suffix(8))")
        #expect(try await ServerClient(base: server.base).get(second).status == 200)
        // A cursor of a stream is one of a page.
        let stream = try EventStreamReader(server.base)
        let id = try #require(try stream.events(3).last?.cursor)
        #expect(id.hasPrefix("a3."))
        _ = server.stop()
        // The time that counts is the earliest one since the cursor was given out.
        #expect(try run("2026-04-01T08:30:00Z") == 0)
        server = try ServerProcess(database: fixture.location)
        for (cursor, time) in [(first, "2026-03"), (second, "2026-04")] {
            let reply = try await ServerClient(base: server.base).get(cursor)
            #expect(reply.header("Daybook-Restored")?.hasPrefix(time) == true)
        }
    }

    @Test(.verifies("SYNC-34"), arguments: StorageKind.all)
    func `a page of large events is cut short`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        var events = Sample.cities(8)
        for index in events.indices {
            events[index].data =
                #"{"userId":"ana","cityId":"c\#(index)","x":"\#(String(repeating: "x", count: 200_000))"}"#
            events[index].subject = "c\(index)"
            events[index].lane = "city:ana:c\(index)"
        }
        _ = try await storage.append(events)
        let page = try await storage.page(account: "ana", source: nil, after: nil, limit: 500)
        #expect(page.lines.count == 6)
        #expect(try await storage.all() == events.map(\.line))
    }

    @Test(.verifies("SYNC-15", "SYNC-31"), arguments: StorageKind.all)
    func `lines are kept to the byte, without the position`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let event = Sample(
            sequence: 7, data: #"{"userId":"ana", "cityId":"lis\u0062on","n":1.0e3}"#)
        let position = #","position":"00000000000000000001","type""#
        let line = event.line.replacing(#","type""#, with: position)
        _ = try await storage.append(lines: [line])
        #expect(try await storage.all() == [event.line])
    }

    @Test(.verifies("SYNC-12"), arguments: StorageKind.all)
    func `an event in another form is stored as a log line`(kind: StorageKind) async throws {
        let storage = try await kind.open()
        let event = Sample(sequence: 7, lane: nil, time: nil)
        let loose = """
            { "data": \(event.data), "type": "\(event.type)", "id": "\(event.id.uuidString)",
              "sequence": "7", "source": "URN:UUID:\(event.source.uuidString)",
              "specversion": "1.0" }
            """
        let verdicts = try await storage.append(lines: [loose])
        #expect(verdicts == [EventVerdict(event.id, .applied)])
        var complete = event
        complete.lane = "city:ana:lisbon"
        complete.time = "2027-01-15T08:00:00.000Z"
        #expect(try await storage.all() == [complete.line])
    }

    @Test func `a database of a newer server, of another application or of none is refused`()
        throws
    {
        try (fixture.open() as SQLiteEventStorage).close()
        let queue = try DatabaseQueue(path: fixture.path)
        try queue.write {
            try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99 the future')")
        }
        try queue.close()
        expectWrongDatabase("newer")

        try FileManager.default.removeItem(atPath: fixture.path)
        let foreign = try DatabaseQueue(path: fixture.path)
        try foreign.write { try $0.execute(sql: "CREATE TABLE things (name TEXT)") }
        try foreign.close()
        expectWrongDatabase("another application")

        try Data("no database at all, but long enough to be looked at".utf8)
            .write(to: URL(filePath: fixture.path))
        expectWrongDatabase("not a database")
    }

    private func expectWrongDatabase(_ word: String) {
        do {
            try (fixture.open() as SQLiteEventStorage).close()
            Issue.record("opened")
        } catch let error as StorageError {
            #expect(error.code == .wrongDatabase)
            #expect(error.detail.contains(word))
        } catch { Issue.record(error) }
    }
}
