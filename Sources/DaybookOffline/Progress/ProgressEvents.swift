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
    public var score: Double?  // .number(0...1)
    /// The duration in seconds.
    public var durationSeconds: Double?  // .number(0...)

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
    public var itemsCorrect: Int  // at most itemsSeen

    public var subject: String? { reviewId }
    public var lane: String? { "review:\(userId):\(reviewId)" }
}
