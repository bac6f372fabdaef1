// Attacks on the server and the expected replies, over real connections to the real process. After each
// attack an honest client is served as before. The list with its reasons is
// Spec/operations/operating.md, "Attacks that are tried".

import Foundation
import TestSupport
import Testing

@Suite struct AttackTests {
    let fixture: StorageFixture
    let server: ServerProcess
    static let token = "only-token-of-ana"

    init() throws {
        fixture = try StorageFixture()
        server = try Self.server(fixture)
    }

    private static func server(
        _ fixture: StorageFixture, _ options: String...
    ) throws -> ServerProcess {
        let file = fixture.folder.appending("tokens")
        try "\(token) ana\noperator @operator\n".write(to: file, atomically: true, encoding: .utf8)
        return try ServerProcess(
            database: fixture.path, options: ["--token-file", file.path] + options)
    }

    private var ana: ServerClient { ServerClient(base: server.base, token: Self.token) }

    /// Checks that an honest client is served.
    private func serves(_ server: ServerProcess) async throws {
        let client = ServerClient(base: server.base, token: Self.token)
        let event = Sample(sequence: .random(in: 1...1_000_000_000))
        #expect(try await client.post([event].body).statuses == ["applied"])
    }

    /// The head of a post, without the headers under test.
    private static let post = """
        POST /v1/events HTTP/1.1\r
        Host: x\r
        Authorization: Bearer \(token)\r
        Content-Type: application/cloudevents-batch+json\r

        """

    private static let get = "GET /healthz HTTP/1.1\r\nHost: x\r\n"

    /// Sends a request that ends the connection, and returns the answer's status.
    private func status(of request: String, on server: ServerProcess? = nil) throws -> String {
        let connection = try RawConnection((server ?? self.server).base)
        connection.send(request)
        let reply = try connection.readToEnd()
        #expect(!reply.dropFirst(9).contains("HTTP/1.1"), "more than one answer: \(reply)")
        return String(reply.dropFirst("HTTP/1.1 ".count).prefix(3))
    }

