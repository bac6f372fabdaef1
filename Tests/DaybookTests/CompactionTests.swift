// Compaction of an app's store: a store that compacts and one that never does have the same views, whatever
// happens before and after.

import DaybookTestKit
import EventGenerators
import Foundation
import LogFormat
import LogStorage
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct OfflineStoreCompactionTests {
    /// One of two stores with the same history.
    private final class Twin {
        let files = InMemoryFileSystem()
        var store: OfflineStore
        private static let folder = URL(filePath: "/log")

        init() async throws { store = try await Self.open(files) }

        private static func open(_ files: InMemoryFileSystem) async throws -> OfflineStore {
            let random = Mutex(SeededRandom(seed: UInt64(files.usedBytes)))
            return try await OfflineStore.open(
                at: folder, compaction: nil,
                environment: LogEnvironment(
                    fileSystem: files, now: { 1_800_000_000_000 },
                    random: { random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) } }))
        }

        func reopen(withoutCheckpoints: Bool) async throws {
            try await store.close()
            if withoutCheckpoints {
                for path in files.image.keys where path.contains("/checkpoints/") {
                    files[path] = nil
                }
            }
            store = try await Self.open(files)
        }

        var last: Position { get async { await store.events.lastDurable } }

        /// Everything that an app can see.
        var visible: [String] {
            var rows: [String] = []
            func add(_ view: some ListableView) {
                rows += view.rows().map { String(decoding: $0.json, as: UTF8.self) }
            }
            add(store.view(CitiesView.self))
            add(store.view(NotesView.self))
            add(store.view(PreferencesView.self))
            add(store.view(ProgressView.self))
            rows += store.view(Outbox.self).entries.map {
                String(decoding: $0.row(data: nil).json, as: UTF8.self)
            }
            return rows
        }

        /// The server settles some events of the outbox.
        func settle(_ positions: Set<Position>) async throws {
            var record = SyncSettled(by: store.events.incarnation)
            record.applied = store.view(Outbox.self).ranges(of: positions)
            guard !record.isEmpty else { return }
            try await store.events.append(record: record)
        }
    }

    private func compare(_ one: Twin, _ other: Twin) async throws {
        let (last, otherLast) = (await one.last, await other.last)
        try #require(last == otherLast)
        try #require(one.visible == other.visible)
    }

    @Test(.verifies("CMP-1", "CMP-20", "CMP-27", "OUT-7"))
    func `a store that compacts shows what one that never does shows`() async throws {
        var total = 0
        try await Property.check("compacting twin", runs: TestLog.runs) { choices in
            let compacting = try await Twin()
            let keeping = try await Twin()
            var removed = 0
            for _ in 0..<choices.int(in: 2...16) {
                switch choices.int(in: 0...9) {
                case 7, 8:
                    choices.note("compact")
                    try await keeping.store.events.flush()
                    try await compacting.store.events.foldSyncRecords()
                    try compacting.store.events.log.roll()
                    let report = try await compacting.store.compact()
                    removed += report.removed
                    let last = await compacting.last
                    if await keeping.last < last {
                        // The folded record took a position.
                        try await keeping.store.append(
                            PageRemoved(city: "none", language: "none", path: "p"))
                    }
                case 9:
                    let withoutCheckpoints = choices.bool()
                    choices.note("reopen, checkpoints lost: \(withoutCheckpoints)")
                    try await compacting.reopen(withoutCheckpoints: withoutCheckpoints)
                case 4...6:
                    choices.note("settle")
                    let waiting = compacting.store.view(Outbox.self).entries.map(\.position)
                    let isAll = choices.bool()
                    let settled = Set(waiting.filter { _ in isAll || !choices.bool(oneIn: 4) })
                    try await compacting.settle(settled)
                    try await keeping.settle(settled)
                default:
                    let drafts = try choices.array(1...20) { choices in
                        var draft = try choices.draft()
                        let version4: UInt128 = 0x4000_8000 << 48
                        draft.id = UUID(
                            integer: draft.id.integer & ~(0xF000_C000 << 48) | version4)
                        return draft
                    }
                    choices.note("append \(drafts.map(\.type))")
                    for draft in drafts {
                        let one = try? await compacting.store.events.append(contentsOf: [draft])
                        let other = try? await keeping.store.events.append(contentsOf: [draft])
                        try #require((one == nil) == (other == nil))
                        try #require(one?.first?.position == other?.first?.position)
                    }
                }
                try await compare(compacting, keeping)
            }
            try await compacting.reopen(withoutCheckpoints: true)
            try await compare(compacting, keeping)
            total += removed
            try await compacting.store.close()
            try await keeping.store.close()
        }
        #expect(total > 50)
    }

    @Test(.verifies("CMP-3", "CMP-28", "OUT-7"))
    func `a year of edits shrinks to the notes that are left`() async throws {
        let twin = try await Twin()
        var store = twin.store
        for note in 0..<20 {
            let added = try await store.notes.add("first", city: "c", by: "u")
            for edit in 0..<10 {
                try await store.notes.update(added.id, "note \(note), edit \(edit)", by: "u")
            }
            let waiting = store.view(Outbox.self).entries.map(\.position)
            try await twin.settle(Set(waiting))
        }
        try store.events.log.roll()
        let before = twin.visible
        let report = try await store.compact()
        #expect(twin.visible == before)
        // Of each note the first event and the newest text are left; of the records the folded one.
        #expect(
            report.types.map(\.type) == [
                "daybook.note.added", "daybook.note.updated", "daybook.sync.settled",
            ])
        #expect(report.types.map(\.events) == [20, 200, 21])
        #expect(report.types.map(\.removed) == [0, 180, 20])
        #expect(report.bytesAfter < report.bytesBefore)
        try await twin.reopen(withoutCheckpoints: true)
        store = twin.store
        #expect(twin.visible == before)
        #expect(store.notes(in: "c").current.count == 20)
        try await store.close()
    }
}

private enum TestLog {
    /// Fewer runs without optimisation.
    static let runs: Int = {
        #if DEBUG
            40
        #else
            600
        #endif
    }()
}
