// The table of Spec/format/compaction.md, row by row: the retention of each event by each view.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

/// The events of one view, identified by the order in which they were added.
private struct Bench<View: CompactableView> {
    var history = EventHistory()
    var view = View()

    @discardableResult
    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws -> Event {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        view.fold(event)
        return event
    }

    /// The present retention of each event.
    var says: [Retention] { history.events.map(view.retention) }

    func superseded(by indices: Int...) -> Retention {
        .superseded(by: indices.map { history.events[$0].lwwTimestamp })
    }
}

@Suite(.verifies("CMP-3")) struct ViewRetentionTests {
    @Test func `cities need the winner of each register`() throws {
        var bench = Bench<CitiesView>()
        try bench.add(CitySaved(userId: "u", cityId: "c"), at: 5)
        try bench.add(CityUnsaved(userId: "u", cityId: "c"), at: 9)
        try bench.add(CitySaved(userId: "u", cityId: "c"), at: 1)
        try bench.add(CitySaved(userId: "v", cityId: "c"), at: 1)
        #expect(
            bench.says == [
                bench.superseded(by: 1), .needed(.current), bench.superseded(by: 1),
                .needed(.current),
            ])
    }

    @Test func `an existing note needs the events of its origin and its text`() throws {
        var bench = Bench<NotesView>()
        try bench.add(NoteUpdated(noteId: "n", content: "a", updatedBy: "u"), at: 2)
        #expect(bench.says == [.needed(.current)])
        try bench.add(NoteUpdated(noteId: "n", content: "b", updatedBy: "u"), at: 3)
        #expect(bench.says == [bench.superseded(by: 1), .needed(.current)])
        try bench.add(
            NoteAdded(noteId: "n", cityId: "c", content: "o", createdBy: "u"), at: 1)
        #expect(bench.says[2] == .needed(.origin))
        try bench.add(
            NoteAdded(noteId: "n", cityId: "d", content: "p", createdBy: "u"), at: 2)
        #expect(bench.says[2] == bench.superseded(by: 3, 1))
        #expect(bench.says[3] == .needed(.origin))
        try bench.add(
            NoteAdded(noteId: "n", cityId: "d", content: "p", createdBy: "u"), at: 4)
        #expect(bench.says[1] == bench.superseded(by: 4))
        #expect(bench.says[3] == bench.superseded(by: 4, 4))
        #expect(bench.says[4] == .needed(.origin))
    }

    @Test func `a deleted note needs only its deletions`() throws {
        var bench = Bench<NotesView>()
        try bench.add(
            NoteAdded(noteId: "n", cityId: "c", content: "o", createdBy: "u"), at: 5)
        try bench.add(NoteDeleted(noteId: "n", deletedBy: "u"), at: 4)
        try bench.add(NoteDeleted(noteId: "n", deletedBy: "u"), at: 2)
        try bench.add(NoteDeleted(noteId: "n", deletedBy: "u"), at: 9)
        try bench.add(NoteUpdated(noteId: "n", content: "late", updatedBy: "u"), at: 20)
        #expect(
            bench.says == [
                bench.superseded(by: 2), .needed(.deletion), .needed(.deletion),
                .needed(.deletion), bench.superseded(by: 2),
            ])
    }

    @Test func `settings need every event that is the winner of one`() throws {
        func changes(
            sync: Bool? = nil, days: Int? = nil, limit: Int? = nil
        ) -> PreferencesUpdated.Changes {
            var changes = PreferencesUpdated.Changes()
            changes.autoSync = sync
            changes.pruneAfterDays = days
            changes.maxStorageLimit = limit
            return changes
        }
        var bench = Bench<PreferencesView>()
        try bench.add(PreferencesUpdated(userId: "u", changes: changes(sync: true, days: 1)), at: 1)
        try bench.add(PreferencesUpdated(userId: "u", changes: changes(days: 2)), at: 2)
        #expect(bench.says == [.needed(.current), .needed(.current)])
        try bench.add(
            PreferencesUpdated(userId: "u", changes: changes(sync: false, limit: 7)), at: 3)
        #expect(bench.says[0] == bench.superseded(by: 2, 1))
        #expect(bench.says[1...] == [.needed(.current), .needed(.current)])
        #expect(bench.view["u"].updatedAt == Timestamp(milliseconds: 3))
    }

    @Test func `a lesson needs its first, its last and its best completion`() throws {
        var bench = Bench<ProgressView>()
        for (score, time) in [(0.5, 1), (0.9, 3), (0.9, 2), (nil, 4), (0.8, 5), (0.7, 6)]
            as [(Double?, Int)]
        {
            try bench.add(
                LessonCompleted(userId: "u", courseId: "c", lessonId: "l", score: score),
                at: Int64(time))
        }
        #expect(
            bench.says == [
                .needed(.current), bench.superseded(by: 0, 5, 2), .needed(.current),
                bench.superseded(by: 0, 5), bench.superseded(by: 0, 5, 2), .needed(.current),
            ])
        #expect(bench.view.lesson("l", course: "c", of: "u")?.bestScore == 0.9)
    }

    @Test
    func `a session needs its first and last completion, the active course its winner`()
        throws
    {
        var bench = Bench<ProgressView>()
        for (course, time) in [("a", 2), ("b", 1)] {
            try bench.add(CourseActivated(userId: "u", courseId: course), at: Int64(time))
        }
        for (course, time) in [("a", 2), ("b", 3), ("c", 1), ("d", 4)] {
            try bench.add(
                ReviewCompleted(
                    userId: "u", courseId: course, reviewId: "r", itemsSeen: 1, itemsCorrect: 1),
                at: Int64(time))
        }
        #expect(
            bench.says == [
                .needed(.current), bench.superseded(by: 0), bench.superseded(by: 5, 4),
                bench.superseded(by: 5, 4), .needed(.current), .needed(.current),
            ])
    }

    @Test(.verifies("SET-1", "VIEW-18"))
    func `a setting needs the winner of its key, also a deletion`() throws {
        var bench = Bench<SettingsView>()
        try bench.add(SettingPut(key: "k", value: "a"), at: 2)
        try bench.add(SettingPut(key: "k", value: "b"), at: 1)
        try bench.add(SettingPut(key: "l", value: 7), at: 1)
        #expect(bench.says == [.needed(.current), bench.superseded(by: 0), .needed(.current)])
        try bench.add(SettingDeleted(key: "k"), at: 3)
        #expect(
            bench.says == [
                bench.superseded(by: 3), bench.superseded(by: 3), .needed(.current),
                .needed(.current),
            ])
        #expect(bench.view[SettingKey<String>("k")] == nil)
        #expect(bench.view[SettingKey<Int>("l")] == 7)
    }

    @Test(.verifies("CMP-4"))
    func `a view keeps events that it cannot decode, and is unconcerned about other types`() throws
    {
        func check<View: CompactableView>(_ view: View.Type, _ types: Set<String>) {
            var history = EventHistory()
            for rule in [
                CitySaved.type, CityUnsaved.type, NoteAdded.type, NoteUpdated.type,
                NoteDeleted.type, PreferencesUpdated.type, CourseActivated.type,
                LessonCompleted.type, ReviewCompleted.type, "daybook.page.pinned", "com.example.x",
            ] {
                let event = history.addOwn(
                    EventDraft(type: rule, data: .json(Array(#"{"userId":7}"#.utf8))))
                let expected: Retention =
                    types.contains(rule) ? .needed(.notUnderstood) : .unconcerned
                #expect(View(folding: history.events).retention(of: event) == expected)
            }
        }
        check(CitiesView.self, [CitySaved.type, CityUnsaved.type])
        check(NotesView.self, [NoteAdded.type, NoteUpdated.type, NoteDeleted.type])
        check(PreferencesView.self, [PreferencesUpdated.type])
        check(
            ProgressView.self, [CourseActivated.type, LessonCompleted.type, ReviewCompleted.type])
    }

    @Test func `an event that was never folded is needed`() throws {
        var history = EventHistory()
        let events = try [
            EventDraft(CitySaved(userId: "u", cityId: "c")),
            EventDraft(NoteUpdated(noteId: "n", content: "a", updatedBy: "u")),
            EventDraft(LessonCompleted(userId: "u", courseId: "c", lessonId: "l", score: 1)),
        ].map { history.addOwn($0) }
        #expect(CitiesView().retention(of: events[0]) == .needed(.current))
        #expect(NotesView().retention(of: events[1]) == .needed(.current))
        #expect(ProgressView().retention(of: events[2]) == .needed(.current))
    }
}
