// Fetches review sessions and lessons, automatically and on the user's request: sleeps until a trigger of
// the policy occurs, or a completion reaches the age for a prefetch. Between the source and the log; the due
// work is computed from the log. Spec/model/learning.md, LRN-30 to LRN-39.

import Daybook
import Foundation
import Telemetry

/// Prefetches lessons and review sessions for use without a network.
///
/// ```swift
/// let downloads = LearningDownloads(
///     store, base: url, credentials: credentials, user: "user-456",
///     reachability: SystemReachability(), policy: .iOS)
/// let working = Task { try await downloads.run() }        // at the app's start
/// await downloads.notice(.appResume)                      // when it comes back
/// let review = try await downloads.startReview("review-1")
/// working.cancel()                                        // at logout
/// ```
///
/// A unit is recorded only when all its files are fetched. If no work will become due, the actor waits
/// without a timer.
public actor LearningDownloads {
    private let store: EventStore
    private let user: String
    private let policy: PrefetchPolicy
    private let options: DownloadManager.Options
    private let queue: FetchQueue<PrefetchPolicy.Work>
    private nonisolated let learning: LearningCommands
    private nonisolated let fetch: LearningFetch
    private let instruments = Instruments()

    /// The work to fetch, in the order in which it became due.
    private var pending: [PrefetchPolicy.Work] = []
    /// Work that a trigger has requested since its last start.
    private var requestedAgain: Set<PrefetchPolicy.Work> = []
    /// True while review sessions are downloaded. No session can be started until the download ends.
    public private(set) var isDownloadingReviews = false
    /// Further downloads of sessions that wait for the end of the current one.
    private var reviewWaiters: [AsyncStream<Void>.Continuation] = []
    /// True if all due work is done or waits for its retry. Work of a trigger after that has not begun.
    var isIdle: Bool { !isDownloadingReviews && nextWork() == nil }
    /// The state of the log that `enqueueNewWork` compares with.
    private var observed: (combination: LanguageCombination?, reviews: Set<LWWTimestamp>) = (
        nil, []
    )
    /// The last fetch of sessions in this process. The log cannot tell it if the server had none or refused.
    private var fetchedAt: (time: Timestamp, combination: LanguageCombination)?

    /// Creates downloads. Apps use the initializers that take an `OfflineStore`.
    init(
        _ learning: LearningCommands, _ source: any LearningSource, user: String,
        _ reachability: any Reachability, _ policy: PrefetchPolicy,
        _ options: DownloadManager.Options
    ) {
        store = learning.store
        self.user = user
        self.policy = policy
        self.options = options
        self.learning = learning
        queue = FetchQueue(store, user: user, reachability, sleep: options.sleep)
        fetch = LearningFetch(source: source, user: user, learning: learning, options: options)
    }

    // MARK: For screens

    /// Starts a review session that is on the device.
    ///
    /// - Returns: the session's content and files.
    /// - Throws: `LearningError`: `downloadInProgress` while sessions are being downloaded,
    ///   `notStored`; `LogError`.
    public func startReview(_ reviewId: String) async throws -> LearningMaterial {
        do {
            if let material = try await learning.readReview(reviewId, of: user) { return material }
        } catch let error as EventError where error.code == .refused {
            throw LearningError(.downloadInProgress, error.detail)
        }
        throw LearningError(.notStored, "the review session \(reviewId) is not on the device")
    }

    /// Starts a lesson. If the policy has it so, the next lesson of the course is fetched.
    ///
    /// - Returns: the lesson's content and files; nil if it is not on the device.
    /// - Throws: `LogError`.
    public func startLesson(
        _ lessonId: String, course courseId: String
    ) async throws -> LearningMaterial? {
        await notice(.lessonStart(lessonId: lessonId, courseId: courseId))
        return try await learning.readLesson(lessonId, course: courseId)
    }

    /// Downloads a lesson on the user's request. Durable on return.
    ///
    /// - Throws: `LearningError`: `noCombination`, and `offline` and `cellular`, also if the network is
    ///   lost meanwhile; `DownloadError`, and other errors of the source; `EventError` as
    ///   `LearningCommands.storeLesson`; `FileStoreError`; `LogError`; `CancellationError`. After an error
    ///   the lesson is unchanged.
    @discardableResult
    public func downloadLesson(
        _ lessonId: String, course courseId: String
    ) async throws -> StoredLesson {
        try await fetchLesson(lessonId, courseId, try selectedCombination(), isExplicit: true)
    }

    /// Downloads the next review sessions on the user's request, and removes no others. Durable on return.
    ///
    /// - Parameter count: the number of sessions; nil for the policy's. Below 1 none is downloaded.
    /// - Returns: the sessions that the source had.
    /// - Throws: as `downloadLesson`. A session that the server does not have or send, or of which it does not send
    ///   a file, does not keep the others off the device; its error is thrown at the end. Sessions that were
    ///   recorded remain.
    @discardableResult
    public func downloadReviews(first count: Int? = nil) async throws -> [StoredReview] {
        try await fetchReviews(
            first: count ?? policy.reviewCount, try selectedCombination(), isExplicit: true)
    }

    private func selectedCombination() throws -> LanguageCombination {
        guard let combination = store.view(LearningView.self).combination(of: user) else {
            throw LearningError(
                .noCombination, "the user \(user) has not chosen a combination of languages")
        }
        return combination
    }

    /// Returns the time of the next automatic fetch of sessions, for an app that lets the system wake it;
    /// nil if none will become due.
    public func nextPrefetch() async -> Timestamp? { policy.due(in: await state()) }

    // MARK: Triggers

    /// Reports a trigger: the app came to the front, the user logged in. Triggers that the log contains
    /// (completions, another combination) and the start of `run()` need no report. `run()` fetches the
    /// work of the trigger, at once or when there is a network.
    public func notice(_ trigger: PrefetchPolicy.Trigger) async {
        enqueue(policy.work(for: trigger, in: await state()))
    }

    private func enqueue(_ work: [PrefetchPolicy.Work]) {
        for work in work {
            queue.forgetRetry(work)
            requestedAgain.insert(work)
            if !pending.contains(work) { pending.append(work) }
        }
        if !pending.isEmpty { queue.wake() }
    }

    private func state() async -> PrefetchState {
        let now = await store.timestamp
        let learning = store.view(LearningView.self)
        let fetched = fetchedAt.flatMap {
            $0.combination == learning.combination(of: user) ? $0.time : nil
        }
        return PrefetchState(
            learning: learning, progress: store.view(ProgressView.self), userId: user, now: now,
            fetchedAt: fetched)
    }

    /// Enqueues the work that follows from the changes of the log since the last call.
    ///
    /// - Returns: the state that decided the work, for `setTimer(for:)`.
    private func enqueueNewWork() async -> PrefetchState {
        let state = await state()
        let reviews = state.progress.reviewTimestamps(by: user)
        let old = observed
        observed = (state.combination, reviews)
        if state.combination != old.combination {
            enqueue(policy.work(for: .combinationChange, in: state))
        }
        if !reviews.isSubset(of: old.reviews) {
            enqueue(policy.work(for: .reviewFinish, in: state))
            enqueue(policy.work(for: .lastReviewDone, in: state))
        }
        // Not `enqueue`: this trigger holds until sessions are fetched, and must not make failed work due
        // again.
        for work in policy.work(for: .completionAge, in: state) where !pending.contains(work) {
            pending.append(work)
        }
        return state
    }

    // MARK: The loop

    /// Runs until the calling task is cancelled or the store is closed. Its beginning counts as the start
    /// of the app. A second call while one runs returns at once.
    ///
    /// While the store is suspended, no work runs; interrupted work starts again afterwards.
    ///
    /// - Throws: `LogError` if the log cannot be read or written. Network failures are not thrown; nor is
    ///   a full disk, after which the work is retried like after a network failure.
    public func run() async throws { try await run(untilIdle: false) }

    /// Runs as `run()`.
    ///
    /// - Parameter untilIdle: true to return once all due work is fetched, unavailable, or waiting for
    ///   another network or its retry: for an app that the system wakes to fetch.
    /// - Throws: as `run()`.
    public func run(untilIdle: Bool) async throws {
        try await queue.run(
            begin: {
                let start = await state()
                observed = (start.combination, start.progress.reviewTimestamps(by: user))
                enqueue(policy.work(for: .appStart, in: start))
            },
            work: {
                // The first path is reported after the loop has begun.
                let isPathKnown = queue.path != nil
                try await fetchPending()
                return !untilIdle || !isPathKnown || isPermitted && nextWork() != nil
            },
            end: { (pending, requestedAgain) = ([], []) })
    }

    private var isPermitted: Bool { queue.obstacle(on: queue.path) == nil }

    /// Fetches the due work, one item after the other.
    private func fetchPending() async throws {
        try await store.checkOpen()
        var state = await enqueueNewWork()
        while isPermitted, let next = nextWork() {
            try Task.checkCancellation()
            try await store.checkOpen()
            let networkChanges = queue.networkChanges
            requestedAgain.remove(next)
            do {
                try await fetch(next)
                await markDone(next)
            } catch {
                try await handleFailure(error, of: next, networkChanges)
            }
            state = await enqueueNewWork()
        }
        setTimer(for: state)
    }

    private func nextWork() -> PrefetchPolicy.Work? {
        pending.first(where: queue.isDue)
    }

    /// Removes work that was fetched or is not available.
    private func markDone(_ work: PrefetchPolicy.Work) async {
        let now = await store.timestamp
        pending.removeAll { $0 == work }
        queue.forgetRetry(work)
        guard case .reviews(_, let combination) = work else { return }
        fetchedAt = (now, combination)
    }

    /// Drops failed work or schedules its retry.
    private func handleFailure(
        _ error: any Error, of work: PrefetchPolicy.Work, _ networkChanges: Int
    ) async throws {
        // A source may throw `CancellationError` without a cancelled task: that is a failure like others.
        try Task.checkCancellation()
        switch error {
        // No retry before the network or the settings change. If the loop's own path permits the work, the
        // download has received a change that the loop has not: then the work is retried by time.
        case is LearningError where !isPermitted: return
        // A suspension closes the file store before the log, and releases the fetched files.
        case let error as LogError where error.code == .closed:
            try await store.checkOpen()
            throw LogError(.suspended, path: store.directory, "the store is being suspended")
        case let error as FileStoreError where error.code == .missing: return
        case let error as LogError where error.code != .diskFull: throw error
        case let error as DownloadError where error.code != .unavailable:
            return await markDone(work)
        // Permanent: the content is invalid or exceeds an event.
        case is EventError, is LearningFetch.SessionsLeftOut: return await markDone(work)
        default: break
        }
        guard !requestedAgain.contains(work) else { return }
        let requested = options.backoff.delay(asked: (error as? DownloadError)?.retryAfterSeconds)
        queue.retry(
            work, after: max(.seconds(1), options.pausedRetry, requested), since: networkChanges)
    }

    /// Sets the timer for the next work that becomes due by its age; without such work, removes it.
    ///
    /// - Parameter state: the result of `enqueueNewWork`. With a later reading of the clock, work that
    ///   became due between the two readings would neither be pending nor have a timer.
    private func setTimer(for state: PrefetchState) {
        guard let due = policy.due(in: state), due > state.now else {
            queue.setTimer(after: nil)
            return
        }
        let (wait, overflow) = due.milliseconds.subtractingReportingOverflow(
            state.now.milliseconds)
        queue.setTimer(after: .milliseconds(overflow ? .max : wait))
    }

    // MARK: Fetching

    private func fetch(_ work: PrefetchPolicy.Work) async throws {
        switch work {
        case .reviews(let count, let combination):
            // The user may have chosen another combination meanwhile.
            guard store.view(LearningView.self).combination(of: user) == combination else { return }
            try await fetchReviews(first: count, combination, isExplicit: false)
        case .lesson(let lessonId, let courseId, let combination):
            try await fetchLesson(lessonId, courseId, combination, isExplicit: false)
        }
    }

    @discardableResult
    private func fetchLesson(
        _ lessonId: String, _ courseId: String, _ combination: LanguageCombination,
        isExplicit: Bool
    ) async throws -> StoredLesson {
        try await whilePermitted { [fetch] in
            try await fetch.lesson(lessonId, courseId, combination, isExplicit: isExplicit)
        }
    }

    @discardableResult
    private func fetchReviews(
        first count: Int, _ combination: LanguageCombination, isExplicit: Bool
    ) async throws -> [StoredReview] {
        guard count >= 1 else { return [] }
        return try await whilePermitted { [self] in
            try await fetchReviewsSerially(first: count, combination, isExplicit: isExplicit)
        }
    }

    /// Fetches sessions after the end of every earlier call.
    private func fetchReviewsSerially(
        first count: Int, _ combination: LanguageCombination, isExplicit: Bool
    ) async throws -> [StoredReview] {
        while isDownloadingReviews {
            let (ended, end) = AsyncStream.makeStream(of: Void.self)
            reviewWaiters.append(end)
            for await _ in ended {}
            try Task.checkCancellation()
        }
        isDownloadingReviews = true
        let downloads = store.transient(ReviewDownloads.self)
        downloads.update(user) { ($0 ?? 0) + 1 }
        defer {
            downloads.update(user) { count in count.flatMap { $0 > 1 ? $0 - 1 : nil } }
            isDownloadingReviews = false
            for waiter in reviewWaiters { waiter.finish() }
            reviewWaiters = []
        }
        return try await fetch.reviews(first: count, combination, isExplicit: isExplicit)
    }

    private func whilePermitted<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await queue.whilePermitted { [instruments] in
            try await instruments.measure(.download) {
                do { return try await body() } catch {
                    try Failures.throwIfPermanent(error)
                    throw error
                }
            }
        }
    }
}
