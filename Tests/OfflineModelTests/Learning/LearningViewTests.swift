// LearningView: its queries after a history, and the events that it still needs. Spec/model/learning.md.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

let spanish = LanguageCombination(learn: "es", display: "de")
let french = LanguageCombination(learn: "fr", display: "de")

/// Events with times of their own, in the order in which they were added.
private struct Bench {
    var history = EventHistory()
    var view = LearningView()

    @discardableResult
    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws -> Event {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        view.fold(event)
        return event
    }

    @discardableResult
    mutating func lesson(
        _ id: String, _ byte: UInt8? = nil, explicit: Bool = false, at milliseconds: Int64
    ) throws -> Event {
        try add(
            LessonStored(
                courseId: "c", lessonId: id,
                material: material(byte, explicit: explicit)), at: milliseconds)
    }

    @discardableResult
    mutating func review(
        _ id: String, order: Int, _ combination: LanguageCombination = spanish,
        _ byte: UInt8? = nil, at milliseconds: Int64
    ) throws -> Event {
        try add(
            ReviewStored(
                userId: "u", reviewId: id, combination: combination, order: order,
                material: material(byte)), at: milliseconds)
    }

    private func material(_ byte: UInt8?, explicit: Bool = false) -> LearningMaterial {
        LearningMaterial(
            content: Array("{}".utf8),
            files: byte.map {
                [LearningFile(url: "https://x.example/1", file: FileID(of: [$0]), size: 7)]
            } ?? [], isExplicit: explicit)
    }

    var says: [Retention] { history.events.map(view.retention) }
    func superseded(by index: Int) -> Retention {
        .superseded(by: [history.events[index].lwwTimestamp])
    }
}

@Suite struct LearningViewTests {
    private static func graph(_ courses: [(String, [String])]) -> [ListedCourse] {
        courses.map { id, lessons in
            ListedCourse(id: id, lessons: lessons.map { ListedLesson(id: $0) })
        }
    }

    @Test(.verifies("LRN-3"))
    func `the next lesson is in the same course, and the last lesson of a course has none`() throws
    {
        var bench = Bench()
        try bench.add(
            CoursesListed(
                combination: spanish,
                courses: Self.graph([("c", ["a", "b", "z"]), ("d", ["a", "q"]), ("e", [])])),
            at: 1)
        func after(_ lesson: String, _ course: String) -> String? {
            bench.view.lesson(after: lesson, course: course, in: spanish)?.id
        }
        func before(_ lesson: String, _ course: String) -> String? {
            bench.view.lesson(before: lesson, course: course, in: spanish)?.id
        }
        #expect(after("a", "c") == "b")
        #expect(after("b", "c") == "z")
        #expect(after("a", "d") == "q")
        #expect(after("z", "c") == nil)
        #expect(after("q", "d") == nil)
        #expect(before("z", "c") == "b")
        #expect(before("a", "c") == nil)
        #expect(after("x", "c") == nil)
        #expect(after("a", "x") == nil)
        #expect(after("a", "e") == nil)
        #expect(bench.view.lesson(after: "a", course: "c", in: french) == nil)
        #expect(bench.view.courses(of: spanish)?.map(\.id) == ["c", "d", "e"])
        #expect(bench.view.courses(of: french) == nil)
    }

    @Test(.verifies("LRN-4"))
    func `the newest event of each register wins, whatever the order of arrival`() throws {
        var bench = Bench()
        try bench.lesson("l", 1, explicit: true, at: 5)
        try bench.lesson("l", 2, at: 3)
        try bench.add(CombinationSelected(userId: "u", combination: french), at: 9)
        try bench.add(CombinationSelected(userId: "u", combination: spanish), at: 8)
        let lesson = try #require(bench.view.lesson("l", course: "c"))
        #expect(lesson.material.isExplicit)
        #expect(lesson.material.size == 9)
        #expect(lesson.material.storedAt == Timestamp(milliseconds: 5))
        #expect(lesson.material.event == bench.history.events[0].id)
        #expect(bench.view.combination(of: "u") == french)
        try bench.add(LessonRemoved(courseId: "c", lessonId: "l"), at: 4)
        #expect(bench.view.lesson("l", course: "c") != nil)
        try bench.add(LessonRemoved(courseId: "c", lessonId: "l"), at: 6)
        #expect(bench.view.lesson("l", course: "c") == nil)
        #expect(bench.view.storedLessons.isEmpty)
    }

