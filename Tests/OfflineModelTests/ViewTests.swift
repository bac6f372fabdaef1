// Folding of the views, which does not depend on the order of arrival.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

/// Creates recorded events without a log.
private struct History {
    var events: [Event] = []

    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws {
        let sequence = UInt64(events.count + 1)
        var draft = try EventDraft(
            payload, id: UUID(integer: UInt128(sequence)),
            time: Timestamp(milliseconds: milliseconds))
        try OfflineModel.catalogue.normalise(&draft)
        let prefix = LinePrefix(own: draft.id.integer, source: 1, at: Position(sequence))
        events.append(
            Event(prefix, content: draft, catalogue: OfflineModel.catalogue, lineBytes: 0))
    }

    static func rows(_ events: [Event]) -> [[String]] {
        OfflineModel.views.map { view in
            var state: any ListableView = view.init()
            for event in events { state.fold(event) }
            return state.rows().map { String(decoding: $0.json, as: UTF8.self) }
        }
    }
}

@Suite struct ViewTests {
    @Test(.verifies("VIEW-1", "VIEW-5"))
    func `a city is saved by the users whose last event saved it`() throws {
        var history = History()
        try history.add(CitySaved(userId: "b", cityId: "lisbon"), at: 1)
        try history.add(CitySaved(userId: "a", cityId: "lisbon"), at: 2)
        try history.add(CityUnsaved(userId: "b", cityId: "lisbon"), at: 3)
        try history.add(CityUnsaved(userId: "a", cityId: "porto"), at: 4)
        #expect(History.rows(history.events)[0] == [#"{"cityId":"lisbon","savedBy":["a"]}"#])
    }

