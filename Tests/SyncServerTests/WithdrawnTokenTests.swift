// Requests that outlive their tokens: the token is withdrawn while the server works on the request, or while the
// client reads. Spec/operations/operating.md, OPS-26.

import Foundation
import GRDB
import SyncServerStorage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct WithdrawnTokenTests {
    let fixture: StorageFixture
    let server: ServerProcess
    /// The account's token that stays.
    let client: ServerClient
    /// The account's token that is withdrawn.
    let withdrawn: ServerClient

    init() throws {
        fixture = try StorageFixture()
        try Self.write("one ana\ntwo ana\noperator @operator\n", to: fixture)
        // No client is cut off for another reason.
        server = try ServerProcess(
            database: fixture.path, "--client-timeout", "600", "--body-rate", "0", "--token-file",
            fixture.folder.appending("tokens").path)
        client = ServerClient(base: server.base, token: "one")
        withdrawn = ServerClient(base: server.base, token: "two")
    }

    private static func write(_ tokens: String, to fixture: StorageFixture) throws {
        try tokens.write(
            to: fixture.folder.appending("tokens"), atomically: true, encoding: .utf8)
    }

    private func withdraw() async throws {
        try Self.write("one ana\noperator @operator\n", to: fixture)
        server.signal(SIGHUP)
        // An answer that has begun may be cut off by the withdrawal.
        try await eventually("status", is: Optional(401)) {
            try? await withdrawn.get("/v1/events").status
        }
    }

    private func metric(_ name: String) async throws -> Int {
        let metrics = ServerClient(base: server.base, token: "operator")
        return try #require(try await metrics.metric("daybook_\(name)"))
    }

    /// A request of the token that is withdrawn.
    private static func head(_ method: String, _ more: String) -> String {
        "\(method) /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer two\r\n\(more)\r\n"
    }

    @Test(
        .verifies("OPS-26", "PUSH-8"),
        arguments: [("Accept: text/event-stream\r\n", 1), ("", 16)])
    func `a withdrawn token gets nothing more while its reader is behind, and other streams stay`(
        accept: String, requests: Int
    ) async throws {
        // More than the system buffers for a connection.
        let text = String(repeating: "x", count: 100_000)
        for first in stride(from: UInt64(1), to: 120, by: 10) {
            try await client.append(
                (first..<first + 10).map { Sample.note("added", "note-\($0)", $0, text: text) })
        }
        let other = try EventStreamReader(
            server.base, "/v1/events?after=a120", "Authorization: Bearer one")
        let behind = try RawConnection(server.base, receiveBuffer: 4_096)
        behind.send(String(repeating: Self.head("GET", accept), count: requests))
        var polls = 0
        try await eventually("polls in a row with a page in memory", is: 20) {
            polls = try await metric("held_bytes") > 0 ? polls + 1 : 0
            return polls
        }
        try await withdraw()
        // Before the client reads any more.
        try await eventually("bytes held for the reader", is: 0) { try await metric("held_bytes") }
        try await client.append([Sample.note("added", "late", 1_000)])
        #expect(try other.events(1).map(\.cursor) == ["a121"])
        let received = try behind.readToEnd()
        #expect(!received.contains("late"))
        #expect(received.utf8.count < 120 * 100_000)
    }

    @Test(.verifies("OPS-26"))
    func `a batch whose token is withdrawn while its body comes is not stored`() async throws {
        let body = String(decoding: Sample.cities(100).body, as: UTF8.self)
        let connection = try RawConnection(server.base)
        connection.send(
            Self.head(
                "POST",
                "Content-Type: application/cloudevents-batch+json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n"))
        connection.send(String(body.prefix(1_000)))
        try await eventually("bytes of the body", is: 1_000) {
            try await metric("body_bytes_total{direction=\"in\"}")
        }
        try await withdraw()
        connection.send(String(body.dropFirst(1_000)))
        #expect(try connection.text(until: "}}").hasPrefix("HTTP/1.1 401"))
        #expect(try await client.allIDs().isEmpty)
    }

    @Test(.verifies("OPS-26"))
    func `a batch whose token is withdrawn while it waits for the database is not stored`()
        async throws
    {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let writer = try DatabaseQueue(path: fixture.path, configuration: configuration)
        try await writer.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let sender = withdrawn
        async let reply = sender.post(Sample.cities(10).body)
        // The memory for the verdicts, which the batch borrows before its turn.
        try await eventually("held bytes", where: { $0 > 1_000_000 }) {
            try await metric("held_bytes")
        }
        try await withdraw()
        try await writer.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        // 503 if this took longer than the server waits for the lock.
        let status = try await reply.status
        #expect([401, 503].contains(status))
        #expect(try await client.allIDs().isEmpty)
    }

    @Test(.verifies("OPS-26"), arguments: StorageKind.all)
    func `a batch that loses its right before its turn in the database is not stored`(
        kind: StorageKind
    ) async throws {
        struct Withdrawal: Error {}
        let opened = try await kind.open()
        let batch = try StorageFixture.batch(
            String(decoding: Sample.cities(3).body, as: UTF8.self))
        await #expect(throws: Withdrawal.self) {
            try await opened.storage.append(batch, account: "ana") { throw Withdrawal() }
        }
        #expect(try await opened.all().isEmpty)
        try opened.close()
    }
}
