// The log of the works: in memory, with a stopped clock and seeded random numbers, so that equal work
// executes equal instructions.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization
import WireHistories

/// A log in memory, and events for it.
final class WorkLog: Sendable {
    static let path = "/log"
    let disk = InMemoryFileSystem()
    private let random = Mutex(SeededRandom(seed: 1))
    private let draftCount = Mutex(0)
    /// All opened stores. They are never freed: other threads may hold one for a random time, and freeing
    /// it would be counted by chance.
    private let stores = Mutex<[OfflineStore]>([])

    /// The events of a batch.
    private static let batch = 10

    private func environment(_ disk: InMemoryFileSystem) -> LogEnvironment {
        LogEnvironment(
            fileSystem: disk, now: { 1_771_756_214_425 },
            random: { [self] in
                random.withLock { UInt128($0.next()) << 64 | UInt128($0.next()) }
            })
    }

    private func open(_ disk: InMemoryFileSystem) async throws -> OfflineStore {
        let store = try await OfflineStore.open(
            at: URL(filePath: Self.path), account: "ana", compaction: nil,
            environment: environment(disk))
        stores.withLock { $0.append(store) }
        return store
    }

    /// Opens a copy of the log. The caller must not close it: closing may write a checkpoint, which would
    /// be counted.
    func openCopy() async throws -> OfflineStore { try await open(disk.snapshot()) }

    /// Opens the log and closes it after `body`.
    private func withStore(_ body: (OfflineStore) async throws -> Void) async throws {
        let store = try await open(disk)
        try await body(store)
        try await store.close()
    }

    /// Records events, ships them, and stores a checkpoint.
    func fill(_ events: Int) async throws {
        try await withStore { store in
            for start in stride(from: 0, to: events, by: Self.batch) {
                try await store.events.append(
                    contentsOf: try drafts(min(Self.batch, events - start)))
            }
            try await ship(store, events)
            try await store.events.checkpoint()
        }
    }

    /// The events after the checkpoint: too few for a new one when the store is closed.
    private static let tail = 90

    /// Appends events after the checkpoint, one commit for each.
    func appendTail() async throws {
        try await withStore { store in
            for _ in 0..<Self.tail { try await store.events.append(contentsOf: [try draft()]) }
        }
    }

    /// Removes the stored states, so that the next opening folds all events.
    func removeCheckpoints() {
        for slot in LogDirectory.checkpointSlots {
            disk["\(Self.path)/\(LogDirectory.checkpoints)/\(slot)"] = nil
        }
    }

    /// Ships all unsettled events, which must be `events` in number.
    func ship(_ store: OfflineStore, _ events: Int) async throws {
        var options = Replayer.Options()
        options.reads = false
        let report = try await Replayer(
            store.events, transport: NullTransport(), options: options
        ).run()
        guard report.applied == events, report.pending == 0 else {
            throw HotPathFailure("shipped \(report.applied) events, \(report.pending) are pending")
        }
    }

    // MARK: Events

    func drafts(_ count: Int) throws -> [EventDraft] { try (0..<count).map { _ in try draft() } }

    /// Creates a new event, of five types in turn.
    func draft() throws -> EventDraft {
        let number = draftCount.withLock { number in
            number += 1
            return number
        }
        let id = UUID(integer: environment(disk).randomUUID())
        let turn = number / 5
        return switch number % 5 {
        case 0:
            try EventDraft(
                LessonCompleted(
                    userId: "ana", courseId: "course-\(turn % 7)", lessonId: "lesson-\(turn)",
                    score: Double(turn % 100) / 100, durationSeconds: 312.5), id: id)
        case 1:
            try EventDraft(
                ReviewCompleted(
                    userId: "ana", courseId: "course-\(turn % 7)", reviewId: "review-\(turn)",
                    itemsSeen: 20, itemsCorrect: turn % 21), id: id)
        case 2:
            try EventDraft(
                NoteAdded(
                    noteId: "note-\(turn)", cityId: "city-\(turn % 50)",
                    content: "Great coffee at number \(turn), and a view of the river",
                    createdBy: "ana"), id: id)
        case 3:
            try EventDraft(
                NoteUpdated(
                    noteId: "note-\(turn)",
                    content: "Great coffee at number \(turn), closed on Mondays",
                    updatedBy: "ana"), id: id)
        default:
            try EventDraft(CitySaved(userId: "ana", cityId: "city-\(turn)"), id: id)
        }
    }
}

/// A server in this process that accepts everything.
private struct NullTransport: Transport {
    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else { return TransportReply(status: 404) }
        return TransportReply(status: 200, body: NullServer.verdicts(on: batch))
    }
}
