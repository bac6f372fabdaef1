// The events of a PostgreSQL database are moved into partitions while servers use it.
// Spec/operations/postgresql.md, PG-11.

import EventSourcing
import Foundation
import SyncServerStorage
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

@Suite(.timeLimit(.minutes(10)), .enabled(if: !PostgreSQLCluster.isSkipped))
struct PartitionTests {
    /// A database of the release before partitions, with 12,000 events of each of three accounts.
    private func oldDatabase() async throws -> PostgreSQLFixture {
        let fixture = try await PostgreSQLFixture()
        let connection = try fixture.connect()
        for step in PostgreSQLSchema.steps where step.number < 4 {
            try await connection.runScript(step.sql)
        }
        try await connection.runScript(
            """
            INSERT INTO daybook.account (account, last_serial)
            SELECT a, 12000 FROM unnest(ARRAY['ana', 'bob', 'cyd']) a;
            INSERT INTO daybook.event (account, serial, id, source, sequence, line)
            SELECT a, n, gen_random_uuid(), '7c9e6679-7425-40de-944b-e07fc1f90ae7', n,
                '{"line":' || n || '}'
            FROM unnest(ARRAY['ana', 'bob', 'cyd']) a, generate_series(1, 12000) n;
            """)
        return fixture
    }

    private func partitions(_ fixture: PostgreSQLFixture) async throws -> Int {
        try await fixture.connect().run(
            """
            SELECT inhrelid FROM pg_inherits
            WHERE inhparent = to_regclass('daybook.event')
            """
        ).count
    }

    @Test(.verifies("PG-11"))
    func `a new database has its partitions at once`() async throws {
        let fixture = try await PostgreSQLFixture()
        let storage = try await fixture.open()
        #expect(try await partitions(fixture) == 16)
        #expect(
            try await storage.append(Sample.cities(3)).map(\.status) == [
                .applied, .applied, .applied,
            ])
        try storage.close()
    }

    @Test(.verifies("PG-11"))
    func `while events are moved, events are stored, read and erased, and none is lost`()
        async throws
    {
        let fixture = try await oldDatabase()
        let storage = try await PostgreSQLEventStorage(
            PostgreSQLLocation(fixture.location), catalogue: StorageFixture.catalogue)
        #expect(try await partitions(fixture) == 0)
        let move = Task { try await storage.moveEvents { _ in } }
        var sent: [Sample] = []
        var isErased = false
        while try await partitions(fixture) == 0 {
            let samples = Sample.cities(5, from: UInt64(sent.count) + 1)
            sent += samples
            let verdicts = try await storage.append(samples)
            #expect(verdicts.allSatisfy { $0.status == .applied })
            let again = try await storage.append(samples)
            #expect(again.allSatisfy { $0.status == .duplicate })
            if !isErased {
                isErased = try await storage.erase(account: "bob", unusedSince: nil)
            }
            // The newest of the older events, and the new ones.
            let page = try await storage.page(
                account: "ana", source: nil, after: .serial(11_990), limit: 500)
            #expect(page.lines.count == min(500, 10 + sent.count))
        }
        try await move.value
        #expect(isErased)
        let lines = try await TestStorage(fixture: fixture, storage: storage).all()
        #expect(lines.prefix(12_000) == (1...12_000).map { "{\"line\":\($0)}" }[...])
        #expect(lines.dropFirst(12_000) == sent.map(\.line)[...])
        #expect(
            try await TestStorage(fixture: fixture, storage: storage).all(account: "cyd").count
                == 12_000)
        #expect(
            try await TestStorage(fixture: fixture, storage: storage).all(account: "bob").isEmpty)
        // Again, and with the command.
        try await storage.moveEvents { _ in }
        #expect(
            try ServerProcess.run(["migrate", "--database", fixture.location]).status == 0)
        try storage.close()
    }

    @Test(.verifies("PG-11"))
    func `a move that was interrupted is finished by migrate`() async throws {
        let fixture = try await oldDatabase()
        let storage = try await fixture.open()
        let connection = try fixture.connect()
        let moved = try await connection.run("SELECT daybook.move_events(5000)")
        #expect(moved.first?[0] == "5000")
        #expect(try await partitions(fixture) == 0)
        #expect(
            try ServerProcess.run(["migrate", "--database", fixture.location]).status == 0)
        #expect(try await partitions(fixture) == 16)
        let lines = try await TestStorage(fixture: fixture, storage: storage).all(account: "cyd")
        #expect(lines == (1...12_000).map { "{\"line\":\($0)}" })
        try storage.close()
    }
}
