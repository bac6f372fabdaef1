// The name of a server's database, and logs that meet another one or another account.
// Spec/protocol/sync-protocol.md, SYNC-50 and SYNC-51; Spec/protocol/replay.md, RPL-15 and RPL-16.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct ServerNameTests {
    private static let header = "Daybook-Server"

    private func name(of server: ServerProcess) async throws -> String {
        try #require(
            try await ServerClient(base: server.base).get("/v1/events").header(Self.header))
    }

    private func device(_ count: Int, _ name: String) async throws -> OfflineStore {
        let store = try await OfflineStore.inMemory()
        for number in 0..<count {
            try await store.notes.add("\(name) \(number)", city: "c", by: "u")
        }
        return store
    }

    private func transport(_ server: ServerProcess) throws -> HTTPTransport {
        HTTPTransport(endpoint: try #require(URL(string: server.base)))
    }

    @Test(.verifies("SYNC-50"), arguments: StorageKind.all)
    func `servers of one database have one name, of its own, which a restore extends`(
        _ kind: StorageKind
    ) async throws {
        let fixture = try await kind.fixture()
        let first = try ServerProcess(database: fixture.location)
        let name = try await name(of: first)
        #expect(name.utf8.count == 32)
        let client = ServerClient(base: first.base)
        #expect(try await client.post(Data("[]".utf8)).header(Self.header) == name)
        #expect(try await client.get("/v1/events?limit=x").header(Self.header) == name)
        #expect(try await client.get("/healthz").header(Self.header) == nil)
        if case .postgreSQL = kind {
            let second = try ServerProcess(database: fixture.location)
            #expect(try await self.name(of: second) == name)
        }
        #expect(first.stop() == 0)
        _ = try ServerProcess.run(
            ["restored", "--database", fixture.location, "--to", "2026-03-01T08:30:00Z"])
        let restored = try await self.name(of: try ServerProcess(database: fixture.location))
        #expect(restored.hasPrefix(name + "."))
        let empty = try StorageFixture()
        let other = try ServerProcess(database: empty.location)
        #expect(try await self.name(of: other) != name)
    }

    @Test(.verifies("RPL-15"), arguments: StorageKind.all)
    func `a phone that moves to a tablet's server has all notes, and so has the tablet`(
        _ kind: StorageKind
    ) async throws {
        let (old, new) = (try StorageFixture(), try await kind.fixture())
        let first = try ServerProcess(database: old.location)
        let second = try ServerProcess(database: new.location)
        let (phone, tablet) = (try await device(6, "phone"), try await device(8, "tablet"))
        try await phone.sync(over: transport(first))
        try await tablet.sync(over: transport(second))
        let report = try await phone.sync(over: transport(second))
        #expect(report.shippedAgain == 6)
        #expect(report.received == 8)
        try await tablet.sync(over: transport(second))
        for store in [phone, tablet] {
            #expect(store.notes(in: "c").current.count == 14)
            try await store.close()
        }
        #expect(first.stop() == 0)
        #expect(second.stop() == 0)
    }

    /// The last change of the note names a base that compaction has removed.
    @Test(.verifies("RPL-15", "SYNC-52"), arguments: StorageKind.all)
    func `a log that was compacted brings another server the last text of a note`(
        _ kind: StorageKind
    ) async throws {
        let (old, new) = (try StorageFixture(), try await kind.fixture())
        let first = try ServerProcess(database: old.location)
        let second = try ServerProcess(database: new.location)
        let phone = try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(fileSystem: InMemoryFileSystem()))
        let note = try await phone.notes.add("0", city: "c", by: "u")
        for number in 1...4 { try await phone.notes.update(note.id, "\(number)", by: "u") }
        try await phone.sync(over: transport(first))
        try phone.events.log.roll()
        #expect(try await phone.compact().removed > 0)
        #expect(try await phone.sync(over: transport(second)).notAccepted == 0)
        let tablet = try await OfflineStore.inMemory()
        try await tablet.sync(over: transport(second))
        #expect(tablet.notes(in: "c").current.map(\.content) == ["4"])
        try await phone.close()
        try await tablet.close()
        #expect(first.stop() == 0)
        #expect(second.stop() == 0)
    }

    @Test(.verifies("SYNC-51", "RPL-16"))
    func `a token of another account gets no event of a log that has no account`() async throws {
        let fixture = try StorageFixture()
        let tokens = fixture.folder.appending("tokens")
        try "ada-token ada\nbob-token bob\nstar-token *\n"
            .write(to: tokens, atomically: true, encoding: .utf8)
        let server = try ServerProcess(database: fixture.path, "--token-file", tokens.path)
        let transport = try transport(server)
        let phone = try await device(2, "ada")
        func sync(_ token: String) async throws -> SyncReport {
            try await phone.sync(over: transport, credentials: BearerToken(token))
        }
        for token in ["bob-token", "star-token"] {
            #expect(try await sync(token).refusal?.code == .accountNeeded)
        }
        try await phone.events.adoptUnsentEvents()
        #expect(try await sync("ada-token").applied == 2)
        try await phone.notes.add("later", city: "c", by: "u")
        #expect(try await sync("bob-token").refusal?.code == .wrongAccount)
        for (token, count) in [("bob-token", 0), ("star-token", 0), ("ada-token", 2)] {
            let client = ServerClient(base: server.base, token: token)
            #expect(try await client.allIDs().count == count)
        }
        try await phone.close()
    }
}
