// Mistakes of an app's first weeks that no call can refuse: a log line, the report of a sync or the test kit names
// them. Then the table of all mistakes, each with what names it.

import Daybook
import DaybookTestKit
import Foundation
import InMemoryLogging
import Logging
import TestSupport
import Testing

/// What names a mistake.
enum MistakeVoice: String, CaseIterable {
    case compiler
    case opening
    case append
    /// An error of another call.
    case call
    case report = "report of a sync"
    case logLine = "log line"
    case kit = "test kit"

    /// The names of all tried mistakes, by what names them. None has another voice: each list is the argument
    /// of a test that fails for a mistake that nothing names.
    static let table: [MistakeVoice: [String]] = [
        .compiler: CompilerMistake.all.map(\.name),
        .opening: Mistake.ofOpening.map(\.testDescription),
        .append: Mistake.ofAppending.map(\.testDescription),
        .call: (Mistake.ofMaintenance + Mistake.ofReading + Mistake.ofSyncing + Mistake.ofModel)
            .map(\.testDescription),
        .report: WrongAnswer.all.map(\.testDescription)
            + Mistake.ofReports.map(\.testDescription),
        .logLine: Mistake.ofLogLines.map(\.testDescription),
        .kit: Mistake.ofKit.map(\.testDescription),
    ]
}

// MARK: Types

/// The payload of the first release, and what later releases make of it.
private struct Walk: EventPayload, Codable {
    static let type = "com.example.walk"
    var name: String
}

private struct TimedWalk: EventPayload, Codable {
    static let type = Walk.type
    var name: String
    /// The mistake: old events have none.
    var minutes: Int
}

private struct Mooded: EventPayload, Codable {
    static let type = "com.example.mooded"
    enum Mood: String, Codable { case good, bad }
    var mood: Mood
}

private struct RenamedWalk: EventPayload, Codable {
    /// The mistake: no upcaster leads here from the old type.
    static let type = "com.example.walk.taken"
    var name: String
}

/// Folds what it can decode.
private struct Texts: Projection, Equatable, Codable {
    static let name = "texts"
    static let version = 1
    var texts: [String] = []

    mutating func fold(_ event: Event) {
        if let walk = try? event.payload(as: TimedWalk.self) { texts.append(walk.name) }
        if let mooded = try? event.payload(as: Mooded.self) { texts.append(mooded.mood.rawValue) }
    }
}

/// Keeps the name that arrived last, not that of the newest event.
private struct LastArrived: Projection, Equatable, Codable {
    static let name = "last-arrived"
    static let version = 1
    var name = ""

    mutating func fold(_ event: Event) {
        if let walk = try? event.payload(as: Walk.self) { name = walk.name }
    }
}

/// Reads the clock.
private struct Fresh: Projection, Equatable, Codable {
    static let name = "fresh"
    static let version = 1
    var foldedAt: [String: Date] = [:]

    mutating func fold(_ event: Event) {
        if let walk = try? event.payload(as: Walk.self) { foldedAt[walk.name] = Date() }
    }
}

/// Counts a walk for each time that it arrives, and forgets to store the count.
private struct Forgetful: Projection, Equatable, Codable {
    private enum CodingKeys: CodingKey { case names }
    static let name = "forgetful"
    static let version = 1
    var names: Set<String> = []
    var count = 0

    mutating func fold(_ event: Event) {
        guard let walk = try? event.payload(as: Walk.self) else { return }
        if names.insert(walk.name).inserted { count += 1 }
    }
}

/// Has a member that cannot be stored once there is a walk.
private struct Unstorable: Projection, Equatable, Codable {
    struct Route: Equatable, Codable {
        init() {}
        init(from decoder: any Decoder) {}
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(self, .init(codingPath: [], debugDescription: "no"))
        }
    }
    static let name = "unstorable"
    static let version = 1
    var routes: [Route] = []

    mutating func fold(_ event: Event) { routes.append(Route()) }
}

extension Mistake {
    private static let walkRules: [EventRule] = [.of(Walk.self, action: "WALK")]

    /// Opens a log in a folder in which an app has recorded a walk.
    private static func logWithWalk(_ folder: URL) async throws -> URL {
        let log = folder.appending(path: "log")
        let store = try await EventStore.open(at: log, rules: walkRules)
        try await store.append(Walk(name: "a"))
        try await store.close()
        return log
    }

    // MARK: Log lines

