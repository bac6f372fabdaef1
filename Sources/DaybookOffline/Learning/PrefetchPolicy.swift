// Decides what is prefetched and when: a pure function of a trigger and the state of the views.
// LearningDownloads carries it out. Spec/model/learning.md, LRN-20.

import Daybook

/// The rules for automatic fetches of review sessions and lessons.
public struct PrefetchPolicy: Hashable, Sendable {
    /// An occurrence that can cause a fetch.
    public enum Trigger: Hashable, Sendable {
        /// The app was started.
        case appStart
        /// The app came back to the front.
        case appResume
        /// The user logged in.
        case logIn
        /// The user chose another language combination.
        case combinationChange
        /// A review session was completed.
        case reviewFinish
        /// The last review session on the device was completed.
        case lastReviewDone
        /// The first completion since the last fetch has reached the age `completionAgeSeconds`.
        case completionAge
        /// A lesson was started.
        case lessonStart(lessonId: String, courseId: String)
    }

    /// A fetch to carry out.
    public enum Work: Hashable, Sendable {
        /// The next review sessions, whether or not they are on the device.
        case reviews(first: Int, LanguageCombination)
        /// A lesson that is not on the device.
        case lesson(lessonId: String, courseId: String, LanguageCombination)
    }

    /// The triggers that cause a fetch of review sessions.
    public var reviewTriggers: Set<Trigger>
    /// The number of sessions per fetch. Below 1 none is fetched.
    public var reviewCount = 5
    /// The time in seconds after a completion by which sessions are fetched; only with the trigger
    /// `completionAge`. The minimum is 60.
    public var completionAgeSeconds = 18 * 3_600
    /// True if the start of a lesson causes a fetch of the next lesson of the course.
    public var fetchesNextLesson = true

    /// Creates a policy.
    public init(reviewTriggers: Set<Trigger>) { self.reviewTriggers = reviewTriggers }

    /// The policy of the iOS app.
    public static let iOS = PrefetchPolicy(
        reviewTriggers: [.appStart, .appResume, .reviewFinish, .logIn, .combinationChange])
    /// The policy of the Android app.
    public static let android = PrefetchPolicy(
        reviewTriggers: [.appStart, .completionAge, .lastReviewDone])

    /// Returns the fetches that a trigger causes. `lastReviewDone` and `completionAge` cause one only if the
    /// state confirms them.
    ///
    /// - Complexity: O(lessons of the combination + sessions on the device + completions of the
    ///   learner).
    public func work(for trigger: Trigger, in state: PrefetchState) -> [Work] {
        guard let combination = state.combination else { return [] }
        if case .lessonStart(let lessonId, let courseId) = trigger {
            guard fetchesNextLesson,
                let next = state.learning.lesson(
                    after: lessonId, course: courseId, in: combination),
                state.learning.lesson(next.id, course: courseId) == nil
            else { return [] }
            return [.lesson(lessonId: next.id, courseId: courseId, combination)]
        }
        guard reviewTriggers.contains(trigger), reviewCount >= 1 else { return [] }
        switch trigger {
        case .lastReviewDone where !state.isLastReviewDone: return []
        case .completionAge where due(in: state).map({ $0 > state.now }) ?? true: return []
        default: return [.reviews(first: reviewCount, combination)]
        }
    }

    /// Returns the time at which sessions are fetched because of a completion since the last fetch; nil
    /// without such a completion or without the trigger `completionAge`.
    ///
    /// - Complexity: O(sessions on the device + completions of the learner).
    public func due(in state: PrefetchState) -> Timestamp? {
        guard reviewTriggers.contains(.completionAge), state.combination != nil,
            let completion = state.firstCompletion
        else { return nil }
        let wait = Int64(clamping: max(60, completionAgeSeconds)).multipliedReportingOverflow(
            by: 1_000)
        // A completion in the future, from a wrong clock, does not delay the fetch.
        guard let start = completion <= state.now ? completion : state.lastFetch else {
            return state.now
        }
        let due = start.milliseconds.addingReportingOverflow(
            wait.overflow ? .max : wait.partialValue)
        return Timestamp(milliseconds: due.overflow ? .max : due.partialValue)
    }
}

/// The input of a policy: the current views, for one user.
public struct PrefetchState: Sendable {
    /// The material on the device.
    public var learning: LearningView
    /// The completions.
    public var progress: ProgressView
    /// The id of the user of the sessions.
    public var userId: String
    /// The current time.
    public var now: Timestamp
    /// The time of a last fetch that left no sessions on the device, if the caller knows one: the views do
    /// not contain it.
    public var fetchedAt: Timestamp?

    /// Creates a state.
    public init(
        learning: LearningView, progress: ProgressView, userId: String, now: Timestamp,
        fetchedAt: Timestamp? = nil
    ) {
        self.learning = learning
        self.progress = progress
        self.userId = userId
        self.now = now
        self.fetchedAt = fetchedAt
    }

    /// The user's language combination.
    public var combination: LanguageCombination? { learning.combination(of: userId) }

    private var reviews: [StoredReview] { learning.reviews(of: userId, combination) }

    /// True if there are sessions on the device and all were completed after they were stored. A stored time
    /// in the future is ignored.
    var isLastReviewDone: Bool {
        let reviews = reviews
        return !reviews.isEmpty
            && reviews.allSatisfy { review in
                let stored = review.material.storedAt
                return progress.completion(ofReview: review.reviewId, by: userId)
                    .map { $0 >= stored || stored > now } ?? false
            }
    }

    /// The time of the last fetch: that of the newest stored session. Times in the future are ignored.
    var lastFetch: Timestamp? {
        (reviews.map(\.material.storedAt) + [fetchedAt].compactMap(\.self))
            .filter { $0 <= now }.max()
    }

    /// The first completion since the last fetch of sessions.
    var firstCompletion: Timestamp? { progress.firstCompletion(by: userId, from: lastFetch) }
}
