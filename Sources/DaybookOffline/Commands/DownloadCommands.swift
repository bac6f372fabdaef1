// What an app, and the download manager, does with download jobs: every step is checked against the
// table of states and recorded in one go. Spec/model/downloads.md, DL-2 to DL-6.

import Daybook
import Foundation

/// Commands on downloads.
///
/// They record what is to happen, or has happened; the fetching is done by a `DownloadManager`,
/// which follows what they record.
public struct DownloadCommands: Sendable {
    let store: EventStore

    private let references: ReferenceCheck

    init(_ store: EventStore, _ references: ReferenceCheck = []) {
        self.store = store
        self.references = references
    }

    /// How long a completed job is kept.
    public static let completedKept = Duration.seconds(24 * 3_600)
    /// How long a failed job is kept, for the user to try it again.
    public static let failedKept = Duration.seconds(7 * 24 * 3_600)

    // MARK: What the user does

    /// Puts a city in the queue. If the city has a job that is not finished, that one is meant: a
    /// paused one goes back to the queue, and one that was automatic becomes explicit if this call
    /// is. Durable on return.
    ///
    /// - Parameters:
    ///   - cityId: the city.
    ///   - isExplicit: whether the user asked for it. Such jobs go first, and such cities stay when
    ///     room is needed.
    /// - Returns: the city's job.
    /// - Throws: `EventError`: `refused` for an empty id, `unknownReference` for a city that
    ///   `ReferenceCheck.cities` does not find; `LogError` as `EventStore.append`.
    @discardableResult
    public func queue(_ cityId: String, isExplicit: Bool = true) async throws -> DownloadJob {
        try DownloadQueued.require(cityId, "city id")
        let newID = store.newID().text
        let jobId = try await store.write { transaction in
            try references.requireCity(cityId, transaction)
            let downloads = transaction.view(DownloadsView.self)
            guard let job = downloads.jobs(of: cityId).first(where: { $0.status.isUnfinished })
            else {
                try transaction.append(
                    DownloadQueued(jobId: newID, cityId: cityId, isExplicit: isExplicit))
                return newID
            }
            let becomesExplicit = isExplicit && !job.isExplicit
            guard becomesExplicit || job.status == .paused && isExplicit else { return job.id }
            let stamp = downloads.stamp(job.id)
            try transaction.append(
                DownloadQueued(
                    jobId: job.id, cityId: cityId, isExplicit: isExplicit || job.isExplicit),
                replacing: stamp)
            if job.status == .downloading {
                // It goes on; only whose wish it is has changed.
                try transaction.append(
                    DownloadStarted(jobId: job.id, numbers: job.numbers), replacing: stamp)
            }
            return job.id
        }
        return try present(jobId)
    }

    /// Pauses a job until somebody resumes it; also one that is paused for another reason. Durable
    /// on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is finished, or that the user has paused;
    ///   `LogError` as `EventStore.append`.
    public func pause(_ jobId: String) async throws {
        try await pause(jobId, .user, numbers: nil)
    }

    /// Puts a paused job back in the queue. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is not PAUSED; `LogError` as
    ///   `EventStore.append`.
    public func resume(_ jobId: String) async throws { try await requeue(jobId, from: .paused) }

    /// Puts a failed job back in the queue. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is not FAILED, or whose city has another
    ///   job that is not finished; `LogError` as `EventStore.append`.
    public func retry(_ jobId: String) async throws { try await requeue(jobId, from: .failed) }

    private func requeue(_ jobId: String, from status: DownloadStatus) async throws {
        try await change(jobId, to: .queued) { job, downloads in
            guard job.status == status else {
                throw EventError(
                    .refused,
                    "the download \(jobId) is \(job.status.rawValue), not \(status.rawValue)")
            }
            if let other = downloads.jobs(of: job.cityId)
                .first(where: { $0.id != jobId && $0.status.isUnfinished })
            {
                throw EventError(
                    .refused, "the city \(job.cityId) has another download, \(other.id)")
            }
            return DownloadQueued(
                jobId: jobId, cityId: job.cityId, isExplicit: job.isExplicit)
        }
    }

