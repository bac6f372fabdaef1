// The stream of an account's events: GET /v1/events with `Accept: text/event-stream`, at a real server, with a
// client that reads bytes. Spec/protocol/push.md.

import Foundation
import SyncServerStorage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct EventStreamTests {
    /// A token file with the token `one` of the account `ana`, and `two` of `ben`.
    private func tokenFile(in fixture: StorageFixture) throws -> URL {
        let file = fixture.folder.appending("tokens")
        try Data("one ana\ntwo ben\n".utf8).write(to: file)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: file.path)
        return file
    }

    @Test(.verifies("PUSH-1", "PUSH-2", "PUSH-3", "PUSH-4"), arguments: StorageKind.all)
    func `a stream has all events so far, then each new one as soon as it is stored`(
        _ kind: StorageKind
    ) async throws {
        let fixture = try await kind.fixture()
        let server = try ServerProcess(database: fixture.location)
        let client = ServerClient(base: server.base)
        let samples = Sample.cities(40, from: 1)
        try await client.append(samples[..<30])
        let stream = try EventStreamReader(server.base)
        #expect(try stream.events(30).map(\.id) == samples[..<30].map(\.id.text))
        #expect(stream.head.contains("Content-Type: text/event-stream\r\n"))
        #expect(stream.head.contains("X-Accel-Buffering: no\r\n"))
        for sample in samples[30...] {
            try await client.append([sample])
            #expect(try stream.events(1).map(\.id) == [sample.id.text])
        }
        // The lines are those of a page.
        let page = try await client.get("/v1/events")
        #expect(Data("[\(stream.lines.joined(separator: ","))]".utf8) == page.body)
        #expect(server.stop() == 0)
    }

    @Test(.verifies("PUSH-5"))
    func `a stream resumes after the id in Last-Event-ID, or after a page`() async throws {
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.location)
        let client = ServerClient(base: server.base)
        let samples = Sample.cities(10, from: 1)
        try await client.append(samples[...])
        let first = try EventStreamReader(server.base)
        let id = try #require(try first.events(4).last?.cursor)
        let resumed = try EventStreamReader(
            server.base, "/v1/events?after=a9", "Last-Event-ID: \(id)")
        #expect(try resumed.events(6).map(\.id) == samples[4...].map(\.id.text))
        let next = try #require(try await client.get("/v1/events?limit=7").next)
        let after = try EventStreamReader(server.base, next)
        #expect(try after.events(3).map(\.id) == samples[7...].map(\.id.text))
    }

    @Test(
        .verifies("PUSH-1"),
        arguments: [
            ("/v1/events?source=7c9e6679-7425-40de-944b-e07fc1f90ae7", "", "bad_source"),
            ("/v1/events?after=s1-2", "", "bad_cursor"),
            ("/v1/events", "Last-Event-ID: x", "bad_cursor"),
            ("/v1/events?limit=0", "", "bad_limit"),
        ])
    func `a stream that cannot be had is refused`(
        _ path: String, _ header: String, _ code: String
    ) throws {
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.location)
        let reader = try EventStreamReader(server.base, path, header)
        #expect(reader.head.hasPrefix("HTTP/1.1 400"))
        #expect(try reader.text(until: code) != nil)
    }

    @Test(.verifies("PUSH-6")) func `a stream without events has a heartbeat`() throws {
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.location, "--heartbeat", "1")
        let reader = try EventStreamReader(server.base)
        #expect(try reader.text(until: ": following\n\n") == "d\r\n: following\n\n")
        #expect(try reader.text(until: "\n:\n\n") != nil)
    }

    @Test(.verifies("PUSH-7"))
    func `the streams of a server are limited, and an account has a share of them`() throws {
        let fixture = try StorageFixture()
        let tokens = try tokenFile(in: fixture)
        let server = try ServerProcess(
            database: fixture.location, "--streams", "6", "--token-file", tokens.path)
        func open(_ token: String) throws -> EventStreamReader {
            try EventStreamReader(server.base, "/v1/events", "Authorization: Bearer \(token)")
        }
        var ana = try (0..<3).map { _ in try open("one") }
        #expect(ana.map(\.status) == [200, 200, 429])
        let ben = try open("two")
        #expect(ben.status == 200)
        #expect(ana[2].head.contains("Retry-After: 1\r\n"))
        ana.removeAll()
        _ = ben
    }

    @Test(.verifies("PUSH-7"))
    func `a client that does not read is cut, and the server goes on`() async throws {
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.location, "--client-timeout", "1")
        let client = ServerClient(base: server.base)
        // More than the system holds for a connection.
        let text = String(repeating: "x", count: 100_000)
        let samples = (1...80).map { Sample.note("added", "note-\($0)", $0, text: text) }
        for start in stride(from: 0, to: samples.count, by: 10) {
            try await client.append(samples[start..<start + 10])
        }
        let slow = try EventStreamReader(server.base, receiveBuffer: 4_096)
        try await eventually("connections cut", is: 1) {
            try await client.metric("daybook_connections_cut_total{reason=\"slow_reader\"}")
        }
        let count = try slow.countToEnd()
        #expect(count < samples.count)
        let resumed = try EventStreamReader(
            server.base, "/v1/events", "Last-Event-ID: a\(count)")
        #expect(try resumed.events(samples.count - count).count == samples.count - count)
    }

    @Test(.verifies("PUSH-8", "SYNC-42"))
    func `a server that is told to end ends its streams, and one that reads its tokens again, too`()
        async throws
    {
        let fixture = try StorageFixture()
        let tokens = try tokenFile(in: fixture)
        let server = try ServerProcess(
            database: fixture.location, "--token-file", tokens.path)
        let withdrawn = try EventStreamReader(
            server.base, "/v1/events", "Authorization: Bearer two")
        #expect(withdrawn.status == 200)
        try Data("one ana\n".utf8).write(to: tokens)
        server.signal(SIGHUP)
        #expect(try withdrawn.countToEnd() == 0)
        #expect(
            try EventStreamReader(
                server.base, "/v1/events", "Authorization: Bearer two"
            ).status == 401)
        let stream = try EventStreamReader(
            server.base, "/v1/events", "Authorization: Bearer one")
        #expect(stream.status == 200)
        #expect(server.stop() == 0)
        #expect(try stream.countToEnd() == 0)
    }

    @Test(.verifies("PUSH-6", "PUSH-8", "OPS-8"))
    func `a stream whose client has left is no longer counted`() async throws {
        let fixture = try StorageFixture()
        let server = try ServerProcess(database: fixture.location, "--heartbeat", "1")
        let client = ServerClient(base: server.base)
        func openStreams() async throws -> Int? {
            try await client.metric("daybook_streams_open")
        }
        do {
            let streams = try (0..<5).map { _ in try EventStreamReader(server.base) }
            #expect(try await openStreams() == 5)
            _ = streams
        }
        // These leave before the reply.
        let host = server.base.dropFirst("http://".count)
        for _ in 0..<20 {
            try RawConnection(server.base).send(
                "GET /v1/events HTTP/1.1\r\nHost: \(host)\r\nAccept: text/event-stream\r\n\r\n")
        }
        try await eventually("open streams", is: 0) { try await openStreams() }
    }

    @Test(
        .verifies("PUSH-9", "PG-10"),
        .disabled(if: PostgreSQLCluster.isSkipped, "DAYBOOK_SKIP_POSTGRESQL is set"))
    func `an event that one server stores reaches the streams of another one at once`()
        async throws
    {
        let fixture = try await PostgreSQLFixture()
        let servers = try (0..<2).map { _ in try ServerProcess(database: fixture.location) }
        let stream = try EventStreamReader(servers[1].base)
        let client = ServerClient(base: servers[0].base)
        let start = ContinuousClock.now
        for sample in Sample.cities(20, from: 1) {
            try await client.append([sample])
            #expect(try stream.events(1).map(\.id) == [sample.id.text])
        }
        // The other server looks for lost signals every 15 s: twenty looks take five minutes.
        #expect(ContinuousClock.now - start < .seconds(120))
    }

    @Test(.verifies("PUSH-9"), arguments: StorageKind.all)
    func `a look finds the accounts whose signal was lost, and wakes no other stream`(
        _ kind: StorageKind
    ) async throws {
        let fixture = try await kind.fixture()
        let (reader, writer) = (try await fixture.open(), try await fixture.open())
        let signals = reader.signals
        let streams = ["ana", "ben", "c\u{e9}", "ce\u{301}"].map {
            signals.addStream(of: $0, after: 0)
        }
        for stream in streams { #expect(await stream.next() == .events) }
        _ = try await writer.append(Sample.cities(1, from: 1), account: "ana")
        _ = try await writer.append(Sample.cities(1, from: 1), account: "c\u{e9}")
        try await signals.signalMissed(reader.lastSerials)
        #expect(await streams[0].next() == .events)
        #expect(await streams[2].next() == .events)
        signals.beat(every: .zero)
        #expect(await streams[1].next() == .heartbeat)
        #expect(await streams[3].next() == .heartbeat)
        for stream in streams { signals.removeStream(stream) }
        #expect(signals.count == 0)
        try reader.close()
        try writer.close()
    }
}