    /// Mistakes that `error` names as the level of a log line.
    static let ofLogLines: [Mistake] = [
        Mistake(
            "a new member without a default", "warning",
            "com.example.walk and cannot be read as TimedWalk: minutes is missing"
        ) {
            let store = try await EventStore.open(
                at: try await logWithWalk($0), rules: [.of(TimedWalk.self, action: "WALK")],
                views: [Texts.self])
            #expect(store.view(Texts.self).texts.isEmpty)
            #expect(store.unreadableEvents == [Walk.type: 1])
            try await store.close()
        },
        Mistake(
            "an enum case of a newer release", "warning", "cannot be read as Mooded: mood: "
        ) { _ in
            let store = try await EventStore.inMemory(views: [Texts.self])
            let data = EventDraft.Payload.json(Array(#"{"mood":"great"}"#.utf8))
            try await store.append(contentsOf: [
                EventDraft(type: Mooded.type, data: data),
                EventDraft(type: Mooded.type, data: data),
            ])
            #expect(store.unreadableEvents == [Mooded.type: 2])
        },
        Mistake(
            "a state that cannot be encoded", "warning",
            "the view unstorable cannot be stored, so each opening folds it from the log"
        ) { _ in
            let store = try await EventStore.inMemory(rules: walkRules, views: [Unstorable.self])
            for name in ["a", "b"] {
                try await store.append(Walk(name: name))
                try await store.checkpoint()
            }
        },
        Mistake("an opening without the rules", "notice", "these types: com.example.walk;") {
            try await EventStore.open(at: try await logWithWalk($0)).close()
        },
        Mistake("a type that was renamed without an upcaster", "notice", "com.example.walk;") {
            let store = try await EventStore.open(
                at: try await logWithWalk($0), rules: [.of(RenamedWalk.self, action: "WALK")])
            try await store.close()
        },
        Mistake("a time in seconds", "warning", "has milliseconds since 1970, not seconds") { _ in
            let seconds = Int64(Date().timeIntervalSince1970)
            let store = try await EventStore.inMemory(rules: walkRules)
            let time = Timestamp(milliseconds: seconds)
            try await store.append(EventDraft(Walk(name: "a"), time: time))
            try await store.append(EventDraft(Walk(name: "b"), time: time))
        },
    ]

    // MARK: Reports

    /// Mistakes that the report of a sync names: `error` is the kind of the failure, if there is one.
    static let ofReports: [Mistake] = [
        Mistake("an event without a rule", "", "1 event of types without a rule, not to be sent") {
            _ in
            let store = try await EventStore.inMemory()
            try await store.append(Walk(name: "a"))
            throw Report(try await store.sync(over: InMemorySyncServer()))
        },
        Mistake("a log without the user's account", "accountNeeded", "open it with its account") {
            _ in
            let server = try LocalServer { _ in
                .reply(200, headers: [("Daybook-Account", "ada"), ("Daybook-Server", "s")])
            }
            let store = try await storeWithTrip()
            throw Report(
                try await store.sync(to: url(server.base), credentials: BearerToken("t")))
        },
    ]

    /// The report of a sync, as the result of a mistake.
    struct Report: Error {
        let report: SyncReport
        init(_ report: SyncReport) { self.report = report }
    }

    // MARK: The kit

    static let ofKit: [Mistake] = [
        Mistake("a view that depends on the order of arrival", "", "order of arrival") { _ in
            try check(LastArrived.self)
        },
        Mistake("a view that reads the clock", "", "Fresh") { _ in try check(Fresh.self) },
        Mistake("a member that is not stored", "", "a stored state is restored as it was") { _ in
            try check(Forgetful.self, except: [.orderOfArrival])
        },
        Mistake("a view that none of the events changes", "", "Texts") { _ in
            try check(Texts.self)
        },
    ]

    private static func check(
        _ view: (some Projection).Type, except exceptions: Set<ProjectionLaw> = []
    ) throws {
        try Property.checkProjection(view, rules: walkRules, except: exceptions) {
            Walk(name: $0.element(of: ["a", "b"]))
        }
    }
}

extension MistakeTests {
    @Test(arguments: Mistake.ofLogLines)
    func `a mistake that is no error is a log line, once`(_ mistake: Mistake) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        var handler = InMemoryLogHandler()
        handler.logLevel = .notice
        try await withLogger(Logger(label: "test") { [handler] _ in handler }) { _ in
            try await mistake.make(folder.url)
        }
        let lines = handler.entries.filter { "\($0.message)".contains(mistake.text) }
        #expect(lines.map { "\($0.level)" } == [mistake.error], "\(handler.entries)")
    }

    @Test(arguments: Mistake.ofReports)
    func `a mistake that stops a sync is in its report`(_ mistake: Mistake) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let report = try await #require(throws: Mistake.Report.self) {
            try await mistake.make(folder.url)
        }.report
        #expect("\(report)".contains(mistake.text), "\(report)")
        #expect(report.failure?.rawValue ?? "" == mistake.error)
    }

    @Test(arguments: Mistake.ofKit)
    func `the kit names a mistake of a view`(_ mistake: Mistake) async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        do {
            try await mistake.make(folder.url)
            Issue.record("nothing was thrown")
        } catch {
            #expect("\(error)".contains(mistake.text), "\(error)")
        }
    }

    @Test func `the table of mistakes has each once, with what names it`() {
        let table = MistakeVoice.table
        for voice in MistakeVoice.allCases {
            let names = table[voice] ?? []
            print("\(names.count) mistakes are named by: \(voice.rawValue)")
            #expect(!names.isEmpty)
            #expect(Set(names).count == names.count)
        }
        print("\(table.values.reduce(0) { $0 + $1.count }) mistakes, none silent")
    }

    /// Not closing is no mistake: the lock ends with the store.
    @Test func `a store that was dropped can be opened again`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        func record() async throws {
            let store = try await EventStore.open(at: log, rules: Mistake.rules)
            try await store.append(Mistake.Trip(name: "a"))
        }
        try await record()
        // A task of the store may end a moment after its last use.
        try await eventually("last position", is: Position(1)) {
            guard let again = try? await EventStore.open(at: log, rules: Mistake.rules) else {
                return Position.zero
            }
            let last = await again.lastDurable
            try await again.close()
            return last
        }
    }
}
