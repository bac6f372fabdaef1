// An app that ships to a project's own tables by PostgREST, one request for each change: the code and the SQL of the
// article "Shipping to your API".

import Daybook
import Foundation
import TestSupport
import Testing

@testable import Engine
@testable import SyncServerPostgreSQL

@Suite(.disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
struct TableRequestsTests {
    private static let user = "5e4c7c16-0e3c-4d0e-9c4f-2f6f3f6d1a11"
    private let project: SupabaseProject

    init() async throws {
        let article = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(
                path: "../../Sources/Daybook/Daybook.docc/ShippingToYourAPI.md"
            ).standardizedFileURL, encoding: .utf8)
        let start = try #require(article.range(of: "```sql\n")).upperBound
        let end = try #require(article[start...].range(of: "\n```")).lowerBound
        project = try await SupabaseProject()
        // The user of the tests' servers has the name of the schema daybook.
        try await project.fixture.connect().runScript(
            "SET search_path = public; " + article[start..<end])
    }

    private func device() async throws -> EventStore {
        try await EventStore.inMemory(account: Self.user, rules: memoRules)
    }

    private func sync(_ store: EventStore, _ server: PostgREST) async throws -> SyncReport {
        try await store.sync(
            over: tables(
                store, at: server.url.appending(path: "rest/v1"),
                http: HTTPOptions(headers: ["apikey": "KEY"], allowsTokenInClear: true)),
            credentials: BearerToken(Self.user))
    }

    private func memos() async throws -> [[String?]] {
        try await project.run(
            "SELECT text, stars, version FROM memos ORDER BY text", user: Self.user)
    }

    @Test func `each change takes effect once, though every second answer is lost`() async throws {
        let server = try PostgREST(project, losing: [1, 3, 5])
        let store = try await device()
        let memo = UUID()
        try await store.append(MemoAdded(memo: memo, text: "tram"))
        try await store.append(MemoEdited(memo: memo, text: "tram 28", version: 2))
        try await store.append(MemoStarred(memo: memo, stars: 3))
        // A lost answer ends a run without a clock that moves.
        for _ in 0..<4 { _ = try await sync(store, server) }
        #expect(store.outbox.count == 0)
        #expect(try await memos() == [["tram 28", "3", "2"]])
        #expect(try await project.run("SELECT FROM memos", user: UUID().uuidString).isEmpty)
    }

    @Test func `a memo that another device has changed is a conflict, and the decision is sent`()
        async throws
    {
        let server = try PostgREST(project)
        let (phone, tablet) = (try await device(), try await device())
        let memo = UUID()
        try await phone.append(MemoAdded(memo: memo, text: "tram"))
        try await phone.append(MemoEdited(memo: memo, text: "of the phone", version: 2))
        _ = try await sync(phone, server)
        try await tablet.append(MemoEdited(memo: memo, text: "of the tablet", version: 2))
        #expect(try await sync(tablet, server).conflict == 1)
        #expect(try await memos() == [["of the phone", "0", "2"]])
        let entry = try #require(tablet.outbox.entries.first)
        #expect(entry.status == .conflict)
        // The app reads the memo, version 2, and the user keeps both texts.
        let both = MemoEdited(memo: memo, text: "of the phone and the tablet", version: 3)
        try await tablet.outbox.resolve(entry.id, .replace([try EventDraft(both)]))
        _ = try await sync(tablet, server)
        #expect(tablet.outbox.count == 0)
        #expect(try await memos() == [["of the phone and the tablet", "0", "3"]])
    }

    @Test
    func
        `what a constraint or a policy refuses is parked with its code, and holds up nothing else`()
        async throws
    {
        let server = try PostgREST(project)
        let store = try await device()
        try await store.append(MemoAdded(memo: UUID(), text: ""))
        try await store.append(MemoStarred(memo: UUID(), stars: 1))
        try await store.append(MemoAdded(memo: UUID(), text: "tram"))
        try await project.fixture.connect().runScript(
            """
            CREATE POLICY quiet ON memos AS RESTRICTIVE FOR INSERT TO authenticated
                WITH CHECK (text <> 'loud')
            """)
        try await store.append(MemoAdded(memo: UUID(), text: "loud"))
        let report = try await sync(store, server)
        #expect(report.applied == 1)
        let codes = store.outbox.entries.map { $0.code }
        #expect(codes == ["http_400", "http_400", "42501"])
        #expect(try await memos() == [["tram", "0", "1"]])
    }
}
