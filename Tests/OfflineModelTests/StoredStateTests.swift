// The encoded states of the views: they are decoded to the same state, equal states are equal bytes, and
// invalid bytes are refused.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.verifies("VIEW-10", "VIEW-31")) struct StoredStateTests {
    private static func history(
        _ choices: inout Choices, _ count: ClosedRange<Int>
    ) throws -> [Event] {
        var history = EventHistory()
        for draft in try choices.array(count, of: { try $0.draft() }) {
            switch choices.int(in: 0...3) {
            case 3:
                history.addForeign(draft, source: UUID(integer: 3), sequence: 1)
            case 2:
                history.addForeign(draft, source: UUID(integer: 2), sequence: 7)
            default: history.addOwn(draft)
            }
        }
        choices.note("\(history.events.map { "\($0.type) \($0.lwwTimestamp)" })")
        return history.events
    }

    private static func bytes<View: ListableView>(
        _ view: View.Type, _ events: some Sequence<Event>
    ) throws -> [UInt8] {
        try #require(try View(folding: events).encodedState())
    }

    @Test(.verifies("VIEW-2"))
    func `equal states are equal bytes for any order of arrival`() throws {
        for view in OfflineModel.views {
            // No check of repetition: an undecodable event is counted each time. No check of compaction:
            // few of these events supersede others.
            try Property.checkProjection(
                view, extending: OfflineModel.catalogue, except: [.repetition, .compaction],
                runs: 200
            ) { try $0.draft() }
        }
    }

    @Test func `a note's city is found in a decoded state`() throws {
        var history = EventHistory()
        history.addOwn(
            try EventDraft(
                NoteAdded(noteId: "n", cityId: "c", content: "hello", createdBy: "u")))
        let bytes = try Self.bytes(NotesView.self, history.events)
        var view = try NotesView(encodedState: bytes)
        #expect(view.notes(in: "c").map(\.content) == ["hello"])
        #expect(view.head("n") == history.events[0].id)
        view.fold(history.addOwn(try EventDraft(NoteDeleted(noteId: "n", deletedBy: "u"))))
        #expect(view.notes(in: "c").isEmpty)
        #expect(view.isDeleted("n"))
    }

    @Test func `damaged bytes are refused with an error or are another valid state`() throws {
        /// Checks that a decoded state is encoded to the same bytes and can fold further events.
        func check<View: ListableView>(
            _ view: View.Type, _ bytes: [UInt8], _ events: [Event]
        ) throws {
            var state: View
            do {
                state = try View(encodedState: bytes)
            } catch {
                try #require(error is EventError)
                return
            }
            try #require(try state.encodedState() == bytes, "\(View.name)")
            for event in events { state.fold(event) }
            _ = state.rows()
            _ = try View(encodedState: try #require(try state.encodedState()))
        }
        func checkAll<View: ListableView>(
            _ view: View.Type, _ events: [Event], _ choices: inout Choices
        ) throws {
            let good = try Self.bytes(view, events)
            for count in good.indices {
                #expect(throws: EventError.self) { try View(encodedState: Array(good[..<count])) }
            }
            #expect(throws: EventError.self) { try View(encodedState: good + [0]) }
            for _ in 0..<40 {
                var bad = good
                for _ in 0...choices.int(in: 0...2) {
                    bad[choices.int(in: 0...bad.count - 1)] ^= 1 << UInt8(choices.int(in: 0...7))
                }
                try check(view, bad, events)
            }
        }
        try Property.check("no bytes trap", runs: 60) { choices in
            let events = try Self.history(&choices, 1...12)
            for view in OfflineModel.views { try checkAll(view, events, &choices) }
        }
    }
}
