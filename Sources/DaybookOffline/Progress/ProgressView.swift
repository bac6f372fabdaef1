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
public struct LessonCompletion: Hashable, Sendable {
    /// The best score of all completions with a score.
    public var bestScore: Double? { best?.score }
    /// The time of the first completion.
    public var completedAt: Timestamp { first.time }
    /// The least and the greatest LWW timestamp of the completions.
    var first: LWWTimestamp
    var last: LWWTimestamp
    /// The completion with the best score; of several, the one with the least LWW timestamp.
    var best: Best?

    struct Best: Hashable, Sendable {
        var score: Double
        var lwwTimestamp: LWWTimestamp
    }
}

/// The progress of all learners.
public struct ProgressView: ListableView {
    public static let name = "progress"
    public static let version = 4
    public static let eventTypes: Set<String>? = [
        CourseActivated.type, LessonCompleted.type, ReviewCompleted.type,
    ]

    fileprivate struct ReviewResult: Hashable, Sendable {
        var courseId: String?
        var itemsSeen: Int
        var itemsCorrect: Int
    }

    /// A completed review session: the result of its last completion, and the LWW timestamp of its first.
    fileprivate struct ReviewCompletion: Hashable, Sendable {
        var last: Register<ReviewResult>
        var first: LWWTimestamp

        /// Records a completion.
        mutating func record(_ result: ReviewResult, at lwwTimestamp: LWWTimestamp) {
            last.set(result, lwwTimestamp)
            if lwwTimestamp < first { first = lwwTimestamp }
        }
    }

    /// Returns the earliest possible time of a completion at or after `start`. The view does not store the
    /// completions between the first and the last, so if only the last is at or after `start`, the result is
    /// `start` itself (LRN-42).
    private static func earliestTime(
        from start: Timestamp, first: LWWTimestamp, last: LWWTimestamp
    ) -> Timestamp? {
        if first.time >= start { return first.time }
        return last.time >= start ? start : nil
    }

    fileprivate struct Learner: Sendable {
        var active: Register<String>?
        var lessons: TreeDictionary<EntityID, TreeDictionary<EntityID, LessonCompletion>> = [:]
        var reviews: TreeDictionary<EntityID, ReviewCompletion> = [:]
    }

    private var learners: TreeDictionary<EntityID, Learner> = [:]
    /// The number of events with invalid data.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case CourseActivated.type:
            guard let course = try? event.payload(as: CourseActivated.self) else {
                return ignored += 1
            }
            learners[EntityID(course.userId), default: Learner()].active
                .set(course.courseId, event.lwwTimestamp)
        case LessonCompleted.type:
            guard let lesson = try? event.payload(as: LessonCompleted.self) else {
                return ignored += 1
            }
            let lwwTimestamp = event.lwwTimestamp
            learners[EntityID(lesson.userId), default: Learner()]
                .lessons[EntityID(lesson.courseId), default: [:]][
                    EntityID(lesson.lessonId),
                    default: LessonCompletion(first: lwwTimestamp, last: lwwTimestamp)
                ].record(lesson.score, at: lwwTimestamp)
        case ReviewCompleted.type:
            guard let review = try? event.payload(as: ReviewCompleted.self) else {
                return ignored += 1
            }
            let result = ReviewResult(
                courseId: review.courseId, itemsSeen: review.itemsSeen,
                itemsCorrect: review.itemsCorrect)
            let lwwTimestamp = event.lwwTimestamp
            learners[EntityID(review.userId), default: Learner()]
                .reviews[
                    EntityID(review.reviewId),
                    default: ReviewCompletion(
                        last: Register(result, lwwTimestamp), first: lwwTimestamp)
                ].record(result, at: lwwTimestamp)
        default: break
        }
    }

    /// Returns the learner's active course. O(1).
    public func activeCourse(of userId: String) -> String? {
        learners[EntityID(userId)]?.active?.value
    }

    /// The LWW timestamp of the learner's active course. O(1).
    func activeTimestamp(of userId: String) -> LWWTimestamp? {
        learners[EntityID(userId)]?.active?.lwwTimestamp
    }

    /// The LWW timestamp of a review session's last completion. O(1).
    func lwwTimestamp(ofReview reviewId: String, by userId: String) -> LWWTimestamp? {
        learners[EntityID(userId)]?.reviews[EntityID(reviewId)]?.last.lwwTimestamp
    }

    /// Returns the completion of a lesson; nil if the learner has not completed it. O(1).
    public func lesson(
        _ lessonId: String, course courseId: String, of userId: String
    ) -> LessonCompletion? {
        learners[EntityID(userId)]?.lessons[EntityID(courseId)]?[EntityID(lessonId)]
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
        let lessons = learners[EntityID(userId)]?.lessons ?? [:]
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
        guard let learner = learners[EntityID(userId)] else { return [] }
        // No course has an empty id: it stands for the review sessions without a course.
        var courses: [EntityID: CourseProgress] = [:]
        func update(_ courseId: EntityID, _ body: (inout CourseProgress) -> Void) {
            let name = courseId.string.isEmpty ? nil : courseId.string
            body(&courses[courseId, default: CourseProgress(courseId: name)])
        }
        for (courseId, lessons) in learner.lessons {
            update(courseId) { $0.lessonsCompleted = lessons.count }
        }
        for review in learner.reviews.values.map(\.last.value) {
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
        learners[EntityID(userId)]?.reviews[EntityID(reviewId)] != nil
    }

    /// The time of the last completion of a review session; nil if there was none. O(1).
    func completion(ofReview reviewId: String, by userId: String) -> Timestamp? {
        lwwTimestamp(ofReview: reviewId, by: userId)?.time
    }

    /// The LWW timestamps of the last completion of each review session. O(review sessions of the learner).
    func reviewTimestamps(by userId: String) -> Set<LWWTimestamp> {
        Set(learners[EntityID(userId)]?.reviews.values.map(\.last.lwwTimestamp) ?? [])
    }

    /// The time of the first completion of a lesson or a review session at or after `start`; of all, if
    /// `start` is nil. A completion before `start` and another one after it count as one at `start`.
    /// O(completions of the learner).
    func firstCompletion(by userId: String, from start: Timestamp?) -> Timestamp? {
        guard let learner = learners[EntityID(userId)] else { return nil }
        let start = start ?? Timestamp(milliseconds: Timestamp.range.lowerBound)
        let lessons = learner.lessons.values.lazy.flatMap { $0.values }
            .compactMap { Self.earliestTime(from: start, first: $0.first, last: $0.last) }
        let reviews = learner.reviews.values.lazy
            .compactMap {
                Self.earliestTime(from: start, first: $0.first, last: $0.last.lwwTimestamp)
            }
        return [lessons.min(), reviews.min()].compactMap(\.self).min()
    }

    /// The ids of all learners, sorted. O(learners).
    public var userIDs: [String] { learners.keys.sorted().map(\.string) }
}

