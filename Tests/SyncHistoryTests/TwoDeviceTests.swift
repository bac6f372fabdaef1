// Two devices of one account and the real server's storage: conflicts and their resolution, parked events, a
// device that is installed anew, clocks that are a year off. Spec/protocol/conflicts.md,
// Spec/protocol/parking.md, Spec/protocol/replay.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import SyncServerStorage
import TestSupport
import Testing

/// The server's storage behind a transport, without a network.
private final class StorageServer: Transport {
    let storage: SQLiteEventStorage
    private let folder: TemporaryFolder
    private let clock: VirtualClock

    init(_ clock: VirtualClock) throws {
        self.clock = clock
        folder = try TemporaryFolder()
        storage = try SQLiteEventStorage(
            path: folder.appending("events.db").path, catalogue: OfflineModel.catalogue)
    }

    deinit { try? storage.close() }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        let date = clock.milliseconds / 1_000 * 1_000
        switch request {
        case .append(let batch):
            let events = try BatchReader.read(
                batch.span.bytes, catalogue: OfflineModel.catalogue,
                now: Timestamp(milliseconds: clock.milliseconds))
            let verdicts = try await storage.append(events, account: "a")
            return TransportReply(
                status: 200, body: SyncServerStorage.EventVerdict.reply(verdicts), date: date)
        case .read(let cursor):
            let page = try await storage.page(
                account: "a", source: nil,
                after: cursor.flatMap { EventCursor($0) } ?? .start(bySource: false), limit: 100)
            return TransportReply(
                status: 200, body: JSONObjectWriter.array(page.lines), date: date,
                next: page.next.text)
        }
    }
}

/// A device with its own clock.
private struct Phone {
    let files = InMemoryFileSystem()
    let clock: VirtualClock
    var skew: Int64 = 0
    let server: StorageServer

    func open() async throws -> OfflineStore {
        let (clock, skew) = (clock, skew)
        return try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(
                fileSystem: files, now: { clock.milliseconds + skew }))
    }

    @discardableResult
    func sync(
        _ store: OfflineStore, _ resolver: (any ConflictResolver)? = nil
    ) async throws -> SyncReport {
        clock.advance(by: .seconds(1))
        var options = Replayer.Options()
        options.resolver = resolver
        return try await Replayer(store.events, transport: server, options: options).run()
    }
}

@Suite struct TwoDeviceTests {
    private let clock = VirtualClock()
    private let server: StorageServer
    private let mine: Phone
    private let theirs: Phone

    init() throws {
        server = try StorageServer(clock)
        mine = Phone(clock: clock, server: server)
        theirs = Phone(clock: clock, server: server)
    }

    /// Changes one note on both devices independently. The server gets the change of `theirs` first.
    private func conflict() async throws -> (mine: OfflineStore, theirs: OfflineStore, note: String)
    {
        let (one, other) = (try await mine.open(), try await theirs.open())
        let note = try await other.notes.add("coffee", city: "lisbon", by: "ana")
        try await theirs.sync(other)
        #expect(try await mine.sync(one).received == 1)
        clock.advance(by: .seconds(1))
        try await other.notes.update(note.id, "theirs", by: "ana")
        clock.advance(by: .seconds(1))
        try await one.notes.update(note.id, "mine", by: "ana")
        try await one.notes.update(note.id, "mine again", by: "ana")
        try await theirs.sync(other)
        return (one, other, note.id)
    }

    private func text(_ store: OfflineStore, _ note: String) -> String? {
        store.view(NotesView.self)[note]?.content
    }

    @Test(.verifies("CON-1", "SYNC-27"))
    func `without a resolver a conflict shows until the app resolves it`() async throws {
        let (one, other, note) = try await conflict()
        let report = try await mine.sync(one)
        #expect(report.conflict == 1)
        #expect(report.pending == 2)
        #expect(report.held == 2)
        #expect(one.outbox.entries.map(\.status) == [.conflict, .pending])
        let id = try #require(one.outbox.entries.first { _ in true }).id
        try await one.outbox.resolve(id, .keepTheirs)
        #expect(one.view(Outbox.self).count == 0)
        #expect(text(one, note) == "theirs")
        try await mine.sync(one)
        try await theirs.sync(other)
        #expect(text(other, note) == "theirs")
    }

