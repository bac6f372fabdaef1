// Retracted events count as never recorded, and events of other logs are recorded once, also across
// checkpoints, reopenings and compactions. Spec/protocol/discarding.md, Spec/format/line.md.

import DaybookTestKit
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@testable import EventSourcing

/// A view of the positions that it has folded.
private struct Seen: Projection, Codable, Equatable {
    static let name = "seen"
    static let version = 1
    private(set) var texts: [String] = []

    mutating func fold(_ event: Event) {
        guard event.type == "note" else { return }
        texts.append(String(decoding: event.content.json ?? [], as: UTF8.self))
    }
}

@Suite struct DiscardingTests {
    private static let catalogue = EventCatalogue()

    private func open(_ files: any FileSystem) async throws -> EventStore {
        try await EventStore.open(
            at: "/log", catalogue: Self.catalogue, views: [Seen.self],
            environment: LogEnvironment(fileSystem: files))
    }

    private func note(_ number: Int, id: UUID = UUID()) -> EventDraft {
        EventDraft(id: id, type: "note", subject: "s", data: .json(Array("\(number)".utf8)))
    }

    private func discard(_ store: EventStore, _ events: [Appended]) async throws {
        try await store.append(
            record: EventsDiscarded(
                by: store.incarnation,
                events: events.map { EventTarget(position: $0.position, id: $0.id) },
                reason: .discarded))
    }

