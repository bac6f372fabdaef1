// Requests over a real connection, and their answers.

import EventSourcing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Replay

@Suite(.timeLimit(.minutes(10))) struct HTTPTransportTests {
    private func endpoint(_ server: LocalServer) throws -> URL {
        try #require(URL(string: server.base + "/v1/events"))
    }

    private func failure(_ body: () async throws -> TransportReply) async -> TransportError? {
        await #expect(throws: TransportError.self) { try await body() }
    }

    @Test(.verifies("SYNC-3", "SYNC-5"))
    func `a batch is sent unchanged, and the whole answer is returned`() async throws {
        let server = try LocalServer { _ in
            .reply(
                200,
                headers: [("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Retry-After", "7")],
                body: Array(#"{"verdicts":[]}"#.utf8))
        }
        let transport = HTTPTransport(endpoint: try endpoint(server))
        let batch = Array(#"[{"id":"1","n":1.50}]"#.utf8)
        let reply = try await transport.send(.append(batch: batch), token: "3q2-7w")
        #expect(
            reply
                == TransportReply(
                    status: 200, body: Array(#"{"verdicts":[]}"#.utf8), date: 784_111_777_000,
                    retryAfterSeconds: 7))
        let request = try #require(server.requests.first)
        #expect(request.method == "POST")
        #expect(request.target == "/v1/events")
        #expect(request.body == batch)
        #expect(request.values("Authorization") == ["Bearer 3q2-7w"])
        #expect(request.values("Content-Type") == ["application/cloudevents-batch+json"])
        #expect(request.values("Accept") == ["application/json"])
        #expect(request.values("Cookie").isEmpty)
        _ = try await transport.send(.append(batch: batch), token: nil)
        #expect(server.requests.last?.values("Authorization") == [])
    }

    @Test(.verifies("SYNC-32", "SEC-19"))
    func `pages are read from one to the next, however the links are written`() async throws {
        let links = [
            #"</v1/events?limit=2&after=a1>; rel="next""#,
            #"<?after=a%2F2>; rel=next; title="a, b""#,
            #"<events?after=a3>; rel="last", </v1/events?after=a4&x=%C3%A4>; rel="next""#, "",
        ]
        let server = try LocalServer { request in
            guard
                let index = ["/v1/events", "a1", "a%2F2", "a4"].firstIndex(where: { mark in
                    request.target == mark || request.target.contains("after=\(mark)")
                })
            else { return .reply(400) }
            let headers = links[index].isEmpty ? [] : [("Link", links[index])]
            return .reply(200, headers: headers, body: Array("[\(index)]".utf8))
        }
        let transport = HTTPTransport(endpoint: try endpoint(server))
        var cursor: String?
        for index in 0..<4 {
            let reply = try await transport.send(.read(after: cursor), token: "t")
            #expect(reply.status == 200)
            #expect(reply.body == Array("[\(index)]".utf8))
            cursor = reply.next
        }
        #expect(cursor == nil)
        #expect(server.requests.allSatisfy { $0.method == "GET" && $0.body.isEmpty })
        #expect(
            server.requests.map(\.target) == [
                "/v1/events", "/v1/events?limit=2&after=a1", "/v1/events?after=a%2F2",
                "/v1/events?after=a4&x=%C3%A4",
            ])
        #expect(
            server.requests.allSatisfy {
                $0.values("Accept") == ["application/cloudevents-batch+json"]
                    && $0.values("Authorization") == ["Bearer t"]
            })
    }

    @Test(.verifies("SEC-19")) func `two headers with links count as one`() async throws {
        let server = try LocalServer { _ in
            .reply(200, headers: [("Link", "</p>; rel=prev"), ("Link", "</n>; rel=next")])
        }
        let reply = try await HTTPTransport(endpoint: try endpoint(server))
            .send(.read(after: nil), token: nil)
        #expect(reply.next == "/n")
        #expect(server.requests.count == 1)
    }

    @Test(.verifies("SEC-19"))
    func `a link to another server is not followed, so that no token goes there`() async throws {
        let stranger = try LocalServer { _ in .reply(200, body: Array("[]".utf8)) }
        let links = [
            stranger.base + "/v1/events", "//127.0.0.1:\(stranger.port)/v1/events",
            "https://127.0.0.1/v1/events", "http://localhost/v1/events", "ftp://127.0.0.1/x",
            "http:///v1/events", "data:,x",
        ]
        for link in links {
            let server = try LocalServer { _ in
                .reply(200, headers: [("Link", "<\(link)>; rel=\"next\"")], body: [])
            }
            let transport = HTTPTransport(endpoint: try endpoint(server))
            // It gives no cursor, and a recorded one is not followed.
            #expect(try await transport.send(.read(after: nil), token: "t").next == nil)
            let error = await failure { try await transport.send(.read(after: link), token: "t") }
            #expect(error?.code == .foreignPage)
            #expect(server.requests.count == 1)
            // A user name makes it another endpoint than the app's, even on the same server.
            let named = "http://user:word@127.0.0.1:\(server.port)/v1/events"
            let other = await failure { try await transport.send(.read(after: named), token: "t") }
            #expect(other?.code == .foreignPage)
            #expect(other?.description.contains("word") == false)
            // An absolute link to the same server is allowed.
            let own = "http://127.0.0.1:\(server.port)/v1/events?after=1"
            #expect(try await transport.send(.read(after: own), token: "t").status == 200)
        }
        #expect(stranger.requests.isEmpty)
    }

    @Test(.verifies("SEC-19")) func `a redirect is returned and not followed`()
        async throws
    {
        let stranger = try LocalServer { _ in .reply(200) }
        for status in [301, 302, 303, 307, 308] {
            let server = try LocalServer { [base = stranger.base] _ in
                .reply(status, headers: [("Location", base + "/elsewhere")])
            }
            let transport = HTTPTransport(endpoint: try endpoint(server))
            for call in [TransportRequest.append(batch: Array("[]".utf8)), .read(after: nil)] {
                let reply = try await transport.send(call, token: "t")
                #expect(reply.status == status)
            }
            #expect(server.requests.count == 2)
        }
        #expect(stranger.requests.isEmpty)
    }

    @Test(.verifies("SEC-20")) func `an answer above the limit is refused`() async throws {
        let most = ReplyBody.bytesMax
        let server = try LocalServer { request in
            let length = Int(request.target.split(separator: "=").last ?? "") ?? 0
            return .reply(200, body: [UInt8](repeating: 0x20, count: length))
        }
        let transport = HTTPTransport(endpoint: try endpoint(server))
        let longest = try await transport.send(.read(after: "?n=\(most)"), token: nil)
        #expect(longest.body.count == most)
        for length in [most + 1, 3 * most] {
            let error = await failure {
                try await transport.send(.read(after: "?n=\(length)"), token: nil)
            }
            #expect(error?.code == .replyTooLong)
        }
        #expect(server.requests.count == 3)
        // An answer that ends before its declared length is incomplete.
        let liar = try LocalServer { _ in
            .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".utf8))
        }
        let other = HTTPTransport(endpoint: try endpoint(liar))
        await #expect(throws: (any Error).self) {
            try await other.send(.read(after: nil), token: nil)
        }
        #expect(liar.requests.count == 1)
    }

    @Test(.verifies("SEC-17")) func `an app's headers go with every request`() async throws {
        let server = try LocalServer { _ in .reply(200) }
        let transport = try HTTPTransport(
            endpoint: try endpoint(server),
            headers: ["X-Proxy-Key": "a key\twith blanks", "cf-access.id": "~!"])
        _ = try await transport.send(.append(batch: Array("[]".utf8)), token: "t")
        _ = try await transport.send(.read(after: nil), token: "t")
        #expect(server.requests.count == 2)
        for request in server.requests {
            #expect(request.values("X-Proxy-Key") == ["a key\twith blanks"])
            #expect(request.values("cf-access.id") == ["~!"])
            #expect(request.values("Authorization") == ["Bearer t"])
        }
    }

    @Test(
        .verifies("SEC-17"),
        arguments: [
            ("", "v", TransportError.Code.badHeader), ("X Y", "v", .badHeader),
            ("X:", "v", .badHeader), ("X\r\nY", "v", .badHeader), ("Ä", "v", .badHeader),
            ("X", "v\r\nAuthorization: Bearer x", .badHeader), ("X", "v\nY: z", .badHeader),
            ("X", "v\rY", .badHeader), ("X", "v\u{0}", .badHeader), ("X", " v", .badHeader),
            ("X", "v\t", .badHeader), ("X", "ä", .badHeader), ("X", "\u{7F}", .badHeader),
            ("Authorization", "v", .reservedHeader), ("authorization", "v", .reservedHeader),
            ("Content-Type", "v", .reservedHeader), ("CONTENT-LENGTH", "1", .reservedHeader),
            ("Host", "v", .reservedHeader), ("Transfer-Encoding", "chunked", .reservedHeader),
        ])
    func `a header that could change the request is refused`(
        name: String, value: String, code: TransportError.Code
    ) throws {
        let url = try #require(URL(string: "http://127.0.0.1/v1/events"))
        let error = #expect(throws: TransportError.self) {
            try HTTPTransport(endpoint: url, headers: [name: value])
        }
        #expect(error?.code == code)
        #expect(error?.description.contains { $0.isNewline } == false)
        #expect(error?.description.contains("Bearer x") == false)
    }

    @Test(.verifies("SEC-17")) func `one header under two names is refused`() throws {
        let url = try #require(URL(string: "http://127.0.0.1/v1/events"))
        let error = #expect(throws: TransportError.self) {
            try HTTPTransport(endpoint: url, headers: ["X-A": "1", "x-a": "2"])
        }
        #expect(error?.code == .badHeader)
    }

    @Test(.verifies("SEC-17"), arguments: ["", "a b", "a\r\nX: y", "ä", "a\u{0}"])
    func `a token that could change the request is not sent`(token: String) async throws {
        let server = try LocalServer { _ in .reply(200) }
        let transport = HTTPTransport(endpoint: try endpoint(server))
        let error = await failure { try await transport.send(.read(after: nil), token: token) }
        #expect(error?.code == .badToken)
        #expect(server.requests.isEmpty)
    }
}
