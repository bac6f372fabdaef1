// Clients that exceed their share of connections, memory or turns, over real connections to the real process.
// FairQueueTests tests the decisions; the limits are Spec/operations/operating.md, "Limits".

import Foundation
import Synchronization
import TestSupport
import Testing

@Suite struct FloodTests {
    let fixture: StorageFixture

    init() throws { fixture = try StorageFixture() }

    private func server(_ options: String...) throws -> ServerProcess {
        let file = fixture.folder.appending("tokens")
        try "token-of-ana ana\ntoken-of-bob bob\noperator @operator\n"
            .write(to: file, atomically: true, encoding: .utf8)
        return try ServerProcess(
            database: fixture.path, options: ["--token-file", file.path] + options)
    }

    private static func head(_ more: String) -> String {
        "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-of-ana\r\n"
            + "Content-Type: application/cloudevents-batch+json\r\n\(more)\r\n"
    }

    private func status(
        _ path: String, of server: ServerProcess, token: String = "none", from address: UInt8
    ) throws -> String {
        let connection = try RawConnection(server.base, from: address)
        connection.send(
            "GET \(path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                + "Connection: close\r\n\r\n")
        return String(try connection.readToEnd().dropFirst("HTTP/1.1 ".count).prefix(3))
    }

    @Test(
        .verifies("OPS-20"),
        arguments: [
            (
                "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
                "200"
            ),
            ("GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\n\r\n", "200"),
            (
                "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                    + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n", "200"
            ),
            (
                "POST /v1/events HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n"
                    + "Content-Length: 1\r\n\r\n[", "401"
            ),
            ("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
            ("CONNECT /v1/events HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
            ("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200"),
            ("GET /healthz HTTP/1.0\r\n\r\n", "200"),
        ])
    func `input after the last request of a connection is neither read nor buffered`(
        request: String, status: String
    ) async throws {
        let server = try server("--client-timeout", "5")
        let connection = try RawConnection(server.base)
        connection.send(request)
        let reply = try connection.text(until: "\r\n\r\n")
        let version = request.contains("HTTP/1.0") ? "HTTP/1.0" : "HTTP/1.1"
        #expect(reply.hasPrefix("\(version) \(status)"))
        #expect(reply.lowercased().contains("\r\nconnection: close\r\n"))
        let before = try server.peakMemory()
        // The connection ends at the time limit at the latest; until then the system buffers some input.
        let junk = Data(repeating: 0x78, count: 1_024 * 1_024)
        var sent = 0
        while sent < 200, connection.send(junk) { sent += 1 }
        #expect(sent < 200, "200 MiB were taken")
        #expect(try server.peakMemory() - before < 32)
    }

    @Test(.verifies("OPS-20"))
    func `a body of tiny chunks, or with endless extensions, ends early without a token`()
        async throws
    {
        let server = try server()
        let head = "POST /v1/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        for (begin, part, bytesMax) in [
            ("", String(repeating: "1\r\na\r\n", count: 10_000), 12),
            ("1;", String(repeating: "x", count: 60_000), 16),
        ] {
            let connection = try RawConnection(server.base)
            connection.send(head + begin)
            var sent = 0
            while sent < 1_000, connection.send(part) { sent += 1 }
            // Bytes in the system's buffers count, too.
            #expect(sent * part.utf8.count < bytesMax * 1_024 * 1_024)
        }
        #expect(try status("/healthz", of: server, from: 1) == "200")
    }

    @Test(.verifies("OPS-20"))
    func `a body that is not wanted yet is not read`() async throws {
        let server = try server(
            "--connections", "400", "--memory", "8", "--body-rate", "0", "--client-timeout", "600")
        let before = try server.peakMemory()
        // One body is within the account's share of 4 MiB; each body lacks its last byte.
        let body = String(repeating: " ", count: 1_000_000)
        var connections: [RawConnection] = []
        for _ in 0..<100 {
            let connection = try RawConnection(server.base)
            connection.send(Self.head("Content-Length: 1000001\r\n"))
            connection.sendWithoutWaiting(body)
            connections.append(connection)
        }
        #expect(
            try status("/v1/events", of: server, token: "token-of-bob", from: 2) == "200")
        try await eventually("held bytes", is: 1_000_001) { try await heldBytes(server) }
        #expect(try server.peakMemory() - before < 60)
    }

    @Test(.verifies("OPS-6", "OPS-21"))
    func `an account that fills the connections with unfinished bodies locks no other out`()
        async throws
    {
        // Without the limits on slow clients, so that none is cut off on a slow machine.
        let server = try server(
            "--connections", "60", "--body-rate", "0", "--client-timeout", "600")
        var flood: [RawConnection] = []
        for _ in 0..<80 {
            let connection = try RawConnection(server.base)
            connection.send(Self.head("Content-Length: 1000\r\n") + "[")
            flood.append(connection)
        }
        for address: UInt8 in [1, 2] {
            #expect(try status("/healthz", of: server, from: address) == "200")
            #expect(try status("/readyz", of: server, from: address) == "200")
            let bob = try status("/v1/events", of: server, token: "token-of-bob", from: address)
            #expect(bob == "200")
        }
        // A third of the 54 places; a further request is refused, its body unread.
        let more = try RawConnection(server.base, from: 3)
        more.send(Self.head("Content-Length: 1000\r\n"))
        let reply = try more.text(until: "}}")
        #expect(reply.hasPrefix("HTTP/1.1 429"))
        #expect(reply.contains("\r\nRetry-After: 1\r\n"))
        flood = []
        try await eventually("status", is: "200") {
            try self.status("/v1/events", of: server, token: "token-of-ana", from: 4)
        }
    }

    @Test(.verifies("OPS-20", "OPS-21"))
    func `the body of a request without a place is not read, and its connection ends`()
        async throws
    {
        let server = try server(
            "--connections", "10", "--body-rate", "0", "--client-timeout", "600")
        // The account's share of the nine places.
        var flood: [RawConnection] = []
        for _ in 0..<3 {
            let connection = try RawConnection(server.base)
            connection.send(Self.head("Content-Length: 1000\r\n") + "[")
            flood.append(connection)
        }
        let metrics = ServerClient(base: server.base, token: "operator")
        func bytesRead() async throws -> Int? {
            try await metrics.metric("daybook_body_bytes_total{direction=\"in\"}")
        }
        try await eventually("bytes read", is: 3) { try await bytesRead() }
        let refused = try RawConnection(server.base)
        refused.send(Self.head("Content-Length: 1000000\r\n"))
        refused.sendWithoutWaiting(String(repeating: " ", count: 1_000_000))
        // Until the server ends the connection.
        let reply = try refused.readToEnd()
        #expect(reply.hasPrefix("HTTP/1.1 429"))
        #expect(reply.lowercased().contains("\r\nconnection: close\r\n"))
        #expect(try await bytesRead() == 3)
        withExtendedLifetime(flood) {}
    }

    private func heldBytes(_ server: ServerProcess) async throws -> Int {
        let metrics = ServerClient(base: server.base, token: "operator")
        return try #require(try await metrics.metric("daybook_held_bytes"))
    }

    @Test(.verifies("OPS-21"))
    func `verdicts hold their memory and place until the client has read them`()
        async throws
    {
        // The clients must not be cut off while a slow machine gets to the conditions below.
        let server = try server(
            "--connections", "10", "--memory", "8", "--client-timeout", "600")
        let ana = ServerClient(base: server.base, token: "token-of-ana")
        let text = String(repeating: "x", count: 250_000)
        for number in UInt64(1)...4 {
            let note = Sample.note("added", "n\(number)", number, text: text)
            #expect(try await ana.post([note].body).statuses == ["applied"])
        }
        let changes = (UInt64(1)...4).map {
            Sample.note("updated", "n\($0)", $0 + 4, base: UUID())
        }
        let reply = try await ana.post(changes.body)
        #expect(reply.statuses == Array(repeating: "conflict", count: 4))
        #expect(reply.body.count > 1_000_000)
        // On each connection more replies than the system buffers for a client that reads nothing.
        let request =
            Self.head("Content-Length: \(changes.body.count)\r\n")
            + String(decoding: changes.body, as: UTF8.self)
        var flood: [RawConnection] = []
        for _ in 0..<3 {
            let connection = try RawConnection(server.base, receiveBuffer: 4_096)
            connection.send(String(repeating: request, count: 12))
            flood.append(connection)
        }
        // One reply fits the 2 MiB for verdicts; the others wait for their turn.
        var polls = 0
        try await eventually("polls in a row with a reply in memory", is: 20) {
            polls = try await heldBytes(server) >= reply.body.count ? polls + 1 : 0
            return polls
        }
        let before = try server.peakMemory()
        // The places, a third of nine, are borrowed once the server has read a request of each connection,
        // which is independent of the reserved bytes.
        try await eventually("status", is: 429) { try await ana.get("/v1/events?limit=1").status }
        #expect(
            try status("/v1/events", of: server, token: "token-of-bob", from: 2) == "200")
        #expect(try server.peakMemory() - before < 16)
        flood = []
        try await eventually("held bytes", is: 0) { try await heldBytes(server) }
    }

