// The states of the views as bytes: that they come back, that equal states are equal bytes, and that
// bytes which are no state are refused.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.verifies("VIEW-10")) struct StoredStateTests {
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
        choices.note("\(history.events.map { "\($0.type) \($0.stamp)" })")
        return history.events
    }

    private static func bytes<View: ListableView>(
        _ view: View.Type, _ events: some Sequence<Event>
    ) throws -> [UInt8] {
        try #require(try View(folding: events).encodedState())
    }

    private static func rows(_ view: some ListableView) -> [[UInt8]] { view.rows().map(\.json) }

    @Test(.verifies("VIEW-2"))
    func `equal states are equal bytes, whatever the order of arrival was`() throws {
        func check<View: ListableView>(_ view: View.Type, _ one: [Event], _ other: [Event]) throws {
            try #require(try Self.bytes(view, one) == Self.bytes(view, other), "\(View.name)")
        }
        try Property.check("encode(fold(permutation)) = encode(fold)", runs: 300) { choices in
            let events = try Self.history(&choices, 1...14)
            var shuffled = events
            for index in shuffled.indices.dropLast() {
                shuffled.swapAt(index, choices.int(in: index...shuffled.count - 1))
            }
            for view in OfflineModel.views { try check(view, events, shuffled) }
        }
    }

    @Test func `a state that was stored and read folds on like the one that never was`() throws {
        func check<View: ListableView>(_ view: View.Type, _ events: [Event], _ cut: Int) throws {
            var stored = try View(encodedState: Self.bytes(view, events[..<cut]))
            for event in events[cut...] { stored.fold(event) }
            let straight = View(folding: events)
            try #require(try stored.encodedState() == straight.encodedState(), "\(View.name)")
            try #require(Self.rows(stored) == Self.rows(straight), "\(View.name)")
        }
        try Property.check("decode(encode(s)) folds like s", runs: 300) { choices in
            let events = try Self.history(&choices, 1...30)
            let cut = choices.int(in: 0...events.count)
            for view in OfflineModel.views { try check(view, events, cut) }
        }
    }

    @Test func `a note's city is found again in a state that was read`() throws {
        var history = EventHistory()
        history.addOwn(
            try EventDraft(
                NoteAdded(noteId: "n", cityId: "c", content: "hello", createdBy: "u")))
        let bytes = try Self.bytes(NotesView.self, history.events)
        var view = try NotesView(encodedState: bytes)
        #expect(view.notes(in: "c").map(\.content) == ["hello"])
        #expect(view.head("n") == history.events[0].id)
        view.fold(history.addOwn(try EventDraft(NoteDeleted(noteId: "n", deletedBy: "u"))))
        #expect(view.notes(in: "c").isEmpty && view.isDeleted("n"))
    }

    @Test func `damaged bytes are refused with an error or are another valid state`() throws {
        /// Whatever can be read is written again as it was, and goes on folding.
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
