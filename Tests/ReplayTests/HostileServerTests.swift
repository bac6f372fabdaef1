// Hostile and broken servers: whatever they send, a request ends soon, with little
// memory, with a status or a typed error.

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite(.timeLimit(.minutes(10))) struct HostileServerTests {
    /// The largest number of bytes that the system buffers for a client that does not read.
    private static let buffersMax = 16 * 1024 * 1024

    private func transport(
        _ server: LocalServer, timeoutSeconds: Double = 60
    ) throws -> HTTPTransport {
        HTTPTransport(
            endpoint: try #require(URL(string: server.base + "/v1/events")),
            timeoutSeconds: timeoutSeconds)
    }

    private func failure(
        _ transport: HTTPTransport, _ call: TransportRequest = .read(after: nil)
    ) async -> TransportError.Code? {
        do {
            _ = try await transport.send(call, token: "t")
            return nil
        } catch { return (error as? TransportError)?.code }
    }

    /// A server that sends a prefix, then the same bytes until the client closes the connection.
    private func endless(
        _ begin: String, _ piece: [UInt8], _ sent: Counter
    ) throws -> LocalServer {
        try LocalServer { _ in
            .script { connection in
                connection.send(begin)
                while sent.count < 1 << 30, connection.send(piece) { sent.add(piece.count) }
                sent.finish()
            }
        }
    }

    final class Counter: Sendable {
        private let state = Mutex((count: 0, isFinished: false))
        var count: Int { state.withLock { $0.count } }
        var isFinished: Bool { state.withLock { $0.isFinished } }
        func add(_ count: Int) { state.withLock { $0.count += count } }
        func finish() { state.withLock { $0.isFinished = true } }
    }

    @Test(
        .verifies("SEC-20"),
        arguments: [
            "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4000000000\r\n\r\n",
            "HTTP/1.1 500 No\r\nConnection: close\r\n\r\n",
        ])
    func `an endless body is read up to the limit, and its connection ends`(
        head: String
    ) async throws {
        let sent = Counter()
        let server = try endless(head, [UInt8](repeating: 0x20, count: 65_536), sent)
        #expect(await failure(try transport(server)) == .replyTooLong)
        try await eventually("the server's script has ended", is: true) { sent.isFinished }
        #expect(sent.count < ReplyBody.bytesMax + Self.buffersMax)
        #expect(server.requests.count == 1)
    }

    @Test(.verifies("SEC-24"), arguments: ["gzip", "br", "zstd", "deflate", "GZIP, gzip"])
    func `no content encoding is requested, and none is decoded`(encoding: String) async throws {
        for name in ["Content-Encoding", "Transfer-Encoding"] {
            let sent = Counter()
            let server = try endless(
                "HTTP/1.1 200 OK\r\n\(name): \(encoding)\r\n\r\n\u{1F}",
                [UInt8](repeating: 0, count: 65_536), sent)
            #expect(await failure(try transport(server)) == .malformedReply)
            try await eventually("the server's script has ended", is: true) { sent.isFinished }
            #expect(sent.count < Self.buffersMax)
            #expect(server.requests.first?.values("Accept-Encoding") == ["identity"])
        }
    }

    @Test(
        .verifies("SEC-20"),
        arguments: [
            ("HTTP/1.1 200 OK\r\n", "X-Filler: 0123456789\r\n"),
            ("", "HTTP/1.1 100 Continue\r\n\r\n"),
            ("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nX: ", "xxxx"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-Trailer: 0\r\n"),
        ])
    func `an endless head is read up to its limit`(begin: String, piece: String) async throws {
        let sent = Counter()
        let server = try endless(
            begin, Array(String(repeating: piece, count: 1_000).utf8), sent)
        let code = await failure(try transport(server))
        #expect(code == .malformedReply || code == .connectionFailed)
        try await eventually("the server's script has ended", is: true) { sent.isFinished }
        #expect(sent.count < Self.buffersMax)
    }

    @Test(
        .verifies("SEC-25"),
        arguments: [
            "Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"y\"", "NTLM", "Negotiate", "Bearer",
            "Unknown", "Basic realm=\"",
        ])
    func `a 401 is a status, whatever password it asks for`(challenge: String) async throws {
        let server = try LocalServer { _ in
            .reply(
                401, headers: [("WWW-Authenticate", challenge), ("Set-Cookie", "a=b")],
                body: Array("no".utf8))
        }
        let transport = try transport(server)
        for call in [TransportRequest.append(batch: Array("[]".utf8)), .read(after: nil)] {
            let reply = try await transport.send(call, token: "t")
            #expect(reply.status == 401)
            #expect(reply.body == Array("no".utf8))
        }
        #expect(server.requests.count == 2)
        for request in server.requests {
            #expect(request.values("Authorization") == ["Bearer t"])
            #expect(request.values("Cookie").isEmpty)
        }
    }

    @Test(.verifies("SEC-26"), arguments: [10, 1_000_000], [true, false])
    func `a request on an idle connection that ends without an answer is repeated once`(
        bytes: Int, isReset: Bool
    ) async throws {
        let server = try LocalServer { _ in
            .script { connection in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
                // The next request is read, head and body, and not answered.
                _ = connection.nextRequest()
                if isReset { connection.resetAtEnd() }
            }
        }
        let transport = try transport(server)
        let batch = [UInt8](repeating: 0x20, count: bytes)
        var times: [Duration] = []
        for _ in 0..<4 {
            let begin = ContinuousClock.now
            let reply = try await transport.send(.append(batch: batch), token: "t")
            #expect(reply.status == 200)
            #expect(reply.body == Array("[]".utf8))
            times.append(ContinuousClock.now - begin)
        }
        print(
            "\(bytes) bytes, \(isReset ? "reset" : "closed"): first request \(times[0]), on dropped "
                + "connections \(times[1...].map(\.description).joined(separator: ", "))")
        // A request that waited for its timeout would take a minute.
        #expect(times.reduce(.zero, +) < .seconds(60))
        #expect(server.connectionCount == 4)
        #expect(server.requests.count == 7)
        #expect(server.requests.allSatisfy { $0.body == batch })
    }

    @Test(.verifies("SEC-26"))
    func `a request on an idle connection that was closed meanwhile succeeds`()
        async throws
    {
        let server = try LocalServer { _ in
            .script { $0.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]") }
        }
        let transport = try transport(server)
        for _ in 0..<20 {
            let reply = try await transport.send(
                .append(batch: [UInt8](repeating: 0x20, count: 300_000)), token: nil)
            #expect(reply.status == 200)
        }
        #expect(server.requests.count == 20)
    }

    @Test(.verifies("SEC-26")) func `connections are reused`() async throws {
        let server = try LocalServer { _ in
            .script { connection in
                repeat {
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
                } while connection.nextRequest() != nil
            }
        }
        let transport = try transport(server)
        for _ in 0..<10 {
            _ = try await transport.send(.append(batch: Array("[]".utf8)), token: "t")
        }
        #expect(server.requests.count == 10)
        #expect(server.connectionCount == 1)
    }

    @Test(.verifies("SEC-26")) func `a new connection that ends without an answer is an error`()
        async throws
    {
        let server = try LocalServer { _ in .hangUp }
        #expect(await failure(try transport(server)) == .connectionFailed)
        #expect(server.requests.count == 1)
    }

    @Test(.verifies("RPL-12")) func `a reply that ends anywhere too early is an error`()
        async throws
    {
        let whole = Array("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\n[".utf8)
        for length in 0...whole.count {
            let server = try LocalServer { _ in .raw(Array(whole[..<length])) }
            let code = await failure(try transport(server))
            #expect(code == .connectionFailed || code == .malformedReply, "\(length) bytes")
        }
        for other in ["[]", "\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 abc\r\n\r\n"] {
            let server = try LocalServer { _ in .raw(Array(other.utf8)) }
            let code = await failure(try transport(server))
            #expect(code == .connectionFailed || code == .malformedReply, "\(other)")
        }
    }

    @Test(.verifies("RPL-12")) func `a request to a silent server ends after the timeout`()
        async throws
    {
        let server = try LocalServer { _ in .script { $0.waitForEnd() } }
        #expect(await failure(try transport(server, timeoutSeconds: 0.2)) == .timedOut)
        let half = try LocalServer { _ in
            .script { connection in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[")
                connection.waitForEnd()
            }
        }
        #expect(await failure(try transport(half, timeoutSeconds: 0.2)) == .timedOut)
    }

    @Test(.verifies("RPL-12"))
    func `a request whose answer comes byte by byte ends after four timeouts`() async throws {
        let server = try LocalServer { _ in
            .script { connection in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                // In real time, as the client's timeouts are: a socket has no other clock.
                while connection.send(" ") { usleep(10_000) }
            }
        }
        #expect(await failure(try transport(server, timeoutSeconds: 0.5)) == .timedOut)
    }

    @Test(.verifies("RPL-12")) func `a request that is cancelled ends at once`() async throws {
        let server = try LocalServer { _ in .script { $0.waitForEnd() } }
        let transport = try transport(server, timeoutSeconds: 100_000)
        let task = Task { try await transport.send(.read(after: nil), token: nil) }
        try await eventually("requests", is: 1) { server.requests.count }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await transport.send(.read(after: nil), token: nil)
        }
        await #expect(throws: CancellationError.self) { try await early.value }
        #expect(server.requests.count == 1)
    }

    @Test(.verifies("SEC-22"))
    func `requests to silent servers wait on their own threads`() async throws {
        let server = try LocalServer { _ in .script { $0.waitForEnd() } }
        let transport = try transport(server, timeoutSeconds: 100_000)
        // More than the cooperative pool of the test machines has threads.
        let tasks = (0..<40).map { _ in
            Task { try await transport.send(.read(after: nil), token: nil) }
        }
        try await eventually("requests", is: 40) { server.requests.count }
        for task in tasks { task.cancel() }
        for task in tasks {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test(
        .verifies("SEC-22"),
        arguments: [
            "file:///etc/passwd", "ftp://127.0.0.1/", "/v1/events", "127.0.0.1:8080", "http:///x",
            "https://", "http://user@127.0.0.1/", "http://user:s3cret@127.0.0.1/",
            "http://127.0.0.1:0/", "http://127.0.0.1:99999/", "http://a%00b/", "data:,x",
            "gopher://a/",
        ])
    func `an invalid endpoint is refused at once`(text: String) async throws {
        guard let url = URL(string: text) else { return }
        let error = #expect(throws: TransportError.self) {
            try HTTPTransport(endpoint: url, headers: [:])
        }
        #expect(error?.code == .badEndpoint)
        #expect(error?.description.contains("s3cret") == false)
        #expect(await failure(HTTPTransport(endpoint: url)) == .badEndpoint)
    }

    @Test(
        .verifies("SEC-22"),
        arguments: [
            "http://127.0.0.1:80:90/v1/events", "http://[::1];/v1/events",
            "http://[::1]:80x/v1/events",
        ])
    func `an endpoint that cannot be parsed is refused, and its path is not dropped`(
        text: String
    ) async throws {
        // `URL(string:)` refuses such a text; this initializer does not.
        let url = try #require(URL(dataRepresentation: Data(text.utf8), relativeTo: nil))
        let error = #expect(throws: TransportError.self) {
            try HTTPTransport(endpoint: url, headers: [:])
        }
        #expect(error?.code == .badEndpoint)
        #expect(await failure(HTTPTransport(endpoint: url)) == .badEndpoint)
    }

    @Test(.verifies("SEC-22")) func `the case of a scheme and of a host does not matter`()
        async throws
    {
        let server = try LocalServer { _ in .reply(200) }
        let url = try #require(URL(string: "HTTP://LocalHost:\(server.port)/v1/events"))
        #expect(
            try await HTTPTransport(endpoint: url).send(.read(after: nil), token: "t").status == 200
        )
    }

    @Test(
        .verifies("SEC-23"),
        arguments: [
            ("http://192.0.2.1/", true), ("http://example.invalid/", true),
            ("http://127.0.0.1.example.invalid/", true),
            ("http://localhost.example.invalid/", true),
            ("http://[2001:db8::1]/", true), ("http://127.0.0.1/", false),
            ("http://127.9.9.9/", false),
            ("http://localhost/", false), ("http://[::1]/", false), ("https://192.0.2.1/", false),
        ])
    func `addresses to which requests are sent unencrypted`(text: String, isInClear: Bool) throws {
        let url = try #require(URL(string: text))
        #expect(try HTTPOrigin(endpoint: url).isInClear == isInClear)
    }

    @Test(.verifies("SEC-23"))
    func `a token is not sent unencrypted to another machine, unless that is allowed`()
        async throws
    {
        let url = try #require(URL(string: "http://daybook.invalid/v1/events"))
        #expect(await failure(HTTPTransport(endpoint: url)) == .tokenInClear)
        let allowed = HTTPTransport(endpoint: url, allowsTokenInClear: true)
        #expect(await failure(allowed) == .connectionFailed)
        // Without a token there is nothing to protect.
        await #expect {
            try await HTTPTransport(endpoint: url).send(.read(after: nil), token: nil)
        } throws: { ($0 as? TransportError)?.code == .connectionFailed }
        let project = try SupabaseTransport(project: url, apiKey: "KEY")
        await #expect {
            try await project.send(.read(after: nil), token: nil)
        } throws: { ($0 as? TransportError)?.code == .tokenInClear }
    }

    @Test(.verifies("SEC-23"))
    func `an app's headers are not sent unencrypted to another machine, unless that is allowed`()
        async throws
    {
        let url = try #require(URL(string: "http://daybook.invalid/v1/events"))
        let headers = ["X-Proxy-Password": "s3cret"]
        let refused = try HTTPTransport(endpoint: url, headers: headers)
        let error = await #expect(throws: TransportError.self) {
            try await refused.send(.read(after: nil), token: nil)
        }
        #expect(error?.code == .tokenInClear)
        #expect(error?.location == "daybook.invalid")
        #expect(error?.description.contains("s3cret") == false)
        for (headers, isAllowed) in [(headers, true), ([:], false)] {
            let other = try HTTPTransport(
                endpoint: url, headers: headers, allowsTokenInClear: isAllowed)
            await #expect {
                try await other.send(.read(after: nil), token: nil)
            } throws: { ($0 as? TransportError)?.code == .connectionFailed }
        }
        let server = try LocalServer { _ in .reply(200) }
        let own = try #require(URL(string: server.base + "/v1/events"))
        let reply = try await HTTPTransport(endpoint: own, headers: headers)
            .send(.read(after: nil), token: nil)
        #expect(reply.status == 200)
    }

    @Test(.verifies("SEC-25")) func `a server whose certificate is not trusted gets nothing`()
        async throws
    {
        let server = try TLSServer()
        let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/v1/events"))
        #expect(await failure(HTTPTransport(endpoint: url)) == .connectionFailed)
        #expect(!server.output().contains("Bearer"))
    }
}