    @Test(
        .verifies("OPS-5"),
        arguments: [
            ("both lengths", "Content-Length: 4\r\nTransfer-Encoding: chunked"),
            ("both lengths, turned", "Transfer-Encoding: chunked\r\nContent-Length: 4"),
            ("two lengths", "Content-Length: 2\r\nContent-Length: 7"),
            ("the same length twice", "Content-Length: 2\r\nContent-Length: 2"),
            ("a list of lengths", "Content-Length: 2, 2"),
            ("a length with a sign", "Content-Length: +2"),
            ("a negative length", "Content-Length: -2"),
            ("a length past 64 bits", "Content-Length: 99999999999999999999999"),
            ("a length in hex", "Content-Length: 0x2"),
            ("a coding that is not known", "Transfer-Encoding: xchunked"),
            ("two codings", "Transfer-Encoding: identity, chunked"),
            ("a coding behind chunked", "Transfer-Encoding: chunked, identity"),
            ("a coding twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            ("a blank before the colon", "Transfer-Encoding : chunked"),
            ("a folded line", "Content-Length: 2\r\nX: a\r\n b"),
            ("a line that begins with a blank", " Content-Length: 2"),
            ("a bare return", "Content-Length: 2\r\nX: a\rY: b"),
            ("a zero byte in a header", "Content-Length: 2\r\nX: a\0b"),
            ("a second host", "Content-Length: 2\r\nHost: y"),
            ("a header without a name", "Content-Length: 2\r\n: a"),
            ("a header without a colon", "Content-Length: 2\r\nsomething"),
        ])
    func `an ambiguous head is 400 and ends the connection`(
        name: String, headers: String
    ) async throws {
        let smuggled = "2\r\n[]\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        #expect(try status(of: "\(Self.post)\(headers)\r\n\r\n\(smuggled)") == "400")
        #expect(try await ana.allIDs().isEmpty)
        try await serves(server)
    }

    @Test(
        .verifies("OPS-5"),
        arguments: [
            "GET /healthz HTTP/1.1\r\n\r\n", "GET /healthz\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\r\n\r\n",
            "GET /healthz HTTP/1.1\nHost: x\n\n",
            "G\u{7F}T /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "\0\0\0\0\r\n\r\n",
        ])
    func `input that is not HTTP is 400 and ends the connection`(request: String) async throws {
        #expect(try status(of: request) == "400")
        try await serves(server)
    }

    /// RFC 9112, section 3: a server may split the line at any white space. What follows is no second request.
    @Test(.verifies("OPS-5"), arguments: ["GET  /healthz HTTP/1.1", "GET /healthz  HTTP/1.1"])
    func `several spaces in a request line count as one`(line: String) throws {
        let request = "\(line)\r\nHost: x\r\nConnection: close\r\n\r\n"
        #expect(try status(of: request) == "200")
    }

    @Test(
        .verifies("OPS-5"),
        arguments: ["zz\r\n[]\r\n0\r\n\r\n", "fffffffffffffffff\r\n[]", "-2\r\n[]\r\n0\r\n\r\n"])
    func `an invalid chunk size ends the connection`(chunks: String) async throws {
        let request = "\(Self.post)Transfer-Encoding: chunked\r\n\r\n\(chunks)"
        #expect(try status(of: request) == "400")
        try await serves(server)
    }

    @Test(.verifies("OPS-5"))
    func `headers above 16 KiB are 431, in one header or many`() async throws {
        let long = String(repeating: "a", count: 17 * 1_024)
        #expect(try status(of: "\(Self.get)X: \(long)\r\n\r\n") == "431")
        #expect(try status(of: "\(Self.get)\(long): x\r\n\r\n") == "431")
        #expect(try status(of: "GET /\(long) HTTP/1.1\r\nHost: x\r\n\r\n") == "431")
        let many = (0..<200).map { "X\($0): a\r\n" }.joined()
        let connection = try RawConnection(server.base)
        connection.send("\(Self.get)\(many)\r\n")
        #expect(try connection.text(until: "\r\n").hasPrefix("HTTP/1.1 431"))
        try await serves(server)
    }

    @Test(.verifies("SYNC-7", "OPS-5"))
    func `a body that never ends is refused, then cut off`() async throws {
        for framing in ["Content-Length: 10000000000", "Transfer-Encoding: chunked"] {
            let connection = try RawConnection(server.base)
            connection.send("\(Self.post)\(framing)\r\n\r\n")
            let chunk = Data("8000\r\n".utf8) + Data(repeating: 0x20, count: 0x8000) + [13, 10]
            var sent = 0
            while sent < 1_000, connection.send(chunk) { sent += 1 }
            #expect(sent < 1_000, "32 MB were taken")
        }
        // A client that stops sending can read the refusal. The last two lengths need 64 bits.
        for length in ["10000000000", "9223372036854775808", "18446744073709551615"] {
            let connection = try RawConnection(server.base)
            connection.send("\(Self.post)Content-Length: \(length)\r\n\r\n")
            #expect(try connection.text(until: "}}").hasPrefix("HTTP/1.1 413"), "\(length)")
        }
        try await serves(server)
    }

    @Test(.verifies("OPS-5"), arguments: ["GET", "POST"])
    func `an unrequested body is not read as a second request`(method: String) async throws {
        let connection = try RawConnection(server.base)
        let inner = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
        connection.send(
            "\(method) /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: \(inner.utf8.count)\r\n\r\n"
                + inner + "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        let reply = try connection.readToEnd()
        #expect(reply.components(separatedBy: "HTTP/1.1 ").count == 3)
        #expect(!reply.contains("ready"))
        #expect(reply.contains("not_found"))
        try await serves(server)
    }

    @Test(
        .verifies("SYNC-1"),
        arguments: [
            "//v1/events", "/v1//events", "/v1/events/", "/V1/events", "/v1/Events", "/v1/./events",
            "/x/../v1/events", "/v1/%65vents", "/v1/events%00", "/v1/events;a=b", "/v1", "/",
            "/v1/events/../../etc/passwd", "/..%2f..%2fetc/passwd", "/healthz/", "/metrics%20",
        ])
    func `a path in another spelling is 404`(path: String)
        async throws
    {
        let connection = try RawConnection(server.base)
        connection.send(
            "GET \(path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(Self.token)\r\n\r\n")
        #expect(try connection.text(until: "}}").hasPrefix("HTTP/1.1 404"))
        try await serves(server)
    }

    @Test(.verifies("SYNC-1"))
    func `a method that a path does not have is 405 with the allowed ones`() async throws {
        for method in ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECTX", "get"] {
            let connection = try RawConnection(server.base)
            connection.send("\(method) /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            let reply = try connection.text(until: "\r\n\r\n")
            #expect(
                reply.hasPrefix("HTTP/1.1 405") || reply.hasPrefix("HTTP/1.1 400"), "\(method)")
            if reply.hasPrefix("HTTP/1.1 405") { #expect(reply.contains("Allow: GET, POST\r\n")) }
        }
        #expect(try await ana.send("DELETE", "/v1/events").status == 405)
        #expect(try await ana.send("POST", "/healthz", body: Data()).header("Allow") == "GET")
        // The method is that of the request line, whatever the headers.
        let override = try await ana.send(
            "GET", "/v1/events",
            headers: ["X-HTTP-Method-Override": "POST", "X-Method-Override": "DELETE"])
        #expect(override.status == 200)
        try await serves(server)
    }

    @Test(.verifies("SYNC-3"))
    func `a token is valid only in its header, once, and complete`() async throws {
        let stranger = ServerClient(base: server.base)
        for query in ["access_token=\(Self.token)", "token=\(Self.token)"] {
            #expect(try await stranger.get("/v1/events?\(query)").status == 401)
        }
        for value in [
            "Basic \(Self.token)", Self.token, "Bearer", "Bearer \(Self.token) x", "Bearer  ",
            "Bearer \(Self.token),Bearer \(Self.token)", "Bearer \(Self.token)\u{E9}",
            "Bearer \(Self.token.uppercased())", "Bearer \(Self.token.dropLast())",
        ] {
            let reply = try await stranger.send(
                "GET", "/v1/events", headers: ["Authorization": value])
            #expect(reply.status == 401, "\(value)")
        }
        let connection = try RawConnection(server.base)
        let header = "Authorization: Bearer \(Self.token)\r\n"
        connection.send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\(header)\(header)\r\n")
        #expect(try connection.text(until: "}}").hasPrefix("HTTP/1.1 401"))
        for name in ["Cookie", "X-Forwarded-User", "Proxy-Authorization"] {
            let reply = try await stranger.send(
                "GET", "/v1/events", headers: [name: "Bearer \(Self.token)"])
            #expect(reply.status == 401, "\(name)")
        }
        try await serves(server)
    }

    @Test(
        .verifies("SYNC-6", "SYNC-8"),
        arguments: [
            ("deep arrays", String(repeating: "[", count: 100_000)),
            ("deep objects", "[" + String(repeating: #"{"a":"#, count: 100_000)),
            (
                "deep and closed",
                "[" + String(repeating: "[", count: 500_000)
                    + String(repeating: "]", count: 500_000) + "]"
            ),
            ("an endless number", "[" + String(repeating: "9", count: 1_000_000) + "]"),
            ("an endless exponent", "[1e" + String(repeating: "9", count: 1_000_000) + "]"),
            ("a zero byte", "[\0]"), ("a zero byte in a string", "[\"\0\"]"),
            ("half a surrogate", #"["\ud800"]"#), ("a trailing comma", "[{},]"),
            ("two arrays", "[][]"), ("a byte order mark", "\u{FEFF}[]"), ("NaN", "[NaN]"),
            ("a comment", "[/* */]"), ("single quotes", "['a']"), ("nothing", ""),
            ("a bare string", "\"[]\""), ("blanks only", String(repeating: " ", count: 1_000_000)),
        ])
    func `a body that is no batch is 400`(name: String, body: String) async throws {
        let reply = try await ana.post(Data(body.utf8))
        #expect(reply.status == 400)
        #expect(["not_a_batch", "unusable_id"].contains(reply.errorCode ?? ""))
        #expect(reply.body.count < 1_000, "the answer repeats the body")
        try await serves(server)
    }

    @Test(.verifies("SYNC-6", "SYNC-26"))
    func `an event with bytes that are not UTF-8 is rejected alone`() async throws {
        let line = Data(Sample(sequence: 1).line.utf8)
        var stored: [String] = []
        for bytes: [UInt8] in [
            [0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80],
        ] {
            let broken = line.replacing(Data("lisbon".utf8), with: Data(bytes))
            #expect(broken != line)
            let other = Sample.cities(1, from: 2)[0]
            let body = Data("[".utf8) + broken + Data(",\(other.line)]".utf8)
            #expect(try await ana.post(body).statuses == ["rejected", "applied"])
            stored.append(other.id.text)
            #expect(try await ana.allIDs() == stored)
        }
        #expect(try await ana.post(Data([0x5B, 0xFF, 0x5D])).status == 400)
        try await serves(server)
    }

    @Test(
        .verifies("SYNC-11", "SYNC-26"),
        arguments: [
            (#""specversion":"1.0""#, #""specversion":"1.0","specversion":"1.0""#),
            (#""type":"daybook"#, #""data":{},"type":"daybook"#),
            (#""cityId":"lisbon""#, #""cityId":"lisbon","cityId":"porto""#),
            (#""cityId":"lisbon""#, #""cityId":"lis\u0000bon""#),
            (#""cityId":"lisbon""#, #""cityId":{"a":1}"#),
            (#""sequence":"0000"#, #""sequence":"9999"#),
            (#""sequence":""#, #""sequence":"-"#),
            (#""time":"2026"#, #""time":"99999"#),
            (#""subject":"lisbon""#, #""subject":"\ud83d""#),
            (#""type":"daybook.city.saved""#, #""type":["daybook.city.saved"]"#),
        ])
    func `an ambiguous event is rejected alone, and not stored`(
        rule: String, broken: String
    ) async throws {
        let event = Sample(sequence: 1)
        let line = event.line.replacing(rule, with: broken)
        #expect(line != event.line)
        let other = Sample(
            sequence: 2, subject: "porto", lane: "city:ana:porto",
            data: #"{"userId":"ana","cityId":"porto"}"#)
        let reply = try await ana.post(Data("[\(line),\(other.line)]".utf8))
        if reply.status == 200 {
            #expect(reply.statuses == ["rejected", "applied"])
            #expect(try await ana.allIDs() == [other.id.text])
        } else {
            #expect(reply.status == 400)
            #expect(try await ana.allIDs().isEmpty)
        }
        try await serves(server)
    }

    @Test(.verifies("SYNC-5"))
    func `a compressed body is refused unread`() async throws {
        // 10 MB of spaces, compressed by gzip to 10 KB.
        let bomb = try Data(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "Inputs/blanks.gz"))
        for encoding in ["gzip", "deflate", "br", "gzip, gzip", "identity, gzip", "x"] {
            let reply = try await ana.send(
                "POST", "/v1/events", body: bomb,
                headers: [
                    "Content-Type": "application/cloudevents-batch+json",
                    "Content-Encoding": encoding,
                ])
            #expect(reply.status == 415, "\(encoding)")
            #expect(reply.errorCode == "unsupported_media_type")
        }
        #expect(try await ana.post(bomb).errorCode == "not_a_batch")
        try await serves(server)
    }

    @Test(.verifies("SYNC-40"))
    func `content of a request is not echoed in headers, nor as more than text`()
        async throws
    {
        let reply = try await ana.get("/v1/events?limit=1%0d%0aX-Evil:%201")
        #expect(reply.status == 400)
        #expect(reply.header("X-Evil") == nil)
        let source = try await ana.get("/v1/events?source=%3Cscript%3E")
        #expect(!String(decoding: source.body, as: UTF8.self).contains("<script>"))
        let page = try await ana.get("/v1/events?limit=3&x=%0d%0aX-Evil:1&after=a0%0d%0aX-Evil:1")
        #expect(page.status == 400)
        var event = Sample(sequence: 1)
        event.type = "a\\r\\nX-Evil: 1\\\"}],\\\"x\\\":"
        let posted = try await ana.post([event].body)
        #expect(posted.header("X-Evil") == nil)
        #expect(posted.json != nil)
        try await serves(server)
    }

    @Test(.verifies("OPS-5")) func `a hundred requests at once are answered in order`()
        async throws
    {
        let connection = try RawConnection(server.base)
        let one = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
        let last = "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection.send(String(repeating: one, count: 50) + last)
        let statuses = try connection.readToEnd().components(separatedBy: "HTTP/1.1 ").dropFirst()
            .map { $0.prefix(3) }
        let expected = Array(repeating: ["200", "404"], count: 50).joined() + ["200"]
        #expect(statuses == expected.map { $0[...] })
        try await serves(server)
    }

    @Test(.verifies("OPS-6")) func `a client that drips a head or a body is cut off`() async throws
    {
        let server = try Self.server(fixture, "--client-timeout", "5")
        let head = try RawConnection(server.base)
        let body = try RawConnection(server.base)
        let stopped = try RawConnection(server.base)
        let silent = try RawConnection(server.base)
        body.send("\(Self.post)Content-Length: 1000\r\n\r\n[")
        stopped.send("\(Self.post)Content-Length: 1000\r\n\r\n[")
        let drips = Task.detached {
            var (headGoesOn, bodyGoesOn) = (true, true)
            var letters = Array("\(Self.get)X: \(String(repeating: "a", count: 1_000))".utf8)[...]
            while headGoesOn || bodyGoesOn, let letter = letters.popFirst() {
                if headGoesOn { headGoesOn = head.send([letter]) }
                if bodyGoesOn { bodyGoesOn = body.send(" ") }
                // In real time, as the time limit of the server, another process.
                try await Task.sleep(for: .milliseconds(100))
            }
            return !headGoesOn && !bodyGoesOn
        }
        #expect(try stopped.readToEnd().isEmpty)
        #expect(try silent.readToEnd().isEmpty)
        #expect(try await drips.value)
        try await serves(server)
    }

    @Test(.verifies("OPS-6")) func `a client that does not read its replies is cut off`()
        async throws
    {
        let server = try Self.server(fixture, "--client-timeout", "5")
        let client = ServerClient(base: server.base, token: Self.token)
        let large = (UInt64(1)...5).map { number in
            Sample(
                sequence: number, subject: "c\(number)", lane: "city:ana:c\(number)",
                data: """
                    {"userId":"ana","cityId":"c\(number)",\
                    "x":"\(String(repeating: "x", count: 200_000))"}
                    """)
        }
        #expect(try await client.post(large.body).status == 200)
        let reader = try RawConnection(server.base, receiveBuffer: 4_096)
        let request =
            "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(Self.token)\r\n"
        reader.send(String(repeating: "\(request)\r\n", count: 20))
        let metrics = ServerClient(base: server.base, token: "operator")
        try await eventually("connections cut", is: 1) {
            try await metrics.metric("daybook_connections_cut_total{reason=\"slow_reader\"}")
        }
        try await serves(server)
    }

    @Test(.verifies("OPS-6"))
    func `a flood of silent connections blocks no client`() async throws {
        let server = try Self.server(fixture, "--connections", "50")
        var flood: [RawConnection] = []
        for _ in 0..<300 { flood.append(try RawConnection(server.base)) }
        try await serves(server)
        // The oldest connections were closed for newer ones.
        #expect(try flood[0].readToEnd().isEmpty)
        for connection in flood[100...] { connection.send("GET /he") }
        try await serves(server)
    }

    @Test(.verifies("SYNC-5", "OPS-6"))
    func `a refusal that ends a connection comes after the replies before it`() async throws {
        let client = ana
        let large = (UInt64(1)...4).map {
            Sample.note("added", "n\($0)", $0, text: String(repeating: "x", count: 250_000))
        }
        #expect(try await client.post(large.body).status == 200)
        let reader = try RawConnection(server.base, receiveBuffer: 4_096)
        let page =
            "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(Self.token)\r\n"
        reader.send(
            String(repeating: "\(page)\r\n", count: 12)
                + "\(Self.post)Content-Encoding: gzip\r\nExpect: 100-continue\r\n"
                + "Content-Length: 2000000\r\n\r\n")
        // The socket's buffers are full.
        let metrics = ServerClient(base: server.base, token: "operator")
        var polls = 0
        try await eventually("polls in a row with a reply in memory", is: 20) {
            polls = try await metrics.metric("daybook_held_bytes") ?? 0 > 0 ? polls + 1 : 0
            return polls
        }
        let replies = try reader.readToEnd().components(separatedBy: "HTTP/1.1 ").dropFirst()
        #expect(replies.count == 13)
        #expect(replies.dropLast().allSatisfy { $0.hasPrefix("200") && $0.hasSuffix("}]") })
        #expect(replies.last?.hasPrefix("415") == true)
    }

    @Test(.verifies("OPS-4")) func `a token with too many requests waits, and others do not`()
        async throws
    {
        let file = fixture.folder.appending("two-tokens")
        try "fast ana\nquiet bob\n".write(to: file, atomically: true, encoding: .utf8)
        let server = try ServerProcess(
            database: fixture.path, options: ["--token-file", file.path, "--rate", "1"])
        // All at once, so that delays of this test do not matter.
        let connection = try RawConnection(server.base)
        let head = "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fast\r\n"
        connection.send(
            String(repeating: "\(head)\r\n", count: 49) + "\(head)Connection: close\r\n\r\n")
        let replies = try connection.readToEnd().components(separatedBy: "HTTP/1.1 ").dropFirst()
        #expect(replies.count == 50)
        #expect(replies.prefix(2).allSatisfy { $0.hasPrefix("200") })
        let refused = try #require(replies.first { $0.hasPrefix("429") })
        #expect(refused.contains("too_many_requests"))
        #expect(refused.contains("\r\nRetry-After: 1\r\n"))
        #expect(refused.contains("\r\nDaybook-Account: ana\r\n"))
        let fast = ServerClient(base: server.base, token: "fast")
        let quiet = ServerClient(base: server.base, token: "quiet")
        #expect(try await quiet.get("/v1/events").status == 200)
        #expect(try await fast.get("/healthz").status == 200)
        try await eventually("status", is: 200) { try await fast.get("/v1/events").status }
    }

    @Test(.verifies("SYNC-5"))
    func `100 Continue is sent only if the body is wanted`() async throws {
        let body = [Sample(sequence: 1)].body
        let wanted = try RawConnection(server.base)
        wanted.send("\(Self.post)Expect: 100-continue\r\nContent-Length: \(body.count)\r\n\r\n")
        #expect(try wanted.text(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        wanted.send(body)
        #expect(try wanted.text(until: "]}").contains("\"status\":\"applied\""))
        for (head, status) in [
            ("POST /v1/events HTTP/1.1\r\nHost: x\r\n", "401"),
            ("\(Self.post)Content-Encoding: gzip\r\n", "415"),
        ] {
            let request = "\(head)Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"
            #expect(try self.status(of: request) == status)
        }
        let large = "\(Self.post)Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"
        #expect(try status(of: large) == "413")
        let magic = "\(Self.post)Expect: magic\r\nContent-Length: 2\r\n\r\n"
        #expect(try status(of: magic) == "417")
        try await serves(server)
    }

    @Test(.verifies("SYNC-40"))
    func `no reply shows the server's software`() async throws {
        let requests = [
            "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", "\(Self.post)Content-Length: 2\r\n\r\n{}",
            "\(Self.post)Content-Length: 4\r\n\r\n[{}]", "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n",
        ]
        for request in requests {
            let connection = try RawConnection(server.base)
            connection.send(request)
            let reply = try connection.text(until: "}}").lowercased()
            for word in [
                "swift", "hummingbird", "nio", "sqlite", "grdb", "error(", "/tmp", ".db",
                "\nserver:",
                "fatal", "optional(",
            ] { #expect(!reply.contains(word), "\(word) in \(reply)") }
        }
    }
}
