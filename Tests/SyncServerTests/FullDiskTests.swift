// A server whose disk is really full. Spec/operations/operating.md.

import Foundation
import SyncServerStorage
import TestSupport
import Testing

@testable import SyncServerPostgreSQL

@Suite(.enabled(if: SmallDisk.isPermitted, "mounting a disk needs root on Linux"))
struct FullDiskTests {
    /// A batch of about 200 KB.
    private func batch(from first: UInt64) -> Data {
        (first..<first + 2).map {
            Sample.note("added", "n\($0)", $0, text: String(repeating: "x", count: 100_000))
        }.body
    }

    /// Sends batches until the disk is full.
    ///
    /// - Returns: the number of stored events.
    private func sendUntilFull(_ client: ServerClient) async throws -> Int {
        var stored = 0
        for number in 0..<100 {
            let reply = try await client.post(batch(from: UInt64(number * 2 + 1)))
            if reply.status == 200 {
                stored += reply.statuses.count { $0 == "applied" }
                continue
            }
            #expect(reply.status == 503)
            #expect(reply.errorCode == "unavailable")
            #expect(reply.header("Retry-After") != nil)
            return stored
        }
        Issue.record("the disk is not full")
        return stored
    }

    private func expectReading(_ client: ServerClient, _ stored: Int) async throws {
        #expect(try await client.allIDs().count == stored)
        #expect(try await client.get("/healthz").status == 200)
        // The result of a probe is reused for a second.
        try await eventually("status", is: 503) { try await client.get("/readyz").status }
        let ready = try await client.get("/readyz")
        #expect(ready.header("Retry-After") != nil)
        #expect(String(decoding: ready.body, as: UTF8.self).contains("no space"))
    }

    @Test(.verifies("OPS-7", "OPS-14"), arguments: [true, false])
    func `a full disk stops only writing, also at the start`(isKilled: Bool)
        async throws
    {
        let disk = try SmallDisk(megabytes: 16)
        let database = disk.folder.appending(path: "events.db").path
        var server = try ServerProcess(database: database)
        var client = ServerClient(base: server.base)
        #expect(try await client.post(batch(from: 1_001)).status == 200)
        #expect(try await client.get("/readyz").status == 200)
        try disk.fill()
        let stored = 2 + (try await sendUntilFull(client))
        try await expectReading(client, stored)

        if isKilled { server.kill() } else { #expect(server.stop() == 0) }
        try disk.fill()
        server = try ServerProcess(database: database)
        client = ServerClient(base: server.base)
        try await expectReading(client, stored)
        #expect(try await client.post(batch(from: 2_001)).status == 503)

        try disk.free()
        // WAL mode needs a file of this name: the attempt to open for writing fails.
        let index = URL(filePath: database + "-shm")
        try? FileManager.default.removeItem(at: index)
        try FileManager.default.createDirectory(at: index, withIntermediateDirectories: false)
        #expect(try await client.post(batch(from: 2_001)).status == 503)
        #expect(try await client.allIDs().count == stored)
        try FileManager.default.removeItem(at: index)
        try await eventually("status", is: 200) { try await client.get("/readyz").status }
        #expect(try await client.post(batch(from: 2_001)).statuses == ["applied", "applied"])
        #expect(try await client.allIDs().count == stored + 2)
        #expect(server.stop() == 0)
        let storage = try SQLiteEventStorage(path: database, catalogue: StorageFixture.catalogue)
        #expect(try await storage.eventCount(account: "local") == stored + 2)
    }

    @Test(.verifies("OPS-13"))
    func `an erasure on a full disk reports the remaining traces`() async throws {
        let disk = try SmallDisk(megabytes: 16)
        let database = disk.folder.appending(path: "events.db").path
        let storage = try SQLiteEventStorage(path: database, catalogue: StorageFixture.catalogue)
        _ = try await storage.append(Sample.cities(500))
        _ = try await storage.append(Sample.cities(500), account: "bob")
        try storage.close()
        try disk.fill()
        let arguments = ["erase", "--account", "ana", "--yes", "--database", "sqlite:\(database)"]
        let end = try ServerProcess.run(arguments)
        #expect(end.status == 74)
        #expect(["nothing was erased", "was not erased"].contains { end.message.contains($0) })
        #expect(end.message.contains("space") || end.message.contains("full"))
        try disk.free()
        #expect(try ServerProcess.run(arguments).status == 0)
        #expect(try await fixtureCount(database, "ana") == 0)
        #expect(try await fixtureCount(database, "bob") == 500)
    }

    private func fixtureCount(_ database: String, _ account: String) async throws -> Int {
        let storage = try SQLiteEventStorage(path: database, catalogue: StorageFixture.catalogue)
        defer { try? storage.close() }
        return try await storage.eventCount(account: account)
    }

    @Test(
        .verifies("OPS-7", "OPS-14"),
        .disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
    func `a full PostgreSQL disk makes the server not ready, and reading works`()
        async throws
    {
        let disk = try SmallDisk(megabytes: 16)
        let fixture = try await PostgreSQLFixture()
        let data = fixture.cluster.folder.appending(path: "data").path
        let space = disk.folder.appending(path: "space").path
        try SmallDisk.run("mkdir", space)
        try SmallDisk.run("chown", "--reference", data, space, disk.folder.path)
        try SmallDisk.run("chmod", "755", disk.folder.deletingLastPathComponent().path)
        let server = try ServerProcess(database: fixture.location)
        let client = ServerClient(base: server.base)
        let owner = try fixture.connect()
        let name = "small_\(fixture.name)"
        _ = try await owner.run("CREATE TABLESPACE \(name) LOCATION '\(space)'")
        try await moveEvents(to: name, owner)
        #expect(try await client.get("/readyz").status == 200)
        try disk.fill()
        let stored = try await sendUntilFull(client)
        try await expectReading(client, stored)
        try disk.free()
        try await eventually("status", is: 200) { try await client.get("/readyz").status }
        #expect(try await client.post(batch(from: 2_001)).statuses == ["applied", "applied"])
        #expect(try await client.allIDs().count == stored + 2)
        #expect(server.stop() == 0)
        try await moveEvents(to: "pg_default", owner)
        _ = try await owner.run("DROP TABLESPACE \(name)")
    }

    /// Moves the partitions of the events to a tablespace.
    private func moveEvents(to space: String, _ owner: PostgreSQLConnection) async throws {
        for number in 0..<16 {
            _ = try await owner.run(
                "ALTER TABLE daybook.event_\(number) SET TABLESPACE \(space)")
        }
    }
}
