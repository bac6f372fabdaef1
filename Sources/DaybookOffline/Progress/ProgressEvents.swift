// A learner activates a course, completes a lesson, completes a review. Spec/model/events.md.

import Daybook

/// A user made a course the active one.
public struct CourseActivated: EventPayload, Hashable {
    public static let type = "daybook.course.activated"
    /// The learner.
    public var userId: String
    /// The course.
    public var courseId: String

    /// Creates the event's data.
    public init(userId: String, courseId: String) {
        self.userId = userId
        self.courseId = courseId
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        courseId = try fields.identifier("courseId")
    }

    public var subject: String? { userId }
    public var lane: String? { "course:\(userId)" }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("courseId", courseId)
        return writer.finished()
    }
}

/// A user completed a lesson.
public struct LessonCompleted: EventPayload, Hashable {
    public static let type = "daybook.lesson.completed"
    /// The learner.
    public var userId: String
    /// The course the lesson belongs to.
    public var courseId: String
    /// The lesson.
    public var lessonId: String
    /// How well it went, from 0 to 1.
    public var score: Double?
    /// How long it took.
    public var durationSeconds: Double?

    /// Creates the event's data.
    public init(
        userId: String, courseId: String, lessonId: String, score: Double? = nil,
        durationSeconds: Double? = nil
    ) {
        self.userId = userId
        self.courseId = courseId
        self.lessonId = lessonId
        self.score = score
        self.durationSeconds = durationSeconds
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        courseId = try fields.identifier("courseId")
        lessonId = try fields.identifier("lessonId")
        score = try fields.double("score")
        durationSeconds = try fields.double("durationSeconds")
        if let score, !(0...1).contains(score) {
            throw EventError(.invalidData, "data.score is not between 0 and 1")
        }
        if let durationSeconds, !(0 <= durationSeconds && durationSeconds.isFinite) {
            throw EventError(.invalidData, "data.durationSeconds is negative or endless")
        }
    }

    public var subject: String? { lessonId }
    public var lane: String? { "lesson:\(userId):\(lessonId)" }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("courseId", courseId)
        writer.add("lessonId", lessonId)
        if let score { writer.add("score", score) }
        if let durationSeconds { writer.add("durationSeconds", durationSeconds) }
        return writer.finished()
    }
}

/// A user completed a review session.
public struct ReviewCompleted: EventPayload, Hashable {
    public static let type = "daybook.review.completed"
    /// The learner.
    public var userId: String
    /// The course the review belongs to.
    public var courseId: String
    /// The review session.
    public var reviewId: String
    /// How many items were asked.
    public var itemsSeen: Int
    /// How many of them were answered right.
    public var itemsCorrect: Int

    /// Creates the event's data.
    public init(
        userId: String, courseId: String, reviewId: String, itemsSeen: Int, itemsCorrect: Int
    ) {
        self.userId = userId
        self.courseId = courseId
        self.reviewId = reviewId
        self.itemsSeen = itemsSeen
        self.itemsCorrect = itemsCorrect
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        courseId = try fields.identifier("courseId")
        reviewId = try fields.identifier("reviewId")
        guard let seen = try fields.count("itemsSeen") else {
            throw EventError(.invalidData, "data.itemsSeen is missing")
        }
        guard let correct = try fields.count("itemsCorrect") else {
            throw EventError(.invalidData, "data.itemsCorrect is missing")
        }
        guard correct <= seen else {
            throw EventError(.invalidData, "data.itemsCorrect is more than data.itemsSeen")
        }
        itemsSeen = seen
        itemsCorrect = correct
    }

    public var subject: String? { reviewId }
    public var lane: String? { "review:\(userId):\(reviewId)" }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("courseId", courseId)
        writer.add("reviewId", reviewId)
        writer.add("itemsSeen", itemsSeen)
        writer.add("itemsCorrect", itemsCorrect)
        return writer.finished()
    }
}