    @Test(.verifies("LRN-6"))
    func `review sessions are in their order, and of the requested languages`() throws {
        var bench = Bench()
        try bench.review("late", order: 4, at: 1)
        try bench.review("b", order: 0, at: 2)
        try bench.review("a", order: 0, at: 3)
        try bench.review("endless", order: .max, at: 4)
        try bench.review("else", order: 1, french, at: 5)
        try bench.review("gone", order: 2, at: 6)
        try bench.add(ReviewRemoved(userId: "u", reviewId: "gone"), at: 7)
        #expect(
            bench.view.reviews(of: "u", spanish).map(\.reviewId) == ["a", "b", "late", "endless"])
        #expect(
            bench.view.reviews(of: "u").map(\.reviewId) == ["a", "b", "else", "late", "endless"])
        #expect(bench.view.reviews(of: "v").isEmpty)
        #expect(bench.view.review("gone", of: "u") == nil)
    }

    @Test(.verifies("LRN-5", "FILE-6"))
    func `a file is referenced as long as a lesson or a session references it`() throws {
        var bench = Bench()
        let (one, two) = (FileID(of: [1]), FileID(of: [2]))
        try bench.lesson("l", 1, at: 1)
        try bench.review("r", order: 0, spanish, 1, at: 2)
        #expect(bench.view.refers(to: one))
        #expect(!bench.view.refers(to: two))
        try bench.lesson("l", 2, at: 3)
        #expect(bench.view.refers(to: one))
        #expect(bench.view.refers(to: two))
        try bench.add(ReviewRemoved(userId: "u", reviewId: "r"), at: 4)
        #expect(!bench.view.refers(to: one))
        let again = try LearningView(encodedState: try #require(try bench.view.encodedState()))
        #expect(!again.refers(to: one))
        #expect(again.refers(to: two))
    }

    @Test(.verifies("CMP-3", "LRN-9"))
    func `an event is needed while it is the winner of its register`() throws {
        var bench = Bench()
        func vocabulary(_ combination: LanguageCombination) -> VocabularyCached {
            VocabularyCached(userId: "u", combination: combination, items: [])
        }
        let pairs: [(any EventPayload, any EventPayload)] = [
            (UserStored(userId: "u"), UserStored(userId: "u", info: Array("{}".utf8))),
            (
                CombinationSelected(userId: "u", combination: spanish),
                CombinationSelected(userId: "u", combination: french)
            ),
            (
                CoursesListed(combination: spanish, courses: []),
                CoursesListed(combination: spanish, courses: Self.graph([("c", [])]))
            ),
            (vocabulary(spanish), vocabulary(spanish)),
        ]
        for (one, other) in pairs {
            bench.history = EventHistory()
            bench.view = LearningView()
            try bench.add(one, at: 1)
            #expect(bench.says == [.needed(.current)])
            try bench.add(other, at: 2)
            #expect(bench.says == [bench.superseded(by: 1), .needed(.current)])
        }
        bench.history = EventHistory()
        bench.view = LearningView()
        try bench.lesson("l", at: 1)
        try bench.review("r", order: 1, at: 2)
        try bench.add(LessonRemoved(courseId: "c", lessonId: "l"), at: 3)
        try bench.add(ReviewRemoved(userId: "u", reviewId: "r"), at: 4)
        #expect(
            bench.says == [
                bench.superseded(by: 2), bench.superseded(by: 3), .needed(.current),
                .needed(.current),
            ])
        // Events of other types are unconcerned.
        try bench.add(LessonCompleted(userId: "u", courseId: "c", lessonId: "l"), at: 5)
        try bench.add(CitySaved(userId: "u", cityId: "c"), at: 6)
        #expect(bench.says[4...] == [.unconcerned, .unconcerned])
        #expect(bench.view.ignored == 0)
    }

    @Test(.verifies("VIEW-24")) func `rows contain courses, then lessons, then users`() throws {
        var bench = Bench()
        try bench.add(
            CoursesListed(combination: spanish, courses: Self.graph([("c", ["l"])])), at: 1)
        let lesson = try bench.lesson("l", 1, at: 2)
        let review = try bench.review("r", order: 0, at: 3)
        let user = try bench.add(UserStored(userId: "u", info: Array(#"{"a":1}"#.utf8)), at: 4)
        let words = try bench.add(
            VocabularyCached(userId: "u", combination: spanish, items: []), at: 5)
        let file = #"{"url":"https://x.example/1","file":"\#(FileID(of: [1]))","size":7}"#
        let rows = bench.view.rows().map { row in
            String(
                decoding: row.filled { id in
                    bench.history.events.first { $0.id == id }?.content.json
                }.json, as: UTF8.self)
        }
        func time(_ event: Event) -> String { event.time.description }
        func id(_ event: Event) -> String { event.id.uuidString.lowercased() }
        #expect(
            rows == [
                #"{"kind":"courses","learnLanguage":"es","displayLanguage":"de","#
                    + #""courses":[{"id":"c","lessons":[{"id":"l"}]}]}"#,
                #"{"kind":"lesson","courseId":"c","lessonId":"l","size":9,"files":[\#(file)],"#
                    + #""isExplicit":false,"storedAt":"\#(time(lesson))","#
                    + #""event":"\#(id(lesson))"}"#,
                #"{"kind":"user","userId":"u","info":{"a":1},"learnLanguage":null,"#
                    + #""displayLanguage":null,"reviews":[{"reviewId":"r","learnLanguage":"es","#
                    + #""displayLanguage":"de","courseId":null,"order":0,"size":2,"files":[],"#
                    + #""isExplicit":false,"storedAt":"\#(time(review))","#
                    + #""event":"\#(id(review))"}],"vocabularies":[{"learnLanguage":"es","#
                    + #""displayLanguage":"de","items":0,"cachedAt":"\#(time(words))","#
                    + #""event":"\#(id(words))"}]}"#,
            ])
        #expect(user.type == UserStored.type)
    }
}
