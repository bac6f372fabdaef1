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
    private let reachability: any Reachability
    private let options: Options
    private let instruments = Instruments()
    private let folder: String
    private nonisolated let progress: TransientTable<String, DownloadNumbers>

    private nonisolated let commands: DownloadCommands

    private struct Running {
        var task: Task<Void, Never>
        var meter: DownloadMeter
    }

    /// The loop of `run()`; nil while it does not run.
    private var loop: WakeLoop<ContinuousClock.Instant>?
    private var running: [String: Running] = [:]
    /// The ids of jobs whose folders may exist.
    private var jobsWithFolders: Set<String> = []
    /// Images of unfinished jobs that are in the file store, by job. They are retained because no
    /// city references them yet.
    private var retainedFiles: [String: [FileID]] = [:]
    /// The network path reported last; nil before the first report.
    private var path: NetworkPath?
    /// The number of times that a network became available.
    private var networkArrivals = 0
    /// The jobs that wait for a connection: `networkArrivals` at their pause, and the time of their retry
    /// on the same network.
    private var retries: [String: (arrivals: Int, due: ContinuousClock.Instant)] = [:]
    /// The locked file that gives this manager exclusive use of the folder.
    private var lock: (any File)?
    private var isTidy = false

    /// The time between two attempts to lock a folder that another manager uses.
    private static let lockedRetry = Duration.seconds(1)

    /// Creates a manager for a server with the protocol of Spec/model/downloads.md. Apps use the
    /// initializer that takes an `OfflineStore`.
    init(
        _ store: EventStore, _ files: FileStore, base: URL, credentials: any Credentials,
        user: String, reachability: any Reachability, options: Options,
        references: ReferenceCheck? = nil
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials, origin: HTTPOrigin(base), for: store)
        self.init(
            store, files, HTTPManifestSource(base: base, authorizer: authorizer), authorizer,
            user, reachability, options, references)
    }

    /// Creates a manager for another source of manifests; the token is sent to `imageOrigin` only.
    init(
        _ store: EventStore, _ files: FileStore, source: any CityManifestSource,
        imageOrigin: URL?, credentials: any Credentials, user: String,
        reachability: any Reachability, options: Options, references: ReferenceCheck? = nil
    ) {
        self.init(
            store, files, source,
            Authorizer(
                options.http, credentials: credentials,
                origin: imageOrigin.flatMap(HTTPOrigin.init), for: store), user, reachability,
            options, references)
    }

    private init(
        _ store: EventStore, _ files: FileStore, _ source: any CityManifestSource,
        _ authorizer: Authorizer, _ user: String, _ reachability: any Reachability,
        _ options: Options, _ references: ReferenceCheck?
    ) {
        self.store = store
        self.files = files
        self.source = source
        self.authorizer = authorizer
        self.user = user
        self.reachability = reachability
        self.options = options
        folder =
            options.cacheFolder.map { CacheFolder.downloads.path(in: $0, of: store) }
            ?? files.directory + "/incoming"
        progress = store.transient(DownloadProgress.self)
        commands = DownloadCommands(store, references)
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
        guard loop == nil else { return }
        let loop = WakeLoop<ContinuousClock.Instant>(sleep: options.sleep)
        self.loop = loop
        let result: Result<Void, any Error>
        do {
            try await loop.run(
                await store.commits(), reachability, onPathChange: { await self.updatePath($0) },
                work: {
                    // The first path is reported after the loop has begun.
                    let isPathKnown = path != nil
                    let isStepComplete = try await work()
                    return !(untilIdle && isPathKnown && isStepComplete && running.isEmpty)
                })
            result = .success(())
        } catch { result = .failure(error) }
        await suspendWork()
        for files in retainedFiles.values { await self.files.release(files) }
        retainedFiles = [:]
        isTidy = false
        self.loop = nil
        path = nil
        try result.get()
    }

    /// Removes expired jobs and cities, and the files of jobs that are completed, cancelled or removed.
    /// `run()` calls this at its beginning.
    ///
    /// - Throws: `LogError` if the log cannot be read or written; `FileStoreError`.
    public func tidy() async throws {
        jobsWithFolders.formUnion(try jobFolders())
        _ = try await commands.cleanUp()
        try await CityCommands(store, files).prune(for: user)
        for jobId in jobsWithFolders where retainedFiles[jobId] == nil && running[jobId] == nil {
            let stored = PartialFile.stored(in: folder + "/" + jobId, store.environment.fileSystem)
            for file in stored where await files.retain(file) { recordRetainedFile(file, jobId) }
        }
        // Partial files from before the app named a cache folder are deleted and fetched again.
        let former = files.directory + "/incoming"
        if folder != former { try? store.environment.fileSystem.erase(former) }
        // Last, because it deletes files that are neither retained nor referenced.
        await sweep(store.view(DownloadsView.self))
    }

    private func updatePath(_ path: NetworkPath) {
        if path != NetworkPath.none, self.path ?? NetworkPath.none == NetworkPath.none {
            networkArrivals += 1
        }
        self.path = path
    }

    private func jobFolders() throws -> [String] {
        do throws(FileError) {
            // Every other name is not a job's folder.
            return try store.environment.fileSystem.list(folder)
                .filter { UUID(uuidString: $0)?.text == $0 }
        } catch {
            guard error.code == .notFound else { throw LogError(error) }
            return []
        }
    }

    /// - Returns: false if the store is suspended, or another manager uses the folder.
    private func work() async throws -> Bool {
        do {
            try await store.checkOpen()
            guard acquireLock() else {
                setTimer(.now + Self.lockedRetry)
                return false
            }
            if !isTidy {
                try await tidy()
                isTidy = true
            }
            try await reconcileJobs()
        } catch let error as LogError where error.code == .suspended {
            // Another process may open the log now and continue the jobs.
            setTimer(nil)
            await suspendWork()
            return false
        } catch let error as LogError where error.code == .diskFull {
            // Work continues after the next successful commit.
        }
        return true
    }

    /// Stops all work, which a later run continues, and releases the folder's lock.
    private func suspendWork() async {
        await stopWork()
        lock = nil
    }

    private func stopWork() async {
        let tasks = running.values.map(\.task)
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Locks the folder. Another manager may hold the lock, or a process whose store was suspended a
    /// moment ago.
    ///
    /// - Returns: false if another manager holds the lock. True also after an I/O error, which the jobs
    ///   will meet and report.
    private func acquireLock() -> Bool {
        guard lock == nil else { return true }
        let fileSystem = store.environment.fileSystem
        do {
            try DownloadFolder.create(folder, fileSystem)
            let file = try fileSystem.open(folder + "/lock", .createIfMissing)
            guard try file.lock() else { return false }
            lock = file
        } catch {}
        return true
    }

    /// Starts and stops jobs to match the log, the network and the settings.
    private func reconcileJobs() async throws {
        let downloads = store.view(DownloadsView.self)
        for (jobId, job) in running where downloads[jobId]?.status != .downloading {
            job.task.cancel()
        }
        await sweep(downloads)
        let isWiFiOnly = store.view(PreferencesView.self)[user].wifiOnlyDownload
        switch path {
        case nil: return
        case .some(.none): try await pauseAll(.connection)
        case .cellular where isWiFiOnly:
            try await pauseAll(.cellular)
            for job in downloads.jobs(.queued) {
                try await ignoringRefusal {
                    try await commands.pause(job.id, .cellular, numbers: nil)
                }
            }
        default:
            try await commands.queueWanted(for: user)
            try await startDueJobs(store.view(DownloadsView.self))
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
        setTimer(nil)
    }

    /// Starts the jobs that are due, up to `jobsAtOnce`.
    private func startDueJobs(_ downloads: DownloadsView) async throws {
        let now = ContinuousClock.now
        var waiting = downloads.jobs(.downloading).filter { isDue($0.id, now) }
        waiting +=
            (downloads.jobs(.queued)
            + downloads.jobs(.paused).filter {
                $0.pauseReason == .cellular || $0.pauseReason == .connection && isDue($0.id, now)
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
        setRetryTimer(now)
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
        retries[job.id] = nil
        jobsWithFolders.insert(job.id)
        let meter = DownloadMeter(
            job.numbers, bytesMax: options.cityBytesMax, interval: options.progressInterval
        ) { [progress, id = job.id] meter in progress.update(id) { _ in meter.numbers } }
        let run = DownloadRun(
            job: job, source: source, authorizer: authorizer, files: files,
            fileSystem: store.environment.fileSystem, folder: folder + "/" + job.id, meter: meter,
            backoff: DownloadBackoff(options) { [store] in store.randomFraction() },
            options: options, kept: Self.keptFiles(for: job, store),
            now: { [store] in await store.timestamp },
            checkStorageLimit: { [store, user, references = commands.references] in
                try await Self.checkStorageLimit(for: $0, store, user, references)
            },
            onRetainedFile: { [weak self] in await self?.recordRetainedFile($0, job.id) })
        progress.update(job.id) { _ in meter.numbers }
        running[job.id] = Running(
            task: Task {
                let result: Result<DownloadedCity, any Error>
                do {
                    result = .success(
                        try await instruments.measure(.download) { try await run.run() })
                } catch { result = .failure(error) }
                await recordResult(result, of: job, meter)
            }, meter: meter)
    }

    /// The files of a city's copy by URL, for an automatic download of the images that the copy lacks: only
    /// those are fetched then, unless the manifest gives another checksum or size. A user who asks for a city
    /// gets its images as they are now, if they can be fetched (DL-27).
    private static func keptFiles(
        for job: DownloadJob, _ store: EventStore
    ) -> [String: FileID] {
        guard !job.isExplicit, let copy = store.view(CitiesView.self).offline(job.cityId),
            !copy.missingImages.isEmpty
        else { return [:] }
        return Dictionary(copy.images.map { ($0.url, $0.file) }) { a, _ in a }
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
        loop?.wake()
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

    /// Checks before any fetch that a city whose sizes are all announced fits the user's storage limit.
    ///
    /// - Throws: `StorageLimitError`.
    private static func checkStorageLimit(
        for city: DownloadedCity, _ store: EventStore, _ user: String,
        _ references: ReferenceCheck?
    ) async throws {
        struct Fits: Error {}
        do {
            try await store.write { transaction in
                try city.record(
                    isExplicit: city.isExplicit, for: user, references, in: &transaction)
                // Aborts the transaction: nothing is recorded.
                throw Fits()
            }
        } catch is Fits {}
    }

    // MARK: Waiting

    private func scheduleRetry(_ jobId: String) {
        retries[jobId] = (networkArrivals, .now + options.pausedRetry)
    }

    /// True if a job that waits for a connection may be retried: on another network, after its time of
    /// retry, or when an earlier process paused it.
    private func isDue(_ jobId: String, _ now: ContinuousClock.Instant) -> Bool {
        guard let retry = retries[jobId] else { return true }
        return retry.arrivals != networkArrivals || retry.due <= now
    }

    /// Sets the timer for the next retry that is due by time. Without such a job, or while no fetch is
    /// allowed, there is no timer.
    private func setRetryTimer(_ now: ContinuousClock.Instant) {
        let downloads = store.view(DownloadsView.self)
        retries = retries.filter { downloads[$0.key]?.status.isUnfinished ?? false }
        // A job that is already due starts when another one ends.
        setTimer(retries.values.map(\.due).filter { $0 > now }.min())
    }

    private func setTimer(_ next: ContinuousClock.Instant?) {
        loop?.setTimer(next, after: next.map { max(.zero, $0 - .now) } ?? .zero)
    }

    private func recordRetainedFile(_ file: FileID, _ jobId: String) {
        retainedFiles[jobId, default: []].append(file)
    }

    /// Deletes the files of jobs that are completed, cancelled or removed.
    private func sweep(_ downloads: DownloadsView) async {
        await discard(
            jobsWithFolders.filter { jobId in
                guard running[jobId] == nil else { return false }
                let status = downloads[jobId]?.status
                return status == nil || status == .completed || status == .cancelled
            })
    }

    private func discard(_ jobIds: some Collection<String>) async {
        guard !jobIds.isEmpty else { return }
        for jobId in jobIds {
            // If the removal fails, the next run retries it.
            try? DownloadFolder.remove(folder + "/" + jobId, store.environment.fileSystem)
            jobsWithFolders.remove(jobId)
            await files.release(retainedFiles.removeValue(forKey: jobId) ?? [])
        }
        // Deletes unreferenced files: those of these jobs, those that a city has replaced, and those of
        // cities that were evicted. If it fails, a later call repeats it.
        _ = try? await files.collect()
    }
}

extension DownloadedCity {
    /// Records the city in a transaction.
    ///
    /// - Throws: `StorageLimitError`; `EventError`, also for a city that the app's check does not know.
    fileprivate func record(
        isExplicit: Bool, for user: String, _ references: ReferenceCheck?,
        in transaction: inout EventStore.Transaction
    ) throws {
        let fetched = manifest.images.compactMap { image -> Result<CachedImage, UnfetchedImage>? in
            let url = image.url.absoluteString
            if let file = files[image.url] {
                return .success(
                    CachedImage(
                        id: image.id, url: url, file: file.file, size: file.size, kind: image.kind,
                        width: image.width, height: image.height))
            }
            return failures[image.url].map { error in
                let reason = String(error.detail.prefix(MissingImage.reasonMax))
                return .failure(
                    UnfetchedImage(
                        image: MissingImage(id: image.id, url: url, reason: reason),
                        isGone: error.isMissing, size: image.size, sha256: image.sha256))
            }
        }
        let leftOut = manifest.leftOut.map {
            Result<CachedImage, _>.failure(UnfetchedImage(image: $0.image))
        }
        try references?.require(.city(manifest.cityId), transaction)
        try CityCommands.cache(
            json: manifest.cityData, images: leftOut + fetched, isExplicit: isExplicit, for: user,
            in: &transaction)
    }
}
