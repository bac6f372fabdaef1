// The commands of an app on a learner's progress.

import Daybook

/// Commands on learning progress.
public struct ProgressCommands: Sendable {
    private let store: EventStore
    private let references: ReferenceCheck?

    init(_ store: EventStore, _ references: ReferenceCheck? = nil) {
        self.store = store
        self.references = references
    }

    /// Makes a course the user's active one. Durable on return.
    ///
    /// - Throws: `EventError`: `refused` for an empty id, `unknownReference` for a course that the
    ///   `ReferenceCheck` does not know; `LogError` as `EventStore.append`.
    @discardableResult
    public func activateCourse(_ courseId: String, by userId: String) async throws -> Appended {
        try Self.check([("course id", courseId), ("user id", userId)])
        return try await store.append(decidedBy: { transaction in
            try references?.require(.course(courseId, learner: userId), transaction)
            try transaction.append(
                CourseActivated(userId: userId, courseId: courseId),
                replacing: transaction.view(ProgressView.self).activeTimestamp(of: userId))
        })[0]
    }

    /// Records that a lesson was completed. Durable on return.
    ///
    /// - Parameters:
    ///   - lessonId: the lesson. A lesson that is completed twice counts once.
    ///   - courseId: its course.
    ///   - userId: the learner.
    ///   - score: the score, from 0 to 1.
    ///   - durationSeconds: the duration in seconds.
    /// - Throws: `EventError` for an empty id or a score outside 0 to 1, and (`unknownReference`) for a
    ///   course or a lesson that the `ReferenceCheck` does not know; `LogError` as `EventStore.append`.
    @discardableResult
    public func completeLesson(
        _ lessonId: String, course courseId: String, by userId: String, score: Double? = nil,
        durationSeconds: Double? = nil
    ) async throws -> Appended {
        try Self.check([("lesson id", lessonId), ("course id", courseId), ("user id", userId)])
        // JSON has no NaN and no infinities, so they are refused before encoding.
        guard score.map({ (0...1).contains($0) }) ?? true else {
            throw EventError(.refused, "the score is not between 0 and 1")
        }
        guard durationSeconds.map({ $0 >= 0 && $0.isFinite }) ?? true else {
            throw EventError(.refused, "the duration is negative or not finite")
        }
        return try await store.append(decidedBy: { transaction in
            try references?.require(.course(courseId, learner: userId), transaction)
            try references?.require(
                .lesson(lessonId, course: courseId, learner: userId), transaction)
            try transaction.append(
                LessonCompleted(
                    userId: userId, courseId: courseId, lessonId: lessonId, score: score,
                    durationSeconds: durationSeconds))
        })[0]
    }

    /// Records that a review session was completed. Durable on return.
    ///
    /// - Parameters:
    ///   - reviewId: the session. A session that is completed twice counts once, with the last result.
    ///   - courseId: the course for which it counts. If nil: the course of the session on the device; if that
    ///     has none either, the completion has no course.
    ///   - userId: the learner.
    ///   - itemsSeen: the number of items in the session.
    ///   - itemsCorrect: the number of correct answers.
    /// - Throws: `EventError` for an empty id, a negative count, or more correct answers than items;
    ///   `unknownReference` for a course that the `ReferenceCheck` does not know; `LogError` as
    ///   `EventStore.append`.
    @discardableResult
    public func completeReview(
        _ reviewId: String, course courseId: String? = nil, by userId: String, itemsSeen: Int,
        itemsCorrect: Int
    ) async throws -> Appended {
        try Self.check([("review id", reviewId), ("user id", userId)])
        if let courseId { try Self.check([("course id", courseId)]) }
        return try await store.append(decidedBy: { transaction in
            let session = transaction.view(LearningView.self).review(reviewId, of: userId)
            let courseId = courseId ?? session?.courseId
            if let courseId {
                try references?.require(.course(courseId, learner: userId), transaction)
            }
            let completed = ReviewCompleted(
                userId: userId, courseId: courseId, reviewId: reviewId, itemsSeen: itemsSeen,
                itemsCorrect: itemsCorrect)
            try transaction.append(
                completed,
                replacing: transaction.view(ProgressView.self).lwwTimestamp(
                    ofReview: reviewId, by: userId))
        })[0]
    }

    private static func check(_ ids: [(String, String)]) throws(EventError) {
        for (name, id) in ids { try CourseActivated.require(id, name) }
    }
}
