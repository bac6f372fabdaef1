// The commands of an app and of the download manager on download jobs. Every transition is checked
// against the table of states and recorded in the same transaction. Spec/model/downloads.md, DL-2 to DL-6.

import Daybook
import Foundation

/// Commands on downloads.
///
/// They record requests and results. A `DownloadManager` follows the records and downloads.
public struct DownloadCommands: Sendable {
    let store: EventStore

    let references: ReferenceCheck?

    init(_ store: EventStore, _ references: ReferenceCheck? = nil) {
        self.store = store
        self.references = references
    }

    /// The time for which a completed job is kept.
    public static let completedKept = Duration.seconds(24 * 3_600)
    /// The time for which a failed job is kept, so that the user can retry it.
    public static let failedKept = Duration.seconds(7 * 24 * 3_600)

    // MARK: Commands of the user

    /// Queues the download of a city. If the city has an unfinished job, an explicit call applies to it:
    /// a paused job is queued again, and an automatic one becomes explicit. Durable on return.
    ///
    /// - Parameters:
    ///   - cityId: the city.
    ///   - isExplicit: whether the user asked for it. Such jobs run first, and such cities are not
    ///     evicted.
    /// - Returns: the city's job.
    /// - Throws: `EventError`: `refused` for an empty id, `unknownReference` for a city that the
    ///   `ReferenceCheck` does not know; `LogError` as `EventStore.append`.
    @discardableResult
    public func queue(_ cityId: String, isExplicit: Bool = true) async throws -> DownloadJob {
        try DownloadQueued.require(cityId, "city id")
        let newID = store.newID().text
        let jobId = try await store.write { transaction in
            try references?.require(.city(cityId), transaction)
            let downloads = transaction.view(DownloadsView.self)
            guard let job = downloads.jobs(of: cityId).first(where: { $0.status.isUnfinished })
            else {
                try transaction.append(
                    DownloadQueued(jobId: newID, cityId: cityId, isExplicit: isExplicit))
                return newID
            }
            let becomesExplicit = isExplicit && !job.isExplicit
            guard becomesExplicit || job.status == .paused && isExplicit else { return job.id }
            let lwwTimestamp = downloads.lwwTimestamp(job.id)
            try transaction.append(
                DownloadQueued(
                    jobId: job.id, cityId: cityId, isExplicit: isExplicit || job.isExplicit),
                replacing: lwwTimestamp)
            if job.status == .downloading {
                // The download continues; only `isExplicit` changes.
                try transaction.append(
                    DownloadStarted(jobId: job.id, numbers: job.numbers), replacing: lwwTimestamp)
            }
            return job.id
        }
        return try currentJob(jobId)
    }

    /// Pauses a job until `resume(_:)`; also one that is paused for another reason. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is finished, or that the user has paused;
    ///   `LogError` as `EventStore.append`.
    public func pause(_ jobId: String) async throws {
        try await pause(jobId, .user, numbers: nil)
    }

    /// Queues a paused job again. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is not PAUSED; `LogError` as
    ///   `EventStore.append`.
    public func resume(_ jobId: String) async throws { try await requeue(jobId, from: .paused) }

    /// Queues a failed job again. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is not FAILED, or whose city has another
    ///   unfinished job; `LogError` as `EventStore.append`.
    public func retry(_ jobId: String) async throws { try await requeue(jobId, from: .failed) }

