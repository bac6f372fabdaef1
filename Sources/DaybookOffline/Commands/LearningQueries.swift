// The live queries of an app on learning content. They read from memory; only the `read…` methods of
// LearningCommands read the log. Spec/model/learning.md, LRN-8.

import Daybook

extension LearningCommands {
    /// The languages that a user learns; nil if none were selected. O(1).
    public func combination(of userId: String) -> ViewQuery<LanguageCombination?> {
        store.query(LearningView.self) { $0.combination(of: userId) }
    }

    /// The courses of a language combination, in their stored order; nil if they were never stored.
    /// O(1).
    public func courses(of combination: LanguageCombination) -> ViewQuery<[ListedCourse]?> {
        store.query(LearningView.self) { $0.courses(of: combination) }
    }

    /// The lesson after another one in its course; nil for the last lesson of a course and for an unknown
    /// one. O(lessons of the combination).
    public func lesson(
        after lessonId: String, course courseId: String, in combination: LanguageCombination
    ) -> ViewQuery<ListedLesson?> {
        store.query(LearningView.self) {
            $0.lesson(after: lessonId, course: courseId, in: combination)
        }
    }

    /// The lesson before another one in its course; nil for the first lesson of a course and for an
    /// unknown one. O(lessons of the combination).
    public func lesson(
        before lessonId: String, course courseId: String, in combination: LanguageCombination
    ) -> ViewQuery<ListedLesson?> {
        store.query(LearningView.self) {
            $0.lesson(before: lessonId, course: courseId, in: combination)
        }
    }

    /// Whether a lesson is on the device. O(1).
    public func isAvailable(_ lessonId: String, course courseId: String) -> ViewQuery<Bool> {
        store.query(LearningView.self) { $0.lesson(lessonId, course: courseId) != nil }
    }

    /// A lesson without its content; nil while it is not on the device. O(1).
    public func lesson(_ lessonId: String, course courseId: String) -> ViewQuery<StoredLesson?> {
        store.query(LearningView.self) { $0.lesson(lessonId, course: courseId) }
    }

    /// The lessons that are on the device, by course and lesson. O(n log n) for all that were ever there.
    public var storedLessons: ViewQuery<[StoredLesson]> {
        store.query(LearningView.self) { $0.storedLessons }
    }

    /// A user's review sessions that are on the device, by their `order`. O(n log n) for all that were
    /// ever there.
    ///
    /// - Parameters:
    ///   - userId: the learner.
    ///   - combination: the languages; nil for all.
    public func reviews(
        of userId: String, in combination: LanguageCombination? = nil
    ) -> ViewQuery<[StoredReview]> {
        store.query(LearningView.self) { $0.reviews(of: userId, combination) }
    }

    /// The number of items of a user's vocabulary on the device; nil if none was ever cached. O(1).
    public func vocabularyCount(
        of userId: String, in combination: LanguageCombination
    ) -> ViewQuery<Int?> {
        store.query(LearningView.self) { $0.vocabularyCount(of: userId, combination) }
    }
}
