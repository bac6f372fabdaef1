// A mistake of the first day is answered by a type to switch over, a sentence that says what happened, and
// what to do next.

import Daybook
import DaybookTestKit
import Foundation
import TestSupport
import Testing

private struct Trip: EventPayload, Codable {
    static let type = "com.example.trip"
    var name: String
    var nights: Double = 1
    var start: Date?
    var subject: String? { name }
}

private struct Renamed: EventPayload, Codable {
    static let type = "com.example.renamed"
    var name: String
    var newName: String
}

private struct Trips: Projection {
    static let name = "trips"
    static let version = 1
    mutating func fold(_ event: Event) {}
}

private struct OtherTrips: Projection {
    static let name = "trips"
    static let version = 1
    mutating func fold(_ event: Event) {}
}

private struct Unnamed: Projection {
    static let name = ""
    static let version = 1
    mutating func fold(_ event: Event) {}
}

/// An answer that is none of a sync server, and what is to be read then.
private struct WrongAnswer: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// A part of the sentence.
    let text: String
    let answer: LocalServer.Answer

    init(_ name: String, _ text: String, _ answer: LocalServer.Answer) {
        (testDescription, self.text, self.answer) = (name, text, answer)
    }
}

/// Something to do wrong, and what is to be read then.
private struct Mistake: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: String
    /// A part of the sentence.
    let text: String
    let make: @Sendable (_ folder: URL) async throws -> Void

    init(
        _ name: String, _ code: String, _ text: String,
        _ make: @escaping @Sendable (_ folder: URL) async throws -> Void
    ) {
        (testDescription, self.code, self.text, self.make) = (name, code, text, make)
    }

    private static let rules: [EventRule] = [.of(Trip.self, action: "TRAVEL")]
    private static let id = UUID(
        uuid: (1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16))

    private static func store() async throws -> EventStore {
        try await EventStore.inMemory(rules: rules, views: [Trips.self])
    }

    private static func sync(to address: String) async throws {
        let store = try await store()
        guard let url = URL(string: address) else { return }
        try await store.sync(
            to: url, credentials: BearerToken("t"), until: Date(timeIntervalSinceNow: 5))
    }

    static let ofLogs: [Mistake] = [
        Mistake("a parent folder that does not exist", "no-such-log", "There is no log at") {
            _ = try await EventStore.open(at: $0.appending(path: "missing/log"))
        },
        Mistake("create: false without a log", "no-such-log", "There is no log at") {
            _ = try await EventStore.open(at: $0.appending(path: "log"), create: false)
        },
        Mistake("a folder with other files", "not-a-log", "is not the folder of a log") {
            try Data("x".utf8).write(to: $0.appending(path: "letter.txt"))
            _ = try await EventStore.open(at: $0)
        },
        Mistake("a file in place of the folder", "not-a-log", "is not the folder of a log") {
            let file = $0.appending(path: "file")
            try Data("x".utf8).write(to: file)
            _ = try await EventStore.open(at: file)
        },
        Mistake("a log that is open already", "locked", "The log is open elsewhere") {
            let log = $0.appending(path: "log")
            let first = try await EventStore.open(at: log)
            _ = try await EventStore.open(at: log)
            try await first.close()
        },
        Mistake("the log of another account", "wrong-account", "belongs to another account") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log, account: "a").close()
            _ = try await EventStore.open(at: log, account: "b")
        },
        Mistake("a corrupt byte", "corrupt", "The log is damaged") {
            let log = $0.appending(path: "log")
            let store = try await EventStore.open(at: log, rules: rules)
            for number in 0..<40 { try await store.append(Trip(name: "trip \(number)")) }
            try await store.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: log.path)
            let segment = log.appending(path: names.first { $0.hasSuffix(".lz4") } ?? "")
            var bytes = try Data(contentsOf: segment)
            bytes[bytes.count / 2] ^= 0xFF
            try bytes.write(to: segment)
            for name in names where !name.hasSuffix(".lz4") {
                try? FileManager.default.removeItem(at: log.appending(path: name))
            }
            _ = try await EventStore.open(at: log, rules: rules)
        },
        Mistake("a full device", "disk-full", "The device is full") { _ in
            let files = InMemoryFileSystem()
            let store = try await EventStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
            files.setQuota(files.usedBytes)
            // Noise, since a text that compresses well would find room.
            let noise = (0..<200_000).map { _ in UInt8.random(in: 97...122) }
            try await store.append(Trip(name: String(decoding: noise, as: UTF8.self)))
        },
        Mistake("an append after close()", "closed", "The log is closed") { _ in
            let store = try await store()
            try await store.close()
            try await store.append(Trip(name: "a"))
        },
        Mistake("an append while suspended", "suspended", "The log is suspended") { _ in
            let store = try await store()
            try await store.suspend()
            try await store.append(Trip(name: "a"))
        },
    ]

    static let ofEvents: [Mistake] = [
        Mistake(
            "a known id with another content", "id-reused",
            "belongs to the event at position 1 of the type com.example.trip"
        ) { _ in
            let store = try await store()
            try await store.append([EventDraft(Trip(name: "a"), id: id)])
            try await store.append([EventDraft(Trip(name: "b"), id: id)])
        },
        Mistake(
            "an id twice in one call", "id-reused", "at position 1 of the type com.example.trip"
        ) { _ in
            let drafts = try [
                EventDraft(Trip(name: "a"), id: id), EventDraft(Trip(name: "b"), id: id),
            ]
            try await store().append(drafts)
        },
        Mistake("NaN in a payload", "invalid-data", "nights is nan, which JSON cannot hold") { _ in
            try await store().append(Trip(name: "a", nights: .nan))
        },
        Mistake(
            "data without a member", "invalid-data", "com.example.trip: name is missing"
        ) { _ in
            let draft = EventDraft(type: Trip.type, data: .json(Array(#"{"nights":2}"#.utf8)))
            try await store().append([draft])
        },
        Mistake("a member of another kind", "invalid-data", "nights is not of the type Double") {
            _ in
            let json = Array(#"{"name":"a","nights":"two"}"#.utf8)
            try await store().append([EventDraft(type: Trip.type, data: .json(json))])
        },
        Mistake("a date that is none", "invalid-data", "'tomorrow' is no date in ISO 8601") { _ in
            let json = Array(#"{"name":"a","nights":1,"start":"tomorrow"}"#.utf8)
            try await store().append([EventDraft(type: Trip.type, data: .json(json))])
        },
        Mistake(
            "decoding as another type", "invalid-data",
            "has the type com.example.trip and cannot be read as Renamed, whose type is "
                + "com.example.renamed: newName is missing"
        ) { _ in
            let store = try await store()
            try await store.append(Trip(name: "a"))
            let event = try await store.event(at: Position(1))
            _ = try event?.payload(as: Renamed.self)
        },
        Mistake("text that is no JSON", "invalid-data", "not valid JSON") { _ in
            try await store().append([EventDraft(type: Trip.type, data: .json(Array("{".utf8)))])
        },
        Mistake("an empty type", "bad-attribute", "type") { _ in
            try await store().append([EventDraft(type: "")])
        },
        Mistake("a type of the library's", "refused", "daybook.") { _ in
            try await store().append([EventDraft(type: "daybook.mine")])
        },
        Mistake("an event that is too large", "too-large", "at most 262144") { _ in
            try await store().append(Trip(name: String(repeating: "x", count: 2 << 20)))
        },
        Mistake("two views of one name", "refused", "two views have the name trips") { _ in
            _ = try await EventStore.inMemory(views: [Trips.self, OtherTrips.self])
        },
        Mistake("a view without a name", "refused", "has a name of 0 bytes") { _ in
            _ = try await EventStore.inMemory(views: [Unnamed.self])
        },
        Mistake("a time far ahead", "refused", "more than 24 hours ahead of the clock") { _ in
            let time = Timestamp(Date(timeIntervalSinceNow: 10 * 86_400))
            try await store().append([EventDraft(Trip(name: "a"), time: time)])
        },
    ]

    static let ofServers: [Mistake] = [
        Mistake("an endpoint of another scheme", "bad-endpoint", "no http or https URL") { _ in
            try await sync(to: "ftp://example.org")
        },
        Mistake("an endpoint without a host", "bad-endpoint", "no http or https URL") { _ in
            try await sync(to: "/v1/events")
        },
        Mistake("a password in the endpoint", "bad-endpoint", "user name or a password") { _ in
            try await sync(to: "https://me:secret@example.org")
        },
        Mistake("a token over http", "token-in-clear", "sync.example.org") { _ in
            try await sync(to: "http://sync.example.org")
        },
    ]
}

@Suite struct MistakeTests {
    @Test(arguments: Mistake.ofLogs + Mistake.ofEvents + Mistake.ofServers)
    private func `a mistake is told with a code, a sentence and a way out`(
        _ mistake: Mistake
    ) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        do {
            try await mistake.make(folder.url)
            Issue.record("nothing was thrown")
        } catch {
            let code: String? =
                switch error {
                case let error as LogError: error.code.rawValue
                case let error as EventError: error.code.rawValue
                case let error as TransportError: error.code.rawValue
                default: nil
                }
            #expect(code == mistake.code, "\(error)")
            let text = error.localizedDescription
            #expect(text.contains(mistake.text), "\(text)")
            #expect(!text.contains("operation could not be completed"))
            let suggestion = (error as? any LocalizedError)?.recoverySuggestion
            #expect(suggestion?.isEmpty == false)
        }
    }

    /// Nothing is thrown for the network: the report says what is wrong, and the events wait.
    @Test(arguments: [
        WrongAnswer(
            "the login page of a network", "this network may ask for a login first",
            .reply(200, headers: [("Content-Type", "text/html")], body: Array("<html>".utf8))),
        WrongAnswer("another path", "the server answers 404: is the endpoint right?", .reply(404)),
        WrongAnswer(
            "a server that has moved", "the server answers 301: is the endpoint right?",
            .reply(301)),
        WrongAnswer("a busy server", "the server answers 503", .reply(503)),
        WrongAnswer("a server that hangs up", "no answer: ", .hangUp),
        WrongAnswer("a silent server", "no answer: ", .script { $0.waitForEnd() }),
    ])
    private func `what is wrong with the network or the server is told in the report`(
        _ wrong: WrongAnswer
    ) async throws {
        let server = try LocalServer { _ in wrong.answer }
        let store = try await EventStore.inMemory(
            rules: [.of(Trip.self, action: "TRAVEL")], views: [Trips.self])
        try await store.append(Trip(name: "a"))
        let endpoint = try #require(URL(string: server.base))
        let report = try await store.sync(to: endpoint, http: HTTPOptions(timeoutSeconds: 1))
        #expect(report.message?.contains(wrong.text) == true, "\(report.message ?? "nothing")")
        #expect(report.applied == 0 && report.pending == 1)
        #expect(!server.requests.isEmpty)
        try await store.close()
    }

    @Test func `a date in a payload is ISO 8601, and one of an earlier release is read`()
        async throws
    {
        let date = Date(timeIntervalSince1970: 1_800_000_000.125)
        let json = try Trip(name: "a", start: date).json()
        #expect(
            String(decoding: json, as: UTF8.self)
                == #"{"name":"a","nights":1,"start":"2027-01-15T08:00:00.125Z"}"#)
        #expect(try Trip(json: json).start == date)
        let old = #"{"name":"a","nights":1,"start":\#(date.timeIntervalSinceReferenceDate)}"#
        #expect(try Trip(json: Array(old.utf8)).start == date)
    }

    @Test func `a date that is no number is refused`() {
        let error = #expect(throws: EventError.self) {
            try Trip(name: "a", start: Date(timeIntervalSince1970: .nan)).json()
        }
        #expect(error?.detail == "start is nan, which JSON cannot hold")
    }

    @Test(arguments: [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/events"),
        ("https://example.org/", "https://example.org/v1/events"),
        ("https://example.org/v1/events", "https://example.org/v1/events"),
        ("https://example.org/sync", "https://example.org/sync"),
        ("https://example.org/?a=b", "https://example.org/?a=b"),
    ])
    func `a server's bare address stands for its events`(address: String, events: String) throws {
        let url = try #require(URL(string: address))
        #expect(HTTPTransport.eventsURL(of: url).absoluteString == events)
    }
}
