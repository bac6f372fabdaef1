// A fold that ends the process leaves no event behind, and a view whose fold ends every opening is left out.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

/// A view whose fold ends a child process at an event with the subject `trap`.
private struct Fragile: Projection, Codable {
    static let name = "fragile"
    static let version = 1
    /// True in a child process.
    static let traps = Mutex(false)
    var subjects: [String] = []

    mutating func fold(_ event: Event) {
        let traps = Self.traps.withLock { $0 }
        precondition(!traps || event.subject != "trap", "a fold that traps")
        subjects.append(event.subject ?? "")
    }
}

/// The same view with a corrected fold.
private struct Corrected: Projection, Codable {
    static let name = "fragile"
    static let version = 2
    var subjects: [String] = []
    mutating func fold(_ event: Event) { subjects.append(event.subject ?? "") }
}

/// A view that folds the same events without a fault.
private struct Sturdy: Projection, Codable {
    static let name = "sturdy"
    static let version = 1
    var count = 0
    mutating func fold(_ event: Event) { count += 1 }
}

private func open(
    _ directory: String, _ views: [any Projection.Type] = [Fragile.self, Sturdy.self],
    keepingUnknownStates: Bool = false
) async throws -> EventStore {
    try await EventStore.open(
        at: directory, catalogue: EventCatalogue(), views: views,
        keepingUnknownStates: keepingUnknownStates)
}

private func append(_ subjects: [String], to store: EventStore) async throws {
    try await store.append(contentsOf: subjects.map { EventDraft(type: "t", subject: $0) })
}

/// Opens a log in a child process, where the fold traps.
private func endOpening(of directory: String) async {
    await #expect(processExitsWith: .failure) { [directory = directory as String] in
        Fragile.traps.withLock { $0 = true }
        _ = try await open(directory)
    }
}

@Suite struct StoppedViewTests {
    private let folder: TemporaryFolder
    private var log: String { folder.path + "/log" }
    private var marker: URL { folder.appending("log/folding") }

    init() throws { folder = try TemporaryFolder() }

    /// A log whose stored state of the view ends before the event that traps.
    private func createLog() async throws {
        let store = try await open(log)
        try await append(["a"], to: store)
        try await store.checkpoint()
        try await store.checkpoint()
        try await store.close()
        let tool = try await open(log, [], keepingUnknownStates: true)
        try await append(["b", "trap", "c"], to: tool)
        try await tool.close()
    }

    @Test(.verifies("VIEW-32"))
    func `a fold that ends the process at an append leaves no event`() async throws {
        try await open(log).close()
        await #expect(processExitsWith: .failure) { [log = log as String] in
            Fragile.traps.withLock { $0 = true }
            let store = try await open(log)
            try await append(["a"], to: store)
            try await append(["trap"], to: store)
        }
        let store = try await open(log)
        #expect(store.view(Fragile.self).subjects == ["a"])
        #expect(await store.lastDurable == Position(1))
        try await store.close()
    }

    @Test(.verifies("VIEW-32"))
    func `after two openings that ended in one view's fold, a store opens without it`()
        async throws
    {
        try await createLog()
        await endOpening(of: log)
        // A tool that does not know the view.
        try await open(log, [Sturdy.self], keepingUnknownStates: true).close()
        await endOpening(of: log)

        let store = try await open(log)
        let stopped = try #require(store.stoppedViews.first)
        #expect(stopped.name == "fragile")
        #expect(stopped.position == Position(3))
        #expect(store.view(Fragile.self).subjects == ["a"])
        #expect(store.view(Sturdy.self).count == 4)
        try await append(["d"], to: store)
        #expect(store.view(Fragile.self).subjects == ["a"])
        #expect(store.view(Sturdy.self).count == 5)
        let refusal = await #expect(throws: EventError.self) { try await store.compact() }
        #expect(refusal?.detail.contains("at position 3") == true)
        await #expect(throws: EventError.self) { try await store.compact(dryRun: true) }
        await #expect(throws: EventError.self) { try await store.durableView(Fragile.self) }
        try await store.checkpoint()
        try await store.checkpoint()
        try await store.close()

        let reader = try await ReadOnlyStore.open(
            at: log, catalogue: EventCatalogue(), views: [Fragile.self])
        #expect(reader.stoppedViews.map(\.name) == ["fragile"])
        #expect(await reader.view(Fragile.self).subjects == ["a"])
        let again = try await open(log)
        #expect(again.view(Fragile.self).subjects == ["a"])
        try await again.close()
    }

    @Test(.verifies("VIEW-32"))
    func `a stopped view is folded again in another version, and nothing is left of it`()
        async throws
    {
        try await createLog()
        await endOpening(of: log)
        await endOpening(of: log)
        try await open(log).close()
        let tool = try await open(log, [], keepingUnknownStates: true)
        #expect(tool.stoppedViews == [])
        try await tool.close()
        #expect(FileManager.default.fileExists(atPath: marker.path))

        let store = try await open(log, [Corrected.self, Sturdy.self])
        #expect(store.stoppedViews == [])
        #expect(store.view(Corrected.self).subjects == ["a", "b", "trap", "c"])
        #expect(!FileManager.default.fileExists(atPath: marker.path))
        try await store.close()
    }

    @Test(.verifies("VIEW-32"))
    func `a stopped view is folded again by another build of the program`() async throws {
        try await createLog()
        await endOpening(of: log)
        await endOpening(of: log)
        let store = try await open(log)
        try #require(store.stoppedViews.count == 1)
        try await store.close()
        let text = try String(contentsOf: marker, encoding: .utf8)
        try Data(text.replacing(#""build":""#, with: #""build":"1"#).utf8).write(to: marker)

        let newer = try await open(log)
        #expect(newer.stoppedViews == [])
        #expect(newer.view(Fragile.self).subjects == ["a", "b", "trap", "c"])
        try await newer.close()
    }

    @Test(.verifies("VIEW-32"))
    func `an opening that ended once, or in another fold, stops no view`() async throws {
        try await createLog()
        await endOpening(of: log)
        // The process ended in the fold of an event that other openings have folded.
        let once = #"{"view":"fragile","version":1,"first":"1","last":"1","openings":1}"#
        try Data("{\"folding\":\(once)}\n".utf8).write(to: marker)
        await endOpening(of: log)
        let store = try await open(log)
        #expect(store.stoppedViews == [])
        #expect(!FileManager.default.fileExists(atPath: marker.path))
        try await store.close()
    }

    @Test(
        .verifies("VIEW-32"),
        arguments: [
            "", "\n", "{}\n", "null\n", #"{"folding":{"view":"fragile","openings":2}}"# + "\n",
            #"{"stopped":[{"view":"fragile","version":1,"first":"9","last":"1","openings":2}]}"#
                + "\n", String(repeating: "x", count: 70_000),
        ])
    func `a file that is no marker is replaced`(content: String) async throws {
        try await createLog()
        try Data(content.utf8).write(to: marker)
        let store = try await open(log)
        #expect(store.stoppedViews == [])
        #expect(!FileManager.default.fileExists(atPath: marker.path))
        try await store.close()
    }

    @Test(.verifies("VIEW-32", "SEG-1"))
    func `no marker is written through a symbolic link`() async throws {
        try await createLog()
        let target = folder.appending("target")
        try Data("target".utf8).write(to: target)
        try FileManager.default.createSymbolicLink(at: marker, withDestinationURL: target)
        try await open(log).close()
        #expect(try Data(contentsOf: target) == Data("target".utf8))
    }
}
