// The events of learning progress: course activated, lesson completed, review completed.
// Spec/model/events.md.

import Daybook

/// A user made a course the active one.
public struct CourseActivated: DeclaredPayload, Hashable {
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

    public static var example: Self {
        Self(userId: "-", courseId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("courseId", &courseId, .identifier)
    }

    public var subject: String? { userId }
    public var lane: String? { "course:\(userId)" }
}

/// A user completed a lesson.
public struct LessonCompleted: DeclaredPayload, Hashable {
    public static let type = "daybook.lesson.completed"
    /// The learner.
    public var userId: String
    /// The course of the lesson.
    public var courseId: String
    /// The lesson.
    public var lessonId: String
    /// The score, from 0 to 1.
    public var score: Double?
    /// The duration in seconds.
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

    public static var example: Self {
        Self(userId: "-", courseId: "-", lessonId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("courseId", &courseId, .identifier)
        try members.required("lessonId", &lessonId, .identifier)
        try members.optional("score", &score, .number(0...1))
        try members.optional("durationSeconds", &durationSeconds, .number(0...))
    }

    public var subject: String? { lessonId }
    public var lane: String? { "lesson:\(userId):\(lessonId)" }
}

/// A user completed a review session.
public struct ReviewCompleted: DeclaredPayload, Hashable {
    public static let type = "daybook.review.completed"
    /// The learner.
    public var userId: String
    /// The course of the review session; nil if it belongs to none.
    public var courseId: String?
    /// The review session.
    public var reviewId: String
    /// The number of items asked.
    public var itemsSeen: Int
    /// The number of items answered correctly.
    public var itemsCorrect: Int

    /// Creates the event's data.
    public init(
        userId: String, courseId: String? = nil, reviewId: String, itemsSeen: Int,
        itemsCorrect: Int
    ) {
        self.userId = userId
        self.courseId = courseId
        self.reviewId = reviewId
        self.itemsSeen = itemsSeen
        self.itemsCorrect = itemsCorrect
    }

    public static var example: Self {
        Self(userId: "-", reviewId: "-", itemsSeen: 0, itemsCorrect: 0)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.optional("courseId", &courseId, .identifier)
        try members.required("reviewId", &reviewId, .identifier)
        try members.required("itemsSeen", &itemsSeen, .count)
        try members.required("itemsCorrect", &itemsCorrect, .count)
        try members.constraint(
            .atMost("itemsCorrect", "itemsSeen"), isMet: itemsCorrect <= itemsSeen)
    }

    public var subject: String? { reviewId }
    public var lane: String? { "review:\(userId):\(reviewId)" }
}
