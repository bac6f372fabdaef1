// Compaction and an app's own views: the events that a view folds stay unless the view declares otherwise,
// also if a program compacts that does not know the view.

import DaybookTestKit
import EventGenerators
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// Counts edits, and does not declare which of them it no longer needs.
private struct Edits: Projection, Codable {
    static let name = "edits"
    static let version = 1
    static let eventTypes: Set<String>? = [NoteUpdated.type]
    private(set) var count = 0
    mutating func fold(_ event: Event) { if event.type == NoteUpdated.type { count += 1 } }
}

/// The same for all types, without a stored state.
private struct Everything: Projection, Codable {
    static let name = "everything"
    static let version = 1
    private(set) var edits = 0
    mutating func fold(_ event: Event) { if event.type == NoteUpdated.type { edits += 1 } }
}

/// Keeps the newest only, and declares it.
private struct LastEdit: Projection, Codable {
    static let name = "last-edit"
    static let version = 1
    static let eventTypes: Set<String>? = [NoteUpdated.type]
    static let allowsCompaction = true
    private(set) var last: Register<String>?
    mutating func fold(_ event: Event) {
        guard let note = try? event.payload(as: NoteUpdated.self) else { return }
        last.set(note.content, event.lwwTimestamp)
    }
}

/// Of other types.
private struct Saves: Projection, Codable {
    static let name = "saves"
    static let version = 1
    static let eventTypes: Set<String>? = [CitySaved.type]
    private(set) var count = 0
    mutating func fold(_ event: Event) { count += 1 }
}

@Suite struct NeededEventsTests {
    private let files = InMemoryFileSystem()

