// Fetches review sessions and lessons, automatically and on the user's request: sleeps until a trigger of
// the policy occurs, or a completion reaches the age for a prefetch. Between the source and the log; the due
// work is computed from the log. Spec/model/learning.md, LRN-30 to LRN-39.

import Daybook
import Foundation
import Synchronization
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
    private let files: FileStore
    private let source: any LearningSource
    private let user: String
    private let reachability: any Reachability
    private let policy: PrefetchPolicy
    private let options: DownloadManager.Options
    private let instruments = Instruments()
    private nonisolated let learning: LearningCommands

    /// The loop of `run()`; nil while it does not run.
    private var loop: WakeLoop<Timestamp>?
    /// The work to fetch, in the order in which it became due.
    private var pending: [PrefetchPolicy.Work] = []
    /// Failed work: `networkChanges` at its failure, and the task that waits for its retry.
    private var failedWork: [PrefetchPolicy.Work: (networkChanges: Int, retry: Task<Void, Never>)] =
        [:]
    /// Work that a trigger has requested since its last start.
    private var requestedAgain: Set<PrefetchPolicy.Work> = []
    /// The network path reported last; nil before the first report.
    private var path: NetworkPath?
    /// The number of times that another network was reported.
    private var networkChanges = 0
    /// True while review sessions are downloaded. No session can be started until the download ends.
    public private(set) var isDownloadingReviews = false
    /// Further downloads of sessions that wait for the end of the current one.
    private var reviewWaiters: [AsyncStream<Void>.Continuation] = []
    /// True if all due work is done or waits for its retry. Work of a trigger after that has not begun.
    var isIdle: Bool {
        !isDownloadingReviews && pending.allSatisfy { failedWork[$0] != nil }
    }
    /// The state of the log that `enqueueNewWork` compares with.
    private var observed: (combination: LanguageCombination?, reviews: Set<LWWTimestamp>) = (
        nil, []
    )
    /// The last fetch of sessions in this process. The log cannot tell it if the server had none or refused.
    private var fetchedAt: (time: Timestamp, combination: LanguageCombination)?

    /// Creates downloads from a server with the protocol of Spec/model/learning.md. Apps use the
    /// initializer that takes an `OfflineStore`.
    init(
        _ store: EventStore, _ files: FileStore, base: URL, credentials: any Credentials,
        user: String, reachability: any Reachability, policy: PrefetchPolicy,
        options: DownloadManager.Options, references: ReferenceCheck? = nil
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials, origin: HTTPOrigin(base), for: store)
        self.init(
            store, files, source: HTTPLearningSource(base: base, authorizer: authorizer),
            user: user, reachability: reachability, policy: policy, options: options,
            references: references)
    }

    /// Creates downloads from another source. Apps use the initializer that takes an `OfflineStore`.
    init(
        _ store: EventStore, _ files: FileStore, source: any LearningSource, user: String,
        reachability: any Reachability, policy: PrefetchPolicy, options: DownloadManager.Options,
        references: ReferenceCheck? = nil
    ) {
        self.store = store
        self.files = files
        self.source = source
        self.user = user
        self.reachability = reachability
        self.policy = policy
        self.options = options
        learning = LearningCommands(store, files, references)
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
            clearFailure(of: work)
            requestedAgain.insert(work)
            if !pending.contains(work) { pending.append(work) }
        }
        if !pending.isEmpty { loop?.wake() }
    }

    private func clearFailure(of work: PrefetchPolicy.Work) {
        failedWork.removeValue(forKey: work)?.retry.cancel()
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
        guard loop == nil else { return }
        let loop = WakeLoop<Timestamp>(sleep: options.sleep)
        self.loop = loop
        let commits = await store.commits()
        let start = await state()
        observed = (start.combination, start.progress.reviewTimestamps(by: user))
        enqueue(policy.work(for: .appStart, in: start))
        let result: Result<Void, any Error>
        do {
            try await loop.run(
                commits, reachability, onPathChange: { await self.updatePath($0) },
                work: {
                    // The first path is reported after the loop has begun.
                    let isPathKnown = path != nil
                    let isStepComplete = try await work()
                    return !(untilIdle && isPathKnown && isStepComplete && !hasWork)
                })
            result = .success(())
        } catch { result = .failure(error) }
        for work in Array(failedWork.keys) { clearFailure(of: work) }
        (pending, requestedAgain) = ([], [])
        self.loop = nil
        path = nil
        try result.get()
    }

    private func updatePath(_ path: NetworkPath) {
        if path != NetworkPath.none, path != self.path { networkChanges += 1 }
        self.path = path
    }

    /// - Returns: false if the store is suspended.
    private func work() async throws -> Bool {
        do {
            try await fetchPending()
            return true
        } catch let error as LogError where error.code == .suspended {
            // Work continues when the store is resumed.
            loop?.setTimer(nil)
            return false
        }
    }

    private var hasWork: Bool { (try? requirePermitted(path)) != nil && nextWork() != nil }

    /// Fetches the due work, one item after the other.
    private func fetchPending() async throws {
        try await store.checkOpen()
        var state = await enqueueNewWork()
        while (try? requirePermitted(path)) != nil, let next = nextWork() {
            try Task.checkCancellation()
            try await store.checkOpen()
            let networkChanges = networkChanges
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
        pending.first {
            failedWork[$0].map { $0.networkChanges != networkChanges } ?? true
        }
    }

    /// Removes work that was fetched or is not available.
    private func markDone(_ work: PrefetchPolicy.Work) async {
        let now = await store.timestamp
        pending.removeAll { $0 == work }
        clearFailure(of: work)
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
        case is LearningError where (try? requirePermitted(path)) == nil: return
        // A suspension closes the file store before the log, and releases the fetched files.
        case let error as LogError where error.code == .closed:
            try await store.checkOpen()
            throw LogError(.suspended, path: store.directory, "the store is being suspended")
        case let error as FileStoreError where error.code == .missing: return
        case let error as LogError where error.code != .diskFull: throw error
        case let error as DownloadError where error.code != .unavailable:
            return await markDone(work)
        // Permanent: the content is invalid or exceeds an event.
        case is EventError, is SessionsLeftOut: return await markDone(work)
        default: break
        }
        guard !requestedAgain.contains(work) else { return }
        let requested = options.backoff.delay(asked: (error as? DownloadError)?.retryAfterSeconds)
        let wait = max(.seconds(1), options.pausedRetry, requested)
        clearFailure(of: work)
        failedWork[work] = (
            networkChanges,
            Task { [sleep = options.sleep] in
                do { try await sleep(wait) } catch { return }
                guard !Task.isCancelled else { return }
                self.retry(work)
            }
        )
    }

    private func retry(_ work: PrefetchPolicy.Work) {
        clearFailure(of: work)
        loop?.wake()
    }

    /// Sets the timer for the next work that becomes due by its age; without such work, removes it.
    ///
    /// - Parameter state: the result of `enqueueNewWork`. With a later reading of the clock, work that
    ///   became due between the two readings would neither be pending nor have a timer.
    private func setTimer(for state: PrefetchState) {
        guard let due = policy.due(in: state), due > state.now else {
            loop?.setTimer(nil)
            return
        }
        let (wait, overflow) = due.milliseconds.subtractingReportingOverflow(
            state.now.milliseconds)
        loop?.setTimer(due, after: .milliseconds(overflow ? .max : wait))
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
        try await whilePermitted { [self] in
            let unit = try await source.lesson(lessonId, course: courseId, combination)
            return try await fetchFiles(of: unit) { material in
                var material = material
                material.isExplicit = isExplicit
                return try await learning.recordLesson(lessonId, course: courseId, material)
            }
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
        let sessions = try await source.reviews(of: user, combination, first: count).prefix(count)
        var stored: [StoredReview] = []
        var failure: (any Error)?
        var ids: Set<EntityID> = []
        for (order, session) in sessions.enumerated() {
            do {
                if let fault = session.unit.fault { throw fault }
                guard ids.insert(EntityID(session.reviewId)).inserted else {
                    throw DownloadError(.badManifest, "the source returned a review session twice")
                }
                stored.append(
                    try await fetchSession(session, order, combination, isExplicit: isExplicit))
            } catch {
                // It must not keep the others off the device.
                guard try await source.hasFailedForOneSession(error, of: user, combination)
                else { throw error }
                failure = failure ?? error
            }
        }
        // Also after a failure of one session: else the number of sessions would grow with each prefetch.
        // A session whose id could not be read may be any of the stored ones. If none has arrived, as in an outage of
        // the files' server, those on the device stay.
        if !isExplicit, failure == nil || !stored.isEmpty,
            sessions.allSatisfy({ !$0.reviewId.isEmpty })
        {
            try await learning.removeReviews(
                of: user, in: combination, except: sessions.map(\.reviewId))
        }
        if let failure { throw isExplicit ? failure : SessionsLeftOut() }
        return stored
    }

    /// Sessions of a prefetch could not be fetched, and the others are on the device: they are tried again at the
    /// next trigger. A retry by time would fetch the others again as well.
    private struct SessionsLeftOut: Error {}

    private nonisolated func fetchSession(
        _ session: ReviewSession, _ order: Int, _ combination: LanguageCombination,
        isExplicit: Bool
    ) async throws -> StoredReview {
        try await fetchFiles(of: session.unit) { material in
            var material = material
            material.isExplicit = isExplicit
            return try await learning.recordReview(
                ReviewStored(
                    userId: user, reviewId: session.reviewId, combination: combination,
                    courseId: session.courseId, order: order, material: material))
        }
    }

    /// Fetches the files of a unit and records the unit. The files are released at the end, so that without
    /// a record they are deleted.
    private nonisolated func fetchFiles<Result: Sendable>(
        of unit: LearningUnit, record: @Sendable (LearningMaterial) async throws -> Result
    ) async throws -> Result {
        try Self.check(unit)
        var fetched: [LearningFile] = []
        do {
            var bytes = 0
            try await fetchInParallel(unit.files, atOnce: options.imagesAtOnce) { url in
                try await self.fetchFile(url)
            } receive: { file in
                fetched.append(file)
                bytes += file.size
                guard bytes <= options.cityBytesMax else {
                    throw DownloadError(
                        .tooLarge,
                        "the files have more than \(options.cityBytesMax) bytes, which is the limit"
                    )
                }
            }
            try Task.checkCancellation()
            let byURL = Dictionary(
                fetched.map { (EntityID($0.url), $0) }, uniquingKeysWith: { a, _ in a })
            let result = try await record(
                LearningMaterial(
                    content: unit.content,
                    files: unit.files.compactMap { byURL[EntityID($0)] }, isExplicit: false))
            await learning.release(fetched)
            return result
        } catch {
            await learning.release(fetched)
            throw error
        }
    }

    private nonisolated func fetchFile(_ url: String) async throws -> LearningFile {
        let bytes = try await source.file(url, bytesMax: options.imageBytesMax)
        guard bytes.count <= options.imageBytesMax else {
            throw DownloadError(
                .tooLarge,
                "a file has \(bytes.count) bytes; the limit is \(options.imageBytesMax)")
        }
        // That of HTTP has been checked, and may have the digest that its server states.
        if !(source is HTTPLearningSource), let fault = WebPage.fault(of: bytes, at: url) {
            throw DownloadError(.wrongContent, "a file \(fault)")
        }
        try Task.checkCancellation()
        return LearningFile(url: url, file: try await files.storeRetained(bytes), size: bytes.count)
    }

    /// Checks the list of files before any is fetched.
    private static func check(_ unit: LearningUnit) throws(DownloadError) {
        guard unit.files.count <= LearningUnit.filesMax else {
            throw DownloadError(
                .badManifest, "the unit has more than \(LearningUnit.filesMax) files")
        }
        guard Set(unit.files.map(EntityID.init)).count == unit.files.count else {
            throw DownloadError(.badManifest, "the unit lists a file twice")
        }
    }

    // MARK: The network

    /// Runs `body` while the network and the user's settings permit it.
    ///
    /// - Throws: `LearningError` if they do not, or cease to; `LogError` (`suspended`) when the store is
    ///   suspended; what `body` throws.
    private func whilePermitted<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let (allowed, allow) = AsyncStream.makeStream(of: Void.self)
        // The path as reported to this download, which may differ from the loop's for a moment.
        let latest = LatestPath()
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            defer { group.cancelAll() }
            group.addTask { [reachability] in
                defer { allow.finish() }
                for await path in reachability.paths {
                    latest.path.withLock { $0 = path }
                    try await self.requirePermitted(path)
                    allow.yield()
                }
                try Task.checkCancellation()
                guard latest.path.withLock({ $0 }) != nil else {
                    throw LearningError(.offline, "no network connection is reported")
                }
                return nil
            }
            group.addTask { [store] in
                for await _ in await store.commits() { try await store.checkOpen() }
                return nil
            }
            group.addTask { [store, user] in
                let settings = store.query(PreferencesView.self) { $0[user].wifiOnlyDownload }
                for await _ in settings.changes {
                    if let path = latest.path.withLock({ $0 }) {
                        try await self.requirePermitted(path)
                    }
                }
                return nil
            }
            group.addTask { [instruments] in
                // Not before the first path is reported.
                for await _ in allowed {
                    return try await instruments.measure(.download) {
                        do { return try await body() } catch {
                            try Failures.throwIfPermanent(error)
                            throw error
                        }
                    }
                }
                return nil
            }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    private func requirePermitted(_ path: NetworkPath?) throws {
        switch path {
        case nil, .some(.none): throw LearningError(.offline, "there is no network connection")
        case .cellular where store.view(PreferencesView.self)[user].wifiOnlyDownload:
            throw LearningError(
                .cellular, "the network is cellular, and downloads wait for Wi-Fi")
        default: return
        }
    }
}

/// The network path reported last.
private final class LatestPath: Sendable {
    let path = Mutex<NetworkPath?>(nil)
}
