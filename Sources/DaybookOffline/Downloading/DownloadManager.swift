// Works off the download jobs while an app runs: sleeps until a job, the network or the settings
// change, then does what they ask for. Between the log, which says what is to be downloaded, and
// DownloadRun, which does it. Spec/model/downloads.md.

import Daybook
import Foundation
import Telemetry

/// Downloads cities: takes queued jobs, fetches data and images, records that they are there.
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
/// What is to be done stands in the log, so jobs survive the end of the process; what was fetched of
/// an image survives it, too. Where there is nothing to do it waits without a timer.
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

    /// While `run()` works.
    private var loop: WakeLoop<ContinuousClock.Instant>?
    private var running: [String: Running] = [:]
    /// Jobs whose folders are there, or may be.
    private var folders: Set<String> = []
    /// Images of unfinished jobs that are in the store, where nothing else names them yet.
    private var held: [String: [FileID]] = [:]
    /// The network as it was told last; nil before that.
    private var path: NetworkPath?
    /// Raised whenever there is a network anew.
    private var arrivals = 0
    /// Jobs that wait for a connection: since which network, and until when at the latest.
    private var lost: [String: (arrivals: Int, until: ContinuousClock.Instant)] = [:]
    /// Whoever has this file's lock works in the folder, and nobody else.
    private var lock: (any File)?
    private var isTidy = false

    /// How often a folder is looked at that somebody else works in.
    private static let lockedRetry = Duration.seconds(1)

    /// Creates a manager that asks a server by the protocol of Spec/model/downloads.md. Apps use the one
    /// that takes an `OfflineStore`.
    init(
        _ store: EventStore, _ files: FileStore, base: URL, credentials: any Credentials,
        user: String, reachability: any Reachability, options: Options
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials, origin: HTTPOrigin(base),
            now: { await store.now })
        self.init(
            store, files, HTTPManifestSource(base: base, authorizer: authorizer), authorizer,
            user, reachability, options)
    }

    /// Creates a manager for manifests from elsewhere; the token goes to `imageOrigin` only.
    init(
        _ store: EventStore, _ files: FileStore, source: any CityManifestSource,
        imageOrigin: URL?, credentials: any Credentials, user: String,
        reachability: any Reachability, options: Options
    ) {
        self.init(
            store, files, source,
            Authorizer(
                options.http, credentials: credentials,
                origin: imageOrigin.flatMap(HTTPOrigin.init), now: { await store.now }), user,
            reachability, options)
    }

    private init(
        _ store: EventStore, _ files: FileStore, _ source: any CityManifestSource,
        _ authorizer: Authorizer, _ user: String, _ reachability: any Reachability,
        _ options: Options
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
        commands = DownloadCommands(store)
    }

    // MARK: For screens

    /// A job as it is now, with the bytes of this moment; nil if there is none. O(1).
    public nonisolated func job(_ jobId: String) -> DownloadJob? { commands.job(jobId).current }

    /// A job over time: its present state first, then bytes, every `progressInterval` at most, and
    /// every change of state. Keeps only the newest. Ends when the job is removed or the store is
    /// closed. `store.downloads.job(_:)` tells the same and goes on after that.
    public nonisolated func progress(of jobId: String) -> AsyncStream<DownloadJob> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadJob.self, bufferingPolicy: .bufferingNewest(1))
        let changes = commands.job(jobId).changes
        let following = Task {
            for await job in changes {
                guard let job else { break }
                continuation.yield(job)
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in following.cancel() }
        return stream
    }

    /// Pauses a job until somebody resumes it, with the numbers of this moment. Durable on return.
    ///
    /// - Throws: as `DownloadCommands.pause(_:)`.
    public func pause(_ jobId: String) async throws {
        try await commands.pause(jobId)
    }

    // MARK: The loop

    /// Works until the calling task is cancelled or the store is closed. One call at a time: another
    /// one returns at once. What is under way at its end goes on at the next call.
    ///
    /// - Throws: `LogError` where the log could not be read or written. Failures of the network are
    ///   no errors; nor is a full disk, with which it goes on when something has changed.
    public func run() async throws {
        guard loop == nil else { return }
        let loop = WakeLoop<ContinuousClock.Instant>(sleep: options.sleep)
        self.loop = loop
        let result: Result<Void, any Error>
        do {
            try await loop.run(
                await store.commits(), reachability, learn: { await self.learn($0) },
                work: {
                    try await work()
                    return true
                })
            result = .success(())
        } catch { result = .failure(error) }
        await rest()
        for files in held.values { await self.files.release(files) }
        held = [:]
        isTidy = false
        self.loop = nil
        path = nil
        try result.get()
    }

    /// Removes jobs and cities that were kept long enough, and what was fetched for jobs that are
    /// done or gone. `run()` does this at its beginning.
    ///
    /// - Throws: `LogError` where the log cannot be read or written; `FileStoreError`.
    public func tidy() async throws {
        folders.formUnion(try leftovers())
        _ = try await commands.cleanUp()
        try await CityCommands(store, files).prune(for: user)
        for jobId in folders where held[jobId] == nil && running[jobId] == nil {
            let stored = PartialFile.stored(in: folder + "/" + jobId, store.environment.fileSystem)
            for file in stored where await files.hold(file) { keep(file, jobId) }
        }
        // Parts from before the app named a cache folder are fetched anew.
        let former = files.directory + "/incoming"
        if folder != former { try? store.environment.fileSystem.erase(former) }
        // Afterwards: it collects what nobody holds.
        await sweep(store.view(DownloadsView.self))
    }

    private func learn(_ path: NetworkPath) {
        if path != NetworkPath.none, self.path ?? NetworkPath.none == NetworkPath.none {
            arrivals += 1
        }
        self.path = path
    }

    private func leftovers() throws -> [String] {
        do throws(FileError) {
            // Whatever else is there is none of ours.
            return try store.environment.fileSystem.list(folder)
                .filter { UUID(uuidString: $0)?.text == $0 }
        } catch {
            guard error.code == .notFound else { throw LogError(error) }
            return []
        }
    }

    private func work() async throws {
        do {
            try await store.checkOpen()
            guard isAlone() else { return setTimer(.now + Self.lockedRetry) }
            if !isTidy {
                try await tidy()
                isTidy = true
            }
            try await step()
        } catch let error as LogError where error.code == .suspended {
            // Another process may have the log now, and do what was under way here.
            setTimer(nil)
            await rest()
        } catch let error as LogError where error.code == .diskFull {
            // It goes on when something could be recorded again.
        }
    }

    /// Ends all work, to go on with it one day, and leaves the folder to others.
    private func rest() async {
        await stopWork()
        lock = nil
    }

    private func stopWork() async {
        let tasks = running.values.map(\.task)
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Whether nobody else works in the folder: another manager, or a process whose store was
    /// suspended a moment ago. Where that cannot be told, the jobs will say why.
    private func isAlone() -> Bool {
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

    /// Brings what is worked on in line with the jobs, the network and the settings.
    private func step() async throws {
        let downloads = store.view(DownloadsView.self)
        for (jobId, job) in running where downloads[jobId]?.status != .downloading {
            job.task.cancel()
        }
        await sweep(downloads)
        let wantsWiFi = store.view(PreferencesView.self)[user].wifiOnlyDownload
        switch path {
        case nil: return
        case .some(.none): try await halt(.connection)
        case .cellular where wantsWiFi:
            try await halt(.cellular)
            for job in downloads.jobs(.queued) {
                try await tolerant { try await commands.pause(job.id, .cellular, numbers: nil) }
            }
        default:
            try await commands.queueWanted(for: user)
            try await begin(store.view(DownloadsView.self))
        }
    }

    /// Ends all work for want of a network. Jobs that another process left behind rest, too.
    private func halt(_ reason: PauseReason) async throws {
        let meters = running.mapValues(\.meter)
        await stopWork()
        for job in store.view(DownloadsView.self).jobs(.downloading) {
            try await tolerant {
                try await commands.pause(job.id, reason, numbers: meters[job.id]?.numbers)
            }
        }
        setTimer(nil)
    }

    /// Begins what may be worked on now.
    private func begin(_ downloads: DownloadsView) async throws {
        let now = ContinuousClock.now
        var waiting = downloads.jobs(.downloading).filter { isDue($0.id, now) }
        waiting +=
            (downloads.jobs(.queued)
            + downloads.jobs(.paused).filter {
                $0.pauseReason == .cellular || $0.pauseReason == .connection && isDue($0.id, now)
            }).sorted(by: DownloadJob.precedes)
        for job in waiting {
            guard running.count < max(1, options.jobsAtOnce) else { break }
            // Its last work may not have ended yet.
            guard running[job.id] == nil else { continue }
            if job.status != .downloading {
                guard
                    try await tolerant({ try await commands.start(job.id, numbers: job.numbers) })
                else { continue }
            }
            start(job)
        }
        arm(now)
    }

    /// Carries out a command about a job that somebody else may have changed meanwhile.
    ///
    /// - Returns: false if it does not fit any more.
    @discardableResult
    private func tolerant(_ command: () async throws -> Void) async throws -> Bool {
        do {
            try await command()
            return true
        } catch let error as EventError where error.code == .refused { return false }
    }

    // MARK: One job

    private func start(_ job: DownloadJob) {
        lost[job.id] = nil
        folders.insert(job.id)
        let meter = DownloadMeter(
            job.numbers, bytesMax: options.cityBytesMax, interval: options.progressInterval
        ) { [progress, id = job.id] meter in progress.update(id) { _ in meter.numbers } }
        let run = DownloadRun(
            job: job, source: source, authorizer: authorizer, files: files,
            fileSystem: store.environment.fileSystem, folder: folder + "/" + job.id, meter: meter,
            pace: DownloadPace(options) { [store] in store.randomFraction() }, options: options,
            checkRoom: { [store, user] in try await Self.checkRoom(for: $0, store, user) },
            keep: { [weak self] in await self?.keep($0, job.id) })
        progress.update(job.id) { _ in meter.numbers }
        running[job.id] = Running(
            task: Task {
                let result: Result<DownloadedCity, any Error>
                do {
                    result = .success(
                        try await instruments.measure(.download) { try await run.run() })
                } catch { result = .failure(error) }
                await end(job, meter, result)
            }, meter: meter)
    }

    /// Records what came of a job.
    private func end(
        _ job: DownloadJob, _ meter: DownloadMeter, _ result: Result<DownloadedCity, any Error>
    ) async {
        do {
            switch result {
            case .success(let city): try await record(city, job, meter)
            case .failure(is CancellationError): break
            case .failure(is ConnectionLost):
                try await commands.pause(job.id, .connection, numbers: meter.numbers)
                wait(job.id)
            // The log cannot be written just now, which is not the job's fault.
            case .failure(let error as LogError): throw error
            case .failure(let error):
                try await fail(job, meter, error)
            }
            _ = try await commands.cleanUp()
        } catch {
            // Refused: somebody has paused or removed it meanwhile. Suspended: the loop rests, too.
            // Else the log cannot be written just now: the job is as it was, and is tried later.
            if !(error is EventError), (error as? LogError)?.code != .suspended { wait(job.id) }
        }
        progress.update(job.id) { _ in nil }
        running[job.id] = nil
        loop?.wake()
    }

    private func record(
        _ city: DownloadedCity, _ job: DownloadJob, _ meter: DownloadMeter
    ) async throws {
        do {
            do { try await files.requireHeld(city.files.map(\.file)) } catch {
                // Another process may have had the log meanwhile: the job is done over.
                throw LogError(.suspended, path: store.directory, "\(error)")
            }
            try await commands.complete(
                job.id, totalBytes: meter.numbers.downloadedBytes
            ) { [user] transaction in
                // The user may have asked for it meanwhile.
                let present = transaction.view(DownloadsView.self)[job.id] ?? job
                try city.record(
                    isExplicit: present.isExplicit, for: user, in: &transaction)
            }
            instruments.count(.downloadedBytes, meter.numbers.downloadedBytes)
        } catch {
            if error is LogError { throw error }
            // As it is now: it may have been paused at the last moment.
            guard store.view(DownloadsView.self)[job.id]?.status == .downloading else { return }
            try await fail(job, meter, error)
            return
        }
        await discard([job.id])
    }

    private func fail(_ job: DownloadJob, _ meter: DownloadMeter, _ error: any Error) async throws {
        try await commands.fail(job.id, Self.words(error), numbers: meter.numbers)
        // What is too much is not kept for a retry.
        if error is StorageLimitError || (error as? DownloadError)?.code == .tooLarge {
            await discard([job.id])
        }
    }

    /// What the user reads.
    private static func words(_ error: any Error) -> String {
        let text =
            switch error {
            case let error as FileStoreError where error.code == .noSpace:
                DownloadError.deviceIsFull
            default: "\(error)"
            }
        return text.isEmpty ? "the download failed" : String(text.prefix(1_000))
    }

    /// Whether a city of which all sizes are announced would fit what the user allows: else nothing
    /// of it need be fetched.
    ///
    /// - Throws: `StorageLimitError`.
    private static func checkRoom(
        for city: DownloadedCity, _ store: EventStore, _ user: String
    ) async throws {
        struct Fits: Error {}
        do {
            try await store.write { transaction in
                try city.record(
                    isExplicit: city.isExplicit, for: user, in: &transaction)
                // Nothing of it is recorded.
                throw Fits()
            }
        } catch is Fits {}
    }

    // MARK: Waiting

    private func wait(_ jobId: String) {
        lost[jobId] = (arrivals, .now + options.pausedRetry)
    }

    /// Whether a job that waits for a connection may be tried: it is another network, or long
    /// enough ago, or was before this process.
    private func isDue(_ jobId: String, _ now: ContinuousClock.Instant) -> Bool {
        guard let lost = lost[jobId] else { return true }
        return lost.arrivals != arrivals || lost.until <= now
    }

    /// Sees to it that the loop runs when a job is due by itself. Without such a job there is no
    /// timer, nor while nothing may be fetched.
    private func arm(_ now: ContinuousClock.Instant) {
        let downloads = store.view(DownloadsView.self)
        lost = lost.filter { downloads[$0.key]?.status.isUnfinished ?? false }
        // One that is due already begins when another ends.
        setTimer(lost.values.map(\.until).filter { $0 > now }.min())
    }

    private func setTimer(_ next: ContinuousClock.Instant?) {
        loop?.setTimer(next, after: next.map { max(.zero, $0 - .now) } ?? .zero)
    }

    private func keep(_ file: FileID, _ jobId: String) { held[jobId, default: []].append(file) }

    /// Deletes what was fetched for jobs that are done or gone.
    private func sweep(_ downloads: DownloadsView) async {
        await discard(
            folders.filter { jobId in
                guard running[jobId] == nil else { return false }
                let status = downloads[jobId]?.status
                return status == nil || status == .completed || status == .cancelled
            })
    }

    private func discard(_ jobIds: some Collection<String>) async {
        guard !jobIds.isEmpty else { return }
        for jobId in jobIds {
            // If it fails, the next run tries again.
            try? DownloadFolder.remove(folder + "/" + jobId, store.environment.fileSystem)
            folders.remove(jobId)
            await files.release(held.removeValue(forKey: jobId) ?? [])
        }
        // What they brought and no city names, what a city has replaced, what had to make room. If
        // it fails, a later one does it.
        _ = try? await files.collect()
    }
}

extension DownloadedCity {
    /// Adds the city to a transaction.
    ///
    /// - Throws: `StorageLimitError`; `EventError`.
    fileprivate func record(
        isExplicit: Bool, for user: String, in transaction: inout EventStore.Transaction
    ) throws {
        let images = zip(manifest.images, files).map { image, file in
            CachedImage(
                id: image.id, url: image.url.absoluteString, file: file.file, size: file.size,
                kind: image.kind, width: image.width, height: image.height)
        }
        try CityCommands.cache(
            json: manifest.cityData, images: images, isExplicit: isExplicit, for: user,
            in: &transaction)
    }
}
