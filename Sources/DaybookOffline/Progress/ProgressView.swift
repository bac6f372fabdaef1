// How far each learner is. Completions are sets: doing a lesson twice counts once, with the best
// score and the first completion. Spec/model/views.md.

import Daybook
import HashTreeCollections

/// What a learner has done in one course.
public struct CourseProgress: Hashable, Sendable {
    /// The course.
    public let courseId: String
    /// Number of different lessons completed.
    public internal(set) var lessonsCompleted = 0
    /// Number of different review sessions completed.
    public internal(set) var reviewsCompleted = 0
    /// Items asked in them.
    public internal(set) var itemsSeen = 0
    /// Items answered right.
    public internal(set) var itemsCorrect = 0
}

/// A completed lesson.
public struct LessonCompletion: Hashable, Sendable {
    /// The best score of all completions that had one.
    public var bestScore: Double? { best?.score }
    /// When the lesson was completed first.
    public var completedAt: Timestamp { first.time }
    /// The completion with the least stamp, and the one with the greatest.
    var first: Stamp
    var last: Stamp
    /// The completion with the best score; of several the one with the least stamp.
    var best: Best?

    struct Best: Hashable, Sendable {
        var score: Double
        var stamp: Stamp
    }
}

/// The progress of all learners.
public struct ProgressView: ListableView {
    public static let name = "progress"
    public static let version = 3
    public static let eventTypes: Set<String>? = [
        CourseActivated.type, LessonCompleted.type, ReviewCompleted.type,
    ]

    fileprivate struct ReviewResult: Hashable, Sendable {
        var courseId: String
        var itemsSeen: Int
        var itemsCorrect: Int
    }

    /// A completed review session: the result of its last completion, and the stamp of its first.
    fileprivate struct ReviewCompletion: Hashable, Sendable {
        var last: Register<ReviewResult>
        var first: Stamp

        /// Takes in one completion.
        mutating func record(_ result: ReviewResult, at stamp: Stamp) {
            last.set(result, stamp)
            if stamp < first { first = stamp }
        }

    }

