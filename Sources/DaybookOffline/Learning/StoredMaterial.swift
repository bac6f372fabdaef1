// The public types of the lessons and review sessions on the device, without their contents, which
// LearningCommands reads from the log. Spec/model/learning.md.

import Daybook
import Foundation

/// The stored material of a lesson or a review session, without its content.
public struct StoredMaterial: Hashable, Sendable {
    /// The event with the content.
    public let event: UUID
    /// The size of the content and its files in bytes.
    public let size: Int
    /// The files of the content.
    public let files: [LearningFile]
    /// True if the user requested it.
    public let isExplicit: Bool
    /// The time at which it was stored.
    public let storedAt: Timestamp

    init(_ material: LearningView.Material, _ lwwTimestamp: LWWTimestamp) {
        event = material.event
        size = material.size
        files = material.files
        isExplicit = material.isExplicit
        storedAt = lwwTimestamp.time
    }
}

/// A lesson on the device.
public struct StoredLesson: Hashable, Sendable {
    /// The course.
    public let courseId: String
    /// The lesson.
    public let lessonId: String
    /// The stored material.
    public let material: StoredMaterial
}

/// A review session on the device.
public struct StoredReview: Hashable, Sendable, Identifiable {
    /// The user of the session.
    public let userId: String
    /// The session.
    public let reviewId: String
    /// The language combination.
    public let combination: LanguageCombination
    /// The session's course, if it has one.
    public let courseId: String?
    /// The session's index among the next sessions, from 0.
    public let order: Int
    /// The stored material.
    public let material: StoredMaterial

    /// The session's id.
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
        material = StoredMaterial(review.material, register.lwwTimestamp)
    }
}
