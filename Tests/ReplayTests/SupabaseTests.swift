// The requests to a Supabase project and the parsed answers, compared with the messages
// that are recorded in Spec/operations/supabase.md.

import Foundation
import TestSupport
import Testing

@testable import Replay

/// The messages of the page, in their order.
private struct RecordedMessages {
    struct Message {
        var start: String
        var headers: [String: String]
        var body: [UInt8]
    }

    let requests: [Message]
    let answers: [Message]

    init() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Spec/operations/supabase.md").standardizedFileURL
        let text = try String(contentsOf: page, encoding: .utf8)
        // Every second piece is inside a block.
        let pieces = text.components(separatedBy: "```")
        var messages: [Message] = []
        for index in stride(from: 1, to: pieces.count, by: 2) where pieces[index].first == "\n" {
            let parts = pieces[index].dropFirst().components(separatedBy: "\n\n")
            try #require(parts.count == 2)
            let lines = parts[0].split(separator: "\n")
            var headers: [String: String] = [:]
            for line in lines.dropFirst() {
                let colon = try #require(line.range(of: ": "))
                headers[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
            }
            let body = parts[1].trimmingCharacters(in: .newlines)
            messages.append(
                Message(start: String(lines[0]), headers: headers, body: Array(body.utf8)))
        }
        requests = messages.filter { $0.start.hasPrefix("POST") }
        answers = messages.filter { $0.start.hasPrefix("HTTP") }
        try #require(requests.count == 3)
        try #require(answers.count == 3)
    }
}

@Suite struct SupabaseTests {
    private func transport(
        _ answer: RecordedMessages.Message
    ) throws -> (SupabaseTransport, LocalServer) {
        let status = try #require(Int(answer.start.split(separator: " ")[1]))
        let server = try LocalServer { _ in
            .reply(
                status, headers: answer.headers.map { ($0.key, $0.value) }, body: answer.body)
        }
        let project = try #require(URL(string: server.base))
        return (try SupabaseTransport(project: project, apiKey: "KEY"), server)
    }

    private func expect(
        _ server: LocalServer, _ recorded: RecordedMessages.Message,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try #require(server.requests.count == 1, sourceLocation: sourceLocation)
        let request = server.requests[0]
        #expect(
            "\(request.method) \(request.target) HTTP/1.1" == recorded.start,
            sourceLocation: sourceLocation)
        for (name, value) in recorded.headers {
            #expect(request.values(name) == [value], sourceLocation: sourceLocation)
        }
        #expect(request.body == recorded.body, sourceLocation: sourceLocation)
    }

    /// The bytes of a value in a recorded body.
    private func part(_ body: [UInt8], from start: String, to end: String) throws -> [UInt8] {
        let first = try #require(body.firstRange(of: Array(start.utf8)))
        let last = try #require(body.ranges(of: Array(end.utf8)).last)
        return Array(body[first.upperBound..<last.lowerBound])
    }

    @Test(.verifies("SUP-1", "SUP-2"))
    func `a batch goes out and its verdicts come back as recorded`() async throws {
        let page = try RecordedMessages()
        let (transport, server) = try transport(page.answers[0])
        let batch = try part(page.requests[0].body, from: #"{"events":"#, to: "}")
        let reply = try await transport.send(.append(batch: batch), token: "TOKEN")
        try expect(server, page.requests[0])
        #expect(reply.status == 200)
        #expect(reply.body == page.answers[0].body)
        #expect(reply.date == 1_771_756_262_000)
        #expect(Verdict.parse(reply.body)?.map(\.status) == [.applied])
    }

    @Test(.verifies("SUP-3", "SUP-4"))
    func `pages are requested and parsed as recorded`() async throws {
        let page = try RecordedMessages()
        let (transport, server) = try transport(page.answers[1])
        let reply = try await transport.send(.read(after: nil), token: "TOKEN")
        try expect(server, page.requests[1])
        #expect(reply.next == "41\"ä")
        let events = try part(page.answers[1].body, from: #""events": "#, to: "}")
        // Byte for byte: 0.90 has not become 0.9.
        #expect(reply.body == events)
        #expect(String(decoding: reply.body, as: UTF8.self).contains(#""score": 0.90"#))
        let (next, second) = try self.transport(page.answers[1])
        _ = try await next.send(.read(after: reply.next), token: "TOKEN")
        try expect(second, page.requests[2])
    }

    @Test(.verifies("SUP-1")) func `without a token the key is sent as the token`() async throws {
        let page = try RecordedMessages()
        let (transport, server) = try transport(page.answers[0])
        _ = try await transport.send(.append(batch: Array("[]".utf8)), token: nil)
        let request = try #require(server.requests.first)
        #expect(request.values("Authorization") == ["Bearer KEY"])
        #expect(request.values("apikey") == ["KEY"])
        #expect(request.text == #"{"events":[]}"#)
    }

    @Test(.verifies("SUP-5")) func `errors are returned with their status`() async throws {
        let page = try RecordedMessages()
        for call in [TransportRequest.append(batch: Array("[]".utf8)), .read(after: "1")] {
            let (transport, server) = try transport(page.answers[2])
            let reply = try await transport.send(call, token: "TOKEN")
            #expect(reply.status == 401)
            #expect(reply.body == page.answers[2].body)
            #expect(server.requests.count == 1)
        }
    }

    @Test(
        .verifies("SUP-4"),
        arguments: [
            "", "[]", "{}", #"{"events":[]}"#, #"{"next":"1"}"#, #"{"events":{},"next":"1"}"#,
            #"{"events":[],"next":1}"#, #"{"events":[],"next":"1""#, "<html>",
            #"{"events":null,"next":"1"}"#, #"{"events":[],"events":[],"next":"1"}"#,
        ])
    func `a page of another form is refused`(text: String) async throws {
        let server = try LocalServer { _ in .reply(200, body: Array(text.utf8)) }
        let transport = try SupabaseTransport(
            project: try #require(URL(string: server.base)), apiKey: "KEY")
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(.read(after: nil), token: nil)
        }
        #expect(error?.code == .malformedReply)
        #expect(server.requests.count == 1)
    }

    @Test(.verifies("SEC-17")) func `a key or header that could change the request is refused`()
        throws
    {
        let project = try #require(URL(string: "https://127.0.0.1"))
        for key in ["", "a b", "a\r\nX: y"] {
            let error = #expect(throws: TransportError.self) {
                try SupabaseTransport(project: project, apiKey: key)
            }
            #expect(error?.code == .badToken)
        }
        let error = #expect(throws: TransportError.self) {
            try SupabaseTransport(project: project, apiKey: "KEY", headers: ["ApiKey": "x"])
        }
        #expect(error?.code == .reservedHeader)
    }
}
