// Processes the download jobs while an app runs: sleeps until a job, the network or the settings change,
// then starts and stops jobs accordingly. Between the log, which stores the jobs, and DownloadRun, which
// carries out one job. Spec/model/downloads.md.

import Daybook
import Foundation
import Telemetry

/// Downloads cities: starts queued jobs, fetches data and images, records them in the log.
///
/// ```swift
/// let manager = DownloadManager(
///     store, base: url, credentials: credentials, user: "user-456",
///     reachability: SystemReachability())
/// let downloading = Task { try await manager.run() }   // at the app's start
/// let job = try await store.downloads.queue("city-1")
/// for await job in manager.progress(of: job.id) { … }  // present state first
/// downloading.cancel()                                 // at logout
/// ```
///
/// Jobs are stored in the log, so they survive the end of the process. So do partly fetched images.
/// Without work the manager waits without a timer.
public actor DownloadManager {
    private let store: EventStore
    private let files: FileStore
    private let source: any CityManifestSource
    private let authorizer: Authorizer
    private let user: String
    private let options: Options
    private let instruments = Instruments()
    private let queue: FetchQueue<String>
    private nonisolated let progress: TransientTable<String, DownloadNumbers>
    private nonisolated let commands: DownloadCommands

    private var running: [String: (task: Task<Void, Never>, meter: DownloadMeter)] = [:]
    private var folder: DownloadFolder
    private var isTidy = false

    /// The time between two attempts to lock a folder that another manager uses.
    private static let lockedRetry = Duration.seconds(1)

    /// Creates a manager. Apps use the initializers that take an `OfflineStore`.
    init(
        _ commands: DownloadCommands, _ files: FileStore, _ source: any CityManifestSource,
        _ authorizer: Authorizer, user: String, _ reachability: any Reachability, _ options: Options
    ) {
        self.commands = commands
        store = commands.store
        self.files = files
        self.source = source
        self.authorizer = authorizer
        self.user = user
        self.options = options
        queue = FetchQueue(store, user: user, reachability, sleep: options.sleep)
        folder = DownloadFolder(
            options.cacheFolder.map { CacheFolder.downloads.path(in: $0, of: commands.store) }
                ?? Self.formerFolder(of: files), store.environment.fileSystem)
        progress = store.transient(DownloadProgress.self)
    }

    /// The folder of partial files without a cache folder.
    private static func formerFolder(of files: FileStore) -> String {
        files.directory + "/incoming"
    }

    // MARK: For screens

    /// Returns a job with its current numbers; nil if no job has this id. O(1).
    public nonisolated func job(_ jobId: String) -> DownloadJob? { commands.job(jobId).current }

    /// Returns a stream of a job: its current state first, then every change of state, and its bytes at
    /// most once per `progressInterval`. The stream buffers only the newest value. It ends when the job
    /// is removed or the store is closed; `store.downloads.job(_:)` has the same values and does not end
    /// with the job.
    public nonisolated func progress(of jobId: String) -> AsyncStream<DownloadJob> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadJob.self, bufferingPolicy: .bufferingNewest(1))
        let changes = commands.job(jobId).changes
        let forwarding = Task {
            for await job in changes {
                guard let job else { break }
                continuation.yield(job)
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in forwarding.cancel() }
        return stream
    }

    /// Pauses a job until it is resumed, with its current numbers. Durable on return.
    ///
    /// - Throws: as `DownloadCommands.pause(_:)`.
    public func pause(_ jobId: String) async throws {
        try await commands.pause(jobId)
    }

    // MARK: The loop

    /// Runs until the calling task is cancelled or the store is closed. A second call while one runs
    /// returns at once. The next call continues the jobs that were interrupted.
    ///
    /// - Throws: `LogError` if the log cannot be read or written. Network failures are not thrown; nor is
    ///   a full disk, after which the manager continues at the next signal.
    public func run() async throws { try await run(untilIdle: false) }

    /// Runs as `run()`.
    ///
    /// - Parameter untilIdle: true to return once every job has ended or waits: for a decision, another network or
    ///   its retry. For an app that the system wakes to download.
    /// - Throws: as `run()`.
    public func run(untilIdle: Bool) async throws {
        try await queue.run(
            work: {
                // The first path is reported after the loop has begun.
                let isPathKnown = queue.path != nil
                guard try await work() else { return true }
                return !untilIdle || !isPathKnown || !running.isEmpty
            },
            // Another process may continue the jobs.
            suspend: { await suspendWork() },
            end: {
                await suspendWork()
                await files.release(folder.endRetention())
                isTidy = false
            })
    }

    /// Removes expired jobs and cities, and the files of jobs that are completed, cancelled or removed.
    /// `run()` calls this at its beginning.
    ///
    /// - Throws: `LogError` if the log cannot be read or written; `FileStoreError`.
    public func tidy() async throws {
        try folder.findJobs()
        _ = try await commands.cleanUp()
        try await CityCommands(store, files).prune(for: user)
        for jobId in folder.jobs(where: { running[$0] == nil }) {
            for file in folder.storedFiles(of: jobId) where await files.retain(file) {
                folder.retain(file, for: jobId)
            }
        }
        // Partial files from before the app named a cache folder are deleted and fetched again.
        let former = Self.formerFolder(of: files)
        if folder.path != former { try? store.environment.fileSystem.erase(former) }
        // Last, because it deletes files that are neither retained nor referenced.
        await sweep(store.view(DownloadsView.self))
    }

    /// - Returns: false if another manager uses the folder.
    private func work() async throws -> Bool {
        try await store.checkOpen()
        guard folder.acquireLock() else {
            queue.setTimer(after: Self.lockedRetry)
            return false
        }
        if !isTidy {
            try await tidy()
            isTidy = true
        }
        try await reconcileJobs()
        return true
    }

    /// Stops all work, which a later run continues, and releases the folder's lock.
    private func suspendWork() async {
        await stopWork()
        folder.releaseLock()
    }

    private func stopWork() async {
        let tasks = running.values.map(\.task)
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Starts and stops jobs to match the log, the network and the settings.
    private func reconcileJobs() async throws {
        let downloads = store.view(DownloadsView.self)
        for (jobId, job) in running where downloads[jobId]?.status != .downloading {
            job.task.cancel()
        }
        await sweep(downloads)
        guard let path = queue.path else { return }
        guard let obstacle = queue.obstacle(on: path) else {
            try await commands.queueWanted(for: user)
            return try await startDueJobs(store.view(DownloadsView.self))
        }
        try await pauseAll(obstacle)
        guard obstacle == .cellular else { return }
        for job in downloads.jobs(.queued) {
            try await ignoringRefusal { try await commands.pause(job.id, .cellular, numbers: nil) }
        }
    }

    /// Stops all work and pauses every job in progress, including those that another process left.
    private func pauseAll(_ reason: PauseReason) async throws {
        let meters = running.mapValues(\.meter)
        await stopWork()
        for job in store.view(DownloadsView.self).jobs(.downloading) {
            try await ignoringRefusal {
                try await commands.pause(job.id, reason, numbers: meters[job.id]?.numbers)
            }
        }
    }

    /// Starts the jobs that are due, up to `jobsAtOnce`.
    private func startDueJobs(_ downloads: DownloadsView) async throws {
        queue.keepRetries { downloads[$0]?.status.isUnfinished ?? false }
        var waiting = downloads.jobs(.downloading).filter { queue.isDue($0.id) }
        waiting +=
            (downloads.jobs(.queued)
            + downloads.jobs(.paused).filter {
                $0.pauseReason == .cellular || $0.pauseReason == .connection && queue.isDue($0.id)
            }).sorted(by: DownloadJob.precedes)
        for job in waiting {
            guard running.count < max(1, options.jobsAtOnce) else { break }
            // The task of its last run may not have ended yet.
            guard running[job.id] == nil else { continue }
            if job.status != .downloading {
                guard
                    try await ignoringRefusal({
                        try await commands.start(job.id, numbers: job.numbers)
                    })
                else { continue }
            }
            start(job)
        }
    }

    /// Carries out a command on a job that the app may have changed meanwhile.
    ///
    /// - Returns: false if the command was refused.
    @discardableResult
    private func ignoringRefusal(_ command: () async throws -> Void) async throws -> Bool {
        do {
            try await command()
            return true
        } catch let error as EventError where error.code == .refused { return false }
    }

    // MARK: One job

    private func start(_ job: DownloadJob) {
        queue.forgetRetry(job.id)
        folder.insert(job.id)
        let meter = DownloadMeter(
            job.numbers, bytesMax: options.cityBytesMax, interval: options.progressInterval
        ) { [progress, id = job.id] meter in progress.update(id) { _ in meter.numbers } }
        let run = DownloadRun(
            job: job, commands: commands, source: source, authorizer: authorizer, files: files,
            folder: folder.path(of: job.id), meter: meter,
            backoff: DownloadBackoff(options) { [store] in store.randomFraction() },
            options: options, user: user
        ) { [weak self] in await self?.retain($0, for: job.id) }
        progress.update(job.id) { _ in meter.numbers }
        let task = Task {
            let result: Result<DownloadedCity, any Error>
            do {
                result = .success(try await instruments.measure(.download) { try await run.run() })
            } catch { result = .failure(error) }
            await recordResult(result, of: job, meter)
        }
        running[job.id] = (task, meter)
    }

    /// Records the result of a job and removes the job from `running`.
    private func recordResult(
        _ result: Result<DownloadedCity, any Error>, of job: DownloadJob, _ meter: DownloadMeter
    ) async {
        do {
            switch result {
            case .success(let city): try await record(city, job, meter)
            case .failure(is CancellationError): break
            case .failure(is ConnectionLost):
                // First: a network that arrives as soon as the pause is seen is not missed.
                scheduleRetry(job.id)
                try await commands.pause(job.id, .connection, numbers: meter.numbers)
            // A log that cannot be written is not a failure of the job.
            case .failure(let error as LogError): throw error
            case .failure(let error):
                try await fail(job, meter, error)
            }
            _ = try await commands.cleanUp()
        } catch {
            // `refused`: the app has paused or removed the job meanwhile. `suspended`: the loop stops
            // its work, too. Any other error: the log cannot be written, and the job, which has not
            // changed, is retried later.
            if !(error is EventError), (error as? LogError)?.code != .suspended {
                scheduleRetry(job.id)
            }
        }
        progress.update(job.id) { _ in nil }
        running[job.id] = nil
        queue.wake()
    }

    private func record(
        _ city: DownloadedCity, _ job: DownloadJob, _ meter: DownloadMeter
    ) async throws {
        do {
            do { try await files.requireRetained(city.files.values.map(\.file)) } catch {
                // Another process may have had the log meanwhile and deleted files: the job starts over.
                throw LogError(.suspended, path: store.directory, "\(error)")
            }
            try await commands.complete(
                job.id, totalBytes: meter.numbers.downloadedBytes
            ) { [user, references = commands.references] transaction in
                // The user may have requested the city meanwhile.
                let current = transaction.view(DownloadsView.self)[job.id] ?? job
                try city.record(
                    isExplicit: current.isExplicit, for: user, references, in: &transaction)
            }
            instruments.count(.downloadedBytes, meter.numbers.downloadedBytes)
        } catch {
            if error is LogError { throw error }
            // Reads the view again: the job may have been paused meanwhile.
            guard store.view(DownloadsView.self)[job.id]?.status == .downloading else { return }
            try await fail(job, meter, error)
            return
        }
        await discard([job.id])
    }

    private func fail(_ job: DownloadJob, _ meter: DownloadMeter, _ error: any Error) async throws {
        try await commands.fail(job.id, Self.message(for: error), numbers: meter.numbers)
        // Files that exceed a limit are not kept for a retry.
        if error is StorageLimitError || (error as? DownloadError)?.code == .tooLarge {
            await discard([job.id])
        }
    }

    /// The message for the user.
    private static func message(for error: any Error) -> String {
        let text =
            switch error {
            case let error as FileStoreError where error.code == .noSpace:
                DownloadError.deviceIsFull
            default: "\(error)"
            }
        return text.isEmpty ? "the download failed" : String(text.prefix(1_000))
    }

    private func scheduleRetry(_ jobId: String) {
        queue.retry(jobId, after: options.pausedRetry)
    }

    // MARK: Files

    private func retain(_ file: FileID, for jobId: String) { folder.retain(file, for: jobId) }

    /// Deletes the files of jobs that are completed, cancelled or removed.
    private func sweep(_ downloads: DownloadsView) async {
        await discard(
            folder.jobs { jobId in
                guard running[jobId] == nil else { return false }
                let status = downloads[jobId]?.status
                return status == nil || status == .completed || status == .cancelled
            })
    }

    private func discard(_ jobIds: [String]) async {
        guard !jobIds.isEmpty else { return }
        for jobId in jobIds { await files.release(folder.remove(jobId)) }
        // Deletes unreferenced files: those of these jobs, those that a city has replaced, and those of
        // cities that were evicted. If it fails, a later call repeats it.
        _ = try? await files.collect()
    }
}
