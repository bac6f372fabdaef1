// The download jobs: for each its origin, its state and its removal, found by id, by city and by
// state. Spec/model/views.md; Spec/model/downloads.md.

import Daybook
import HashTreeCollections

/// The downloads of cities.
///
/// Costs are those of the jobs there are, whatever has happened in the log.
public struct DownloadsView: ListableView {
    public static let name = "downloads"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        DownloadQueued.type, DownloadStarted.type, DownloadPaused.type, DownloadCompleted.type,
        DownloadFailed.type, DownloadCancelled.type, DownloadRemoved.type,
    ]

    struct Origin: Hashable, Sendable {
        var cityId: String
        var isExplicit: Bool
    }

    /// What an event has made of a job.
    enum State: Hashable, Sendable {
        case queued
        case downloading(DownloadNumbers)
        case paused(DownloadNumbers, PauseReason)
        case completed(totalBytes: Int)
        case failed(DownloadNumbers, String)
        case cancelled

        var status: DownloadStatus {
            switch self {
            case .queued: .queued
            case .downloading: .downloading
            case .paused: .paused
            case .completed: .completed
            case .failed: .failed
            case .cancelled: .cancelled
            }
        }
    }

    /// When a job was queued, and what for.
    struct Queued: Hashable, Sendable {
        /// The least stamp of all events that queued it.
        var first: Stamp
        var origin: Register<Origin>
    }

    enum Entry: Sendable {
        /// In a box of its own: a small entry makes the dictionary's nodes small. Without `queued`
        /// it waits for its beginning.
        indirect case known(queued: Queued?, state: Register<State>)
        /// The least stamp of all events that removed it.
        case removed(Stamp)
    }

    private(set) var entries: TreeDictionary<EntityID, Entry> = [:]
    private var byCity: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]
    private var byStatus: TreeDictionary<DownloadStatus, TreeSet<EntityID>> = [:]
    /// Events whose data no rule can make sense of.
    public internal(set) var ignored = 0

    public init() {}

    init(entries: TreeDictionary<EntityID, Entry>, ignored: Int) {
        self.entries = entries
        self.ignored = ignored
        for id in entries.keys { list(id) }
    }

    public mutating func fold(_ event: Event) {
        do {
            guard let change = try DownloadChange(event) else { return }
            apply(change, event.stamp)
        } catch { ignored += 1 }
    }

    private mutating func apply(_ change: DownloadChange, _ stamp: Stamp) {
        let id = EntityID(change.jobId)
        guard let state = change.state else {
            var first = stamp
            if case .removed(let other) = entries[id] { first = min(first, other) }
            unlist(id)
            entries[id] = .removed(first)
            return
        }
        guard
            case .known(var queued, var register) =
                entries[id] ?? .known(queued: nil, state: Register(state, stamp))
        else { return }
        unlist(id)
        register.set(state, stamp)
        if let origin = change.origin {
            var new = queued ?? Queued(first: stamp, origin: Register(origin, stamp))
            new.first = min(new.first, stamp)
            new.origin.set(origin, stamp)
            queued = new
        }
        entries[id] = .known(queued: queued, state: register)
        list(id)
    }

    private mutating func list(_ id: EntityID) {
        guard case .known(let queued?, let state) = entries[id] else { return }
        byCity[EntityID(queued.origin.value.cityId), default: []].insert(id)
        byStatus[state.value.status, default: []].insert(id)
    }

    private mutating func unlist(_ id: EntityID) {
        guard case .known(let queued?, let state) = entries[id] else { return }
        let city = EntityID(queued.origin.value.cityId)
        byCity[city]?.remove(id)
        if byCity[city]?.isEmpty ?? false { byCity[city] = nil }
        byStatus[state.value.status]?.remove(id)
    }

    // MARK: Questions

    /// A job, if there is one with this id that was not removed. O(1).
    public subscript(jobId: String) -> DownloadJob? { job(EntityID(jobId)) }

    /// Which event has made a job what it is; nil if there is no such job. O(1).
    func stamp(_ jobId: String) -> Stamp? {
        if case .known(_, let state) = entries[EntityID(jobId)] { state.stamp } else { nil }
    }

    /// Whether a job was removed. O(1).
    public func isRemoved(_ jobId: String) -> Bool {
        if case .removed = entries[EntityID(jobId)] { true } else { false }
    }

    private func job(_ id: EntityID) -> DownloadJob? {
        guard case .known(let queued?, let state) = entries[id] else { return nil }
        var numbers = DownloadNumbers.initial
        var (reason, message): (PauseReason?, String?)
        switch state.value {
        case .queued: break
        case .downloading(let its): numbers = its
        case .paused(let its, let why): (numbers, reason) = (its, why)
        case .failed(let its, let what): (numbers, message) = (its, what)
        case .completed(let total):
            numbers = DownloadNumbers(
                currentStep: "Completed", totalBytes: total, downloadedBytes: total)
        case .cancelled: numbers.currentStep = "Cancelled"
        }
        let status = state.value.status
        return DownloadJob(
            id: id.string, cityId: queued.origin.value.cityId,
            isExplicit: queued.origin.value.isExplicit, status: status,
            currentStep: numbers.currentStep, totalBytes: numbers.totalBytes,
            downloadedBytes: numbers.downloadedBytes, queued: queued.first,
            completedAt: status == .completed ? state.stamp.time : nil, errorMessage: message,
            pauseReason: reason, changedAt: state.stamp.time)
    }

    private func sorted(_ ids: TreeSet<EntityID>?) -> [DownloadJob] {
        (ids ?? []).compactMap { job($0) }.sorted { $0.queued < $1.queued }
    }

    /// The jobs of a city, oldest first. O(k log k) for k jobs of the city.
    public func jobs(of cityId: String) -> [DownloadJob] { sorted(byCity[EntityID(cityId)]) }

    /// The jobs in a state, oldest first. O(k log k) for k jobs in it.
    public func jobs(_ status: DownloadStatus) -> [DownloadJob] { sorted(byStatus[status]) }

    /// The jobs that are worked on or wait for it, QUEUED or DOWNLOADING, in the order in which they
    /// are worked on: what the user asked for first, then the oldest. O(k log k) for k such jobs.
    public var active: [DownloadJob] {
        (jobs(.queued) + jobs(.downloading)).sorted(by: DownloadJob.precedes)
    }

    /// How many jobs are in a state. O(1).
    public func count(_ status: DownloadStatus) -> Int { byStatus[status]?.count ?? 0 }

    /// All jobs, by id. O(jobs and removed jobs).
    public var jobs: [DownloadJob] { entries.keys.sorted().compactMap { job($0) } }

    public func rows() -> [ViewRow] {
        jobs.map { job in
            var row = ViewRow()
            row.add("id", job.id)
            row.add("cityId", job.cityId)
            row.add("isExplicit", job.isExplicit)
            row.add("status", job.status.rawValue)
            row.add("progress", job.progress)
            row.add("currentStep", job.currentStep)
            row.add("totalBytes", job.totalBytes)
            row.add("downloadedBytes", job.downloadedBytes)
            row.add("startedAt", job.startedAt.description)
            row.add("completedAt", job.completedAt?.description)
            row.add("errorMessage", job.errorMessage)
            row.add("pauseReason", job.pauseReason?.rawValue)
            return row
        }
    }
}

