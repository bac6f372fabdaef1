// Retracted events for readers of a log without its lock: a reader's fold and the
// verifier agree with the store, whatever was stored, compacted or retracted, and when.

import DaybookTestKit
import EventGenerators
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct TakenBackTests {
    /// Fewer runs without optimisation.
    private static let runs: Int = {
        #if DEBUG
            40
        #else
            300
        #endif
    }()

    private static func open(_ files: InMemoryFileSystem) async throws -> OfflineStore {
        let random = Mutex(SeededRandom(seed: UInt64(files.usedBytes)))
        return try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(
                fileSystem: files, now: { 1_800_000_000_000 },
                random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } },
                sleep: noTimers))
    }

    private static func payload(_ choices: inout Choices) -> any EventPayload {
        let (note, city) = ("n\(choices.int(in: 0...3))", "c\(choices.int(in: 0...2))")
        let text = "\(choices.int(in: 0...99))"
        return switch choices.int(in: 0...5) {
        case 0: NoteAdded(noteId: note, cityId: city, content: text, createdBy: "u")
        case 1, 2: NoteUpdated(noteId: note, content: text, updatedBy: "u")
        case 3: NoteDeleted(noteId: note, deletedBy: "u")
        case 4: CityUnsaved(userId: "u", cityId: city)
        default: CitySaved(userId: "u", cityId: city)
        }
    }

    private static func rows(_ views: [any Projection]) -> [String] {
        views.flatMap { view -> [ViewRow] in
            if let view = view as? any ListableView { return Array(view.rows()) }
            return (view as? Outbox)?.entries.map { $0.row(data: nil) } ?? []
        }.map { String(decoding: $0.json, as: UTF8.self) }
    }

    /// The state of a reader of the log.
    private static func folded(
        _ files: InMemoryFileSystem, through end: Position?
    ) throws -> [String] {
        let reader = LogReader("/log", fileSystem: files)
        let (views, _) = try reader.fold(
            through: end, catalogue: OfflineModel.catalogue,
            from: { [CitiesView(), NotesView(), Outbox()] as [any Projection] }
        ) { views, event in
            for index in views.indices { views[index].fold(event) }
        }
        return rows(views)
    }

    private static func verify(
        _ files: InMemoryFileSystem
    ) throws -> (findings: [Finding], compared: Int) {
        var checkpoints = CheckpointVerifier(
            "/log", fileSystem: files, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self],
            compactedThrough: try LogReader("/log", fileSystem: files).compactedThrough())
        let summary = try LogVerifier("/log", fileSystem: files).verify { prefix, line in
            guard let event = try? LineDecoder.event(line, prefix, OfflineModel.catalogue)
            else { return "not an event" }
            checkpoints.fold(event)
            return nil
        }
        checkpoints.finish(at: summary.last)
        return (summary.findings + checkpoints.findings, checkpoints.compared)
    }

    private static func compare(
        _ store: OfflineStore, _ files: InMemoryFileSystem, _ choices: inout Choices
    ) async throws {
        try await store.events.flush()
        try #require(
            try folded(files, through: nil)
                == rows([
                    store.view(CitiesView.self), store.view(NotesView.self),
                    store.view(Outbox.self),
                ]))
        try #require(try verify(files).findings == [])
        let first = try LogReader("/log", fileSystem: files).compactedThrough().rawValue
        let last = await store.events.lastDurable.rawValue
        guard first < last else { return }
        let position = Position(UInt64(choices.int(in: Int(first)...Int(last))))
        let past = try await store.state(at: position)
        try #require(
            try folded(files, through: position)
                == rows([
                    past.view(CitiesView.self), past.view(NotesView.self), past.view(Outbox.self),
                ]), "at \(position)")
    }

    @Test(.verifies("TOOL-15", "CHK-6"))
    func `a reader and the verifier skip retracted events like the store`()
        async throws
    {
        var total = 0
        try await Property.check("taken back", runs: Self.runs) { choices in
            let files = InMemoryFileSystem()
            var store = try await Self.open(files)
            var discarded: [EventTarget] = []
            for _ in 0..<choices.int(in: 2...12) {
                let waiting = store.view(Outbox.self).entries.map {
                    EventTarget(position: $0.position, id: $0.id)
                }
                switch choices.int(in: 0...9) {
                case 0...2:
                    let events = waiting.filter { _ in choices.bool(oneIn: 4) }
                    guard !events.isEmpty else { continue }
                    choices.note("discard \(events.map(\.position))")
                    let by = store.events.incarnation
                    try await store.events.append(
                        record: EventsDiscarded(by: by, events: events, reason: .discarded))
                    discarded += events
                    total += events.count
                case 3 where !discarded.isEmpty:
                    let events = [choices.element(of: discarded)]
                    choices.note("reinstate \(events.map(\.position))")
                    try await store.events.append(
                        record: EventsReinstated(by: store.events.incarnation, events: events))
                    discarded.removeAll { events.contains($0) }
                case 4:
                    choices.note("checkpoint")
                    try await store.events.checkpoint()
                    let compared = try Self.verify(files).compared
                    try #require(compared >= OfflineModel.views.count + 1)
                case 5:
                    choices.note("settle")
                    var record = SyncSettled(by: store.events.incarnation)
                    record.applied = store.view(Outbox.self).ranges(
                        of: Set(waiting.filter { _ in choices.bool() }.map(\.position)))
                    if !record.isEmpty { try await store.events.append(record: record) }
                case 6:
                    choices.note("compact")
                    try await store.events.foldSyncRecords()
                    try store.events.log.roll()
                    try await store.compact()
                case 7:
                    choices.note("reopen")
                    try await store.close()
                    store = try await Self.open(files)
                default:
                    choices.note("append")
                    for payload in choices.array(1...12, of: Self.payload) {
                        do {
                            try await store.append(payload)
                        } catch let error as EventError where error.code == .refused {
                            choices.note("a change of a deleted note is refused")
                        }
                    }
                }
                try await Self.compare(store, files, &choices)
            }
            try await store.close()
        }
        #expect(total > 20)
    }
}