    private func requeue(_ jobId: String, from status: DownloadStatus) async throws {
        try await recordTransition(jobId, to: .queued) { job, downloads in
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

    /// Cancels a job: it becomes CANCELLED and is removed in the same commit. If its city is not cached,
    /// automatic download leaves the city out until it is saved again. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is finished; `LogError` as
    ///   `EventStore.append`.
    public func cancel(_ jobId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let job = try Self.requireTransition(
                of: jobId, to: .cancelled, transaction.view(DownloadsView.self))
            try transaction.append(DownloadCancelled(jobId: jobId))
            try transaction.append(DownloadRemoved(jobId: jobId))
            try Self.stopAutomaticDownload(of: job.cityId, in: &transaction)
        }
    }

    /// Records the removal of a city without a copy, so that automatic download leaves the city out.
    private static func stopAutomaticDownload(
        of cityId: String, in transaction: inout EventStore.Transaction
    ) throws {
        guard transaction.view(CitiesView.self).offline(cityId) == nil else { return }
        try CityCommands.remove(cityId, .user, in: &transaction)
    }

    /// Removes a finished job. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for an unfinished job; `LogError` as `EventStore.append`.
    public func remove(_ jobId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let job = try Self.requireJob(jobId, transaction.view(DownloadsView.self))
            guard !job.status.isUnfinished else {
                throw EventError(
                    .refused,
                    "the download \(jobId) is \(job.status.rawValue); cancel it to remove it")
            }
            try transaction.append(DownloadRemoved(jobId: jobId))
            if job.status == .failed {
                try Self.stopAutomaticDownload(of: job.cityId, in: &transaction)
            }
        }
    }

    /// Removes old finished jobs: COMPLETED ones after 24 hours, FAILED ones after 7 days, CANCELLED ones
    /// at once. Durable on return.
    ///
    /// - Parameter now: the time; nil for the store's clock.
    /// - Returns: the number of removed jobs.
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(finished jobs).
    @discardableResult
    public func cleanUp(_ now: Timestamp? = nil) async throws -> Int {
        let corrected = await store.timestamp
        let now = now ?? corrected
        guard !Self.expiredJobs(store.view(DownloadsView.self), now).isEmpty else { return 0 }
        return try await store.write { transaction in
            let expired = Self.expiredJobs(transaction.view(DownloadsView.self), now)
            for job in expired { try transaction.append(DownloadRemoved(jobId: job.id)) }
            return expired.count
        }
    }

    private static func expiredJobs(
        _ downloads: DownloadsView, _ now: Timestamp
    ) -> [DownloadJob] {
        func jobs(_ status: DownloadStatus, olderThan age: Duration) -> [DownloadJob] {
            // A job of a clock that was ahead must not stay until that time: a FAILED one keeps its city from
            // automatic download.
            downloads.jobs(status).filter {
                abs(now.milliseconds - $0.changedAt.milliseconds) >= age.components.seconds * 1_000
            }
        }
        // A batch has a limit; the next call removes the remaining jobs.
        return Array(
            (downloads.jobs(.cancelled) + jobs(.completed, olderThan: completedKept)
                + jobs(.failed, olderThan: failedKept))
                .prefix(1_000))
    }

    // MARK: Commands of the downloader

    /// Records that a job's download starts, or starts again. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a job that is neither QUEUED nor PAUSED; `LogError` as
    ///   `EventStore.append`.
    public func start(_ jobId: String, numbers: DownloadNumbers = .initial) async throws {
        try await recordTransition(jobId, to: .downloading) { _, _ in
            DownloadStarted(jobId: jobId, numbers: numbers)
        }
    }

    /// Records that a job is paused. Durable on return.
    ///
    /// - Parameters:
    ///   - jobId: the job.
    ///   - reason: the reason of the pause.
    ///   - numbers: the progress; nil for the progress that `job(_:)` returns.
    /// - Throws: `EventError` (`refused`) for a job that is neither QUEUED nor DOWNLOADING, except that
    ///   the user can also pause one that is PAUSED for another reason; `LogError` as
    ///   `EventStore.append`.
    public func pause(
        _ jobId: String, _ reason: PauseReason, numbers: DownloadNumbers?
    ) async throws {
        let progress = store.transient(DownloadProgress.self)
        try await recordTransition(
            jobId, to: .paused,
            orIf: { reason == .user && $0.status == .paused && $0.pauseReason != .user }
        ) { job, _ in
            DownloadPaused(
                jobId: jobId, numbers: numbers ?? progress[jobId] ?? job.numbers, reason: reason)
        }
    }