extension ProgressView: KeyedView {
    public static let columns = ["userId", "activeCourseId", "courses"]
    public static let keyNames = ["userId"]

    public func rows() -> ViewRows {
        ViewRows(ids: learners.keys) { row(of: $0.string) }
    }

    public func rowKeys(changedBy event: Event) -> [[String]]? {
        let id: String? =
            switch event.type {
            case CourseActivated.type: try? event.payload(as: CourseActivated.self).userId
            case LessonCompleted.type: try? event.payload(as: LessonCompleted.self).userId
            case ReviewCompleted.type: try? event.payload(as: ReviewCompleted.self).userId
            default: nil
            }
        return id.map { [[$0]] } ?? []
    }

    public func row(key: [String]) -> ViewRow? {
        learners[EntityID(key[0])].map { _ in row(of: key[0]) }
    }

    private func row(of userId: String) -> ViewRow {
        var row = ViewRow()
        row.appendField("userId", userId)
        row.appendField("activeCourseId", activeCourse(of: userId))
        let courses = courses(of: userId).map { course in
            var writer = JSONObjectWriter()
            if let courseId = course.courseId { writer.appendMember("courseId", courseId) }
            writer.appendMember("lessonsCompleted", course.lessonsCompleted)
            writer.appendMember("reviewsCompleted", course.reviewsCompleted)
            writer.appendMember("itemsSeen", course.itemsSeen)
            writer.appendMember("itemsCorrect", course.itemsCorrect)
            return writer.finished()
        }
        row.appendField("courses", raw: JSONObjectWriter.array(courses))
        return row
    }
}

extension ProgressView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var entries = writer.entries(count: learners.count)
        for (userId, learner) in learners {
            writer.begin(userId, of: &entries)
            learner.encode(to: &writer)
        }
        writer.end(entries)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var learners = self.learners
        try reader.entries { (reader, userId) throws(EventError) in
            learners[userId] = try Learner(&reader)
        }
        try reader.finish()
        self.learners = learners
    }
}

