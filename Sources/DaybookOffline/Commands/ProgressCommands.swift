// The commands of an app on a learner's progress.

import Daybook

/// Commands on learning progress.
public struct ProgressCommands: Sendable {
    private let store: EventStore
    private let references: ReferenceCheck

    init(_ store: EventStore, _ references: ReferenceCheck = []) {
        self.store = store
        self.references = references
    }

    /// Makes a course the user's active one. Durable on return.
    ///
    /// - Throws: `EventError`: `refused` for an empty id, `unknownReference` for a course that
    ///   `ReferenceCheck.courses` does not find; `LogError` as `EventStore.append`.
    @discardableResult
    public func activateCourse(_ courseId: String, by userId: String) async throws -> Appended {
        try Self.check([("course id", courseId), ("user id", userId)])
        return try await store.append(decidedBy: { transaction in
            try references.requireCourse(courseId, of: userId, transaction)
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
    ///   course or a lesson that `ReferenceCheck.courses` does not find; `LogError` as
    ///   `EventStore.append`.
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
            try references.requireCourse(courseId, lesson: lessonId, of: userId, transaction)
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
    ///   - courseId: the course for which it counts. If nil: the course of the session on the device, else
    ///     the learner's active course, else the languages of the session, else those that the learner
    ///     has selected (`es-de`).
    ///   - userId: the learner.
    ///   - itemsSeen: the number of items in the session.
    ///   - itemsCorrect: the number of correct answers.
    /// - Throws: `EventError` for an empty id, a negative count, more correct answers than items, or if
    ///   no course can be determined; `unknownReference` for a given course that
    ///   `ReferenceCheck.courses` does not find; `LogError` as `EventStore.append`.
    @discardableResult
    public func completeReview(
        _ reviewId: String, course courseId: String? = nil, by userId: String, itemsSeen: Int,
        itemsCorrect: Int
    ) async throws -> Appended {
        try Self.check([("review id", reviewId), ("user id", userId)])
        if let courseId { try Self.check([("course id", courseId)]) }
        return try await store.append(decidedBy: { transaction in
            if let courseId { try references.requireCourse(courseId, of: userId, transaction) }
            let completed = ReviewCompleted(
                userId: userId,
                courseId: try courseId ?? Self.course(ofReview: reviewId, of: userId, transaction),
                reviewId: reviewId, itemsSeen: itemsSeen, itemsCorrect: itemsCorrect)
            try transaction.append(
                completed,
                replacing: transaction.view(ProgressView.self).lwwTimestamp(
                    ofReview: reviewId, by: userId))
        })[0]
    }

    private static func course(
        ofReview reviewId: String, of userId: String, _ transaction: EventStore.Transaction
    ) throws(EventError) -> String {
        let learning = transaction.view(LearningView.self)
        let stored = learning.review(reviewId, of: userId)
        if let courseId = stored?.courseId { return courseId }
        if let active = transaction.view(ProgressView.self).activeCourse(of: userId) {
            return active
        }
        guard let languages = stored?.combination ?? learning.combination(of: userId) else {
            throw EventError(
                .refused,
                "cannot determine the course of the review session \(reviewId): it is not on the "
                    + "device, and \(userId) has neither an active course nor selected languages; "
                    + "pass the course")
        }
        return "\(languages.learnLanguage)-\(languages.displayLanguage)"
    }

    private static func check(_ ids: [(String, String)]) throws(EventError) {
        for (name, id) in ids { try CourseActivated.require(id, name) }
    }
}
