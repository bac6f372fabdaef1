// The download jobs: the origin, state and removal of each, with indexes by city and by state.
// Spec/model/views.md; Spec/model/downloads.md.

import Daybook
import HashTreeCollections

/// The downloads of cities.
///
/// The costs depend on the number of jobs, not on the length of the log.
public struct DownloadsView: KeyedView {
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

    /// The state of a job after an event.
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

    /// The first queueing of a job, and its origin.
    struct Queued: Hashable, Sendable {
        /// The least LWW timestamp of all events that queued it.
        var first: LWWTimestamp
        var origin: Register<Origin>
    }

    enum Entry: Sendable {
        /// Indirect, so that the dictionary's nodes are small. `queued` is nil until the event that queued
        /// the job arrives.
        indirect case known(queued: Queued?, state: Register<State>)
        /// The least LWW timestamp of all events that removed it.
        case removed(LWWTimestamp)
    }

    private(set) var entries: TreeDictionary<EntityID, Entry> = [:]
    private var byCity: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]
    private var byStatus: TreeDictionary<DownloadStatus, TreeSet<EntityID>> = [:]
    /// The number of events whose data is invalid.
    public internal(set) var ignored = 0

    public init() {}

    init(entries: TreeDictionary<EntityID, Entry>, ignored: Int) {
        self.entries = entries
        self.ignored = ignored
        for id in entries.keys { addToIndexes(id) }
    }

    public mutating func fold(_ event: Event) {
        do {
            guard let change = try DownloadChange(event) else { return }
            apply(change, event.lwwTimestamp)
        } catch { ignored += 1 }
    }

    private mutating func apply(_ change: DownloadChange, _ lwwTimestamp: LWWTimestamp) {
        let id = EntityID(change.jobId)
        guard let state = change.state else {
            var first = lwwTimestamp
            if case .removed(let other) = entries[id] { first = min(first, other) }
            removeFromIndexes(id)
            entries[id] = .removed(first)
            return
        }
        guard
            case .known(var queued, var register) =
                entries[id] ?? .known(queued: nil, state: Register(state, lwwTimestamp))
        else { return }
        removeFromIndexes(id)
        register.set(state, lwwTimestamp)
        if let origin = change.origin {
            var new = queued ?? Queued(first: lwwTimestamp, origin: Register(origin, lwwTimestamp))
            new.first = min(new.first, lwwTimestamp)
            new.origin.set(origin, lwwTimestamp)
            queued = new
        }
        entries[id] = .known(queued: queued, state: register)
        addToIndexes(id)
    }

    private mutating func addToIndexes(_ id: EntityID) {
        guard case .known(let queued?, let state) = entries[id] else { return }
        byCity[EntityID(queued.origin.value.cityId), default: []].insert(id)
        byStatus[state.value.status, default: []].insert(id)
    }

    private mutating func removeFromIndexes(_ id: EntityID) {
        guard case .known(let queued?, let state) = entries[id] else { return }
        let city = EntityID(queued.origin.value.cityId)
        byCity[city]?.remove(id)
        if byCity[city]?.isEmpty ?? false { byCity[city] = nil }
        byStatus[state.value.status]?.remove(id)
    }

    // MARK: Queries

    /// The job with an id; nil if there is none or it was removed. O(1).
    public subscript(jobId: String) -> DownloadJob? { job(EntityID(jobId)) }

    /// The LWW timestamp of a job's state; nil if there is no such job. O(1).
    func lwwTimestamp(_ jobId: String) -> LWWTimestamp? {
        if case .known(_, let state) = entries[EntityID(jobId)] { state.lwwTimestamp } else { nil }
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
        case .downloading(let progress): numbers = progress
        case .paused(let progress, let pauseReason): (numbers, reason) = (progress, pauseReason)
        case .failed(let progress, let error): (numbers, message) = (progress, error)
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
            completedAt: status == .completed ? state.lwwTimestamp.time : nil,
            errorMessage: message,
            pauseReason: reason, changedAt: state.lwwTimestamp.time)
    }

    private func sorted(_ ids: TreeSet<EntityID>?) -> [DownloadJob] {
        (ids ?? []).compactMap { job($0) }.sorted { $0.queued < $1.queued }
    }

    /// The jobs of a city, oldest first. O(k log k) for k jobs of the city.
    public func jobs(of cityId: String) -> [DownloadJob] { sorted(byCity[EntityID(cityId)]) }

    /// The jobs in a state, oldest first. O(k log k) for k jobs in it.
    public func jobs(_ status: DownloadStatus) -> [DownloadJob] { sorted(byStatus[status]) }

    /// The jobs that are QUEUED or DOWNLOADING, in the order in which they are downloaded: explicit ones
    /// first, then by age, the oldest first. O(k log k) for k such jobs.
    public var active: [DownloadJob] {
        (jobs(.queued) + jobs(.downloading)).sorted(by: DownloadJob.precedes)
    }

    /// The number of jobs in a state. O(1).
    public func count(_ status: DownloadStatus) -> Int { byStatus[status]?.count ?? 0 }

    /// All jobs, by id. O(jobs and removed jobs).
    public var jobs: [DownloadJob] { entries.keys.sorted().compactMap { job($0) } }

    public static let keyNames = ["id"]
    public static let columns = [
        "id", "cityId", "isExplicit", "status", "progress", "currentStep", "totalBytes",
        "downloadedBytes", "startedAt", "completedAt", "errorMessage", "pauseReason",
    ]

    public func rows() -> ViewRows { ViewRows(jobs) { $0.row } }

    public func rowKeys(changedBy event: Event) -> [[String]]? {
        (try? DownloadChange(event)).map { [[$0.jobId]] } ?? []
    }

    public func row(key: [String]) -> ViewRow? { self[key[0]]?.row }
}

extension DownloadJob {
    fileprivate var row: ViewRow {
        var row = ViewRow()
        row.appendField("id", id)
        row.appendField("cityId", cityId)
        row.appendField("isExplicit", isExplicit)
        row.appendField("status", status.rawValue)
        row.appendField("progress", progress)
        row.appendField("currentStep", currentStep)
        row.appendField("totalBytes", totalBytes)
        row.appendField("downloadedBytes", downloadedBytes)
        row.appendField("startedAt", startedAt.description)
        row.appendField("completedAt", completedAt?.description)
        row.appendField("errorMessage", errorMessage)
        row.appendField("pauseReason", pauseReason?.rawValue)
        return row
    }
}

/// The change of a job by an event.
struct DownloadChange {
    var jobId: String
    /// The origin, if the event queued the job.
    var origin: DownloadsView.Origin?
    /// The new state; nil if the job was removed.
    var state: DownloadsView.State?

    /// Decodes an event; nil for an event of another kind.
    ///
    /// - Throws: `EventError` for data that breaks the rules of the type.
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
