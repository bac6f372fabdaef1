// The records of syncing have positions of the log that wrote them, so only the store may
// record them: not an app, not an import, not a server.

import DaybookTestKit
import EventGenerators
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct LogRecordTests {
    private static func open(_ files: InMemoryFileSystem) async throws -> OfflineStore {
        try await OfflineStore.open(
            at: URL(filePath: "/log"), compaction: nil,
            environment: LogEnvironment(fileSystem: files))
    }

    /// Records that would settle the first event of the outbox.
    private static func records(by: UUID, of event: Appended) throws -> [EventDraft] {
        var settled = SyncSettled(by: by)
        settled.applied = [1...1]
        let target = EventTarget(position: event.position, id: event.id)
        return [
            try EventDraft(settled),
            try EventDraft(EventsDiscarded(by: by, events: [target], reason: .discarded)),
            try EventDraft(EventsReinstated(by: by, events: [target])),
            try EventDraft(SyncPulled(by: by, next: "s9")),
            EventDraft(type: "daybook.sync.later", data: .json(Array("{}".utf8))),
        ]
    }

    @Test(.verifies("EVT-14", "OUT-3", "DIS-1"))
    func `an app cannot record what only the store records`() async throws {
        let store = try await Self.open(InMemoryFileSystem())
        let saved = try await store.cities.save("oslo", by: "ada")
        func isRefusal(_ error: any Error) -> Bool {
            (error as? EventError)?.code == .refused && "\(error)".contains("daybook.sync.")
        }
        for record in try Self.records(by: store.events.incarnation, of: saved) {
            await #expect { try await store.events.append(contentsOf: [record]) } throws: {
                isRefusal($0)
            }
            await #expect {
                try await store.write { transaction in
                    transaction.append(try EventDraft(CitySaved(userId: "ada", cityId: "bergen")))
                    transaction.append(record)
                }
            } throws: { isRefusal($0) }
        }
        let settled = SyncSettled(by: store.events.incarnation)
        await #expect { try await store.append(settled) } throws: { isRefusal($0) }
        await #expect {
            try await store.write { try $0.append(settled) }
        } throws: { isRefusal($0) }
        #expect(await store.events.lastDurable == Position(1))
        #expect(store.view(Outbox.self).count == 1)
        try await store.close()
    }

    // MARK: From the network

    /// Sends one page, and answers `applied` to all events.
    private struct Handing: Transport {
        let page: [[UInt8]]

        func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
            switch request {
            case .append: return TransportReply(status: 503)
            case .read(let cursor):
                let lines = cursor == nil ? page : []
                let body = Array("[".utf8) + Array(lines.joined(separator: Array(",".utf8)))
                return TransportReply(
                    status: 200, body: body + Array("]".utf8), next: cursor == nil ? "s1" : nil)
            }
        }
    }

    /// An event as a server sends it.
    private static func line(_ draft: EventDraft, sequence: UInt64) -> [UInt8] {
        var draft = draft
        draft.lane = draft.lane ?? "lane"
        draft.time = draft.time ?? Timestamp(milliseconds: 1_700_000_000_000)
        var line: [UInt8] = []
        LineEncoder.append(
            draft,
            LinePrefix(
                own: draft.id.integer, source: UUID(integer: 77).integer, at: Position(sequence)),
            to: &line)
        line.removeLast()
        return line
    }

    @Test(.verifies("EVT-7", "RPL-10"))
    func `no event of a type that stays on a device is recorded from the network`() async throws {
        let files = InMemoryFileSystem()
        let store = try await Self.open(files)
        let updated = try #require(ZonedTime("2026-03-01T08:00:00Z"))
        let page = ContentPage(
            path: "/", title: "Oslo", content: "<p>ours</p>", lastUpdate: updated)
        try await store.content.store(
            city: "oslo", language: "en", pages: [page], lastUpdate: updated)
        let saved = try await store.cities.save("oslo", by: "ada")
        let before = await store.events.lastDurable
        let kept = OfflineModel.catalogue.types.filter { OfflineModel.catalogue[$0]?.action == nil }
        #expect(kept.count > 50)
        var drafts = kept.map { EventDraft(type: $0, data: .json(Array("{}".utf8))) }
        drafts += try Self.records(by: store.events.incarnation, of: saved)
        drafts += [
            try EventDraft(
                PageStored(
                    city: "oslo", language: "en",
                    page: ContentPage(
                        path: "/", title: "Oslo", content: "<script>theirs</script>",
                        lastUpdate: try #require(ZonedTime("2036-03-01T08:00:00Z"))))),
            try EventDraft(ContentRemoved(city: "oslo")),
        ]
        let refused = drafts.count
        drafts += [
            try EventDraft(CitySaved(userId: "ada", cityId: "bergen")),
            EventDraft(type: "com.example.newer", data: .json(Array("{}".utf8))),
        ]
        let lines = drafts.enumerated().map { Self.line($1, sequence: UInt64($0 + 1)) }
        var options = Replayer.Options()
        options.ships = false
        let report = try await Replayer(
            store.events, transport: Handing(page: lines), options: options
        ).run()
        #expect(report.refused == refused)
        #expect(report.received == 2)
        #expect(report.unusable == 0)
        #expect(!report.isBehind)
        #expect(try await store.content.page("/", city: "oslo", language: "en") == page)
        #expect(store.view(Outbox.self).entries.map(\.id) == [saved.id])
        // Two events, and the cursor.
        #expect(await store.events.lastDurable.rawValue == before.rawValue + 3)
        #expect(store.view(Outbox.self).cursor == "s1")
        try await store.close()
    }

    @Test(.verifies("EVT-7"))
    func `a page with only such events is read all the same`() async throws {
        let store = try await Self.open(InMemoryFileSystem())
        let draft = EventDraft(type: "daybook.setting.put", data: .json(Array("{}".utf8)))
        let handing = Handing(page: [Self.line(draft, sequence: 1)])
        let report = try await Replayer(store.events, transport: handing).run()
        #expect(report.refused == 1)
        #expect(!report.isBehind)
        #expect(store.view(Outbox.self).cursor == "s1")
        try await store.close()
    }

    // MARK: Reinstated events

    @Test(.verifies("DIS-2", "DIS-4", "TOOL-15"), arguments: [0, 600])
    func `an event counts in every past state except between its discarding and its reinstatement`(
        events: Int
    ) async throws {
        let files = InMemoryFileSystem()
        var store = try await Self.open(files)
        try await store.notes.add("Kaffe", city: "oslo", by: "ada")
        let position = Position(1)
        let event = try #require(try await store.events.event(at: position))
        let target = EventTarget(position: position, id: event.id)
        let by = store.events.incarnation
        try await store.events.append(
            record: EventsDiscarded(by: by, events: [target], reason: .discarded))
        for number in 0..<events { try await store.cities.save("c\(number)", by: "ada") }
        let between = await store.events.lastDurable
        #expect(store.view(NotesView.self).rows().isEmpty)
        try await store.events.append(record: EventsReinstated(by: by, events: [target]))
        for isReopened in [false, true] {
            if isReopened {
                try await store.close()
                store = try await Self.open(files)
            }
            #expect(store.view(NotesView.self).notes(in: "oslo").map(\.content) == ["Kaffe"])
            #expect(store.view(Outbox.self).count == events)
            let past = try await store.state(at: between)
            #expect(past.view(NotesView.self).rows().count == 1)
            #expect(past.view(Outbox.self).count == events + 1)
            let read = try LogReader("/log", fileSystem: files).fold(
                through: between, catalogue: OfflineModel.catalogue, from: { Outbox() }
            ) { $0.fold($1) }
            #expect(read.state.entries.map(\.id) == past.view(Outbox.self).entries.map(\.id))
        }
        try await store.close()
    }
}
