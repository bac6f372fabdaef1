// Several servers on one PostgreSQL, under load, and what is left when one of them, or the database,
// is killed.

import Foundation
import SyncServerStorage
import TestSupport
import Testing

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct ReplicaTests {
    @Test(.verifies("SYNC-17", "SYNC-18", "PG-4"))
    func `two servers on one database, one killed under load, have each event once and lose none`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let first = try ServerProcess(database: fixture.location)
        let second = try ServerProcess(database: fixture.location)
        let load = Load(batches: 120, clients: [first, second].map { ServerClient(base: $0.base) })
        async let answered = load.run()
        try await eventually { await load.answeredCount > 200 }
        first.kill()
        let ids = try await answered
        #expect(ids == load.ids)
        let held = try await ServerClient(base: second.base).allIDs()
        #expect(Set(held) == ids)
        #expect(held.count == ids.count)
        #expect(second.stop() == 0)
    }

    @Test(.verifies("SYNC-17", "SYNC-18", "SYNC-41", "PG-6"))
    func `a database that is killed under load has all that was acknowledged, each event once`()
        async throws
    {
        let cluster = try PostgreSQLCluster()
        let fixture = try await PostgreSQLFixture(cluster)
        let server = try ServerProcess(database: fixture.location)
        let client = ServerClient(base: server.base)
        let load = Load(batches: 150, clients: [client])
        async let answered = load.run()
        for round in 1...3 {
            try await eventually { await load.answeredCount > round * 300 }
            try cluster.kill()
        }
        let ids = try await answered
        #expect(ids == load.ids)
        let held = try await client.allIDs()
        #expect(Set(held) == ids)
        #expect(held.count == ids.count)
        #expect(server.stop() == 0)
    }
}

/// Clients that send their batches until each is answered with verdicts, as devices do.
private final class Load: Sendable {
    private let batches: [[Sample]]
    private let clients: [ServerClient]
    private let answered = Counter()

    /// The ids of all events.
    var ids: Set<String> { Set(batches.joined().map(\.id.text)) }
    /// How many events have been answered.
    var answeredCount: Int { get async { await answered.count } }

    init(batches: Int, clients: [ServerClient]) {
        self.batches = (0..<batches).map { Sample.cities(10, from: UInt64($0 * 10 + 1)) }
        self.clients = clients
    }

    /// Sends everything, eight at a time; what one server does not answer goes to the next.
    ///
    /// - Returns: the ids that were answered as being on the server.
    func run() async throws -> Set<String> {
        try await withThrowingTaskGroup(of: Set<String>.self) { group in
            for worker in 0..<8 {
                group.addTask { [self] in
                    var ids: Set<String> = []
                    for index in stride(from: worker, to: batches.count, by: 8) {
                        var turn = index
                        try await eventually {
                            turn += 1
                            let client = clients[turn % clients.count]
                            guard let reply = try? await client.post(batches[index].body),
                                reply.status == 200
                            else { return false }
                            #expect(
                                reply.statuses.allSatisfy { ["applied", "duplicate"].contains($0) })
                            return reply.statuses.count == batches[index].count
                        }
                        ids.formUnion(batches[index].map(\.id.text))
                        await answered.add(batches[index].count)
                    }
                    return ids
                }
            }
            return try await group.reduce(into: []) { $0.formUnion($1) }
        }
    }

    private actor Counter {
        var count = 0
        func add(_ number: Int) { count += number }
    }
}
