// Compaction removes only events that no fold needs, whatever is folded later and whatever is
// discarded, and it does remove some.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import Replay

/// All built-in views at one position.
private struct States {
    private let views: [any CompactableView]

    init(_ events: some Sequence<Event>) {
        views = [
            CitiesView(folding: events), NotesView(folding: events),
            PreferencesView(folding: events), ProgressView(folding: events),
            PagesView(folding: events), ContentView(folding: events), Outbox(folding: events),
        ]
    }

    /// The events that may be removed.
    func gone(of events: some Sequence<Event>, upTo limit: Int) -> [Event] {
        let judge = CompactionClassifier(
            states: views, limit: Position(UInt64(limit)), catalogue: OfflineModel.catalogue)
        return events.filter { judge.verdict(on: $0) == .removed }
    }

    /// The state of each view, as bytes.
    func bytes() throws -> [[UInt8]?] { try views.map { try $0.encodedState() } }
}

@Suite struct RetentionTests {
    @Test(.verifies("CMP-1", "CMP-3", "OUT-7"))
    func `no fold depends on events that compaction removed, whatever is folded later`() throws {
        var removed: [String: Int] = [:]
        try Property.check("fold(L − R + X) = fold(L + X)", runs: 900) { choices in
            var log = RandomLog()
            var gone: Set<Position> = []
            var horizon = 0
            for _ in 0..<choices.int(in: 1...3) {
                for _ in 0..<choices.int(in: 1...40) { try log.step(&choices) }
                let count = log.events.count
                horizon = choices.bool() ? count : choices.int(in: horizon...count)
                let kept = log.events.filter { !gone.contains($0.position) }
                let past = kept.prefix { $0.position.rawValue <= UInt64(horizon) }
                let isCancelled = choices.bool(oneIn: 3)
                for event in States(past).gone(of: kept, upTo: horizon) {
                    // A cancelled run has removed some of them.
                    if isCancelled, choices.bool() { continue }
                    gone.insert(event.position)
                    removed[event.type, default: 0] += 1
                }
                try Self.compare(log.events, without: gone, &choices)
            }
            for _ in 0..<choices.int(in: 0...15) { try log.step(&choices) }
            try Self.compare(log.events, without: gone, &choices)
        }
        // Without this check the test would pass for a rule that removes nothing.
        let types = [
            CitySaved.type, CityUnsaved.type, NoteAdded.type, NoteUpdated.type,
            PreferencesUpdated.type, CourseActivated.type, LessonCompleted.type,
            ReviewCompleted.type, SyncSettled.type,
        ]
        // Other types are rare here; the tests of their views cover them.
        #expect(Set(removed.keys).isSuperset(of: types))
        for type in types { #expect((removed[type] ?? 0) > 20, "\(type)") }
    }

    /// Compares the first views of two histories, the second without the removed events.
    private static func compare(
        _ events: [Event], without gone: Set<Position>, views: Int = 7, _ choices: inout Choices
    ) throws {
        let expected = try States(events).bytes().prefix(views)
        let bytes = try States(events.filter { !gone.contains($0.position) }).bytes().prefix(views)
        guard bytes != expected else { return }
        choices.note("\(events.map { describe($0, gone) })")
        let names = zip(expected, bytes).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
        throw Difference(views: names)
    }

    private struct Difference: Error {
        var views: [Int]
    }

    private static func describe(_ event: Event, _ gone: Set<Position>) -> String {
        let data = String(decoding: event.content.json ?? [], as: UTF8.self)
        return "\n\(event.position)\(gone.contains(event.position) ? " GONE" : "")"
            + "\(event.isOwn ? "" : " foreign") \(event.type) \(event.time.milliseconds) "
            + "\(event.lwwTimestamp.source) \(event.lwwTimestamp.sequence) \(data)"
    }

    @Test(.verifies("CMP-2"))
    func `no view depends on events that compaction removed, whatever is discarded later`() throws {
        var discards = 0
        try Property.check("fold(L − D − R + X) = fold(L − D + X)", runs: 800) { choices in
            var log = RandomLog()
            for _ in 0..<choices.int(in: 1...90) { try log.step(&choices) }
            let count = log.events.count
            let horizon = choices.bool() ? count : choices.int(in: 0...count)
            let states = States(log.events[..<horizon])
            let gone = Set(states.gone(of: log.events, upTo: horizon).map(\.position))
            let discarded = Set(
                log.outbox.entries.map(\.position).filter { _ in choices.bool() })
            discards += discarded.count
            for _ in 0..<choices.int(in: 0...15) { try log.step(&choices) }
            choices.note("discarded \(discarded)")
            try Self.compare(
                log.events.filter { !discarded.contains($0.position) }, without: gone, views: 6,
                &choices)
        }
        #expect(discards > 100)
    }
}
