// Several servers on one PostgreSQL under load; one of them, or the database, is killed.

import Foundation
import SyncServerStorage
import Synchronization
import TestSupport
import Testing

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct ReplicaTests {
    /// The number of kills; can be raised in the environment.
    private static let kills =
        ProcessInfo.processInfo.environment["DAYBOOK_KILLS"].flatMap { Int($0) } ?? 3

    @Test(.verifies("SYNC-17", "SYNC-18", "PG-4"))
    func `two servers on one database, one killed under load, have each event once and lose none`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        var servers = try (0..<2).map { _ in try ServerProcess(database: fixture.location) }
        let load = Load(batches: Self.kills * 40, servers)
        async let sent: Void = load.run()
        for round in 0..<Self.kills {
            let enough = round * 400 + 200
            try await eventually("acknowledged events", where: { $0 > enough }) {
                load.answered.count
            }
            servers[round % 2].kill()
            servers[round % 2] = try ServerProcess(database: fixture.location)
            load.use(servers)
        }
        try await sent
        try await expectAll(of: load, at: servers[0])
        #expect(servers.map { $0.stop() } == [0, 0])
    }

    @Test(.verifies("SYNC-17", "SYNC-18", "SYNC-41", "PG-6"))
    func `a database that is killed under load has all that was acknowledged, each event once`()
        async throws
    {
        let cluster = try PostgreSQLCluster()
        let fixture = try await PostgreSQLFixture(cluster)
        let server = try ServerProcess(database: fixture.location)
        let load = Load(batches: Self.kills * 40, [server])
        async let sent: Void = load.run()
        for round in 0..<Self.kills {
            let enough = round * 400 + 200
            try await eventually("acknowledged events", where: { $0 > enough }) {
                load.answered.count
            }
            try cluster.kill()
        }
        try await sent
        try await expectAll(of: load, at: server)
        #expect(server.stop() == 0)
    }

    /// Expects that each event is stored once and was acknowledged.
    private func expectAll(of load: Load, at server: ServerProcess) async throws {
        let client = ServerClient(base: server.base)
        // The database may still be recovering from its last kill.
        try await eventually("status", is: 200) {
            try await client.get("/v1/events?limit=1").status
        }
        let held = try await client.allIDs()
        #expect(Set(held) == load.ids)
        #expect(held.count == load.ids.count)
        #expect(load.answered == load.ids)
    }
}

/// Clients that send their batches until each is answered with verdicts, as devices do.
private final class Load: Sendable {
    private struct State {
        var clients: [ServerClient] = []
        var answered: Set<String> = []
    }

    private let batches: [[Sample]]
    private let state = Mutex(State())

    /// The ids of all events.
    var ids: Set<String> { Set(batches.joined().map(\.id.text)) }
    /// The ids that a server has acknowledged.
    var answered: Set<String> { state.withLock { $0.answered } }

    init(batches: Int, _ servers: [ServerProcess]) {
        self.batches = (0..<batches).map { Sample.cities(10, from: UInt64($0 * 10 + 1)) }
        use(servers)
    }

    /// Sets the servers for further requests.
    func use(_ servers: [ServerProcess]) {
        let clients = servers.map { ServerClient(base: $0.base) }
        state.withLock { $0.clients = clients }
    }

    /// Sends all batches, eight at a time; a batch without an answer is sent to the next server.
    func run() async throws {
        try await withThrowingTaskGroup { group in
            for worker in 0..<8 {
                group.addTask { [self] in
                    for index in stride(from: worker, to: batches.count, by: 8) {
                        try await send(index)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func send(_ index: Int) async throws {
        let batch = batches[index]
        var turn = index
        try await eventually("verdicts", is: batch.count) {
            turn += 1
            let client = state.withLock { $0.clients[turn % $0.clients.count] }
            guard let reply = try? await client.post(batch.body), reply.status == 200 else {
                return 0
            }
            #expect(reply.statuses.allSatisfy { ["applied", "duplicate"].contains($0) })
            return reply.statuses.count
        }
        state.withLock { $0.answered.formUnion(batch.map(\.id.text)) }
    }
}
