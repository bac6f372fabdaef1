// What an app asks about learning without a network, now and as it changes. The answers come from
// memory; only the `read…` methods of LearningCommands read the log. Spec/model/learning.md, LRN-8.

import Daybook

extension LearningCommands {
    /// What a user learns; nil if nothing was chosen. O(1).
    public func combination(of userId: String) -> ViewQuery<LanguageCombination?> {
        store.query(LearningView.self) { $0.combination(of: userId) }
    }

    /// The courses of a language combination, in the order in which they were given; nil if they
    /// were never stored. O(1).
    public func courses(of combination: LanguageCombination) -> ViewQuery<[ListedCourse]?> {
        store.query(LearningView.self) { $0.courses(of: combination) }
    }

    /// The lesson that follows another one in its course; nil for the last of a course, whose
    /// successor nobody can know, and for one that is not there. O(lessons of the combination).
    public func lesson(
        after lessonId: String, course courseId: String, in combination: LanguageCombination
    ) -> ViewQuery<ListedLesson?> {
        store.query(LearningView.self) {
            $0.lesson(after: lessonId, course: courseId, in: combination)
        }
    }

    /// The lesson that comes before another one in its course; nil for the first of a course, and
    /// for one that is not there. O(lessons of the combination).
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

    /// A lesson that is on the device, without its content; nil while it is not. O(1).
    public func lesson(_ lessonId: String, course courseId: String) -> ViewQuery<StoredLesson?> {
        store.query(LearningView.self) { $0.lesson(lessonId, course: courseId) }
    }

    /// The lessons that are on the device, by course and lesson. O(n log n) for all that ever were.
    public var storedLessons: ViewQuery<[StoredLesson]> {
        store.query(LearningView.self) { $0.storedLessons }
    }

    /// A user's review sessions that are on the device, those first that come first. O(n log n) for
    /// all that ever were.
    ///
    /// - Parameters:
    ///   - userId: the learner.
    ///   - combination: nil for those of all languages.
    public func reviews(
        of userId: String, in combination: LanguageCombination? = nil
    ) -> ViewQuery<[StoredReview]> {
        store.query(LearningView.self) { $0.reviews(of: userId, combination) }
    }

    /// How many items of a user's vocabulary are on the device; nil if none was ever cached. O(1).
    public func vocabularyCount(
        of userId: String, in combination: LanguageCombination
    ) -> ViewQuery<Int?> {
        store.query(LearningView.self) { $0.vocabularyCount(of: userId, combination) }
    }
}
