// Clients of an account that stop reading, beside the account's batches. Spec/operations/operating.md, OPS-21.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct StoppedReaderTests {
    /// The header that requests the replies, the server's memory in MiB, and the bytes of the replies that are
    /// in memory at once when all readers have stopped.
    @Test(
        .verifies("OPS-21"),
        arguments: [("text/event-stream", "8", 1_000_000), ("*/*", "32", 5_000_000)])
    func `stopped readers hold nothing that the batches of their account need`(
        accept: String, memory: String, held: Int
    ) async throws {
        let fixture = try StorageFixture()
        // With five places for requests, and five for streams.
        let server = try ServerProcess(
            database: fixture.path, "--connections", "6", "--streams", "5", "--memory", memory,
            "--client-timeout", "600")
        let client = ServerClient(base: server.base)
        let text = String(repeating: "x", count: 100_000)
        for first in stride(from: UInt64(1), to: 80, by: 10) {
            try await client.append(
                (first..<first + 10).map { Sample.note("added", "note-\($0)", $0, text: text) })
        }
        let request =
            "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: \(accept)\r\n\r\n"
        let readers = try (0..<5).map { _ in
            let reader = try RawConnection(server.base, receiveBuffer: 4_096)
            reader.send(String(repeating: request, count: 16))
            return reader
        }
        var polls = 0
        try await eventually("polls in a row with the replies in memory", is: 20) {
            polls = try await client.metric("daybook_held_bytes") ?? 0 >= held ? polls + 1 : 0
            return polls
        }
        for sequence in UInt64(1_001)...1_010 {
            try await client.append(Sample.cities(1, from: sequence))
        }
        withExtendedLifetime(readers) {}
    }
}
