// What is to be fetched before anybody asks for it, and when: a pure function of what happened and of
// what the views say. LearningDownloads does what it says. Spec/model/learning.md, LRN-20.

import Daybook

/// When review sessions and lessons are fetched by themselves.
public struct PrefetchPolicy: Hashable, Sendable {
    /// What can make something be fetched.
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
        /// Of the review sessions on the device the last was completed.
        case lastReviewDone
        /// A review or a lesson was completed some time ago.
        case completionAge
        /// A lesson was started.
        case lessonStart(lessonId: String, courseId: String)
    }

    /// What is to be fetched.
    public enum Work: Hashable, Sendable {
        /// The first review sessions of those that come next, whether or not they are there.
        case reviews(first: Int, LanguageCombination)
        /// A lesson that is not there.
        case lesson(lessonId: String, courseId: String, LanguageCombination)
    }

    /// What makes review sessions be fetched.
    public var reviewTriggers: Set<Trigger>
    /// How many sessions are fetched. Below 1 nothing is.
    public var reviewCount = 5
    /// How long after a completion sessions are fetched at the latest, in seconds; only with the
    /// trigger `completionAge`. Less than a minute is a minute.
    public var completionAgeSeconds = 18 * 3_600
    /// Whether a lesson that is started makes the next one of the course be fetched.
    public var fetchesNextLesson = true

    /// Creates a policy.
    public init(reviewTriggers: Set<Trigger>) { self.reviewTriggers = reviewTriggers }

    /// What the app for iOS does.
    public static let iOS = PrefetchPolicy(
        reviewTriggers: [.appStart, .appResume, .reviewFinish, .logIn, .combinationChange])
    /// What the app for Android does.
    public static let android = PrefetchPolicy(
        reviewTriggers: [.appStart, .completionAge, .lastReviewDone])

    /// What is to be fetched now that something has happened. `lastReviewDone` and `completionAge`
    /// are believed only where the state agrees.
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

    /// When sessions are fetched at the latest because something was completed since they were
    /// fetched last; nil where nothing was, or the policy does not care.
    ///
    /// - Complexity: O(sessions on the device + completions of the learner).
    public func due(in state: PrefetchState) -> Timestamp? {
        guard reviewTriggers.contains(.completionAge), state.combination != nil,
            let completion = state.firstCompletion
        else { return nil }
        let wait = Int64(clamping: max(60, completionAgeSeconds)).multipliedReportingOverflow(
            by: 1_000)
        // What lies in a time yet to come, because a clock was wrong, is not waited for.
        guard let start = completion <= state.now ? completion : state.fetched else {
            return state.now
        }
        let due = start.milliseconds.addingReportingOverflow(
            wait.overflow ? .max : wait.partialValue)
        return Timestamp(milliseconds: due.overflow ? .max : due.partialValue)
    }
}

/// What a policy decides by: the views as they are, for one user.
public struct PrefetchState: Sendable {
    /// What is on the device.
    public var learning: LearningView
    /// What was completed.
    public var progress: ProgressView
    /// Whose sessions.
    public var userId: String
    /// The time.
    public var now: Timestamp
    /// When sessions were fetched last, if the caller knows of a time that is not on record: a
    /// server that has no sessions leaves none on the device.
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

    /// What the user learns.
    public var combination: LanguageCombination? { learning.combination(of: userId) }

    private var reviews: [StoredReview] { learning.reviews(of: userId, combination) }

    /// Whether there are sessions on the device, and all of them were done since they were stored. A
    /// time yet to come says nothing.
    var isLastReviewDone: Bool {
        let reviews = reviews
        return !reviews.isEmpty
            && reviews.allSatisfy { review in
                let stored = review.material.storedAt
                return progress.completion(ofReview: review.reviewId, by: userId)
                    .map { $0 >= stored || stored > now } ?? false
            }
    }

    /// When sessions were fetched last: when the newest was stored. A time yet to come says nothing.
    var fetched: Timestamp? {
        (reviews.map(\.material.storedAt) + [fetchedAt].compactMap(\.self))
            .filter { $0 <= now }.max()
    }

    /// The first completion since sessions were fetched last.
    var firstCompletion: Timestamp? { progress.firstCompletion(by: userId, from: fetched) }
}
