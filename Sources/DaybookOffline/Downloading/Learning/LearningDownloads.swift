// Fetches review sessions and lessons, by itself and when the user asks: sleeps until something
// happens that the policy minds, or a completion is old enough. Between the source and the log; what
// is due follows from the log. Spec/model/learning.md, LRN-30 to LRN-39.

import Daybook
import Foundation
import Synchronization
import Telemetry

/// Keeps lessons and review sessions ready for times without a network.
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
/// What is fetched is on the device whole or not at all. Where nothing is due it waits without a
/// timer.
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

    /// While `run()` works.
    private var loop: WakeLoop<Timestamp>?
    /// What is to be fetched, in the order in which it became due.
    private var pending: [PrefetchPolicy.Work] = []
    /// Work that has failed: since which network, and what ends the wait for the next try.
    private var failed: [PrefetchPolicy.Work: (arrivals: Int, retry: Task<Void, Never>)] = [:]
    /// Work that something has asked for since it was begun last.
    private var renewed: Set<PrefetchPolicy.Work> = []
    /// The network as it was told last; nil before that.
    private var path: NetworkPath?
    /// Raised whenever there is another network.
    private var arrivals = 0
    /// Whether review sessions are being downloaded: none can be started until that has ended.
    public private(set) var isDownloadingReviews = false
    /// Who waits for the end of that, to download sessions, too.
    private var waiting: [AsyncStream<Void>.Continuation] = []
    /// Whether all that is due is done, or waits for its next try: what is noticed from now on is not
    /// under way already.
    var isIdle: Bool {
        !isDownloadingReviews && pending.allSatisfy { failed[$0] != nil }
    }
    /// What was seen in the log last.
    private var seen: (combination: LanguageCombination?, reviews: Set<Stamp>) = (nil, [])
    /// When sessions were fetched last in this process: a server may have none, or refuse.
    private var fetchedAt: (time: Timestamp, combination: LanguageCombination)?

    /// Creates downloads from a server by the protocol of Spec/model/learning.md. Apps use the one that
    /// takes an `OfflineStore`.
    init(
        _ store: EventStore, _ files: FileStore, base: URL, credentials: any Credentials,
        user: String, reachability: any Reachability, policy: PrefetchPolicy,
        options: DownloadManager.Options
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials, origin: HTTPOrigin(base),
            now: { await store.now })
        self.init(
            store, files, source: HTTPLearningSource(base: base, authorizer: authorizer),
            user: user, reachability: reachability, policy: policy, options: options)
    }

    /// Creates downloads from elsewhere. Apps use the one that takes an `OfflineStore`.
    init(
        _ store: EventStore, _ files: FileStore, source: any LearningSource, user: String,
        reachability: any Reachability, policy: PrefetchPolicy, options: DownloadManager.Options
    ) {
        self.store = store
        self.files = files
        self.source = source
        self.user = user
        self.reachability = reachability
        self.policy = policy
        self.options = options
        learning = LearningCommands(store, files)
    }

    // MARK: For screens

    /// Starts a review session that is on the device.
    ///
    /// - Returns: its content and its files.
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

    /// Starts a lesson, which makes the next one of the course be fetched if the policy says so.
    ///
    /// - Returns: its content and its files; nil if it is not on the device.
    /// - Throws: `LogError`.
    public func startLesson(
        _ lessonId: String, course courseId: String
    ) async throws -> LearningMaterial? {
        await notice(.lessonStart(lessonId: lessonId, courseId: courseId))
        return try await learning.readLesson(lessonId, course: courseId)
    }

    /// Downloads a lesson because the user asks for it. Durable on return.
    ///
    /// - Throws: `LearningError`: `noCombination`, and `offline` and `cellular`, also where the
    ///   network goes meanwhile; `DownloadError`, and what else the source throws; `EventError` as
    ///   `LearningCommands.storeLesson`; `FileStoreError`; `LogError`; `CancellationError`. The
    ///   lesson is as it was then.
    @discardableResult
    public func downloadLesson(
        _ lessonId: String, course courseId: String
    ) async throws -> StoredLesson {
        try await fetchLesson(lessonId, courseId, try selected(), isExplicit: true)
    }

    /// Downloads the review sessions that come next because the user asks for them; no others are
    /// removed. Durable on return.
    ///
    /// - Parameter count: how many; nil for as many as the policy says. Below 1 it is none.
    /// - Returns: those that the source had.
    /// - Throws: as `downloadLesson`. Sessions that had come before the error stay.
    @discardableResult
    public func downloadReviews(first count: Int? = nil) async throws -> [StoredReview] {
        try await fetchReviews(
            first: count ?? policy.reviewCount, try selected(), isExplicit: true)
    }

    private func selected() throws -> LanguageCombination {
        guard let combination = store.view(LearningView.self).combination(of: user) else {
            throw LearningError(.noCombination, "the user \(user) has not chosen what to learn")
        }
        return combination
    }

    /// When sessions are fetched at the latest by themselves, for an app that has the system wake
    /// it; nil where nothing is due.
    public func nextPrefetch() async -> Timestamp? { policy.due(in: await state()) }

    // MARK: What happens

    /// Says that something has happened: the app came to the front, the user logged in. What the log
    /// tells (completions, another combination) and the start of `run()` need not be said. What is
    /// to be fetched then is fetched by `run()`, now or when the network is there.
    public func notice(_ trigger: PrefetchPolicy.Trigger) async {
        add(policy.work(for: trigger, in: await state()))
    }

    private func add(_ work: [PrefetchPolicy.Work]) {
        for work in work {
            forgive(work)
            renewed.insert(work)
            if !pending.contains(work) { pending.append(work) }
        }
        if !pending.isEmpty { loop?.wake() }
    }

    private func forgive(_ work: PrefetchPolicy.Work) {
        failed.removeValue(forKey: work)?.retry.cancel()
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

    /// Adds the work that follows from what has happened since the log was looked at last.
    ///
    /// - Returns: the state by which it has decided, for `arm`.
    private func observe() async -> PrefetchState {
        let state = await state()
        let reviews = state.progress.reviewStamps(by: user)
        let old = seen
        seen = (state.combination, reviews)
        if state.combination != old.combination {
            add(policy.work(for: .combinationChange, in: state))
        }
        if !reviews.isSubset(of: old.reviews) {
            add(policy.work(for: .reviewFinish, in: state))
            add(policy.work(for: .lastReviewDone, in: state))
        }
        // This one is true for as long as nothing was fetched: it makes no failed work due anew.
        for work in policy.work(for: .completionAge, in: state) where !pending.contains(work) {
            pending.append(work)
        }
        return state
    }

    // MARK: The loop

    /// Works until the calling task is cancelled or the store is closed; its beginning is the app's
    /// start. One call at a time: another one returns at once.
    ///
    /// While the store is suspended it rests; what that has interrupted it begins anew afterwards.
    ///
    /// - Parameter untilIdle: true to return once all due work is fetched, unavailable, or waiting for
    ///   another network or its next try: for an app that the system wakes to fetch. Its beginning
    ///   counts as the start of the app, too. While another call runs, it returns at once.
    /// - Throws: `LogError` where the log could not be read or written. Failures of the network are
    ///   no errors; nor is a full disk: it tries again after a while as after one of those.
    public func run(untilIdle: Bool = false) async throws {
        guard loop == nil else { return }
        let loop = WakeLoop<Timestamp>(sleep: options.sleep)
        self.loop = loop
        let commits = await store.commits()
        let start = await state()
        seen = (start.combination, start.progress.reviewStamps(by: user))
        add(policy.work(for: .appStart, in: start))
        let result: Result<Void, any Error>
        do {
            try await loop.run(
                commits, reachability, learn: { await self.learn($0) },
                work: {
                    // The reachability reports the first path after the loop has begun.
                    let knowsPath = path != nil
                    let isWholeStep = try await work()
                    return !(untilIdle && knowsPath && isWholeStep && !hasWork)
                })
            result = .success(())
        } catch { result = .failure(error) }
        for work in Array(failed.keys) { forgive(work) }
        (pending, renewed) = ([], [])
        self.loop = nil
        path = nil
        try result.get()
    }

    private func learn(_ path: NetworkPath) {
        if path != NetworkPath.none, path != self.path { arrivals += 1 }
        self.path = path
    }

    /// - Returns: false if the store is suspended.
    private func work() async throws -> Bool {
        do {
            try await step()
            return true
        } catch let error as LogError where error.code == .suspended {
            // It goes on when the store is resumed.
            loop?.setTimer(nil)
            return false
        }
    }

    private var hasWork: Bool { (try? permit(path)) != nil && next() != nil }

    /// Fetches what is due, one after the other.
    private func step() async throws {
        try await store.checkOpen()
        var state = await observe()
        while (try? permit(path)) != nil, let next = next() {
            try Task.checkCancellation()
            try await store.checkOpen()
            let arrivals = arrivals
            renewed.remove(next)
            do {
                try await fetch(next)
                await finish(next)
            } catch {
                try await take(error, of: next, arrivals)
            }
            state = await observe()
        }
        arm(state)
    }

    private func next() -> PrefetchPolicy.Work? {
        pending.first { failed[$0].map { $0.arrivals != arrivals } ?? true }
    }

    /// What was fetched, or is not to be had.
    private func finish(_ work: PrefetchPolicy.Work) async {
        let now = await store.timestamp
        pending.removeAll { $0 == work }
        forgive(work)
        guard case .reviews(_, let combination) = work else { return }
        fetchedAt = (now, combination)
    }

    /// Decides what becomes of work that has failed.
    private func take(
        _ error: any Error, of work: PrefetchPolicy.Work, _ arrivals: Int
    ) async throws {
        // A source may say so without being told to end.
        try Task.checkCancellation()
        switch error {
        // Nothing is tried before the network or the settings are others. Else the loop has not heard
        // of a change yet that the download has.
        case is LearningError where (try? permit(path)) == nil: return
        // The files are closed before the log is suspended, and what was fetched is let go then.
        case let error as LogError where error.code == .closed:
            try await store.checkOpen()
            throw LogError(.suspended, path: store.directory, "the store is being suspended")
        case let error as FileStoreError where error.code == .missing: return
        case let error as LogError where error.code != .diskFull: throw error
        case let error as DownloadError where error.code != .unavailable: return await finish(work)
        // What is no lesson, or does not fit an event, is none at the next try either.
        case is EventError: return await finish(work)
        default: break
        }
        guard !renewed.contains(work) else { return }
        let asked = options.backoff.delay(asked: (error as? DownloadError)?.retryAfterSeconds)
        let wait = max(.seconds(1), options.pausedRetry, asked)
        forgive(work)
        failed[work] = (
            arrivals,
            Task { [sleep = options.sleep] in
                do { try await sleep(wait) } catch { return }
                guard !Task.isCancelled else { return }
                self.retry(work)
            }
        )
    }

    private func retry(_ work: PrefetchPolicy.Work) {
        forgive(work)
        loop?.wake()
    }

    /// Sets the timer for the next work that becomes due by its age; without such work, removes it.
    ///
    /// - Parameter state: the one that `observe` returned. With a later reading of the clock, work that
    ///   became due between the two readings would neither be pending nor have a timer.
    private func arm(_ state: PrefetchState) {
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
            // The user may have chosen another one meanwhile.
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
            return try await withFiles(unit) { material in
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
            try await fetchReviewsInTurn(first: count, combination, isExplicit: isExplicit)
        }
    }

    /// One at a time: whoever comes second begins when the first has ended.
    private func fetchReviewsInTurn(
        first count: Int, _ combination: LanguageCombination, isExplicit: Bool
    ) async throws -> [StoredReview] {
        while isDownloadingReviews {
            let (ended, end) = AsyncStream.makeStream(of: Void.self)
            waiting.append(end)
            for await _ in ended {}
            try Task.checkCancellation()
        }
        isDownloadingReviews = true
        let downloads = store.transient(ReviewDownloads.self)
        downloads.update(user) { ($0 ?? 0) + 1 }
        defer {
            downloads.update(user) { count in count.flatMap { $0 > 1 ? $0 - 1 : nil } }
            isDownloadingReviews = false
            for waiting in waiting { waiting.finish() }
            waiting = []
        }
        let sessions = try await source.reviews(of: user, combination, first: count).prefix(count)
        guard Set(sessions.map { EntityID($0.reviewId) }).count == sessions.count else {
            throw DownloadError(.badManifest, "the source names a review session twice")
        }
        var stored: [StoredReview] = []
        for (order, session) in sessions.enumerated() {
            stored.append(
                try await withFiles(session.unit) { material in
                    var material = material
                    material.isExplicit = isExplicit
                    return try await learning.recordReview(
                        ReviewStored(
                            userId: user, reviewId: session.reviewId,
                            combination: combination, courseId: session.courseId,
                            order: order, material: material))
                })
        }
        if !isExplicit {
            try await learning.removeReviews(
                of: user, in: combination, but: sessions.map(\.reviewId))
        }
        return stored
    }

    /// Fetches the files of a unit and records it; without its record they go again.
    private nonisolated func withFiles<Result: Sendable>(
        _ unit: LearningUnit, record: @Sendable (LearningMaterial) async throws -> Result
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
                        "files of more than \(options.cityBytesMax) bytes, which is the most that "
                            + "is taken")
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
                "a file of \(bytes.count) bytes; at most \(options.imageBytesMax) are taken")
        }
        try Task.checkCancellation()
        return LearningFile(url: url, file: try await files.add(bytes), size: bytes.count)
    }

    /// What would cost bytes before it is refused.
    private static func check(_ unit: LearningUnit) throws(DownloadError) {
        guard unit.files.count <= LearningUnit.filesMax else {
            throw DownloadError(.badManifest, "it has more than \(LearningUnit.filesMax) files")
        }
        guard Set(unit.files.map(EntityID.init)).count == unit.files.count else {
            throw DownloadError(.badManifest, "it names a file twice")
        }
    }

    // MARK: The network

    /// Does something while the network and the user's settings let it be done.
    ///
    /// - Throws: `LearningError` if they do not, or do not any more; `LogError` (`suspended`) when
    ///   the store is; what `body` throws.
    private func whilePermitted<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let (allowed, allow) = AsyncStream.makeStream(of: Void.self)
        // As this download has heard of it: the loop may have heard more, or less.
        let present = PresentPath()
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            defer { group.cancelAll() }
            group.addTask { [reachability] in
                defer { allow.finish() }
                for await path in reachability.paths {
                    present.path.withLock { $0 = path }
                    try await self.permit(path)
                    allow.yield()
                }
                try Task.checkCancellation()
                guard present.path.withLock({ $0 }) != nil else {
                    throw LearningError(.offline, "nobody knows of a network")
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
                    if let path = present.path.withLock({ $0 }) { try await self.permit(path) }
                }
                return nil
            }
            group.addTask { [instruments] in
                // Not before it is known which network there is.
                for await _ in allowed {
                    return try await instruments.measure(.download) {
                        do { return try await body() } catch {
                            try Failures.check(error)
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

    private func permit(_ path: NetworkPath?) throws {
        switch path {
        case nil, .some(.none): throw LearningError(.offline, "there is no network")
        case .cellular where store.view(PreferencesView.self)[user].wifiOnlyDownload:
            throw LearningError(
                .cellular, "there is a mobile network, and downloads wait for Wi-Fi")
        default: return
        }
    }
}

/// The network as somebody has heard of it last.
private final class PresentPath: Sendable {
    let path = Mutex<NetworkPath?>(nil)
}