    @Test(.verifies("VIEW-6"))
    func `a note has its newest text, and a deleted one stays deleted`() throws {
        var history = History()
        try history.add(
            NoteAdded(noteId: "n", cityId: "c", content: "one", createdBy: "u"), at: 1_000)
        try history.add(NoteUpdated(noteId: "n", content: "three", updatedBy: "u"), at: 3_000)
        try history.add(NoteUpdated(noteId: "n", content: "two", updatedBy: "u"), at: 2_000)
        #expect(
            History.rows(history.events)[1] == [
                #"{"noteId":"n","cityId":"c","content":"three","createdBy":"u","#
                    + #""createdAt":"1970-01-01T00:00:01.000Z","updatedAt":"1970-01-01T00:00:03.000Z"}"#
            ])
        try history.add(NoteDeleted(noteId: "n", deletedBy: "u"), at: 500)
        try history.add(
            NoteAdded(noteId: "n", cityId: "c", content: "again", createdBy: "u"), at: 9_000)
        #expect(History.rows(history.events)[1].isEmpty)
    }

    @Test(.verifies("VIEW-6"))
    func `a note that two events add to two cities is in the city of the later event`() throws {
        var history = History()
        for (city, time) in [("old", 1_000), ("new", 2_000)] as [(String, Int64)] {
            try history.add(
                NoteAdded(noteId: "n", cityId: city, content: "x", createdBy: "u"), at: time)
        }
        for events in [history.events, history.events.reversed()] {
            var view = NotesView()
            for event in events { view.fold(event) }
            #expect(view.notes(in: "old").isEmpty)
            #expect(view.notes(in: "new").map(\.id) == ["n"])
        }
    }

    @Test(.verifies("VIEW-6")) func `a change whose note has not arrived waits for it`() throws {
        var history = History()
        try history.add(NoteUpdated(noteId: "n", content: "later", updatedBy: "u"), at: 2)
        var view = NotesView()
        view.fold(history.events[0])
        #expect(view.counts == (live: 0, waiting: 1))
        #expect(view["n"] == nil)
        try history.add(
            NoteAdded(noteId: "n", cityId: "c", content: "first", createdBy: "u"), at: 1)
        view.fold(history.events[1])
        #expect(view["n"]?.content == "later")
        #expect(view.notes(in: "c").map(\.id) == ["n"])
    }

    @Test(.verifies("EVT-5", "VIEW-7")) func `every setting is a separate register`() throws {
        var history = History()
        var changes = PreferencesUpdated.Changes()
        changes.autoSync = false
        changes.pruneAfterDays = 30
        try history.add(PreferencesUpdated(userId: "u", changes: changes), at: 2)
        changes = PreferencesUpdated.Changes()
        changes.autoSync = true
        try history.add(PreferencesUpdated(userId: "u", changes: changes), at: 1)
        var view = PreferencesView()
        for event in history.events { view.fold(event) }
        #expect(view["u"].autoSync == false)
        #expect(view["u"].pruneAfterDays == 30)
        #expect(view["u"].maxStorageLimit == 100 * 1_048_576)
        #expect(view["nobody"] == OfflinePreferences(userId: "nobody"))
    }

    @Test(.verifies("VIEW-8"))
    func `completions count once, with the best score and the first time`() throws {
        var history = History()
        for (score, time) in [(0.5, 5), (0.9, 9), (0.7, 2)] {
            try history.add(
                LessonCompleted(userId: "u", courseId: "c", lessonId: "l", score: score),
                at: Int64(time))
        }
        for (seen, time) in [(10, 1), (12, 2)] {
            try history.add(
                ReviewCompleted(
                    userId: "u", courseId: "c", reviewId: "r", itemsSeen: seen, itemsCorrect: 3),
                at: Int64(time))
        }
        try history.add(CourseActivated(userId: "u", courseId: "c"), at: 1)
        var view = ProgressView()
        for event in history.events { view.fold(event) }
        let lesson = try #require(view.lesson("l", course: "c", of: "u"))
        #expect(lesson.bestScore == 0.9)
        #expect(lesson.completedAt == Timestamp(milliseconds: 2))
        #expect(
            History.rows(history.events)[3] == [
                #"{"userId":"u","activeCourseId":"c","courses":[{"courseId":"c","#
                    + #""lessonsCompleted":1,"reviewsCompleted":1,"itemsSeen":12,"itemsCorrect":3}]}"#
            ])
    }

    @Test(.verifies("VIEW-8")) func `counts near the largest number do not trap`() throws {
        var history = History()
        for review in ["a", "b"] {
            try history.add(
                ReviewCompleted(
                    userId: "u", courseId: "c", reviewId: review, itemsSeen: .max,
                    itemsCorrect: .max), at: 1)
        }
        var view = ProgressView()
        for event in history.events { view.fold(event) }
        #expect(view.courses(of: "u")[0].itemsSeen == .max)
    }

    @Test(.verifies("VIEW-4"))
    func `ids that look alike but differ in bytes are different entities`() throws {
        var history = History()
        try history.add(CitySaved(userId: "u", cityId: "caf\u{E9}"), at: 1)
        try history.add(CitySaved(userId: "u", cityId: "cafe\u{301}"), at: 1)
        var view = CitiesView()
        for event in history.events { view.fold(event) }
        #expect(view.cityIDs.count == 2)
    }

    @Test(.verifies("VIEW-3"))
    func `a view skips unknown types, and counts invalid data without changing its state`()
        throws
    {
        var history = History()
        try history.add(CitySaved(userId: "u", cityId: "c"), at: 1)
        try history.add(
            NoteAdded(noteId: "n", cityId: "c", content: "x", createdBy: "u"), at: 1)
        try history.add(CourseActivated(userId: "u", courseId: "c"), at: 1)
        var changes = PreferencesUpdated.Changes()
        changes.autoSync = false
        try history.add(PreferencesUpdated(userId: "u", changes: changes), at: 1)
        let before = History.rows(history.events)

        var cities = CitiesView()
        var notes = NotesView()
        var preferences = PreferencesView()
        var progress = ProgressView()
        let broken = [
            ("city.saved", #"{"userId":"u"}"#), ("city.unsaved", #"{"userId":"u","cityId":""}"#),
            ("note.added", #"{"noteId":"n","cityId":"c","createdBy":"u"}"#),
            ("note.updated", #"{"noteId":"n","content":null,"updatedBy":"u"}"#),
            ("note.deleted", #"{"noteId":"n"}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"autoSync":"yes"}}"#),
            ("course.activated", "[]"),
            ("lesson.completed", #"{"userId":"u","courseId":"c","lessonId":"l","score":2}"#),
            (
                "review.completed",
                #"{"userId":"u","courseId":"c","reviewId":"r","itemsSeen":3,"itemsCorrect":4}"#
            ), ("unheard.of", "{}"),
        ]
        for (type, data) in broken {
            let sequence = UInt64(history.events.count + 1)
            let draft = EventDraft(
                id: UUID(integer: UInt128(sequence)), type: "daybook.\(type)", subject: "u",
                lane: "l", time: Timestamp(milliseconds: 9), data: .json(Array(data.utf8)))
            let prefix = LinePrefix(own: draft.id.integer, source: 1, at: Position(sequence))
            history.events.append(
                Event(prefix, content: draft, catalogue: OfflineModel.catalogue, lineBytes: 0))
        }
        #expect(History.rows(history.events) == before)
        for event in history.events {
            cities.fold(event)
            notes.fold(event)
            preferences.fold(event)
            progress.fold(event)
        }
        #expect(cities.ignored == 2)
        #expect(notes.ignored == 3)
        #expect(preferences.ignored == 1)
        #expect(progress.ignored == 3)
    }

    @Test(.verifies("VIEW-1", "VIEW-2", "VIEW-10", "CMP-1", "CMP-2"))
    func `the views obey the laws of views`() throws {
        let views: [any Projection.Type] = [
            CitiesView.self, NotesView.self, PreferencesView.self, ProgressView.self,
        ]
        for view in views {
            try Property.checkProjection(view, extending: OfflineModel.catalogue, runs: 200) {
                $0.payload()
            }
        }
    }
}

extension Choices {
    fileprivate mutating func payload() -> any EventPayload {
        let user = element(of: ["u", "v"])
        let note = element(of: ["n", "m"])
        let city = element(of: ["c", "d"])
        switch int(in: 0...8) {
        case 0: return CitySaved(userId: user, cityId: city)
        case 1: return CityUnsaved(userId: user, cityId: city)
        case 2:
            return NoteAdded(
                noteId: note, cityId: city, content: "\(int(in: 0...99))", createdBy: user)
        case 3: return NoteUpdated(noteId: note, content: "\(int(in: 0...99))", updatedBy: user)
        case 4: return NoteDeleted(noteId: note, deletedBy: user)
        case 5:
            var changes = PreferencesUpdated.Changes()
            changes.pruneAfterDays = int(in: 1...90)
            if bool() { changes.autoSync = bool() }
            return PreferencesUpdated(userId: user, changes: changes)
        case 6: return CourseActivated(userId: user, courseId: city)
        case 7:
            return LessonCompleted(
                userId: user, courseId: city, lessonId: note,
                score: bool() ? Double(int(in: 0...4)) / 4 : nil)
        default:
            return ReviewCompleted(
                userId: user, courseId: city, reviewId: note, itemsSeen: int(in: 5...9),
                itemsCorrect: int(in: 0...5))
        }
    }
}
