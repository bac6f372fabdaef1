// Requests in HTTP/1.0, which has neither chunks nor 100 Continue. Spec/operations/operating.md, OPS-27.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct OldHTTPTests {
    let server: ServerProcess
    let fixture: StorageFixture

    init() throws {
        fixture = try StorageFixture()
        server = try ServerProcess(database: fixture.path)
    }

    @Test(.verifies("OPS-27", "PUSH-2"))
    func `a stream in HTTP 1.0 has no chunks and ends with its connection`() async throws {
        let samples = Sample.cities(3)
        try await ServerClient(base: server.base).append(samples)
        let connection = try RawConnection(server.base)
        connection.send(
            "GET /v1/events HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n"
                + "Accept: text/event-stream\r\n\r\n")
        var reply = try connection.text(until: "id: a3\ndata: ")
        #expect(server.stop() == 0)
        reply += try connection.readToEnd()
        #expect(reply.hasPrefix("HTTP/1.0 200 OK\r\n"))
        let parts = reply.components(separatedBy: "\r\n\r\n")
        #expect(parts.count == 2)
        #expect(parts[0].lowercased().contains("connection: close"))
        #expect(!parts[0].lowercased().contains("transfer-encoding"))
        let events = samples.enumerated().map { "id: a\($0 + 1)\ndata: \($1.line)\n\n" }
        #expect(parts.last == ": following\n\n" + events.joined())
    }

    @Test(.verifies("OPS-27", "SYNC-5"), arguments: ["100-continue", "magic"])
    func `an expectation in HTTP 1.0 is ignored, and the connection ends after the reply`(
        expectation: String
    ) throws {
        let body = String(decoding: Sample.cities(2).body, as: UTF8.self)
        let connection = try RawConnection(server.base)
        connection.send(
            "POST /v1/events HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n"
                + "Content-Type: application/cloudevents-batch+json\r\nExpect: \(expectation)\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        let reply = try connection.readToEnd()
        #expect(reply.hasPrefix("HTTP/1.0 200 OK\r\n"))
        #expect(!reply.contains("100 Continue"))
        #expect(reply.components(separatedBy: "applied").count == 3)
    }

    @Test(.verifies("OPS-27"))
    func `a request in HTTP 1.1 before one in HTTP 1.0 is answered in its own version`() throws {
        let connection = try RawConnection(server.base)
        connection.send(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                + "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        let replies = try connection.readToEnd()
        #expect(replies.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(replies.contains("}HTTP/1.0 200 OK\r\n"))
    }
}
