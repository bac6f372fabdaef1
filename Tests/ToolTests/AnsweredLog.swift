// A log with every kind of server answer, equal in every run: ids and times are fixed.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// Creates and changes such a log.
struct AnsweredLog {
    let store: EventStore
    private let clock: VirtualClock

    var commands: OutboxCommands { OutboxCommands(store) }

    /// The id of the event with a number.
    static func id(_ number: Int) -> String {
        "00000000-0000-4000-8000-" + String("00000000000\(number)".suffix(12))
    }

    /// Opens a log in a folder, with a clock that is a minute later at each opening.
    init(_ folder: TemporaryFolder, minute: Int = 0) async throws {
        clock = VirtualClock(milliseconds: 1_772_352_000_000 + Int64(minute) * 60_000)
        store = try await EventStore.open(
            at: folder.log, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self],
            environment: clock.environment(
                fileSystem: POSIXFileSystem(), seed: UInt64(minute) + 1))
    }

    /// Records typed events with ids from a number on.
    func append(_ payloads: [any EventPayload], from number: Int) async throws {
        for (offset, payload) in payloads.enumerated() {
            clock.advance(by: .seconds(1))
            let id = try #require(UUID(uuidString: Self.id(number + offset)))
            try await store.append(contentsOf: [try Self.draft(payload, id)])
        }
    }

    private static func draft(_ payload: some EventPayload, _ id: UUID) throws -> EventDraft {
        var draft = try EventDraft(payload, id: id)
        if payload is NoteUpdated, draft.subject == "note-2" {
            draft.extensions = [.init(name: "baseid", string: Self.id(3))]
        }
        return draft
    }

    /// Records an answer.
    func answer(
        applied: [ClosedRange<UInt64>] = [], duplicate: [ClosedRange<UInt64>] = [],
        _ entries: [SyncSettled.Entry] = []
    ) async throws {
        clock.advance(by: .seconds(1))
        var record = SyncSettled(by: store.incarnation)
        record.applied = applied
        record.duplicate = duplicate
        record.entries = entries
        try await store.record(record)
    }

    /// An answer to the event with a number, which is its position.
    static func entry(
        _ number: Int, _ outcome: SyncSettled.Outcome, _ retryCount: Int = 0, code: String,
        detail: String? = nil
    ) throws -> SyncSettled.Entry {
        SyncSettled.Entry(
            position: UInt64(number), id: try #require(UUID(uuidString: id(number))),
            outcome: outcome, retryCount: retryCount, code: code, detail: detail)
    }

    /// Creates a folder with the log: 1 is parked and blocks 2, 3 was applied, 4 is in conflict and blocks 5,
    /// 6 was a duplicate, 7 is parked, 8 is pending.
    static func folder() async throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let log = try await AnsweredLog(folder)
        try await log.append(
            [
                NoteAdded(noteId: "note-1", cityId: "oslo", content: "Kaffe", createdBy: "ada"),
                NoteUpdated(noteId: "note-1", content: "Kaffe, strong", updatedBy: "ada"),
                NoteAdded(noteId: "note-2", cityId: "oslo", content: "Opera", createdBy: "ada"),
                NoteUpdated(noteId: "note-2", content: "Opera roof", updatedBy: "ada"),
                NoteUpdated(noteId: "note-2", content: "Opera roof, at dusk", updatedBy: "ada"),
                CitySaved(userId: "ada", cityId: "oslo"),
                CityUnsaved(userId: "ada", cityId: "oslo"),
                CitySaved(userId: "ada", cityId: "bergen"),
            ], from: 1)
        try await log.answer(
            applied: [3...3], duplicate: [6...6],
            [
                try entry(1, .retry, 1, code: "busy"),
                try entry(4, .conflict, code: "stale_base"),
                try entry(7, .parked, code: "no_such_city", detail: "no city has this id"),
            ])
        try await log.answer([
            try entry(1, .parked, 1, code: "too_long", detail: "a note has at most 3 letters")
        ])
        try await log.store.close()
        return folder
    }

    /// Retries 1, keeps both changes of the conflict, and discards 7, which the server then reports as
    /// stored.
    static func decide(in folder: TemporaryFolder) async throws {
        let log = try await AnsweredLog(folder, minute: 1)
        let ids = try [1, 4, 7].map { try #require(UUID(uuidString: id($0))) }
        try await log.commands.retry(ids[0])
        try await log.commands.resolve(ids[1], .keepMine)
        try await log.commands.discard(ids[2])
        try await log.store.append(
            record: EventsReinstated(
                by: log.store.incarnation, events: [.init(position: Position(7), id: ids[2])]))
        try await log.answer(applied: [1...2])
        try await log.store.close()
    }
}
