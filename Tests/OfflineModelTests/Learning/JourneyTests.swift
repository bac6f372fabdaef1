// Real learners' events through the progress view, compared with an independent count. Runs only with a
// checkout beside the data. Spec/model/learning.md, LRN-41.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import TestSupport
import Testing

@testable import DaybookOffline

private let journey = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "../shared/data/journey.ndjson").standardizedFileURL

/// The content of one line, decoded independently of the view.
private struct Line: Decodable {
    struct Data: Decodable {
        var userId: String?
        var courseId: String?
        var lessonId: String?
        var reviewId: String?
        var itemsSeen: Int?
        var itemsCorrect: Int?
    }
    var type: String
    var time: String
    var data: Data
}

@Suite struct JourneyTests {
    @Test(
        .verifies("LRN-41"),
        .enabled(if: FileManager.default.fileExists(atPath: journey.path)))
    func `the progress of real learners equals a plain count`() throws {
        let lines = try Foundation.Data(contentsOf: journey).split(separator: UInt8(ascii: "\n"))
        try #require(lines.count >= 1_000)
        var history = EventHistory()
        var view = ProgressView()
        var lessons: [String: Set<String>] = [:]
        var reviews: [String: (time: String, key: String, seen: Int, correct: Int)] = [:]
        var active: [String: (time: String, course: String)] = [:]
        let decoder = JSONDecoder()
        for line in lines {
            let draft = try LineDecoder.decode(Array(line).span.bytes).draft
            view.fold(history.addOwn(draft))
            let plain = try decoder.decode(Line.self, from: line)
            guard let user = plain.data.userId, let course = plain.data.courseId else { continue }
            switch plain.type {
            case "daybook.course.activated":
                if active[user].map({ $0.time <= plain.time }) ?? true {
                    active[user] = (plain.time, course)
                }
            case "daybook.lesson.completed":
                lessons["\(user) \(course)", default: []].insert(
                    try #require(plain.data.lessonId))
            case "daybook.review.completed":
                let id = "\(user) \(try #require(plain.data.reviewId))"
                guard reviews[id].map({ $0.time <= plain.time }) ?? true else { continue }
                reviews[id] = (
                    plain.time, "\(user) \(course)", try #require(plain.data.itemsSeen),
                    try #require(plain.data.itemsCorrect)
                )
            default: continue
            }
        }
        var counts: [String: [Int]] = lessons.mapValues { [$0.count, 0, 0, 0] }
        for review in reviews.values {
            var count = counts[review.key] ?? [0, 0, 0, 0]
            count[1] += 1
            count[2] += review.seen
            count[3] += review.correct
            counts[review.key] = count
        }
        var seen = 0
        for user in view.userIDs {
            #expect(view.activeCourse(of: user) == active[user]?.course)
            for course in view.courses(of: user) {
                seen += 1
                #expect(
                    counts["\(user) \(course.courseId ?? "")"] == [
                        course.lessonsCompleted, course.reviewsCompleted, course.itemsSeen,
                        course.itemsCorrect,
                    ])
            }
        }
        #expect(seen == counts.count)
        #expect(seen > 0)
        #expect(view.ignored == 0)
    }
}
