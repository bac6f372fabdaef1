// What apps see of the lessons and review sessions that are on the device: everything but their
// contents, which LearningCommands reads from the log. Spec/model/learning.md.

import Daybook
import Foundation

/// What is on the device of a lesson or a review session.
public struct StoredMaterial: Hashable, Sendable {
    /// The event that holds the content.
    public let event: UUID
    /// Bytes of the content and of its files.
    public let size: Int
    /// The files that go with it.
    public let files: [LearningFile]
    /// Whether the user asked for it.
    public let isExplicit: Bool
    /// When it was stored.
    public let storedAt: Timestamp

    init(_ held: LearningView.Held, _ stamp: Stamp) {
        event = held.event
        size = held.size
        files = held.files
        isExplicit = held.isExplicit
        storedAt = stamp.time
    }
}

/// A lesson that is on the device.
public struct StoredLesson: Hashable, Sendable {
    /// The course.
    public let courseId: String
    /// The lesson.
    public let lessonId: String
    /// What is on the device of it.
    public let material: StoredMaterial
}

/// A review session that is on the device.
public struct StoredReview: Hashable, Sendable, Identifiable {
    /// Whose session it is.
    public let userId: String
    /// The session.
    public let reviewId: String
    /// Of which languages.
    public let combination: LanguageCombination
    /// The course, if it belongs to one.
    public let courseId: String?
    /// Its place among the sessions that come next, from 0.
    public let order: Int
    /// What is on the device of it.
    public let material: StoredMaterial

    /// The session.
    public var id: String { reviewId }

    init?(
        _ userId: String, _ reviewId: String, _ register: Register<LearningView.Review?>
    ) {
        guard let review = register.value else { return nil }
        self.userId = userId
        self.reviewId = reviewId
        combination = review.combination
        courseId = review.courseId
        order = review.order
        material = StoredMaterial(review.held, register.stamp)
    }
}
