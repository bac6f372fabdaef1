// A log's folder has the rules of its app's own types: a release that dropped a rule, and a tool that knows none, see which
// events are to be sent. Spec/model/events.md, EVT-19.

import Daybook
import DaybookTestKit
import EventGenerators
import Foundation
import TestSupport
import Testing

private struct Trip: EventPayload, Codable {
    static let type = "com.example.trip"
    var name: String
    var subject: String? { name }
}

/// The same under another type.
private struct Journey: EventPayload, Codable {
    static let type = "com.example.journey"
    var name: String
}

private struct Draft: EventPayload, Codable {
    static let type = "com.example.draft"
    var text: String
}

@Suite struct RecordedRulesTests {
    private let files = InMemoryFileSystem()
    private static let rules: [EventRule] = [
        .of(Trip.self, action: "PLAN_TRIP", beginsEntity: true), .of(Draft.self),
    ]

    private func open(_ rules: [EventRule] = rules) async throws -> EventStore {
        try await EventStore.open(
            at: URL(filePath: "/log"), rules: rules, views: [], compaction: nil,
            environment: LogEnvironment(fileSystem: files))
    }

    /// The content of the file with the rules; nil if there is none.
    private var recorded: String? {
        files["/log/rules"].map { String(decoding: $0, as: UTF8.self) }
    }

    /// Records three unsent trips and a draft.
    private func fill() async throws {
        let store = try await open()
        for name in ["a", "b", "c"] { try await store.append(Trip(name: name)) }
        try await store.append(Draft(text: "d"))
        try await store.close()
    }

    @Test(.verifies("EVT-19"))
    func `the rules are recorded once, before the first event to which one applies`() async throws {
        try await open().close()
        #expect(recorded == nil)
        let store = try await open()
        try await store.append(Draft(text: "first"))
        #expect(recorded == nil)
        try await store.append(
            contentsOf: [Trip(name: "a"), Trip(name: "b")] as [any EventPayload])
        let expected =
            #"{"rules":[{"type":"com.example.draft"},"#
            + #"{"type":"com.example.trip","action":"PLAN_TRIP","begins":true}]}"# + "\n"
        #expect(recorded == expected)
        #expect(await store.lastDurable == Position(3))
        try await store.backup(to: URL(filePath: "/backup"))
        try await store.close()
        #expect(files["/backup/rules"] == files["/log/rules"])
        // A release with fewer rules, and this one again, write nothing.
        for rules in [[.of(Draft.self)], Self.rules] {
            let store = try await open(rules)
            try await store.append(Draft(text: "next"))
            try await store.close()
            #expect(recorded == expected)
        }
    }

    @Test(.verifies("EVT-19"))
    func `another release adds its rules, and replaces those that have changed`() async throws {
        try await fill()
        let store = try await open([
            .of(Journey.self, action: "TRAVEL"), .of(Trip.self, action: "MOVE"),
        ])
        try await store.append(Journey(name: "j"))
        #expect(
            recorded == #"{"rules":[{"type":"com.example.draft"},"#
                + #"{"type":"com.example.journey","action":"TRAVEL"},"#
                + #"{"type":"com.example.trip","action":"MOVE"}]}"# + "\n")
        try await store.close()
    }

    @Test(.verifies("EVT-19"))
    func `unsent events of a type whose rule was dropped stay in the outbox, and are sent`()
        async throws
    {
        try await fill()
        // Renamed, and the old rule forgotten.
        let store = try await open([.of(Journey.self, action: "TRAVEL"), .of(Draft.self)])
        try await store.append(Journey(name: "j"))
        #expect(store.view(Outbox.self).count == 4)
        let server = InMemorySyncServer()
        let report = try await store.sync(over: server)
        #expect(report.applied == 4)
        #expect(report.pending == 0)
        #expect(report.withoutRule == 0)
        #expect(server.events.map(\.type) == [Trip.type, Trip.type, Trip.type, Journey.type])
        try await store.close()
    }

    @Test(.verifies("EVT-19"))
    func `a run and a report say how many events have no rule`() async throws {
        let store = try await open([.of(Draft.self)])
        for name in ["a", "b", "c"] { try await store.append(Trip(name: name)) }
        try await store.append(Draft(text: "d"))
        let report = try await store.sync(over: InMemorySyncServer())
        #expect(report.withoutRule == 3)
        #expect(report.description.contains("3 events of types without a rule"))
        let diagnosis = try await store.diagnosticReport()
        #expect(diagnosis.outbox?.withoutRule == 3)
        #expect(diagnosis.findings.map(\.code) == [.withoutRule])
        try await store.close()
    }

    @Test(.verifies("EVT-19", "DIA-4"))
    func `a tool that knows no rule of the app says what the app says`() async throws {
        try await fill()
        let before = files.image
        let catalogue = EventCatalogue()
        let statistics = try LogStatistics(of: "/log", files, catalogue: catalogue)
        #expect(statistics.unsynced == 3)
        #expect(statistics.withoutRule == 0)
        let report = try DiagnosticReport(
            of: "/log", files, catalogue: catalogue, views: [Outbox.self], now: 0)
        #expect(report.outbox?.actions == ["PLAN_TRIP": 3])
        #expect(report.log?.otherTypes == 0)
        let reader = try await ReadOnlyStore.open(
            at: URL(filePath: "/log"), rules: [], views: [],
            environment: LogEnvironment(fileSystem: files))
        #expect(await reader.view(Outbox.self).count == 3)
        let id = try #require(await reader.view(Outbox.self).entries.first?.id)
        let story = try EventStory.read(
            of: id, in: "/log", files, catalogue: catalogue, now: 0)
        #expect(story?.story.status == .pending(ahead: 0, first: nil))
        // Reading writes nothing.
        #expect(files.image == before)
    }

    @Test(
        .verifies("EVT-19"),
        arguments: [
            "", "{}", #"{"rules":{}}"#, #"{"rules":[{"action":"A"},7]}"#,
            #"{"rules":[{"type":"daybook.page.stored","action":"A"}]}"#,
        ])
    func `a damaged file has no effect, and is written anew with the next event`(content: String)
        async throws
    {
        try await fill()
        files["/log/rules"] = Array(content.utf8)
        let statistics = try LogStatistics(of: "/log", files, catalogue: EventCatalogue())
        #expect(statistics.unsynced == 0)
        #expect(statistics.withoutRule == 4)
        let report = try DiagnosticReport(
            of: "/log", files, catalogue: EventCatalogue(), views: [Outbox.self], now: 0)
        #expect(report.findings.map(\.code) == [.damaged, .withoutRule])
        let store = try await open()
        try await store.append(Trip(name: "e"))
        try await store.close()
        #expect(recorded?.contains(#"{"type":"com.example.trip","action":"PLAN_TRIP","#) == true)
    }

    @Test(.verifies("EVT-19"))
    func `an event is recorded although the file cannot be written`() async throws {
        let store = try await open()
        files.failing { _, path in
            path.contains("/rules")
                ? FileError(.noSpace, operation: "write", path: path, reason: "full") : nil
        }
        try await store.append(Trip(name: "a"))
        #expect(recorded == nil)
        files.failing(nil)
        try await store.append(Trip(name: "b"))
        #expect(recorded != nil)
        try await store.close()
    }
}
