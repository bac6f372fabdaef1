// The rules of the shipped types, as importing and recording check them.

import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func normalised(_ type: String, _ data: String) throws(EventError) -> EventDraft {
    var draft = EventDraft(type: "daybook.\(type)", data: .json(Array(data.utf8)))
    try OfflineModel.catalogue.normalise(&draft)
    return draft
}

@Suite struct CatalogueTests {
    @Test(
        .verifies("EVT-2", "EVT-4"),
        arguments: [
            ("city.saved", #"{"userId":"u","cityId":"c"}"#, "c", "city:u:c"),
            ("city.unsaved", #"{"userId":"u","cityId":"c"}"#, "c", "city:u:c"),
            (
                "note.added", #"{"noteId":"n","cityId":"c","content":"","createdBy":"u"}"#, "n",
                "note:n"
            ),
            ("note.updated", #"{"noteId":"n","content":"x","updatedBy":"u"}"#, "n", "note:n"),
            ("note.deleted", #"{"noteId":"n","deletedBy":"u"}"#, "n", "note:n"),
            (
                "preferences.updated", #"{"userId":"u","changes":{"autoSync":true}}"#, "u",
                "preferences:u"
            ),
            ("course.activated", #"{"userId":"u","courseId":"c"}"#, "u", "course:u"),
            (
                "lesson.completed", #"{"userId":"u","courseId":"c","lessonId":"l"}"#, "l",
                "lesson:u:l"
            ),
            (
                "review.completed",
                #"{"userId":"u","courseId":"c","reviewId":"r","itemsSeen":3,"itemsCorrect":3}"#,
                "r",
                "review:u:r"
            ),
        ])
    func `each type takes its subject and lane from its data`(
        type: String, data: String, subject: String, lane: String
    ) throws {
        let draft = try normalised(type, data)
        #expect(draft.subject == subject)
        #expect(draft.lane == lane)
        #expect(OfflineModel.catalogue[draft.type]?.action != nil)
    }

    @Test(
        .verifies("EVT-1", "EVT-4"),
        arguments: [
            ("city.saved", #"{"userId":"u"}"#), ("city.saved", #"{"userId":"","cityId":"c"}"#),
            ("city.saved", #"{"userId":7,"cityId":"c"}"#), ("city.saved", "[]"),
            ("city.saved", #"{"userId":"u","cityId":"c","cityId":"d"}"#),
            ("city.saved", #"{"userId":"u","m\u006fod":1,"m\u006fod":2,"cityId":"c"}"#),
            ("city.saved", #"{"userId":"u","city\u0049d":7}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"\u0074heme":"dark"}}"#),
            ("note.added", #"{"noteId":"n","cityId":"c","createdBy":"u"}"#),
            ("note.updated", #"{"noteId":"n","content":null,"updatedBy":"u"}"#),
            ("preferences.updated", #"{"userId":"u","changes":{}}"#),
            ("preferences.updated", #"{"userId":"u"}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"autoSync":null}}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"autoSync":"yes"}}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"theme":"dark"}}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"pruneAfterDays":1.5}}"#),
            ("lesson.completed", #"{"userId":"u","courseId":"c","lessonId":"l","score":1.01}"#),
            ("lesson.completed", #"{"userId":"u","courseId":"c","lessonId":"l","score":-0.1}"#),
            (
                "lesson.completed",
                #"{"userId":"u","courseId":"c","lessonId":"l","durationSeconds":-1}"#
            ),
            ("review.completed", #"{"userId":"u","courseId":"c","reviewId":"r","itemsSeen":3}"#),
            (
                "review.completed",
                #"{"userId":"u","courseId":"c","reviewId":"r","itemsSeen":3,"itemsCorrect":4}"#
            ),
            (
                "review.completed",
                #"{"userId":"u","courseId":"c","reviewId":"r","itemsSeen":-3,"itemsCorrect":-4}"#
            ),
        ])
    func `data that break a rule are refused`(type: String, data: String) {
        #expect { _ = try normalised(type, data) } throws: {
            ($0 as? EventError)?.code == .invalidData
        }
    }

    @Test(.verifies("EVT-2")) func `a subject that is not the entity of the data is refused`() {
        var draft = EventDraft(
            type: "daybook.city.saved", subject: "elsewhere",
            data: .json(Array(#"{"userId":"u","cityId":"c"}"#.utf8)))
        #expect(throws: EventError.self) { try OfflineModel.catalogue.normalise(&draft) }
    }

    @Test(.verifies("EVT-1")) func `members that a newer version added are kept`() throws {
        let data = #"{"userId":"u","cityId":"c","mood":"happy"}"#
        #expect(try normalised("city.saved", data).json == Array(data.utf8))
    }

    @Test(.verifies("EVT-1")) func `a name with escapes is the name that it stands for`() throws {
        let data =
            #"{"user\u0049d":"u","changes":{"\u006daxStorageLimit":3,"auto\u0053ync":false}}"#
        let kept = try normalised("preferences.updated", data)
        #expect(kept.json == Array(data.utf8), "the text stays as it was written")
        let event = try PreferencesUpdated(json: Array(data.utf8))
        #expect(event.userId == "u")
        #expect(event.changes.maxStorageLimit == 3)
        #expect(event.changes.autoSync == false)
        // In released events the member whose name is written without escapes wins.
        for twins in [
            #""cityId":"c","city\u0049d":"d""#, #""city\u0049d":"d","cityId":"c""#,
            #""city\u0049d":"c","cit\u0079Id":"d""#,
        ] {
            let twice = #"{"userId":"u","# + twins + "}"
            #expect(try normalised("city.saved", twice).json == Array(twice.utf8))
            #expect(try CitySaved(json: Array(twice.utf8)).cityId == "c")
        }
        // An escaped quotation mark, a backslash, NUL and the empty name are valid names.
        let odd = #"{"userId":"u","cityId":"c","\"":1,"\\u0061":2,"a":3,"\u0000":4,"":5}"#
        #expect(try CitySaved(json: Array(odd.utf8)).cityId == "c")
    }
}
