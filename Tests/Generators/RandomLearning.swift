// Events of few learners, courses, lessons and sessions, so that they meet. Feeds EventHistory; part
// of RandomEvents.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    /// One of few language combinations.
    package mutating func combination() -> LanguageCombination {
        LanguageCombination(
            learn: element(of: ["es", "caf\u{E9}", "cafe\u{301}"]),
            display: element(of: ["de", "es"]))
    }

    /// What a lesson or a session consists of.
    package mutating func learningMaterial() -> LearningMaterial {
        LearningMaterial(
            content: Array(element(of: ["{}", #"{"a":["\u2713",1e3]}"#]).utf8),
            files: array(0...2) { $0.int(in: 0...3) }.enumerated().map { index, byte in
                LearningFile(
                    url: "https://x.example/\(index)", file: FileID(of: [UInt8(byte)]),
                    size: bool(oneIn: 9) ? .max : byte)
            }, isExplicit: bool())
    }

    /// The data of any event of learning that stays on the device.
    package mutating func learningPayload() -> any EventPayload {
        let user = element(of: ["u", "caf\u{E9}", "cafe\u{301}"])
        let course = element(of: ["c", "d"])
        let lesson = element(of: ["l", "m"])
        let review = element(of: ["r", "s", "caf\u{E9}"])
        switch int(in: 0...9) {
        case 0: return UserStored(userId: user, info: bool() ? Array(#"{"a":1}"#.utf8) : nil)
        case 1: return CombinationSelected(userId: user, combination: combination())
        case 2:
            let courses = ["c", "d"].filter { _ in bool() }.map { id in
                ListedCourse(
                    id: id, title: bool() ? "Course \(id)" : nil,
                    lessons: ["l", "m", "n"].filter { _ in bool() }
                        .map { ListedLesson(id: $0, title: bool() ? "\u{2713}" : nil) })
            }
            return CoursesListed(combination: combination(), courses: courses)
        case 3, 4:
            return LessonStored(courseId: course, lessonId: lesson, material: learningMaterial())
        case 5: return LessonRemoved(courseId: course, lessonId: lesson)
        case 6, 7:
            return ReviewStored(
                userId: user, reviewId: review, combination: combination(),
                courseId: bool() ? course : nil, order: bool(oneIn: 9) ? .max : int(in: 0...4),
                material: learningMaterial())
        case 8: return ReviewRemoved(userId: user, reviewId: review)
        default:
            let items = ["a", "b"].filter { _ in bool() }
                .compactMap { try? VocabularyItem(json: Array(#"{"id":"\#($0)"}"#.utf8)) }
            return VocabularyCached(userId: user, combination: combination(), items: items)
        }
    }
}
