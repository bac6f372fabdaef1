// The data of learning's events: round trips and refused data.
// Spec/model/events.md, EVT-7.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

@Suite(.verifies("EVT-7", "LRN-1")) struct LearningEventTests {
    @Test func `written data read back as the same bytes`() throws {
        func check<Payload: EventPayload>(_ payload: Payload) throws {
            let json = try payload.json()
            let again = try Payload(json: json)
            #expect(try again.json() == json)
            #expect(again.subjectText == payload.subjectText)
            #expect(again.laneText == payload.laneText)
        }
        try Property.check("read(write(p)) = p", runs: 300) { try check($0.learningPayload()) }
    }

    @Test func `members that no type names are kept with the content and ignored elsewhere`()
        throws
    {
        let content = #"{"steps":[{"a":1.50}],"x":null}"#
        let lesson = try LessonStored(
            json: Array(
                #"{"courseId":"c","y":1,"lessonId":"l","content":\#(content),"isExplicit":true}"#
                    .utf8))
        #expect(lesson.material.content == Array(content.utf8))
        #expect(lesson.material.files.isEmpty)
    }

    static let refused: [(String, String)] = [
        (UserStored.type, "{}"), (UserStored.type, #"{"userId":""}"#),
        (UserStored.type, #"{"userId":"u","info":[]}"#),
        (UserStored.type, #"{"userId":"u","info":null}"#),
        (CombinationSelected.type, #"{"userId":"u","learnLanguage":"es"}"#),
        (CombinationSelected.type, #"{"userId":"u","learnLanguage":"es","displayLanguage":""}"#),
        (CoursesListed.type, #"{"learnLanguage":"es","displayLanguage":"de"}"#),
        (
            CoursesListed.type,
            #"{"learnLanguage":"es","displayLanguage":"de","courses":[{"id":"c"}]}"#
        ),
        (
            CoursesListed.type,
            #"{"learnLanguage":"es","displayLanguage":"de","courses":"#
                + #"[{"id":"c","lessons":[]},{"id":"c","lessons":[]}]}"#
        ),
        (
            CoursesListed.type,
            #"{"learnLanguage":"es","displayLanguage":"de","courses":"#
                + #"[{"id":"c","lessons":[{"id":"l"},{"id":"l"}]}]}"#
        ),
        (LessonStored.type, #"{"courseId":"c","lessonId":"l","isExplicit":true}"#),
        (LessonStored.type, #"{"courseId":"c","lessonId":"l","content":{}}"#),
        (LessonStored.type, #"{"courseId":"c","lessonId":"l","content":"x","isExplicit":true}"#),
        (
            LessonStored.type,
            #"{"courseId":"c","lessonId":"l","content":{},"isExplicit":true,"files":"#
                + #"[{"url":"a","file":"b","size":1}]}"#
        ),
        (
            LessonStored.type,
            #"{"courseId":"c","lessonId":"l","content":{},"isExplicit":true,"files":"#
                + #"[{"url":"a","file":"\#(file)","size":1},{"url":"a","file":"\#(file)","size":1}]}"#
        ),
        (
            LessonStored.type,
            #"{"courseId":"c","lessonId":"l","content":{},"isExplicit":true,"files":"#
                + #"[{"url":"a","file":"\#(file)","size":-1}]}"#
        ),
        (LessonRemoved.type, #"{"courseId":"c"}"#),
        (ReviewStored.type, review(#""order":-1"#)), (ReviewStored.type, review(#""order":1.5"#)),
        (ReviewStored.type, review(#""order":1,"courseId":null"#)),
        (ReviewRemoved.type, #"{"reviewId":"r"}"#),
        (
            VocabularyCached.type,
            #"{"userId":"u","learnLanguage":"es","displayLanguage":"de","items":[{}]}"#
        ),
        (
            VocabularyCached.type,
            #"{"userId":"u","learnLanguage":"es","displayLanguage":"de","items":"#
                + #"[{"id":"a"},{"id":"a"}]}"#
        ),
    ]
    private static let file = String(repeating: "0", count: 64)

    private static func review(_ members: String) -> String {
        #"{"userId":"u","reviewId":"r","learnLanguage":"es","displayLanguage":"de","#
            + #""content":{},"isExplicit":false,\#(members)}"#
    }

    @Test(arguments: refused)
    func `data that break the rules of their type are refused, and a view counts them`(
        type: String, data: String
    ) throws {
        var draft = EventDraft(type: type, data: .json(Array(data.utf8)))
        #expect(throws: EventError.self) { try OfflineModel.catalogue.normalise(&draft) }
        var history = EventHistory()
        let event = history.addOwn(EventDraft(type: type, data: .json(Array(data.utf8))))
        var view = LearningView()
        view.fold(event)
        #expect(view.ignored == 1)
        #expect(view.rows().isEmpty)
        #expect(view.retention(of: event) == .needed(.notUnderstood))
    }

    @Test func `a vocabulary has at most 200 items`() throws {
        func data(_ count: Int) -> [UInt8] {
            let items = (0..<count).map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
            return Array(
                (#"{"userId":"u","learnLanguage":"es","displayLanguage":"de","items":["#
                    + items + "]}").utf8)
        }
        #expect(try VocabularyCached(json: data(200)).items.count == 200)
        #expect(throws: EventError.self) { try VocabularyCached(json: data(201)) }
    }
}