/// What an event says of a job.
struct DownloadChange {
    var jobId: String
    /// What it was queued for, if the event queued it.
    var origin: DownloadsView.Origin?
    /// The state it came to; nil: it was removed.
    var state: DownloadsView.State?

    /// Nil for an event that is about something else.
    ///
    /// - Throws: for data that break the rules of the type.
    init?(_ event: Event) throws {
        switch event.type {
        case DownloadQueued.type:
            let data = try event.payload(as: DownloadQueued.self)
            jobId = data.jobId
            origin = DownloadsView.Origin(cityId: data.cityId, isExplicit: data.isExplicit)
            state = .queued
        case DownloadStarted.type:
            let data = try event.payload(as: DownloadStarted.self)
            (jobId, state) = (data.jobId, .downloading(data.numbers))
        case DownloadPaused.type:
            let data = try event.payload(as: DownloadPaused.self)
            (jobId, state) = (data.jobId, .paused(data.numbers, data.reason))
        case DownloadCompleted.type:
            let data = try event.payload(as: DownloadCompleted.self)
            (jobId, state) = (data.jobId, .completed(totalBytes: data.totalBytes))
        case DownloadFailed.type:
            let data = try event.payload(as: DownloadFailed.self)
            (jobId, state) = (data.jobId, .failed(data.numbers, data.errorMessage))
        case DownloadCancelled.type:
            (jobId, state) = (try event.payload(as: DownloadCancelled.self).jobId, .cancelled)
        case DownloadRemoved.type: jobId = try event.payload(as: DownloadRemoved.self).jobId
        default: return nil
        }
    }
}
