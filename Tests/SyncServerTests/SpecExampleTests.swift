// The worked example of the protocol page, sent to the real server.

import Foundation
import TestSupport
import Testing

@Suite struct SpecExampleTests {
    @Test(.verifies("SYNC-20", "SYNC-21", "SYNC-26", "SYNC-29"))
    func `the server answers as in the worked example of the protocol page`() async throws {
        let page = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../../Spec/protocol/sync-protocol.md").standardizedFileURL,
            encoding: .utf8)
        let messages = page.split(separator: "```\n").filter {
            $0.hasPrefix("POST ") || $0.hasPrefix("HTTP/1.1")
        }
        try #require(messages.count == 3)
        let bodies = messages.map { message in
            Data(message.split(separator: "\n\n")[1].dropLast().utf8)
        }
        for (message, body) in zip(messages, bodies) {
            #expect(message.contains("Content-Length: \(body.count)\n"))
        }
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.path)
        let client = ServerClient(base: server.base)
        let verdicts = try await client.post(bodies[0])
        #expect(verdicts.body == bodies[1])
        let events = try await client.get("/v1/events?limit=2")
        #expect(events.body == bodies[2])
        let link = try #require(events.header("Link"))
        #expect(messages[2].contains("Link: \(link)\n"))
    }
}
