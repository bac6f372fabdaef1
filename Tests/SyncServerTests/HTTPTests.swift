// The real server over HTTP.

import EventSourcing
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@Suite struct HTTPTests {
    let fixture: StorageFixture

    init() throws { fixture = try StorageFixture() }

    @Test(.verifies("SYNC-1", "SYNC-2", "SYNC-20", "SYNC-30", "SYNC-31", "SYNC-32"))
    func `events go in by POST and come out by GET`() async throws {
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        let events = Sample.cities(20)
        let reply = try await client.post(events.body)
        #expect(reply.status == 200)
        #expect(reply.header("Content-Type") == "application/json")
        #expect(reply.header("Date")?.hasSuffix("GMT") == true)
        #expect(reply.statuses == Array(repeating: "applied", count: 20))
        #expect(try await client.post(events.body).statuses.allSatisfy { $0 == "duplicate" })

        let page = try await client.get("/v1/events")
        #expect(page.header("Content-Type") == "application/cloudevents-batch+json")
        #expect(page.body == events.body)
        let ids = events.map(\.id.text)
        #expect(try await client.allIDs("/v1/events?limit=7") == ids)
        let source = Sample.device.text
        #expect(try await client.allIDs("/v1/events?source=\(source)&limit=3") == ids)
        #expect(try await client.allIDs("/v1/events?source=urn:uuid:\(source)") == ids)
        #expect(try await client.allIDs("/v1/events?source=urn%3Auuid%3A\(source)") == ids)
        #expect(try await client.allIDs("/v1/events?source=\(UUID().text)").isEmpty)
        #expect(server.stop() == 0)
    }

    @Test(.verifies("SYNC-32", "SYNC-33"))
    func `the end of the events has a next link, too`() async throws {
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        let empty = try await client.get("/v1/events")
        #expect(empty.body == Data("[]".utf8))
        let events = Sample.cities(2)
        _ = try await client.post(events.body)
        #expect(try await client.allIDs(try #require(empty.next)) == events.map(\.id.text))
    }

    @Test(.verifies("SYNC-4")) func `the server is healthy while it runs`() async throws {
        let server = try ServerProcess(database: fixture.path)
        #expect(try await ServerClient(base: server.base).get("/healthz").status == 200)
    }

    @Test(
        .verifies(
            "SYNC-1", "SYNC-2", "SYNC-5", "SYNC-6", "SYNC-7", "SYNC-8", "SYNC-30", "SYNC-40",
            "SYNC-45"))
    func `a batch that is none is refused as a whole`() async throws {
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        for type in ["application/json", "application/cloudevents+json", "text/plain"] {
            let reply = try await client.post(Data("[]".utf8), type: type)
            #expect(reply.status == 415)
            #expect(reply.errorCode == "unsupported_media_type")
            #expect(reply.header("Date") != nil)
        }
        let withCharset = "Application/CloudEvents-Batch+JSON; charset=UTF-8"
        #expect(try await client.post(Data("[]".utf8), type: withCharset).status == 200)
        #expect(try await client.post(Data("{}".utf8)).errorCode == "not_a_batch")
        #expect(try await client.post(Data("<html>".utf8)).status == 400)
        #expect(try await client.post(Data("[{}]".utf8)).errorCode == "unusable_id")
        for tail in [#"\u0000"#, "0", " "] {
            let line = #"[{"id":"\#(UUID().text)\#(tail)"}]"#
            #expect(try await client.post(Data(line.utf8)).errorCode == "unusable_id")
        }
        #expect(try await client.get("/v1/events?after=a9223372036854775807").status == 200)
        #expect(try await client.post(Sample.cities(501).body).status == 413)
        let large = Data(repeating: UInt8(ascii: " "), count: 1024 * 1024 + 64 * 1024 + 1)
        #expect(try await client.post(large).errorCode == "batch_too_large")
        #expect(try await client.post(large.dropLast(3) + Data("[]".utf8)).status == 200)
        let source = Sample.device.text
        for query in [
            "limit=0", "limit=x", "limit=-1", "limit=%2B5", "limit=%D9%A5", "limit=5%00", "after=x",
            "after=s1-1", "after=a%2B5", "after=a-5", "after=a", "after=a5%00",
            "after=a9223372036854775808", "source=\(source)&after=s1-%2B1",
            "source=\(source)&after=s1", "source=x", "source=\(source)%00",
            "source=urn:uuid:\(source)%00", "source=%7B\(source)%7D",
        ] {
            #expect(try await client.get("/v1/events?\(query)").status == 400)
        }
        let nothing = try await client.get("/nothing")
        #expect(nothing.status == 404)
        #expect(nothing.errorCode == "not_found")
        #expect(try await client.allIDs().isEmpty)
    }

    @Test(.verifies("SYNC-3"))
    func `a token names its account, and without one there is nothing`() async throws {
        let tokens = fixture.folder.appending("tokens")
        try "# device tokens\nfirst-token ana\n\nsecond-token bob\n"
            .write(to: tokens, atomically: true, encoding: .utf8)
        let server = try ServerProcess(database: fixture.path, "--token-file", tokens.path)
        let ana = ServerClient(base: server.base, token: "first-token")
        let bob = ServerClient(base: server.base, token: "second-token")
        let event = Sample(sequence: 1)
        #expect(try await ana.post([event].body).statuses == ["applied"])
        #expect(try await bob.allIDs().isEmpty)
        #expect(try await bob.post([event].body).statuses == ["applied"])
        #expect(try await ana.allIDs() == [event.id.text])

        for token in [nil, "first-toke", "first-token2", ""] {
            let stranger = ServerClient(base: server.base, token: token)
            let reply = try await stranger.post([event].body)
            #expect(reply.status == 401)
            #expect(reply.header("WWW-Authenticate")?.hasPrefix("Bearer") == true)
            #expect(reply.errorCode == "unauthorized")
            #expect(try await stranger.get("/v1/events").status == 401)
            #expect(try await stranger.get("/healthz").status == 200)
        }
    }

    @Test(.verifies("SYNC-47", "SYNC-48"))
    func `a request for another account than the token's is refused without effect`()
        async throws
    {
        let tokens = fixture.folder.appending("tokens")
        try "ana-token ana\nodd-token Zoë%2f\n"
            .write(to: tokens, atomically: true, encoding: .utf8)
        let server = try ServerProcess(database: fixture.path, "--token-file", tokens.path)
        let ana = ServerClient(base: server.base, token: "ana-token")
        let event = Sample(sequence: 1)
        let type = ["Content-Type": "application/cloudevents-batch+json"]
        for meant in ["user-456", "Ana", "an", "%61%6E%6", "ana%00", "%", "ana, ana"] {
            let headers = type.merging(["Daybook-Account": meant]) { $1 }
            for reply in [
                try await ana.send("POST", "/v1/events", body: [event].body, headers: headers),
                try await ana.send("GET", "/v1/events", headers: headers),
            ] {
                #expect(reply.status == 403, "\(meant)")
                #expect(reply.errorCode == "wrong_account")
                #expect(reply.header("Daybook-Account") == "ana")
            }
        }
        #expect(try await ana.allIDs().isEmpty)
        for meant in ["ana", "%61n%61"] {
            let reply = try await ana.send(
                "POST", "/v1/events", body: [event].body,
                headers: type.merging(["Daybook-Account": meant]) { $1 })
            #expect(reply.status == 200)
            #expect(reply.header("Daybook-Account") == "ana")
        }
        // Without the header as before; errors name the account as well.
        #expect(try await ana.get("/v1/events").header("Daybook-Account") == "ana")
        let refused = try await ana.get("/v1/events?limit=x")
        #expect(refused.status == 400)
        #expect(refused.header("Daybook-Account") == "ana")
        let odd = ServerClient(base: server.base, token: "odd-token")
        #expect(try await odd.get("/v1/events").header("Daybook-Account") == "Zo%C3%AB%252f")
        // A reply without authentication names no account.
        #expect(try await ana.get("/healthz").header("Daybook-Account") == nil)
        let stranger = ServerClient(base: server.base, token: "x")
        #expect(try await stranger.get("/v1/events").header("Daybook-Account") == nil)
    }

    @Test(.verifies("SYNC-48")) func `a server without tokens compares no accounts`()
        async throws
    {
        let server = try ServerProcess(database: fixture.path)
        let reply = try await ServerClient(base: server.base).send(
            "GET", "/v1/events", headers: ["Daybook-Account": "ana"])
        #expect(reply.status == 200)
        #expect(reply.header("Daybook-Account") == nil)
    }

    @Test(.verifies("SYNC-17", "SYNC-41"))
    func `a database that fails is answered with 503, and nothing is half applied`()
        async throws
    {
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        let other = try DatabaseQueue(path: fixture.path)
        try await other.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER failure BEFORE INSERT ON event WHEN NEW.sequence = 3
                    BEGIN SELECT RAISE(ABORT, 'failure'); END
                    """)
        }
        let events = Sample.cities(5)
        let reply = try await client.post(events.body)
        #expect(reply.status == 503)
        #expect(reply.header("Retry-After").flatMap { Int($0) } != nil)
        #expect(try await client.allIDs().isEmpty)
        try await other.write { try $0.execute(sql: "DROP TRIGGER failure") }
        #expect(try await client.post(events.body).statuses.allSatisfy { $0 == "applied" })
    }

    @Test(.verifies("SYNC-17", "SYNC-18"))
    func `a killed or stopped server has all that it acknowledged, each id once`()
        async throws
    {
        let batches = (0..<200).map { Sample.cities(10, from: UInt64($0 * 10 + 1)) }
        var answered: Set<String> = []
        for round in 0..<5 {
            let server = try ServerProcess(database: fixture.path)
            let client = ServerClient(base: server.base)
            let held = try await client.allIDs()
            #expect(Set(held).count == held.count)
            #expect(answered.isSubset(of: held))
            let acknowledged = Acknowledged()
            async let sent: Void = Self.send(batches, to: client, acknowledged)
            if round < 4 {
                let enough = Int.random(in: 1...1_000)
                try await eventually("acknowledged events", where: { $0 >= enough }) {
                    acknowledged.ids.withLock { $0.count }
                }
                if round.isMultiple(of: 2) { server.kill() } else { #expect(server.stop() == 0) }
            }
            await sent
            answered.formUnion(acknowledged.ids.withLock { $0 })
        }
        let server = try ServerProcess(database: fixture.path)
        let held = try await ServerClient(base: server.base).allIDs()
        #expect(held.count == 2_000)
        #expect(Set(held) == Set(batches.joined().map(\.id.text)))
    }

    /// The ids that a server has acknowledged.
    private final class Acknowledged: Sendable { let ids = Mutex<Set<String>>([]) }

    /// Posts batches, four at a time, until the server has ended.
    private static func send(
        _ batches: [[Sample]], to client: ServerClient, _ acknowledged: Acknowledged
    ) async {
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for index in stride(from: worker, to: batches.count, by: 4) {
                        guard let reply = try? await client.post(batches[index].body),
                            reply.status == 200
                        else { break }
                        acknowledged.ids.withLock { $0.formUnion(batches[index].map(\.id.text)) }
                    }
                }
            }
        }
    }

    @Test(.verifies("SYNC-9"))
    func `of several faults, the first in the order of checks is reported`() async throws {
        let tokens = fixture.folder.appending("tokens")
        try "good-token ana\n".write(to: tokens, atomically: true, encoding: .utf8)
        let server = try ServerProcess(database: fixture.path, "--token-file", tokens.path)
        let stranger = ServerClient(base: server.base)
        let ana = ServerClient(base: server.base, token: "good-token")
        let good = Sample.cities(1)[0].line
        let many = "[\(good)" + String(repeating: ",{}", count: 500)
        let large = Data(repeating: UInt8(ascii: "<"), count: 1024 * 1024 + 64 * 1024 + 1)
        #expect(try await stranger.post(Data("{".utf8), type: "text/plain").status == 401)
        #expect(try await ana.post(Data("{".utf8), type: "text/plain").status == 415)
        #expect(try await ana.post(large).errorCode == "batch_too_large")
        #expect(try await ana.post(Data(many.utf8)).errorCode == "not_a_batch")
        #expect(try await ana.post(Data("\(many)]".utf8)).errorCode == "batch_too_large")
        #expect(try await ana.post(Data("[\(good),{}]".utf8)).errorCode == "unusable_id")
        #expect(try await ana.allIDs().isEmpty)
    }

    /// Both requests are sent at once, so the answer to the first shows that the second has arrived, too.
    @Test(.verifies("SYNC-42"))
    func `a stopping server finishes the accepted request`() async throws {
        let server = try ServerProcess(database: fixture.path)
        let url = try #require(URL(string: server.base))
        let connection = Process()
        connection.executableURL = URL(filePath: "/bin/bash")
        connection.arguments = [
            "-c", "exec 3<>/dev/tcp/127.0.0.1/\(try #require(url.port)); cat >&3 <&0 & cat <&3",
        ]
        let (requests, replies) = (Pipe.betweenStarts(), Pipe.betweenStarts())
        connection.standardInput = requests
        connection.standardOutput = replies
        try connection.runAlone()
        let event = Sample(sequence: 1)
        let body = [event].body
        let head = """
            GET /healthz HTTP/1.1\r
            Host: localhost\r
            \r
            POST /v1/events HTTP/1.1\r
            Host: localhost\r
            Content-Type: application/cloudevents-batch+json\r
            Content-Length: \(body.count)\r
            Expect: 100-continue\r
            \r

            """
        try requests.fileHandleForWriting.write(contentsOf: Data(head.utf8) + body.prefix(100))
        var text = ""
        // Shows that the server has read the head of the second request, and so has accepted it.
        while !text.contains("100 Continue") {
            let part = replies.fileHandleForReading.availableData
            try #require(!part.isEmpty)
            text += String(decoding: part, as: UTF8.self)
        }
        server.terminate()
        try requests.fileHandleForWriting.write(contentsOf: body.dropFirst(100))
        while !text.contains("]}") {
            let part = replies.fileHandleForReading.availableData
            try #require(!part.isEmpty, "the connection ended before the answer")
            text += String(decoding: part, as: UTF8.self)
        }
        #expect(text.contains("\"status\":\"applied\""))
        try requests.fileHandleForWriting.close()
        #expect(server.stop() == 0)
        connection.terminate()
        let again = try ServerProcess(database: fixture.path)
        #expect(try await ServerClient(base: again.base).allIDs() == [event.id.text])
    }

    @Test(.verifies("SYNC-43"))
    func `the server's log contains no part of an event, and no token`() async throws {
        let tokens = fixture.folder.appending("tokens")
        try "good-token ana\n".write(to: tokens, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: tokens.path)
        let file = fixture.folder.appending("messages")
        try Data().write(to: file)
        let server = try ServerProcess(
            database: fixture.path, messages: FileHandle(forWritingTo: file), "--token-file",
            tokens.path)
        let ana = ServerClient(base: server.base, token: "good-token")
        let note = Sample.note("added", "note-xyzzy", 3, text: "content-xyzzy")
        var broken = note
        broken.id = UUID()
        broken.data = #"{"noteId":"note-xyzzy"}"#
        let other = try DatabaseQueue(path: fixture.path)
        try await other.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER failure BEFORE INSERT ON event WHEN NEW.sequence = 3
                    BEGIN SELECT RAISE(ABORT, 'failure'); END
                    """)
        }
        #expect(try await ana.post([note].body).status == 503)
        try await other.write { try $0.execute(sql: "DROP TRIGGER failure") }
        #expect(try await ana.post([note, broken].body).statuses == ["applied", "rejected"])
        #expect(try await ana.post([broken].body, type: "text/plain").status == 415)
        #expect(try await ana.post(Data("[{\"content-xyzzy".utf8)).status == 400)
        let stranger = ServerClient(base: server.base, token: "bad-token-xyzzy")
        #expect(try await stranger.post([note].body).status == 401)
        #expect(server.stop() == 0)
        let messages = try String(contentsOf: file, encoding: .utf8)
        #expect(messages.contains("storage failed"))
        for secret in ["xyzzy", "token", note.id.text, broken.id.text, Sample.device.text] {
            #expect(!messages.lowercased().contains(secret), "\(messages)")
        }
    }

    @Test(.verifies("SYNC-3"))
    func `a configuration that cannot be served is refused at the start`() throws {
        func expect(_ status: Int32, _ word: String, _ arguments: [String]) throws {
            let end = try ServerProcess.run(["--port", "0"] + arguments)
            #expect(end.status == status)
            #expect(end.message.contains(word))
        }
        let database = "sqlite:\(fixture.path)"
        try expect(74, "refused", ["--database", "postgres://127.0.0.1:1/x"])
        try expect(64, "invalid", ["--database", "mysql:x"])
        try expect(64, "loopback", ["--database", database, "--host", "0.0.0.0"])
        try expect(74, "token file", ["--database", database, "--token-file", "/nowhere"])
        try expect(74, "No such file", ["--database", "sqlite:/nowhere/a.db"])
        let tokens = fixture.folder.appending("tokens")
        try "secret-token\n".write(to: tokens, atomically: true, encoding: .utf8)
        let end = try ServerProcess.run(
            ["--port", "0", "--database", database, "--token-file", tokens.path])
        #expect(end.status == 65)
        #expect(end.message.contains("line 1"))
        #expect(!end.message.contains("secret"))
    }
}