    /// The earliest time from `start` on at which something may have been completed. Between the first
    /// and the last completion the view keeps none, so if the first was earlier and the last was not,
    /// that is `start` itself (LRN-42).
    private static func earliestTime(
        from start: Timestamp, first: Stamp, last: Stamp
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
    /// Events whose data no rule can make sense of.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case CourseActivated.type:
            guard let course = try? event.payload(as: CourseActivated.self) else {
                return ignored += 1
            }
            learners[EntityID(course.userId), default: Learner()].active
                .set(course.courseId, event.stamp)
        case LessonCompleted.type:
            guard let lesson = try? event.payload(as: LessonCompleted.self) else {
                return ignored += 1
            }
            let stamp = event.stamp
            learners[EntityID(lesson.userId), default: Learner()]
                .lessons[EntityID(lesson.courseId), default: [:]][
                    EntityID(lesson.lessonId),
                    default: LessonCompletion(first: stamp, last: stamp)
                ].add(lesson.score, stamp)
        case ReviewCompleted.type:
            guard let review = try? event.payload(as: ReviewCompleted.self) else {
                return ignored += 1
            }
            let result = ReviewResult(
                courseId: review.courseId, itemsSeen: review.itemsSeen,
                itemsCorrect: review.itemsCorrect)
            let stamp = event.stamp
            learners[EntityID(review.userId), default: Learner()]
                .reviews[
                    EntityID(review.reviewId),
                    default: ReviewCompletion(last: Register(result, stamp), first: stamp)
                ].record(result, at: stamp)
        default: break
        }
    }

    /// The learner's active course. O(1).
    public func activeCourse(of userId: String) -> String? {
        learners[EntityID(userId)]?.active?.value
    }

    /// The LWW timestamp of the learner's active course. O(1).
    func activeStamp(of userId: String) -> Stamp? {
        learners[EntityID(userId)]?.active?.stamp
    }

    /// The LWW timestamp of a review session's completion. O(1).
    func stamp(ofReview reviewId: String, by userId: String) -> Stamp? {
        learners[EntityID(userId)]?.reviews[EntityID(reviewId)]?.last.stamp
    }

    /// A lesson that the learner has completed. O(1).
    public func lesson(
        _ lessonId: String, course courseId: String, of userId: String
    ) -> LessonCompletion? {
        learners[EntityID(userId)]?.lessons[EntityID(courseId)]?[EntityID(lessonId)]
    }

    /// The learner's progress in every course with a completion, sorted by course. O(completions of
    /// the learner).
    public func courses(of userId: String) -> [CourseProgress] {
        guard let learner = learners[EntityID(userId)] else { return [] }
        var courses: [EntityID: CourseProgress] = [:]
        func change(_ courseId: EntityID, _ body: (inout CourseProgress) -> Void) {
            body(&courses[courseId, default: CourseProgress(courseId: courseId.string)])
        }
        for (courseId, lessons) in learner.lessons {
            change(courseId) { $0.lessonsCompleted = lessons.count }
        }
        for review in learner.reviews.values.map(\.last.value) {
            change(EntityID(review.courseId)) {
                $0.reviewsCompleted += 1
                $0.itemsSeen = $0.itemsSeen.addingSaturating(review.itemsSeen)
                $0.itemsCorrect = $0.itemsCorrect.addingSaturating(review.itemsCorrect)
            }
        }
        return courses.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Whether the learner has completed a review session. O(1).
    public func hasCompleted(review reviewId: String, by userId: String) -> Bool {
        learners[EntityID(userId)]?.reviews[EntityID(reviewId)] != nil
    }

    /// When the learner completed a review session last; nil if never. O(1).
    func completion(ofReview reviewId: String, by userId: String) -> Timestamp? {
        stamp(ofReview: reviewId, by: userId)?.time
    }

    /// The last completion of each review session. O(review sessions of the learner).
    func reviewStamps(by userId: String) -> Set<Stamp> {
        Set(learners[EntityID(userId)]?.reviews.values.map(\.last.stamp) ?? [])
    }

    /// The first completion of a lesson or a review session at or after `start`, of all if it is nil.
    /// What was completed before `start` and again after it counts with `start`. O(completions of the
    /// learner).
    func firstCompletion(by userId: String, from start: Timestamp?) -> Timestamp? {
        guard let learner = learners[EntityID(userId)] else { return nil }
        let start = start ?? Timestamp(milliseconds: Timestamp.range.lowerBound)
        let lessons = learner.lessons.values.lazy.flatMap { $0.values }
            .compactMap { Self.earliestTime(from: start, first: $0.first, last: $0.last) }
        let reviews = learner.reviews.values.lazy
            .compactMap { Self.earliestTime(from: start, first: $0.first, last: $0.last.stamp) }
        return [lessons.min(), reviews.min()].compactMap(\.self).min()
    }

    /// All learners, sorted. O(learners).
    public var userIDs: [String] { learners.keys.sorted().map(\.string) }

    public func rows() -> [ViewRow] {
        userIDs.map { userId in
            var row = ViewRow()
            row.add("userId", userId)
            row.add("activeCourseId", activeCourse(of: userId))
            let courses = courses(of: userId).map { course in
                var writer = JSONObjectWriter()
                writer.add("courseId", course.courseId)
                writer.add("lessonsCompleted", course.lessonsCompleted)
                writer.add("reviewsCompleted", course.reviewsCompleted)
                writer.add("itemsSeen", course.itemsSeen)
                writer.add("itemsCorrect", course.itemsCorrect)
                return writer.finished()
            }
            row.add("courses", raw: JSONObjectWriter.array(courses))
            return row
        }
    }
}