    @Test(.verifies("OPS-6"))
    func `a connection with unread replies is closed for a new one`() async throws {
        let server = try ServerProcess(database: fixture.path, "--connections", "1")
        let text = String(repeating: "x", count: 250_000)
        for number in UInt64(1)...4 {
            let note = Sample.note("added", "n\(number)", number, text: text)
            let connection = try RawConnection(server.base)
            connection.send(
                "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    + "Content-Type: application/cloudevents-batch+json\r\n"
                    + "Content-Length: \([note].body.count)\r\n\r\n")
            connection.send([note].body)
            #expect(try connection.readToEnd().hasPrefix("HTTP/1.1 200"))
        }
        let reader = try RawConnection(server.base, receiveBuffer: 4_096)
        reader.send(
            String(
                repeating: "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 16))
        // Once the socket's buffers are full.
        func reply() throws -> String {
            let connection = try RawConnection(server.base)
            connection.send(
                "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return try connection.readToEnd()
        }
        try await eventually("reply", where: { $0.hasPrefix("HTTP/1.1 200") }) { try reply() }
        withExtendedLifetime(reader) {}
    }

    @Test(.verifies("OPS-20"), arguments: [16, 100, 2_000])
    func `pipelined requests do not delay other clients`(depth: Int) async throws {
        let server = try server()
        let requests = String(repeating: "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", count: depth)
        let flood = try (0..<50).map { _ in try RawConnection(server.base) }
        let rounds = Mutex(0)
        let attack = Task.detached {
            while !Task.isCancelled {
                for connection in flood { connection.sendWithoutWaiting(requests) }
                rounds.withLock { $0 += 1 }
                // In real time: the server, another process, reads meanwhile.
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
        defer { attack.cancel() }
        try await eventually("rounds of the flood", where: { $0 >= 10 }) {
            rounds.withLock { $0 }
        }
        let shortest = try await shortestDuration(below: .seconds(5)) {
            let began = ContinuousClock.now
            let status = try self.status("/healthz", of: server, from: 2)
            #expect(status == "200")
            return ContinuousClock.now - began
        }
        // Measured: 0.1 s; without turns always more than 10 s.
        #expect(shortest < .seconds(5))
    }

    @Test(.verifies("OPS-5"))
    func `a coding in HTTP 1.0 is refused, and the connection ends`() throws {
        let server = try server()
        let connection = try RawConnection(server.base)
        connection.send(
            "POST /v1/events HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        #expect(try connection.readToEnd().hasPrefix("HTTP/1.1 400"))
    }

    @Test(.verifies("SYNC-40"), arguments: ["/healthz", "/readyz", "/metrics", "/v1/events", "/x"])
    func `the reply to HEAD has no body`(path: String) throws {
        let server = try server()
        let connection = try RawConnection(server.base)
        connection.send("HEAD \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        let reply = try connection.readToEnd()
        #expect(reply.hasPrefix("HTTP/1.1 4"))
        #expect(reply.hasSuffix("\r\n\r\n"))
    }

    @Test(.verifies("OPS-1", "OPS-3"))
    func `a token file may be a symbolic link, with CRLF and a byte order mark`() throws {
        let file = fixture.folder.appending("secret")
        try "\u{FEFF}# devices\r\ntoken-of-eva eva\r\n".write(
            to: file, atomically: true, encoding: .utf8)
        let link = fixture.folder.appending("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let server = try ServerProcess(
            database: fixture.path, options: ["--token-file", link.path])
        #expect(try status("/v1/events", of: server, token: "token-of-eva", from: 2) == "200")
    }

    @Test(.verifies("OPS-3"))
    func `a link does not hide that its token file may be written by all`() throws {
        let file = fixture.folder.appending("secret")
        try "token-of-eva eva\n".write(to: file, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: file.path)
        let link = fixture.folder.appending("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let end = try ServerProcess.run([
            "--port", "0", "--database", "sqlite:\(fixture.path)", "--token-file", link.path,
        ])
        #expect(end.status == 65)
        #expect(end.message.contains(link.path))
    }

    @Test(.verifies("OPS-3")) func `a token file that is not a regular file is refused at once`()
        throws
    {
        let pipe = fixture.folder.appending("pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        // A server that opened the pipe would wait for a writer without end.
        for path in [pipe, fixture.folder.path] {
            let end = try ServerProcess.run([
                "--port", "0", "--database", "sqlite:\(fixture.path)", "--token-file", path,
            ])
            #expect(end.status == 74)
        }
    }

    @Test(
        .verifies("OPS-1"),
        arguments: [
            Data([0x61, 0xFF, 0x20, 0x61, 0x0A]), Data("SHA256:0123 ana\n".utf8),
        ])
    func `a line with neither a token nor a digest is refused`(content: Data) throws {
        let file = fixture.folder.appending("tokens")
        try content.write(to: file)
        let end = try ServerProcess.run([
            "--port", "0", "--database", "sqlite:\(fixture.path)", "--token-file", file.path,
        ])
        #expect(end.status == 65)
    }

    @Test(
        .verifies("OPS-6"), arguments: ["--connections", "--shutdown-timeout", "--client-timeout"])
    func `a number outside its range is a usage error`(option: String) throws {
        let result = try ServerProcess.run([
            "--port", "0", "--database", "sqlite:\(fixture.path)", option, "\(Int.max)",
        ])
        #expect(result.status == 64)
    }

    @Test(.verifies("OPS-22"))
    func `a slow body is cut off long before the time limit`() async throws {
        let server = try server("--body-rate", "1000", "--client-timeout", "600")
        let slow = try RawConnection(server.base)
        slow.send(Self.head("Content-Length: 100000\r\n"))
        let drips = Task.detached {
            // In real time: the server, another process, measures the rate over 10 s.
            while slow.send(" ") { try await Task.sleep(for: .milliseconds(200)) }
        }
        // Throws after a minute without an end; the time limit would come after ten.
        #expect(try slow.readToEnd().isEmpty)
        try? await drips.value
        let metrics = ServerClient(base: server.base, token: "operator")
        let text = String(decoding: try await metrics.get("/metrics").body, as: UTF8.self)
        #expect(text.contains("cut_total{reason=\"slow_request\"} 1\n"))
    }

    @Test(.verifies("OPS-22"))
    func `a connection whose body never comes is counted once when it is cut off`() async throws {
        let server = try server("--connections", "400")
        let silent = try (0..<100).map { _ in try RawConnection(server.base) }
        for connection in silent { connection.send(Self.head("Content-Length: 100000\r\n")) }
        for connection in silent { #expect(try connection.readToEnd().isEmpty) }
        // In real time, because another process measures. Longer than a body's rate is measured: the reply to the
        // request without a body, which comes after the end of some connections, must not begin that again.
        try await Task.sleep(for: .seconds(12))
        let metrics = ServerClient(base: server.base, token: "operator")
        let text = String(decoding: try await metrics.get("/metrics").body, as: UTF8.self)
        #expect(text.contains("cut_total{reason=\"slow_request\"} 100\n"))
    }

    @Test(.verifies("OPS-23"))
    func `without tokens a web page of another host gets nothing`() async throws {
        let server = try ServerProcess(database: fixture.path)
        func status(_ target: String, _ headers: String) throws -> String {
            let connection = try RawConnection(server.base)
            connection.send("GET \(target) HTTP/1.1\r\n\(headers)\r\nConnection: close\r\n\r\n")
            return String(try connection.readToEnd().dropFirst("HTTP/1.1 ".count).prefix(3))
        }
        let local = "Host: localhost"
        for headers in [
            local, "Host: LOCALHOST:8080", "Host: 127.0.0.1:1", "Host: 127.9.9.9",
            "Host: [::1]:80", "\(local)\r\nOrigin: http://localhost:3000",
            "\(local)\r\nOrigin: https://[::1]",
        ] {
            #expect(try status("/metrics", headers) == "200", "\(headers)")
        }
        for host in [
            "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "128.0.0.1",
            "localhost@evil.example", "[::1", "::1", "localhost:80:80", "127.1", "",
        ] {
            for path in ["/healthz", "/readyz", "/metrics", "/v1/events", "/nothing"] {
                #expect(try status(path, "Host: \(host)") == "421", "\(host) \(path)")
            }
        }
        for origin in [
            "http://evil.example", "http://localhost@evil.example", "null", "",
            "http://localhost\r\nOrigin: http://evil.example", "http://localhost.evil.example",
            "file://localhost",
        ] {
            for path in ["/healthz", "/readyz", "/metrics", "/v1/events", "/nothing"] {
                let answer = try status(path, "\(local)\r\nOrigin: \(origin)")
                #expect(answer == "403", "\(origin) \(path)")
            }
        }
        // A server with tokens serves other pages: they have no token.
        let guarded = try self.server()
        let connection = try RawConnection(guarded.base)
        connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\nOrigin: http://evil.example\r\n\r\n")
        #expect(try connection.text(until: "}").hasPrefix("HTTP/1.1 200"))
    }
}
