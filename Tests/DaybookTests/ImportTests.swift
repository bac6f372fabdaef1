// The import of an exported file. Spec/operations/logtool.md, TOOL-4 and TOOL-32.

import Daybook
import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

private struct Step: EventPayload, Codable {
    static let type = "com.example.step"
    var number: Int
    var at: Timestamp?
    var subject: String? { "\(number)" }
}

private struct Steps: Projection, Codable {
    static let name = "steps"
    static let version = 1
    private(set) var numbers: StateDictionary<Int, Timestamp> = [:]
    mutating func fold(_ event: Event) {
        if let step = try? event.payload(as: Step.self) {
            numbers[step.number] = step.at ?? event.time
        }
    }
}

@Suite struct ImportTests {
    private func open() async throws -> EventStore {
        try await EventStore.inMemory(
            rules: [.of(Step.self, action: "STEP")], views: [Steps.self])
    }

    /// A store that has synced some of its events.
    private func syncedStore() async throws -> EventStore {
        let store = try await open()
        try await store.append(contentsOf: (0..<2_500).map { try EventDraft(Step(number: $0)) })
        try await store.sync(over: InMemorySyncServer())
        try await store.append(Step(number: 2_500))
        return store
    }

    @Test(.verifies("TOOL-4"), .verifies("TOOL-32"))
    func `events that one store exports are imported once into another`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (one, other) = (try await syncedStore(), try await open())
        let file = folder.appending("export.ndjson")
        try await one.export(to: file)
        let seen = Mutex<[Int]>([])
        let imported = try await other.importEvents(from: file) { summary in
            seen.withLock { $0.append(summary.appended) }
        }
        #expect(imported.appended == 2_501)
        #expect(imported.known == 0)
        #expect(imported.records > 0)
        #expect(imported.lines == imported.appended + imported.records)
        #expect(seen.withLock { $0 } == [1_000, 2_000, 2_501])
        #expect(other.view(Steps.self).numbers.count == 2_501)
        // They are own events of this store now, and in the outbox.
        #expect(other.outbox.count == 2_501)
        #expect(one.outbox.count == 1)
        let id = try #require(try await one.event(at: Position(1)))
        #expect(try await other.event(at: Position(1))?.content == id.content)
        let again = try await other.importEvents(from: file)
        #expect(again.appended == 0)
        #expect(again.known == 2_501)
        for store in [one, other] { try await store.close() }
    }

    @Test(.verifies("TOOL-4"))
    func `a line that is not an event ends the import, and the events before it are recorded`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let one = try await open()
        try await one.append(contentsOf: (0..<3).map { try EventDraft(Step(number: $0)) })
        let file = folder.appending("export.ndjson")
        try await one.export(to: file)
        var text = try String(contentsOf: file, encoding: .utf8)
        let lines = text.split(separator: "\n").map(String.init)
        // The data of the third event are not those of a step.
        let wrong = lines[2].replacing(#""number":2"#, with: #""number":"two""#)
        for (bad, number) in [("{", 4), (wrong, 3)] {
            text = (bad == wrong ? lines[..<2] + [bad] : lines[...] + [bad]).joined(separator: "\n")
            try text.write(to: file, atomically: true, encoding: .utf8)
            let store = try await open()
            let error = await #expect(throws: ImportError.self) {
                try await store.importEvents(from: file)
            }
            #expect(error?.line == number)
            #expect(error?.summary.appended == number - 1)
            #expect(error?.localizedDescription.contains("line \(number): ") == true)
            #expect(store.view(Steps.self).numbers.count == number - 1)
            try await store.close()
        }
        try await one.close()
    }

    @Test(.verifies("TOOL-4", "TOOL-60"))
    func `events of another producer are imported under derived ids, once`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let foreign = #"""
            {"specversion":"1.0","id":"conformance-0001","source":"//x/y","type":"io.minimum","datacontenttype":"text/plain","data":"Hello"}
            {"specversion":"1.0","id":"conformance-0002","source":"//x/y","type":"io.minimum","sequence":"ABC","position":[1],"data_base64":"AAEC"}
            {"specversion":"1.0","id":"2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d","source":"//x/y","type":"io.minimum"}
            {"specversion":"1.0","id":"conformance-0002","source":"//x/y","type":"io.other"}
            \#u{FEFF}{"specversion":"1.0","id":"conformance-0002","source":"//z","type":"io.other"}
            """#
        let file = folder.appending("foreign.ndjson")
        try Data("\u{FEFF}\(foreign)".utf8).write(to: file)
        let store = try await open()
        let refused = await #expect(throws: ImportError.self) {
            try await store.importEvents(from: file)
        }
        #expect(refused?.reason.detail.contains("conformance-0001\" is not a UUID") == true)
        let imported = try await store.importEvents(from: file, derivesIDs: true)
        #expect(imported.appended == 4)
        #expect(imported.clashing == 1)
        let again = try await store.importEvents(from: file, derivesIDs: true)
        #expect(again.known == 4)
        let first = try #require(try await store.event(at: Position(1)))
        let origin = first.content.extensions.map { String(decoding: $0.json, as: UTF8.self) }
        #expect(origin == [#""//x/y""#, #""conformance-0001""#])
        try await store.close()
    }

    @Test func `an unreadable file is named, and a cancelled import ends`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await open()
        for url in [folder.appending("none.ndjson"), folder.url] {
            let error = await #expect(throws: LogError.self) {
                try await store.importEvents(from: url)
            }
            #expect(error?.code == .io)
            #expect(error?.path == url.path)
        }
        await #expect(throws: EventError.self) {
            try await store.importEvents(from: #require(URL(string: "https://example.com/a")))
        }
        let file = folder.appending("export.ndjson")
        try await store.append(Step(number: 1))
        try await store.export(to: file)
        let other = try await open()
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await other.importEvents(from: file)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(other.view(Steps.self).numbers.isEmpty)
        for one in [store, other] { try await one.close() }
    }

    @Test func `a time in a payload and in a state is written as ISO 8601`() async throws {
        let store = try await open()
        let time = try #require(Timestamp("2026-02-22T10:30:14.425Z"))
        try await store.append(Step(number: 7, at: time))
        let event = try #require(try await store.event(at: Position(1)))
        #expect(
            String(decoding: event.content.json ?? [], as: UTF8.self)
                == #"{"at":"2026-02-22T10:30:14.425Z","number":7}"#)
        #expect(store.view(Steps.self).numbers[7] == time)
        let wrong = EventDraft(
            type: Step.type, data: .json(Array(#"{"at":"yesterday","number":7}"#.utf8)))
        let error = await #expect(throws: EventError.self) {
            try await store.append(contentsOf: [wrong])
        }
        #expect(error?.detail.contains("yesterday") == true, "\(error as Any)")
        try await store.close()
    }
}