extension ProgressView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
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
    /// Needed are the active course, a lesson's first, last and best completion, and a review session's
    /// first and last.
    public func retention(of event: Event) -> Retention {
        switch event.type {
        case CourseActivated.type:
            guard let course = try? event.payload(as: CourseActivated.self) else {
                return .needed(.notUnderstood)
            }
            return .of(event, heldBy: [learners[EntityID(course.userId)]?.active?.stamp])
        case LessonCompleted.type:
            guard let lesson = try? event.payload(as: LessonCompleted.self) else {
                return .needed(.notUnderstood)
            }
            let completion = self.lesson(
                lesson.lessonId, course: lesson.courseId, of: lesson.userId)
            // Without a score it can be the first or the last one only.
            let best = lesson.score == nil ? [] : [completion?.best?.stamp]
            return .of(event, heldBy: [completion?.first, completion?.last] + best)
        case ReviewCompleted.type:
            guard let review = try? event.payload(as: ReviewCompleted.self) else {
                return .needed(.notUnderstood)
            }
            let completion = learners[EntityID(review.userId)]?.reviews[EntityID(review.reviewId)]
            return .of(event, heldBy: [completion?.last.stamp, completion?.first])
        default: return .unconcerned
        }
    }
}

extension ProgressView.Learner {
    fileprivate func encode(to writer: inout StateWriter) {
        writer.add(active != nil)
        if let active {
            writer.add(active.value)
            writer.add(active.stamp)
        }
        var courses = writer.entries(count: lessons.count)
        for (courseId, lessons) in lessons {
            writer.begin(courseId, of: &courses)
            var entries = writer.entries(count: lessons.count)
            for (lessonId, lesson) in lessons {
                writer.begin(lessonId, of: &entries)
                writer.add(lesson.first)
                writer.add(lesson.last)
                writer.add(lesson.best != nil)
                guard let best = lesson.best else { continue }
                writer.add(best.score)
                writer.add(best.stamp)
            }
            writer.end(entries)
        }
        writer.end(courses)
        var entries = writer.entries(count: reviews.count)
        for (reviewId, review) in reviews {
            writer.begin(reviewId, of: &entries)
            writer.add(review.last.value.courseId)
            writer.add(count: review.last.value.itemsSeen)
            writer.add(count: review.last.value.itemsCorrect)
            writer.add(review.last.stamp)
            writer.add(review.first)
        }
        writer.end(entries)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        if try reader.bool() { active = Register(try reader.string(), try reader.stamp()) }
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
                courseId: try reader.string(), itemsSeen: try reader.nonNegative(),
                itemsCorrect: try reader.nonNegative())
            guard result.itemsCorrect <= result.itemsSeen else {
                throw reader.fault("more items were answered right than were asked")
            }
            let last = Register(result, try reader.stamp())
            let first = try reader.stamp()
            guard first <= last.stamp else {
                throw reader.fault("a session's first completion is after its last")
            }
            reviews[reviewId] = ProgressView.ReviewCompletion(last: last, first: first)
        }
        self.reviews = reviews
        guard active != nil || !lessons.isEmpty || !reviews.isEmpty else {
            throw reader.fault("a learner has done nothing")
        }
    }
}

extension LessonCompletion {
    fileprivate mutating func add(_ score: Double?, _ stamp: Stamp) {
        first = min(first, stamp)
        last = max(last, stamp)
        guard let score else { return }
        if let best {
            guard score > best.score || (score == best.score && stamp < best.stamp) else { return }
        }
        best = Best(score: score, stamp: stamp)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        first = try reader.stamp()
        last = try reader.stamp()
        guard first <= last else {
            throw reader.fault("a lesson's first completion is after its last")
        }
        guard try reader.bool() else { return }
        let score = try reader.double()
        guard (0...1).contains(score) else { throw reader.fault("a score is not from 0 to 1") }
        best = Best(score: score, stamp: try reader.stamp())
    }
}

extension Int {
    /// Counts from a log can be anything; a sum must not trap.
    fileprivate func addingSaturating(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