/// A client of a stream that reads bytes.
final class EventStreamReader {
    struct Event {
        let cursor: String
        let line: String
        var id: String {
            let object = try? JSONSerialization.jsonObject(with: Data(line.utf8))
            return (object as? [String: Any])?["id"] as? String ?? ""
        }
    }

    /// The reply's head.
    private(set) var head = ""
    /// The lines of all events so far.
    private(set) var lines: [String] = []
    private let connection: RawConnection
    /// Received bytes that are not parsed yet.
    private var bytes = Data()

    var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }

    init(
        _ base: String, _ path: String = "/v1/events", _ header: String = "",
        receiveBuffer: Int32? = nil
    ) throws {
        connection = try RawConnection(base, receiveBuffer: receiveBuffer)
        let host = base.dropFirst("http://".count)
        connection.send(
            "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nAccept: text/event-stream\r\n"
                + (header.isEmpty ? "" : header + "\r\n") + "\r\n")
        head = try text(until: "\r\n\r\n") ?? ""
    }

    /// Reads the next events, fewer at the end of the stream.
    func events(_ count: Int) throws -> [Event] {
        var events: [Event] = []
        while events.count < count, let event = try nextEvent() {
            events.append(event)
            lines.append(event.line)
        }
        return events
    }

    /// The next event. Its id and its line are each within a chunk.
    private func nextEvent() throws -> Event? {
        guard try text(until: "id: ") != nil, let cursor = try text(until: "\n"),
            try text(until: "data: ") != nil, let line = try text(until: "\n\n")
        else { return nil }
        return Event(
            cursor: String(cursor.dropLast()),
            // An event with more than 64 KiB comes in several chunks.
            line: String(line.dropLast(2).replacing(/\r\n[0-9a-f]+\r\n/, with: "")))
    }

    /// Reads up to and including a text.
    ///
    /// - Returns: nil if the stream ends before.
    func text(until end: String) throws -> String? {
        let end = Data(end.utf8)
        var searched = bytes.startIndex
        while true {
            if let found = bytes.range(of: end, in: searched..<bytes.endIndex) {
                defer { bytes = Data(bytes[found.upperBound...]) }
                return String(decoding: bytes[..<found.upperBound], as: UTF8.self)
            }
            searched = max(bytes.startIndex, bytes.endIndex - end.count + 1)
            // The last chunk, after which the connection stays open.
            guard !bytes.suffix(7).elementsEqual("\r\n0\r\n\r\n".utf8),
                let part = try? connection.receive()
            else { return nil }
            bytes += part
        }
    }

    /// Reads to the end of the stream.
    ///
    /// - Returns: the number of complete events.
    func countToEnd() throws -> Int {
        var count = 0
        while let event = try nextEvent() { if !event.id.isEmpty { count += 1 } }
        return count
    }
}

extension ServerClient {
    /// Appends events, which must all be applied.
    func append(_ samples: some Collection<Sample>) async throws {
        #expect(try await post(samples.body).statuses == samples.map { _ in "applied" })
    }
}
