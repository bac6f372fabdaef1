// The progress of one learner in one value.

/// A learner's active course and progress.
public struct LearnerProgress: Hashable, Sendable {
    /// The active course; nil if none was ever activated.
    public let activeCourseId: String?
    /// The progress in every course with a completion, sorted by course; before them that in the review
    /// sessions without a course, if there is any.
    public let courses: [CourseProgress]
}

extension ProgressView {
    /// A learner's active course and progress; empty for an unknown learner. O(completions of the
    /// learner).
    public subscript(userId: String) -> LearnerProgress {
        LearnerProgress(
            activeCourseId: activeCourse(of: userId), courses: courses(of: userId))
    }
}
