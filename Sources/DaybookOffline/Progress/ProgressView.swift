// The progress of each learner. Completions are sets: a lesson completed twice counts once, with the best
// score and the first completion. Spec/model/views.md.

import Daybook
import HashTreeCollections

/// A learner's progress in one course, or in the review sessions that belong to none.
public struct CourseProgress: Hashable, Sendable {
    /// The course; nil for the review sessions without one.
    public let courseId: String?
    /// The number of different lessons completed.
    public internal(set) var lessonsCompleted = 0
    /// The number of different review sessions completed.
    public internal(set) var reviewsCompleted = 0
    /// The number of items asked in them.
    public internal(set) var itemsSeen = 0
    /// The number of items answered correctly.
    public internal(set) var itemsCorrect = 0
}

/// A completed lesson with its ids.
public struct CompletedLesson: Hashable, Sendable {
    /// The course.
    public let courseId: String
    /// The lesson.
    public let lessonId: String
    /// The score and the time.
    public let completion: LessonCompletion
}

/// The completions of a lesson.
public struct LessonCompletion: StateObject, Hashable {
    /// The best score of all completions with a score.
    public var bestScore: Double? { best?.value }
    /// The time of the first completion.
    public var completedAt: Timestamp { first.time }
    /// The least and the greatest LWW timestamp of the completions.
    var first = LWWTimestamp.greatest
    var last = LWWTimestamp.least
    /// The completion with the best score; of several, the one with the least LWW timestamp.
    var best: Register<Double>?

    /// Creates the value before the first completion.
    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&first, &last, &best)
    }

    public var stateFault: String? {
        if let best, !(0...1).contains(best.value) { return "a score is not from 0 to 1" }
        return first <= last ? nil : "a lesson's first completion is after its last"
    }

    fileprivate mutating func record(_ score: Double?, _ change: inout ViewChange) {
        change.setFirst(&first)
        change.setLast(&last)
        guard let score else { return }
        guard change.isFolding else { return change.list(best?.lwwTimestamp) }
        let lwwTimestamp = change.lwwTimestamp
        if let best {
            guard score > best.value || (score == best.value && lwwTimestamp < best.lwwTimestamp)
            else { return }
        }
        best = Register(score, lwwTimestamp)
    }
}

/// The registers of a learner.
private struct Learner: StateObject {
    struct ReviewResult: StateObject, Hashable {
        var courseId: String?
        var itemsSeen = 0
        var itemsCorrect = 0

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&courseId, &itemsSeen, &itemsCorrect)
        }

        var stateFault: String? {
            itemsCorrect <= itemsSeen ? nil : "a review session has more correct items than items"
        }
    }

    /// A completed review session: the result of its last completion, and the LWW timestamp of its first.
    struct ReviewCompletion: StateObject {
        var last: Register<ReviewResult>?
        var first: LWWTimestamp?

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&last, &first)
        }

        var stateFault: String? {
            guard let first, let last, first <= last.lwwTimestamp else {
                return "a review session's first completion is after its last"
            }
            return nil
        }
    }

    var active: Register<String>?
    var lessons: TreeDictionary<EntityID, TreeDictionary<EntityID, LessonCompletion>> = [:]
    var reviews: TreeDictionary<EntityID, ReviewCompletion> = [:]

    mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&active, &lessons, &reviews)
    }
}

/// The progress of all learners.
public struct ProgressView: DeclaredRows {
    public static let name = "progress"
    public static let version = 5
    public static let events: ViewEvents<ProgressView> = [
        .on(CourseActivated.self) { course, view, change in
            view.learners.update(course.userId, &change) {
                $1.set(&$0.active, to: course.courseId)
            }
        },
        .on(LessonCompleted.self) { lesson, view, change in
            view.learners.update(lesson.userId, &change) { learner, change in
                learner.lessons[EntityID(lesson.courseId), default: [:]][
                    EntityID(lesson.lessonId), default: LessonCompletion()
                ].record(lesson.score, &change)
            }
        },
        .on(ReviewCompleted.self) { review, view, change in
            let result = Learner.ReviewResult(
                courseId: review.courseId, itemsSeen: review.itemsSeen,
                itemsCorrect: review.itemsCorrect)
            view.learners.update(review.userId, &change) { learner, change in
                let id = EntityID(review.reviewId)
                change.set(&learner.reviews[id, default: .init()].last, to: result)
                change.setFirst(&learner.reviews[id, default: .init()].first)
            }
        },
    ]
    public static let fields: [ViewField<Row>] = [
        .init("userId") { $0.userId }, .init("activeCourseId") { $0.activeCourseId },
        .init("courses", raw: { JSONObjectWriter.array($0.courses.map(\.json)) }),
    ]

    /// The row of a learner.
    public struct Row: Sendable {
        let userId: String
        let activeCourseId: String?
        let courses: [CourseProgress]
    }