    @Test(.verifies("DIS-1", "DIS-2"))
    func `a view is as if retracted events had never been recorded`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let places = try await store.append(contentsOf: (1...5).map { note($0) })
        try await discard(store, [places[1], places[3]])
        #expect(store.view(Seen.self).texts == ["1", "3", "5"])
        try await store.append(contentsOf: [note(6)])
        #expect(store.view(Seen.self).texts == ["1", "3", "5", "6"])
        #expect(try await store.state(at: Position(3)).view(Seen.self).texts == ["1", "3"])
        // The line is still in the log, and its id is known.
        #expect(try await store.event(at: places[1].position)?.id == places[1].id)
        #expect(try await !store.append(contentsOf: [note(2, id: places[1].id)])[0].isNew)
        try await store.close()
        let again = try await open(files)
        #expect(again.view(Seen.self).texts == ["1", "3", "5", "6"])
        try await again.close()
    }

    @Test(.verifies("DIS-3"))
    func `a stored state that has folded a retracted event is not used`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let places = try await store.append(contentsOf: (1...5).map { note($0) })
        try await store.checkpoint()
        try await discard(store, [places[4]])
        // A kill: the store is not closed.
        let killed = files.snapshot()
        let reopened = try await open(killed)
        #expect(reopened.view(Seen.self).texts == ["1", "2", "3", "4"])
        // From a checkpoint that has stored the retraction.
        try await reopened.checkpoint()
        try await reopened.append(contentsOf: [note(6)])
        let third = try await open(killed.snapshot())
        #expect(third.view(Seen.self).texts == ["1", "2", "3", "4", "6"])
        for store in [store, reopened, third] { try await store.close() }
    }

    @Test(.verifies("DIS-4"))
    func `a retracted event that the server has after all is reinstated`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let places = try await store.append(contentsOf: (1...3).map { note($0) })
        try await discard(store, [places[1]])
        var line: [UInt8] = []
        let event = try #require(try await store.event(at: places[1].position))
        LineEncoder.append(
            event.content,
            LinePrefix(
                own: event.id.integer, source: event.source.integer, at: event.position),
            to: &line)
        line.removeLast()
        let received = try await store.receive([ForeignEvent(line.span.bytes)])
        #expect(received.known == [places[1].position])
        #expect(received.new.isEmpty)
        #expect(!received.isForked)
        #expect(store.view(Seen.self).texts == ["1", "2", "3"])
        try await store.close()
        #expect(try await open(files).view(Seen.self).texts == ["1", "2", "3"])
    }

    @Test(.verifies("DIS-1"))
    func `a record of another log, or a malformed one, retracts nothing`() async throws {
        let store = try await open(InMemoryFileSystem())
        let places = try await store.append(contentsOf: (1...2).map { note($0) })
        try await store.append(
            record: EventsDiscarded(
                by: UUID(), events: [EventTarget(position: Position(1), id: places[0].id)],
                reason: .discarded))
        for json in ["[]", "{}", #"{"by":"\#(store.incarnation)","events":[1]}"#] {
            try await store.append(
                record: EventDraft(type: EventsDiscarded.type, data: .json(Array(json.utf8))))
        }
        #expect(store.view(Seen.self).texts == ["1", "2"])
        try await store.close()
    }

    @Test(.verifies("DIS-2", "DIS-3", "DIS-4"))
    func `whatever is retracted and reinstated, every opening gives the same views`()
        async throws
    {
        try await Property.check("discarding", runs: 60) { choices in
            var files = InMemoryFileSystem()
            var store = try await open(files)
            var notes: [(place: Appended, text: String)] = []
            var gone: Set<Position> = []
            for step in 0..<choices.int(in: 1...30) {
                switch choices.int(in: 0...6) {
                case 0...2:
                    let place = try await store.append(contentsOf: [note(step)])[0]
                    notes.append((place, "\(step)"))
                case 3 where !notes.isEmpty:
                    let target = choices.element(of: notes).place
                    try await discard(store, [target])
                    gone.insert(target.position)
                case 4 where !gone.isEmpty:
                    let target = choices.element(of: gone.sorted())
                    let id = try #require(notes.first { $0.place.position == target }).place.id
                    try await store.append(
                        record: EventsReinstated(
                            by: store.incarnation,
                            events: [EventTarget(position: target, id: id)]))
                    gone.remove(target)
                case 5: try await store.checkpoint()
                default:
                    if choices.bool() {
                        try await store.close()
                    } else {
                        files = files.snapshot()
                    }
                    store = try await open(files)
                }
                let expected = notes.filter { !gone.contains($0.place.position) }.map(\.text)
                try #require(store.view(Seen.self).texts == expected)
            }
            try await store.close()
            var verifier = CheckpointVerifier(
                "/log", fileSystem: files, catalogue: Self.catalogue, views: [Seen.self])
            let reader = LogReader("/log", fileSystem: files)
            let end = try reader.forEachEvent(catalogue: Self.catalogue) {
                verifier.fold($0)
                return true
            }
            verifier.finish(at: end.last)
            try #require(verifier.findings.isEmpty, "\(verifier.findings)")
        }
    }

    // MARK: Events of other logs

    private func foreign(_ number: UInt64, source: UUID, id: UUID = UUID()) throws -> ForeignEvent {
        let json =
            #"{"specversion":"1.0","id":"\#(id)","source":"urn:uuid:\#(source)","#
            + #""sequence":"\#(number)","type":"note","partitionkey":"s","#
            + #""time":"2026-01-02T03:04:05.678Z","data":\#(number)}"#
        return try ForeignEvent(Array(json.utf8).span.bytes)
    }

    @Test(.verifies("LINE-3"))
    func `an event of another log keeps its source and gets a position here, once`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let other = UUID()
        try await store.append(contentsOf: [note(1)])
        let event = try foreign(7, source: other)
        let first = try await store.receive([event, event], recordingIfNew: [note(2)])
        #expect(first.new == [Position(2)])
        let second = try await store.receive([event], recordingIfNew: [note(3)])
        #expect(second.new.isEmpty)
        #expect(second.known == [Position(2)])
        #expect(store.view(Seen.self).texts == ["1", "7", "2"])
        let recorded = try #require(try await store.event(at: Position(2)))
        #expect(recorded.source == other)
        #expect(recorded.sequence == 7)
        #expect(!recorded.isOwn)
        try await store.close()
        let again = try await open(files)
        #expect(again.view(Seen.self).texts == ["1", "7", "2"])
        let clash = try foreign(8, source: other, id: recorded.id)
        #expect(try await again.receive([clash]).clashing == [recorded.id])
        try await again.close()
    }

    @Test(.verifies("LINE-3"))
    func `an unknown event of this log's own incarnation shows that two logs write under it`()
        async throws
    {
        let store = try await open(InMemoryFileSystem())
        try await store.append(contentsOf: [note(1)])
        let twin = try await store.receive([foreign(1, source: store.incarnation)])
        #expect(twin.isForked)
        #expect(twin.new.count == 1)
        let ahead = try await store.receive([foreign(99, source: store.incarnation)])
        #expect(ahead.isForked)
        let former = try await store.receive([foreign(1, source: UUID())])
        #expect(!former.isForked)
        try await store.close()
    }
}