    /// Cancels a job: it is CANCELLED and removed in one step. If its city is not cached, it is not
    /// downloaded by itself before it is saved anew. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is finished; `LogError` as
    ///   `EventStore.append`.
    public func cancel(_ jobId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let job = try Self.check(jobId, .cancelled, transaction.view(DownloadsView.self))
            try transaction.append(DownloadCancelled(jobId: jobId))
            try transaction.append(DownloadRemoved(jobId: jobId))
            try Self.decline(job.cityId, in: &transaction)
        }
    }

    /// A city that the user does not want to have is not queued by itself any more.
    private static func decline(
        _ cityId: String, in transaction: inout EventStore.Transaction
    ) throws {
        guard transaction.view(CitiesView.self).offline(cityId) == nil else { return }
        try CityCommands.remove(cityId, .user, in: &transaction)
    }

    /// Removes a job that is finished. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is not; `LogError` as `EventStore.append`.
    public func remove(_ jobId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let job = try Self.job(jobId, transaction.view(DownloadsView.self))
            guard !job.status.isUnfinished else {
                throw EventError(
                    .refused,
                    "the download \(jobId) is \(job.status.rawValue); cancel it to remove it")
            }
            try transaction.append(DownloadRemoved(jobId: jobId))
            if job.status == .failed {
                try Self.decline(job.cityId, in: &transaction)
            }
        }
    }

    /// Removes what is kept long enough: COMPLETED jobs 24 hours after they were, FAILED ones after
    /// 7 days, CANCELLED ones at once. Durable on return.
    ///
    /// - Parameter now: the time; nil for the store's clock.
    /// - Returns: how many jobs were removed.
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(finished jobs).
    @discardableResult
    public func cleanUp(_ now: Timestamp? = nil) async throws -> Int {
        let corrected = await store.timestamp
        let now = now ?? corrected
        guard !Self.due(store.view(DownloadsView.self), now).isEmpty else { return 0 }
        return try await store.write { transaction in
            let due = Self.due(transaction.view(DownloadsView.self), now)
            for job in due { try transaction.append(DownloadRemoved(jobId: job.id)) }
            return due.count
        }
    }

    private static func due(_ downloads: DownloadsView, _ now: Timestamp) -> [DownloadJob] {
        func old(_ status: DownloadStatus, _ kept: Duration) -> [DownloadJob] {
            downloads.jobs(status).filter {
                now.milliseconds - $0.changedAt.milliseconds >= kept.components.seconds * 1_000
            }
        }
        // A batch has its limit; the next call takes the rest.
        return Array(
            (downloads.jobs(.cancelled) + old(.completed, completedKept)
                + old(.failed, failedKept))
                .prefix(1_000))
    }

    // MARK: What whoever downloads does

    /// A job is worked on from now on, or again. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is neither QUEUED nor PAUSED; `LogError` as
    ///   `EventStore.append`.
    public func start(_ jobId: String, numbers: DownloadNumbers = .initial) async throws {
        try await change(jobId, to: .downloading) { _, _ in
            DownloadStarted(jobId: jobId, numbers: numbers)
        }
    }

    /// A job rests. Durable on return.
    ///
    /// - Parameters:
    ///   - jobId: the job.
    ///   - reason: why it rests.
    ///   - numbers: how far it has come; nil: as far as `job(_:)` shows.
    /// - Throws: `EventError` (`refused`) for a job that is neither QUEUED nor DOWNLOADING, nor,
    ///   where the reason is the user's, PAUSED for another one; `LogError` as `EventStore.append`.
    public func pause(
        _ jobId: String, _ reason: PauseReason, numbers: DownloadNumbers?
    ) async throws {
        let progress = store.transient(DownloadProgress.self)
        try await change(
            jobId, to: .paused,
            orIf: { reason == .user && $0.status == .paused && $0.pauseReason != .user }
        ) { job, _ in
            DownloadPaused(
                jobId: jobId, numbers: numbers ?? progress[jobId] ?? job.numbers, reason: reason)
        }
    }

    /// A job is done. Durable on return.
    ///
    /// - Parameters:
    ///   - jobId: the job.
    ///   - totalBytes: bytes that were downloaded.
    ///   - record: adds what was downloaded to the same commit. If it throws, nothing is recorded.
    /// - Throws: `EventError` (`refused`) for a job that is not DOWNLOADING; what `record` throws;
    ///   `LogError` as `EventStore.append`.
    public func complete(
        _ jobId: String, totalBytes: Int,
        recording record: @escaping @Sendable (inout EventStore.Transaction) throws -> Void = { _ in
        }
    ) async throws {
        try await store.write { transaction in
            let downloads = transaction.view(DownloadsView.self)
            _ = try Self.check(jobId, .completed, downloads)
            try record(&transaction)
            try transaction.append(
                DownloadCompleted(jobId: jobId, totalBytes: totalBytes),
                replacing: downloads.stamp(jobId))
        }
    }

    /// A job failed. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for an empty message or a job that is not DOWNLOADING;
    ///   `LogError` as `EventStore.append`.
    public func fail(
        _ jobId: String, _ errorMessage: String, numbers: DownloadNumbers
    ) async throws {
        try DownloadFailed.require(errorMessage, "error message")
        try await change(jobId, to: .failed) { _, _ in
            DownloadFailed(jobId: jobId, numbers: numbers, errorMessage: errorMessage)
        }
    }

    // MARK: Checks

    /// Records a step, also where the last one was recorded while the clock was ahead.
    private func change<Payload: EventPayload>(
        _ jobId: String, to status: DownloadStatus,
        orIf isAllowed: @escaping @Sendable (DownloadJob) -> Bool = { _ in false },
        _ payload: @escaping @Sendable (DownloadJob, DownloadsView) throws -> Payload
    ) async throws {
        try await store.write { transaction in
            let downloads = transaction.view(DownloadsView.self)
            var job = try Self.job(jobId, downloads)
            if !isAllowed(job) { job = try Self.check(jobId, status, downloads) }
            try transaction.append(payload(job, downloads), replacing: downloads.stamp(jobId))
        }
    }

    private static func check(
        _ jobId: String, _ status: DownloadStatus, _ downloads: DownloadsView
    ) throws(EventError) -> DownloadJob {
        let job = try job(jobId, downloads)
        guard job.status.successors.contains(status) else {
            throw EventError(
                .refused,
                "the download \(jobId) is \(job.status.rawValue) and cannot become "
                    + status.rawValue)
        }
        return job
    }

    private static func job(
        _ jobId: String, _ downloads: DownloadsView
    ) throws(EventError) -> DownloadJob {
        guard let job = downloads[jobId] else {
            throw EventError(
                .refused,
                downloads.isRemoved(jobId)
                    ? "the download \(jobId) was removed" : "there is no download \(jobId)")
        }
        return job
    }

    private func present(_ jobId: String) throws(EventError) -> DownloadJob {
        try Self.job(jobId, store.view(DownloadsView.self))
    }
}