    private var learners = EntityTable<Learner>()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&learners)
    }

    public var rowIDs: [EntityID] { learners.ids() }

    public func rowValue(_ id: EntityID) -> Row? {
        learners[id].map { learner in
            Row(
                userId: id.string, activeCourseId: learner.active?.value,
                courses: courses(of: id.string))
        }
    }

    /// Returns the earliest possible time of a completion at or after `start`. The view does not store the
    /// completions between the first and the last, so if only the last is at or after `start`, the result is
    /// `start` itself (LRN-42).
    private static func earliestTime(
        from start: Timestamp, first: LWWTimestamp?, last: LWWTimestamp?
    ) -> Timestamp? {
        guard let first, let last else { return nil }
        if first.time >= start { return first.time }
        return last.time >= start ? start : nil
    }

    /// Returns the learner's active course. O(1).
    public func activeCourse(of userId: String) -> String? {
        learners[userId]?.active?.value
    }

    /// The LWW timestamp of the learner's active course. O(1).
    func activeTimestamp(of userId: String) -> LWWTimestamp? {
        learners[userId]?.active?.lwwTimestamp
    }

    /// The LWW timestamp of a review session's last completion. O(1).
    func lwwTimestamp(ofReview reviewId: String, by userId: String) -> LWWTimestamp? {
        learners[userId]?.reviews[EntityID(reviewId)]?.last?.lwwTimestamp
    }

    /// Returns the completion of a lesson; nil if the learner has not completed it. O(1).
    public func lesson(
        _ lessonId: String, course courseId: String, of userId: String
    ) -> LessonCompletion? {
        learners[userId]?.lessons[EntityID(courseId)]?[EntityID(lessonId)]
    }

    /// Returns the learner's completed lessons, sorted by course and lesson. O(n log n) for the completions of
    /// the learner.
    ///
    /// - Parameters:
    ///   - userId: the learner.
    ///   - courseId: the course; nil for all.
    public func completedLessons(
        of userId: String, course courseId: String? = nil
    ) -> [CompletedLesson] {
        let lessons = learners[userId]?.lessons ?? [:]
        let courses = courseId.map { [EntityID($0)] } ?? lessons.keys.sorted()
        return courses.flatMap { course in
            (lessons[course] ?? [:]).sorted { $0.key < $1.key }.map { lessonId, completion in
                CompletedLesson(
                    courseId: course.string, lessonId: lessonId.string, completion: completion)
            }
        }
    }

    /// Returns the learner's progress in every course with a completion, sorted by course, before them that in
    /// the review sessions without a course, if there is any. O(completions of the learner).
    public func courses(of userId: String) -> [CourseProgress] {
        guard let learner = learners[userId] else { return [] }
        // No course has an empty id: it stands for the review sessions without a course.
        var courses: [EntityID: CourseProgress] = [:]
        func update(_ courseId: EntityID, _ body: (inout CourseProgress) -> Void) {
            let name = courseId.string.isEmpty ? nil : courseId.string
            body(&courses[courseId, default: CourseProgress(courseId: name)])
        }
        for (courseId, lessons) in learner.lessons {
            update(courseId) { $0.lessonsCompleted = lessons.count }
        }
        for review in learner.reviews.values.compactMap(\.last?.value) {
            update(EntityID(review.courseId ?? "")) {
                $0.reviewsCompleted += 1
                $0.itemsSeen = $0.itemsSeen.addingSaturating(review.itemsSeen)
                $0.itemsCorrect = $0.itemsCorrect.addingSaturating(review.itemsCorrect)
            }
        }
        return courses.sorted { $0.key < $1.key }.map(\.value)
    }

    /// True if the learner has completed a review session. O(1).
    public func hasCompleted(review reviewId: String, by userId: String) -> Bool {
        learners[userId]?.reviews[EntityID(reviewId)] != nil
    }

    /// The time of the last completion of a review session; nil if there was none. O(1).
    func completion(ofReview reviewId: String, by userId: String) -> Timestamp? {
        lwwTimestamp(ofReview: reviewId, by: userId)?.time
    }

    /// The LWW timestamps of the last completion of each review session. O(review sessions of the learner).
    func reviewTimestamps(by userId: String) -> Set<LWWTimestamp> {
        Set(learners[userId]?.reviews.values.compactMap(\.last?.lwwTimestamp) ?? [])
    }

    /// The time of the first completion of a lesson or a review session at or after `start`; of all, if
    /// `start` is nil. A completion before `start` and another one after it count as one at `start`.
    /// O(completions of the learner).
    func firstCompletion(by userId: String, from start: Timestamp?) -> Timestamp? {
        guard let learner = learners[userId] else { return nil }
        let start = start ?? Timestamp(milliseconds: Timestamp.range.lowerBound)
        let lessons = learner.lessons.values.lazy.flatMap { $0.values }
            .compactMap { Self.earliestTime(from: start, first: $0.first, last: $0.last) }
        let reviews = learner.reviews.values.lazy
            .compactMap {
                Self.earliestTime(from: start, first: $0.first, last: $0.last?.lwwTimestamp)
            }
        return [lessons.min(), reviews.min()].compactMap(\.self).min()
    }

    /// The ids of all learners, sorted. O(learners).
    public var userIDs: [String] { rowIDs.sorted().map(\.string) }
}

extension CourseProgress {
    fileprivate var json: [UInt8] {
        var writer = JSONObjectWriter()
        if let courseId { writer.appendMember("courseId", courseId) }
        writer.appendMember("lessonsCompleted", lessonsCompleted)
        writer.appendMember("reviewsCompleted", reviewsCompleted)
        writer.appendMember("itemsSeen", itemsSeen)
        writer.appendMember("itemsCorrect", itemsCorrect)
        return writer.finished()
    }
}

extension Int {
    /// Adds without a trap, because counts from a log can have any value.
    fileprivate func addingSaturating(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