    @Test(.verifies("CON-1", "CON-3"))
    func `an app that resolves later bases its event on the server's`() async throws {
        let (one, other, note) = try await conflict()
        try await mine.sync(one)
        let entry = try #require(one.outbox.entries.first { _ in true })
        let head = other.view(NotesView.self).head(note)
        #expect(entry.conflictsWith == head)
        try await one.outbox.resolve(entry.id, .keepMine)
        let new = Array(one.outbox.entries)
        #expect(new.count == 2)
        #expect(new.allSatisfy { $0.status == .pending })
        let first = try #require(try await one.events.event(at: new[0].position))
        #expect(first.content.string("baseid") == head?.text)
        #expect(try await mine.sync(one).conflict == 0)
        try await theirs.sync(other)
        #expect(text(one, note) == "mine again")
        #expect(text(other, note) == "mine again")
        // An event that is no longer in conflict cannot be resolved again.
        await #expect(throws: DecisionError(.notInOutbox, entry.id)) {
            try await one.outbox.resolve(entry.id, .keepTheirs)
        }
    }

    @Test(.verifies("CON-3"))
    func `keep mine wins over a clock that was a year ahead`() async throws {
        var ahead = theirs
        ahead.skew = 365 * 86_400_000
        let (one, other) = (try await mine.open(), try await ahead.open())
        let note = try await one.notes.add("coffee", city: "lisbon", by: "ana")
        try await mine.sync(one)
        // It only reads: before it ships an event, the offset of its clock is unknown.
        try await ahead.sync(other)
        try await other.notes.update(note.id, "theirs", by: "ana")
        try await one.notes.update(note.id, "mine", by: "ana")
        try await ahead.sync(other)
        #expect(try await mine.sync(one, KeepMine()).resolved == 1)
        try await ahead.sync(other)
        #expect(text(one, note.id) == "mine")
        #expect(text(other, note.id) == "mine")
    }

    @Test(.verifies("CON-5"))
    func `an unresolved conflict is reported again by the server, and recorded once`()
        async throws
    {
        let (one, _, _) = try await conflict()
        let undecided = Merge { _ in nil }
        #expect(try await mine.sync(one, undecided).conflict == 1)
        let last = await one.events.lastDurable
        let again = try await mine.sync(one, undecided)
        #expect(again.conflict == 1)
        #expect(again.resolved == 0)
        #expect(again.held == 2)
        #expect(await one.events.lastDurable == last)
        #expect(try await mine.sync(one, KeepTheirs()).resolved == 1)
    }

    @Test(.verifies("CON-2", "CON-3"))
    func `keep mine records my changes again, based on theirs`() async throws {
        let (one, other, note) = try await conflict()
        let before = Array(one.outbox.entries)
        let report = try await mine.sync(one, KeepMine())
        #expect(report.conflict == 1)
        #expect(report.resolved == 1)
        #expect(report.pending == 0)
        try await theirs.sync(other)
        #expect(text(one, note) == "mine again")
        #expect(text(other, note) == "mine again")
        // A replacement names the event that it replaces, and its base.
        var replacements: [Event] = []
        try other.events.log.forEachEvent(from: Position(1), catalogue: OfflineModel.catalogue) {
            if $0.content.string("causationid") != nil { replacements.append($0) }
            return true
        }
        #expect(replacements.map { $0.content.string("causationid") } == before.map(\.id.text))
        #expect(replacements[1].content.string("baseid") == replacements[0].id.text)
    }

    @Test(.verifies("CON-2")) func `keep theirs retracts mine`() async throws {
        let (one, other, note) = try await conflict()
        let report = try await mine.sync(one, KeepTheirs())
        #expect(report.resolved == 1)
        #expect(report.pending == 0)
        #expect(report.applied == 0)
        #expect(text(one, note) == "theirs")
        #expect(text(other, note) == "theirs")
    }

    @Test(.verifies("CON-2")) func `a function can merge both`() async throws {
        let (one, other, note) = try await conflict()
        let merge = Merge { conflict in
            let ours = try NoteUpdated(json: conflict.pending.last?.content.json ?? [])
            let current = try NoteUpdated(json: conflict.current?.json ?? [])
            return try EventDraft(
                NoteUpdated(
                    noteId: ours.noteId, content: current.content + " + " + ours.content,
                    updatedBy: ours.updatedBy))
        }
        #expect(try await mine.sync(one, merge).resolved == 1)
        try await theirs.sync(other)
        #expect(text(one, note) == "theirs + mine again")
        #expect(text(other, note) == "theirs + mine again")
    }

    @Test(.verifies("CON-4"))
    func `keeping mine of a note that was deleted there is refused, and a new note has its text`()
        async throws
    {
        let (one, other, note) = try await conflict()
        try await other.notes.delete(note, by: "ana")
        try await theirs.sync(other)
        let report = try await mine.sync(one, KeepMine())
        #expect(report.resolved == 0)
        #expect(report.message?.contains("which is final") == true)
        let entry = try #require(one.outbox.entries.first { _ in true })
        await #expect(throws: DecisionError(.entityEnded, entry.id)) {
            try await one.outbox.resolve(entry.id, .keepMine)
        }
        let conflict = try #require(try await one.outbox.conflict(entry.id))
        let new = try await one.notes.addAgain(conflict, city: "lisbon", by: "ana")
        #expect(try await mine.sync(one).pending == 0)
        try await theirs.sync(other)
        for device in [one, other] {
            #expect(text(device, note) == nil)
            #expect(text(device, new.id) == "mine again")
        }
    }

    @Test(.verifies("CON-4"))
    func `keeping theirs, or my deletion too, settles a note that was deleted there`() async throws
    {
        for resolver in [KeepMine(), KeepTheirs()] as [any ConflictResolver] {
            let test = try TwoDeviceTests()
            let (one, other, note) = try await test.conflict()
            if resolver is KeepMine { try await one.notes.delete(note, by: "ana") }
            try await other.notes.delete(note, by: "ana")
            try await test.theirs.sync(other)
            #expect(try await test.mine.sync(one, resolver).pending == 0)
            try await test.theirs.sync(other)
            #expect(test.text(one, note) == nil)
            #expect(test.text(other, note) == nil)
        }
    }

    @Test(.verifies("CON-2", "CON-4"))
    func `keeping mine records my change and my deletion again`() async throws {
        let (one, other, note) = try await conflict()
        try await one.notes.delete(note, by: "ana")
        #expect(try await mine.sync(one, KeepMine()).pending == 0)
        try await theirs.sync(other)
        #expect(text(one, note) == nil)
        #expect(text(other, note) == nil)
    }

    @Test(.verifies("CON-4"))
    func `a note is not added or changed again under the id of a deleted one`() async throws {
        let one = try await mine.open()
        let note = try await one.notes.add("coffee", city: "lisbon", by: "ana")
        try await one.notes.delete(note.id, by: "ana")
        let last = await one.events.lastDurable
        let again: [any EventPayload] = [
            NoteAdded(noteId: note.id, cityId: "lisbon", content: "tea", createdBy: "ana"),
            NoteUpdated(noteId: note.id, content: "tea", updatedBy: "ana"),
        ]
        for payload in again {
            let error = await #expect(throws: EventError.self) {
                try await one.events.append([payload])
            }
            #expect(error?.detail.contains("was deleted; add a note with another id") == true)
        }
        #expect(await one.events.lastDurable == last)
    }

    @Test(.verifies("PRK-1", "PRK-2", "PRK-3"))
    func `a parked event can be retried or discarded, and its dependents are named`()
        async throws
    {
        let (one, other) = (try await mine.open(), try await theirs.open())
        // Another device has used the id for another event.
        let id = UUID()
        try await other.events.append([
            EventDraft(CitySaved(userId: "ana", cityId: "porto"), id: id)
        ])
        try await theirs.sync(other)
        try await one.events.append([
            EventDraft(
                NoteAdded(noteId: "n", cityId: "lisbon", content: "x", createdBy: "ana"), id: id)
        ])
        try await one.notes.update("n", "y", by: "ana")
        try await one.cities.save("lisbon", by: "ana")
        let report = try await mine.sync(one)
        #expect(report.rejected == 1)
        #expect(report.applied == 1)
        #expect(report.held == 2)
        #expect(report.unusable == 1)
        try await one.outbox.retry(id)
        #expect(one.outbox.entries.map(\.status) == [.pending, .pending])
        #expect(try await mine.sync(one).rejected == 1)
        let dependents = try one.outbox.dependents(of: id)
        #expect(dependents.count == 1)
        await #expect(throws: DecisionError(.hasDependents, id, dependents: dependents.map(\.id))) {
            try await one.outbox.discard(id)
        }
        #expect(text(one, "n") == "y")
        #expect(try await one.outbox.discard(id, withDependents: true).count == 2)
        #expect(text(one, "n") == nil)
        #expect(one.view(Outbox.self).count == 0)
        await #expect(throws: DecisionError(.notInOutbox, id)) { try await one.outbox.retry(id) }
        try await one.cities.save("porto", by: "ana")
        let pending = try #require(one.outbox.entries.first { _ in true }).id
        await #expect(throws: DecisionError(.notHeld, pending)) {
            try await one.outbox.retry(pending)
        }
        #expect(try await one.outbox.discard(pending) == [pending])
        #expect(one.view(Outbox.self).count == 0)
    }

    @Test(.verifies("OUT-9", "RPL-9", "RPL-10"))
    func `an app that is installed anew gets everything back`() async throws {
        let one = try await mine.open()
        for number in 0..<250 {
            try await one.cities.save("city-\(number)", by: "ana")
        }
        try await mine.sync(one)
        let fresh = Phone(clock: clock, server: server)
        let store = try await fresh.open()
        var last = 0
        let report = try await fresh.sync(store)
        #expect(report.received == 250)
        #expect(report.pending == 0)
        #expect(store.view(CitiesView.self).rows() == one.view(CitiesView.self).rows())
        // Received events are not sent back, and not read again.
        let again = try await fresh.sync(store)
        #expect(again.received == 0)
        #expect(again.applied == 0)
        #expect(again.duplicate == 0)
        last = Int(await store.events.lastDurable.rawValue)
        try await fresh.sync(store)
        #expect(Int(await store.events.lastDurable.rawValue) == last)
        // The cursor is in the log: after a restart, and after a compaction, nothing is read again.
        let cursor = store.view(Outbox.self).cursor
        #expect(cursor != nil)
        try store.events.log.roll()
        try await store.compact()
        try await store.close()
        let reopened = try await fresh.open()
        #expect(reopened.view(Outbox.self).cursor == cursor)
        #expect(try await fresh.sync(reopened).received == 0)
        try await reopened.close()
    }

    @Test(.verifies("RPL-11"))
    func `two logs with one incarnation detect it from the events that they read`() async throws {
        let one = try await mine.open()
        try await one.cities.save("lisbon", by: "ana")
        try await mine.sync(one)
        let image = mine.files.snapshot()
        let copy = try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(fileSystem: image))
        #expect(copy.events.incarnation == one.events.incarnation)
        try await one.cities.save("porto", by: "ana")
        try await mine.sync(one)
        let name = copy.events.incarnation
        try await mine.sync(copy)
        #expect(copy.events.incarnation != name)
        #expect(copy.view(CitiesView.self).rows() == one.view(CitiesView.self).rows())
    }

    @Test(.verifies("RPL-11"))
    func `a log detects another with its incarnation from the event that a conflict brings`()
        async throws
    {
        let one = try await mine.open()
        let note = try await one.notes.add("coffee", city: "lisbon", by: "ana")
        try await mine.sync(one)
        let image = mine.files.snapshot()
        let copy = try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(fileSystem: image))
        try await one.notes.update(note.id, "original", by: "ana")
        try await mine.sync(one)
        try await copy.notes.update(note.id, "copy", by: "ana")
        let name = copy.events.incarnation
        let report = try await Replayer(copy.events, transport: server)
            .run(under: ReplayState.Conditions(mayRead: false))
        #expect(report.conflict == 1)
        #expect(copy.events.incarnation != name)
    }

    @Test(.verifies("CON-1"))
    func `the report has the error of a resolver that throws`() async throws {
        struct Undecidable: Error {}
        let (one, _, _) = try await conflict()
        let report = try await mine.sync(one, Merge { _ in throw Undecidable() })
        #expect(report.conflict == 1)
        #expect(report.resolved == 0)
        #expect(report.message?.contains("Undecidable") == true)
    }

    @Test(.verifies("CLOCK-1", "CLOCK-2"), arguments: [365, -365])
    func `a clock that is a year off is known after two replies, and after a restart`(
        days: Int64
    ) async throws {
        var wrong = mine
        wrong.skew = days * 86_400_000
        var one = try await wrong.open()
        let other = try await theirs.open()
        for city in ["lisbon", "porto"] {
            try await one.cities.save(city, by: "ana")
            try await wrong.sync(one)
        }
        for isRestarted in [false, true] {
            if isRestarted {
                try await one.close()
                one = try await wrong.open()
            }
            clock.advance(by: .seconds(60))
            try await one.preferences.update(for: "ana") {
                $0.pruneAfterDays = isRestarted ? 10 : 11
            }
            clock.advance(by: .seconds(60))
            try await theirs.sync(other)
            try await other.preferences.update(for: "ana") {
                $0.pruneAfterDays = isRestarted ? 20 : 21
            }
            try await theirs.sync(other)
            try await wrong.sync(one)
            try await theirs.sync(other)
            // The later change wins on both devices.
            #expect(one.view(PreferencesView.self)["ana"].pruneAfterDays == (isRestarted ? 20 : 21))
            #expect(
                other.view(PreferencesView.self)["ana"].pruneAfterDays == (isRestarted ? 20 : 21))
        }
        // The clock is corrected while the app is not running: the old offset is not used.
        try await one.close()
        wrong.skew = 0
        one = try await wrong.open()
        clock.advance(by: .seconds(60))
        try await one.preferences.update(for: "ana") { $0.pruneAfterDays = 30 }
        try await wrong.sync(one)
        try await theirs.sync(other)
        #expect(other.view(PreferencesView.self)["ana"].pruneAfterDays == 30)
    }
}