extension ProgressView: CompactableView {
    /// Needed are the event of the active course, a lesson's first, last and best completion, and a review
    /// session's first and last.
    public func retention(of event: Event) -> Retention {
        switch event.type {
        case CourseActivated.type:
            guard let course = try? event.payload(as: CourseActivated.self) else {
                return .needed(.notUnderstood)
            }
            return .of(event, heldBy: [learners[EntityID(course.userId)]?.active?.lwwTimestamp])
        case LessonCompleted.type:
            guard let lesson = try? event.payload(as: LessonCompleted.self) else {
                return .needed(.notUnderstood)
            }
            let completion = self.lesson(
                lesson.lessonId, course: lesson.courseId, of: lesson.userId)
            // A completion without a score cannot be the best one.
            let best = lesson.score == nil ? [] : [completion?.best?.lwwTimestamp]
            return .of(event, heldBy: [completion?.first, completion?.last] + best)
        case ReviewCompleted.type:
            guard let review = try? event.payload(as: ReviewCompleted.self) else {
                return .needed(.notUnderstood)
            }
            let completion = learners[EntityID(review.userId)]?.reviews[EntityID(review.reviewId)]
            return .of(event, heldBy: [completion?.last.lwwTimestamp, completion?.first])
        default: return .unconcerned
        }
    }
}

extension ProgressView.Learner {
    fileprivate func encode(to writer: inout StateWriter) {
        writer.write(active != nil)
        if let active {
            writer.write(active.value)
            writer.write(active.lwwTimestamp)
        }
        var courses = writer.entries(count: lessons.count)
        for (courseId, lessons) in lessons {
            writer.begin(courseId, of: &courses)
            var entries = writer.entries(count: lessons.count)
            for (lessonId, lesson) in lessons {
                writer.begin(lessonId, of: &entries)
                writer.write(lesson.first)
                writer.write(lesson.last)
                writer.write(lesson.best != nil)
                guard let best = lesson.best else { continue }
                writer.write(best.score)
                writer.write(best.lwwTimestamp)
            }
            writer.end(entries)
        }
        writer.end(courses)
        var entries = writer.entries(count: reviews.count)
        for (reviewId, review) in reviews {
            writer.begin(reviewId, of: &entries)
            writer.write(optional: review.last.value.courseId)
            writer.write(count: review.last.value.itemsSeen)
            writer.write(count: review.last.value.itemsCorrect)
            writer.write(review.last.lwwTimestamp)
            writer.write(review.first)
        }
        writer.end(entries)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        if try reader.bool() { active = Register(try reader.string(), try reader.lwwTimestamp()) }
        var lessons = self.lessons
        try reader.entries { (reader, courseId) throws(EventError) in
            var course: TreeDictionary<EntityID, LessonCompletion> = [:]
            try reader.entries { (reader, lessonId) throws(EventError) in
                course[lessonId] = try LessonCompletion(&reader)
            }
            guard !course.isEmpty else { throw reader.fault("a course has no lessons") }
            lessons[courseId] = course
        }
        self.lessons = lessons
        var reviews = self.reviews
        try reader.entries { (reader, reviewId) throws(EventError) in
            let result = ProgressView.ReviewResult(
                courseId: try reader.optionalString(), itemsSeen: try reader.nonNegative(),
                itemsCorrect: try reader.nonNegative())
            guard result.itemsCorrect <= result.itemsSeen else {
                throw reader.fault("a review session has more correct items than items")
            }
            let last = Register(result, try reader.lwwTimestamp())
            let first = try reader.lwwTimestamp()
            guard first <= last.lwwTimestamp else {
                throw reader.fault("a session's first completion is after its last")
            }
            reviews[reviewId] = ProgressView.ReviewCompletion(last: last, first: first)
        }
        self.reviews = reviews
        guard active != nil || !lessons.isEmpty || !reviews.isEmpty else {
            throw reader.fault("the entry of a learner is empty")
        }
    }
}

extension LessonCompletion {
    /// Records a completion.
    fileprivate mutating func record(_ score: Double?, at lwwTimestamp: LWWTimestamp) {
        first = min(first, lwwTimestamp)
        last = max(last, lwwTimestamp)
        guard let score else { return }
        if let best {
            guard score > best.score || (score == best.score && lwwTimestamp < best.lwwTimestamp)
            else { return }
        }
        best = Best(score: score, lwwTimestamp: lwwTimestamp)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        first = try reader.lwwTimestamp()
        last = try reader.lwwTimestamp()
        guard first <= last else {
            throw reader.fault("a lesson's first completion is after its last")
        }
        guard try reader.bool() else { return }
        let score = try reader.double()
        guard (0...1).contains(score) else { throw reader.fault("a score is not from 0 to 1") }
        best = Best(score: score, lwwTimestamp: try reader.lwwTimestamp())
    }
}

extension Int {
    /// Adds without a trap, because counts from a log can have any value.
    fileprivate func addingSaturating(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