    /// Records that a job is completed. Durable on return.
    ///
    /// - Parameters:
    ///   - jobId: the job.
    ///   - totalBytes: the number of downloaded bytes.
    ///   - record: appends the downloaded content in the same commit. If it throws, nothing is recorded.
    /// - Throws: `EventError` (`refused`) for a job that is not DOWNLOADING; what `record` throws;
    ///   `LogError` as `EventStore.append`.
    public func complete(
        _ jobId: String, totalBytes: Int,
        recording record: @escaping @Sendable (inout EventStore.Transaction) throws -> Void = { _ in
        }
    ) async throws {
        try await store.write { transaction in
            let downloads = transaction.view(DownloadsView.self)
            _ = try Self.requireTransition(of: jobId, to: .completed, downloads)
            // Before the content: an event that replaces a copy of a clock that was ahead would pass its time on
            // to the job, whose age would then be unknown (LINE-7).
            try transaction.append(
                DownloadCompleted(jobId: jobId, totalBytes: totalBytes),
                replacing: downloads.lwwTimestamp(jobId))
            try record(&transaction)
        }
    }

    /// Records that a job failed. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for an empty message or a job that is not DOWNLOADING;
    ///   `LogError` as `EventStore.append`.
    public func fail(
        _ jobId: String, _ errorMessage: String, numbers: DownloadNumbers
    ) async throws {
        try DownloadFailed.require(errorMessage, "error message")
        try await recordTransition(jobId, to: .failed) { _, _ in
            DownloadFailed(jobId: jobId, numbers: numbers, errorMessage: errorMessage)
        }
    }

    // MARK: Checks

    /// Records a transition, even if the last one was recorded while the clock was ahead.
    private func recordTransition<Payload: EventPayload>(
        _ jobId: String, to status: DownloadStatus,
        orIf isAllowed: @escaping @Sendable (DownloadJob) -> Bool = { _ in false },
        _ payload: @escaping @Sendable (DownloadJob, DownloadsView) throws -> Payload
    ) async throws {
        try await store.write { transaction in
            let downloads = transaction.view(DownloadsView.self)
            var job = try Self.requireJob(jobId, downloads)
            if !isAllowed(job) {
                job = try Self.requireTransition(of: jobId, to: status, downloads)
            }
            try transaction.append(
                payload(job, downloads), replacing: downloads.lwwTimestamp(jobId))
        }
    }

    private static func requireTransition(
        of jobId: String, to status: DownloadStatus, _ downloads: DownloadsView
    ) throws(EventError) -> DownloadJob {
        let job = try requireJob(jobId, downloads)
        guard job.status.successors.contains(status) else {
            throw EventError(
                .refused,
                "the download \(jobId) is \(job.status.rawValue) and cannot become "
                    + status.rawValue)
        }
        return job
    }

    private static func requireJob(
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

    private func currentJob(_ jobId: String) throws(EventError) -> DownloadJob {
        try Self.requireJob(jobId, store.view(DownloadsView.self))
    }
}

// MARK: Queries

/// The progress of the jobs that this process downloads, by job id. A manager updates it at most every
/// `progressInterval`; the log contains the progress of the last event (DL-20).
enum DownloadProgress: TransientState {
    typealias Key = String
    typealias Value = DownloadNumbers
}

extension DownloadCommands {
    /// A job, with its live progress while it is downloaded; nil if there is none with this id or it was
    /// removed. O(1).
    public func job(_ jobId: String) -> ViewQuery<DownloadJob?> {
        query { view, numbers in view[jobId]?.with(numbers) }
    }

    /// The jobs of a city, oldest first; the downloading one with its live progress. O(k log k) for k
    /// jobs of the city.
    public func jobs(of cityId: String) -> ViewQuery<[DownloadJob]> {
        query { view, numbers in view.jobs(of: cityId).map { $0.with(numbers) } }
    }

    /// The jobs that are QUEUED or DOWNLOADING, in the order in which they are downloaded, with their
    /// live progress. O(k log k) for k such jobs.
    public var active: ViewQuery<[DownloadJob]> {
        query { view, numbers in view.active.map { $0.with(numbers) } }
    }

    /// The jobs in a state, oldest first; downloading ones with their live progress. O(k log k) for k
    /// jobs in the state.
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
    /// The job with its live progress if it is DOWNLOADING and has any, else unchanged.
    fileprivate func with(_ numbers: [String: DownloadNumbers]) -> DownloadJob {
        guard status == .downloading, let numbers = numbers[id] else { return self }
        return with(numbers)
    }
}