    private var environment: LogEnvironment {
        let random = Mutex(SeededRandom(seed: UInt64(files.usedBytes)))
        return LogEnvironment(
            fileSystem: files, now: { 1_800_000_000_000 },
            random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } })
    }

    private func open(_ views: [any Projection.Type]) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), views: views, compaction: nil, environment: environment)
    }

    private func loseCheckpoints() {
        for path in files.image.keys where path.contains("/checkpoints/") { files[path] = nil }
    }

    /// A note that was edited 20 times, all settled, in a sealed segment.
    private func fill(_ store: OfflineStore) async throws {
        let note = try await store.notes.add("first", city: "c", by: "u")
        for edit in 1...20 { try await store.notes.update(note.id, "\(edit)", by: "u") }
        var record = SyncSettled(by: store.events.incarnation)
        let outbox = store.view(Outbox.self)
        record.applied = outbox.ranges(of: Set(outbox.entries.map(\.position)))
        try await store.events.append(record: record)
        try store.events.log.roll()
    }

    private func removedEdits(_ report: CompactionReport) -> Int {
        report.types.first { $0.type == NoteUpdated.type }?.removed ?? 0
    }

    @Test(.verifies("CMP-30", "CMP-28"))
    func `a view that counts keeps its events, through compaction and a rebuild`() async throws {
        for views in [[Edits.self], [Everything.self], [Edits.self, LastEdit.self, Saves.self]]
            as [[any Projection.Type]]
        {
            for path in files.image.keys { files[path] = nil }
            var store = try await open(views)
            try await fill(store)
            let plan = try await store.compact(dryRun: true)
            let report = try await store.compact()
            let name = views[0].name
            for report in [plan, report] {
                #expect(removedEdits(report) == 0)
                let updates = report.types.first { $0.type == NoteUpdated.type }
                #expect(updates?.kept == [.current: 1, .view: 19])
                let kept = try #require(report.keptForViews.first)
                #expect(report.keptForViews.map(\.view) == [name])
                #expect(kept.events >= 19)
                #expect(kept.bytes > 19 * 300)
            }
            try await store.close()
            loseCheckpoints()
            store = try await open(views)
            if name == Edits.name {
                #expect(store.view(Edits.self).count == 20)
            } else {
                #expect(store.view(Everything.self).edits == 20)
            }
            try await store.close()
        }
    }

    @Test(.verifies("CMP-30"))
    func `events that no view folds or needs are removed`() async throws {
        for views in [[], [LastEdit.self], [Saves.self]] as [[any Projection.Type]] {
            for path in files.image.keys { files[path] = nil }
            var store = try await open(views)
            try await fill(store)
            let report = try await store.compact()
            #expect(removedEdits(report) == 19)
            #expect(report.keptForViews == [])
            try await store.close()
            loseCheckpoints()
            store = try await open(views)
            #expect(store.notes(in: "c").current.map(\.content) == ["20"])
            try await store.close()
        }
    }

    /// Compacts like a program that does not know the app's view.
    private func compactWithoutTheView() async throws -> CompactionReport {
        let tool = try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self], keepingUnknownStates: true,
            environment: environment)
        for _ in 0..<2 { try await tool.checkpoint() }
        let report = try await tool.compact()
        try await tool.close()
        return report
    }

    @Test(.verifies("CMP-30", "CHK-2"), arguments: [false, true])
    func `a program that does not know the view keeps its events, also after a kill`(
        isKilled: Bool
    ) async throws {
        let app = try await open([Edits.self])
        try await fill(app)
        // The last commit's checkpoint is written in the background.
        try await app.events.checkpoint()
        if isKilled {
            let image = files.image
            try await app.close()
            for path in files.image.keys { files[path] = nil }
            for (path, bytes) in image { files[path] = bytes }
        } else {
            try await app.close()
        }
        for _ in 0..<2 {
            let preview = CompactionPreview(
                "/log", fileSystem: files, catalogue: OfflineModel.catalogue,
                views: OfflineModel.views + [Outbox.self])
            let plan = try preview.report(now: 0, summary: { _, _, _ in nil }, progress: { _ in })
            #expect(removedEdits(plan) == 0)
            #expect(plan.keptForViews.map(\.view) == ["edits"])
            #expect(removedEdits(try await compactWithoutTheView()) == 0)
        }
        loseCheckpoints()
        let again = try await open([Edits.self])
        #expect(again.view(Edits.self).count == 20)
        try await again.close()
    }

    @Test(.verifies("CMP-30"))
    func `the first commit already says which views need events`() async throws {
        let app = try await open([Edits.self])
        try await app.notes.add("first", city: "c", by: "u")
        try await eventually("files", where: { $0.contains("/log/checkpoints/a") }) {
            files.image.keys.sorted()
        }
        try await app.close()
        let quiet = InMemoryFileSystem()
        let other = try await OfflineStore.open(
            at: URL(filePath: "/log"), views: [LastEdit.self], compaction: nil,
            environment: LogEnvironment(fileSystem: quiet))
        try await other.notes.add("first", city: "c", by: "u")
        try await other.close()
        #expect(!quiet.image.keys.contains("/log/checkpoints/a"))
    }

    @Test(.verifies("CMP-30", "CHK-2"))
    func `all events of an unknown view are needed if the checkpoint does not name its needs`()
        async throws
    {
        let app = try await open([Edits.self])
        try await fill(app)
        try await app.events.checkpoint()
        try await app.close()
        let slots = CheckpointSlots("/log", fileSystem: files)
        let states = try #require(slots.usable().first { _ in true }).states
            .filter { $0.name != "daybook.view-needs" }
        let log = try Log(at: "/log", environment: environment)
        let older = try log.snapshot().checkpoint(states: states, createdAt: 1, seed: 5)
        for _ in 0..<2 { try slots.write(older) }
        try log.close()
        #expect(slots.usable().allSatisfy { !$0.states.contains { $0.name.hasSuffix("needs") } })
        let report = try await compactWithoutTheView()
        #expect(removedEdits(report) == 0)
        #expect(report.keptForViews.map(\.view) == ["edits"])
    }

    @Test(.verifies("CMP-30"))
    func `if the checkpoint with the needed types fails, closing writes it`() async throws {
        let app = try await open([Edits.self])
        files.failing { _, path in
            path.contains("/checkpoints/")
                ? FileError(.noSpace, operation: "write", path: path, reason: "full") : nil
        }
        try await app.notes.add("first", city: "c", by: "u")
        await #expect(throws: LogError.self) { try await app.events.checkpoint() }
        files.failing(nil)
        try await app.close()
        let states = CheckpointSlots("/log", fileSystem: files).usable().flatMap(\.states)
        #expect(states.contains { $0.name == "daybook.view-needs" })
    }

    @Test(.verifies("CMP-30"))
    func `the events of a view that the app no longer has are removed`() async throws {
        var store = try await open([Edits.self])
        try await fill(store)
        #expect(removedEdits(try await store.compact()) == 0)
        try await store.close()
        store = try await open([])
        #expect(removedEdits(try await store.compact()) == 19)
        try await store.close()
    }
}