// MARK: Questions

/// The numbers of the jobs that are worked on in this process, by job id. A manager writes them,
/// every `progressInterval` at most; the log has those of the last event (DL-20).
enum DownloadProgress: TransientState {
    typealias Key = String
    typealias Value = DownloadNumbers
}

extension DownloadCommands {
    /// A job, while it is downloaded with the bytes of this moment; nil while there is none with this
    /// id, and once it was removed. O(1).
    public func job(_ jobId: String) -> ViewQuery<DownloadJob?> {
        query { view, numbers in view[jobId]?.with(numbers) }
    }

    /// The jobs of a city, oldest first; the one that is downloaded with the bytes of this moment.
    /// O(k log k) for k jobs of the city.
    public func jobs(of cityId: String) -> ViewQuery<[DownloadJob]> {
        query { view, numbers in view.jobs(of: cityId).map { $0.with(numbers) } }
    }

    /// The jobs that are QUEUED or DOWNLOADING, in the order in which they are worked on, with the
    /// bytes of this moment. O(k log k) for k such jobs.
    public var active: ViewQuery<[DownloadJob]> {
        query { view, numbers in view.active.map { $0.with(numbers) } }
    }

    /// The jobs in a state, oldest first; those that are downloaded with the bytes of this moment.
    /// O(k log k) for k jobs in it.
    public func jobs(_ status: DownloadStatus) -> ViewQuery<[DownloadJob]> {
        query { view, numbers in view.jobs(status).map { $0.with(numbers) } }
    }

    private func query<Value>(
        _ answer: @escaping @Sendable (DownloadsView, [String: DownloadNumbers]) -> Value
    ) -> ViewQuery<Value> {
        store.query(DownloadsView.self, with: DownloadProgress.self, answer)
    }
}

extension DownloadJob {
    /// The job with the numbers of this moment, if it is downloaded and there are any.
    fileprivate func with(_ numbers: [String: DownloadNumbers]) -> DownloadJob {
        guard status == .downloading, let numbers = numbers[id] else { return self }
        return with(numbers)
    }
}
