// The download jobs: the origin, state and removal of each, with indexes by city and by state.
// Spec/model/views.md; Spec/model/downloads.md.

import Daybook

/// The registers of a job.
struct DownloadRegisters: StateObject {
    struct Origin: StateObject, Hashable {
        var cityId = ""
        var isExplicit = false
        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&cityId, &isExplicit)
        }
    }

    /// The state of a job after an event.
    struct State: StateObject, Hashable {
        var status = DownloadStatus.queued
        var numbers = DownloadNumbers.initial
        var pauseReason: PauseReason?
        var errorMessage: String?

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&status, &pauseReason, &errorMessage)
            try state.visit(&numbers.currentStep, &numbers.totalBytes, &numbers.downloadedBytes)
        }

        var stateFault: String? {
            if !(0...max(0, numbers.totalBytes) ~= numbers.downloadedBytes) {
                return "the downloaded bytes are not between 0 and the total bytes"
            }
            return (pauseReason != nil) == (status == .paused)
                && (errorMessage != nil) == (status == .failed)
                ? nil : "the details of a job are not those of its state"
        }
    }

    /// Nil until the event that queued the job arrives.
    var origin: Register<Origin>?
    /// The least LWW timestamp of all events that queued it.
    var first: LWWTimestamp?
    var state: Register<State>?

    mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&self.state, &origin, &first)
    }

    var stateFault: String? {
        guard let state else { return "a job has no state" }
        guard let origin, let first else {
            return origin == nil && first == nil ? nil : "a job was queued without an origin"
        }
        return first <= origin.lwwTimestamp && origin.lwwTimestamp <= state.lwwTimestamp
            ? nil : "a job was queued after its last state"
    }
}

extension DownloadStatus: StateValue, RowValue {}
extension PauseReason: StateValue, RowValue {}

/// A job in an index, by the LWW timestamp of the event that first queued it.
private struct ListedJob: Comparable, Sendable {
    let queued: LWWTimestamp
    let id: EntityID
    let registers: Boxed<DownloadRegisters>

    init?(_ id: EntityID, _ registers: Boxed<DownloadRegisters>?) {
        guard let registers, let queued = registers.value.first else { return nil }
        (self.queued, self.id, self.registers) = (queued, id, registers)
    }

    static func < (lhs: Self, rhs: Self) -> Bool {
        (lhs.queued, lhs.id) < (rhs.queued, rhs.id)
    }

    static func == (lhs: Self, rhs: Self) -> Bool { (lhs.queued, lhs.id) == (rhs.queued, rhs.id) }

    var city: EntityID { EntityID(registers.value.origin?.value.cityId ?? "") }
    var status: DownloadStatus { registers.value.state?.value.status ?? .queued }
    var job: DownloadJob? { DownloadJob(id, registers.value) }
}

/// The downloads of cities.
///
/// The costs depend on the number of jobs, not on the length of the log.
public struct DownloadsView: DeclaredRows {
    public static let name = "downloads"
    public static let version = 2
    public static let events: ViewEvents<DownloadsView> = [
        .on(DownloadQueued.self) { queued, view, change in
            view.set(queued.jobId, .init(), &change) { job, change in
                let origin = DownloadRegisters.Origin(
                    cityId: queued.cityId, isExplicit: queued.isExplicit)
                change.set(&job.origin, to: origin)
                change.setFirst(&job.first)
            }
        },
        .on(DownloadStarted.self) { started, view, change in
            let state = DownloadRegisters.State(status: .downloading, numbers: started.numbers)
            view.set(started.jobId, state, &change)
        },
        .on(DownloadPaused.self) { paused, view, change in
            let state = DownloadRegisters.State(
                status: .paused, numbers: paused.numbers, pauseReason: paused.reason)
            view.set(paused.jobId, state, &change)
        },
        .on(DownloadCompleted.self) { completed, view, change in
            let total = completed.totalBytes
            let numbers = DownloadNumbers(
                currentStep: "Completed", totalBytes: total, downloadedBytes: total)
            view.set(completed.jobId, .init(status: .completed, numbers: numbers), &change)
        },
        .on(DownloadFailed.self) { failed, view, change in
            let state = DownloadRegisters.State(
                status: .failed, numbers: failed.numbers, errorMessage: failed.errorMessage)
            view.set(failed.jobId, state, &change)
        },
        .on(DownloadCancelled.self) { cancelled, view, change in
            var numbers = DownloadNumbers.initial
            numbers.currentStep = "Cancelled"
            view.set(cancelled.jobId, .init(status: .cancelled, numbers: numbers), &change)
        },
        .on(DownloadRemoved.self) { removed, view, change in
            view.updateIndexes(view.downloads.delete(removed.jobId, &change))
        },
    ]
    public static let fields: [ViewField<DownloadJob>] = [
        .init("id") { $0.id }, .init("cityId") { $0.cityId },
        .init("isExplicit") { $0.isExplicit }, .init("status") { $0.status },
        .init("progress") { $0.progress }, .init("currentStep") { $0.currentStep },
        .init("totalBytes") { $0.totalBytes }, .init("downloadedBytes") { $0.downloadedBytes },
        .init("startedAt") { $0.startedAt }, .init("completedAt") { $0.completedAt },
        .init("errorMessage") { $0.errorMessage }, .init("pauseReason") { $0.pauseReason },
    ]

    private var downloads = EntityTable<Boxed<DownloadRegisters>>()
    private var byCity = GroupedIndex<EntityID, ListedJob>()
    private var byStatus = GroupedIndex<DownloadStatus, ListedJob>()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&downloads)
    }

    public mutating func computeIndexes() {
        let jobs = downloads.entities.compactMap { ListedJob($0.id, $0.entity) }
        byCity = GroupedIndex(jobs, by: \.city)
        byStatus = GroupedIndex(jobs, by: \.status)
    }

    private mutating func updateIndexes(
        _ replaced: EntityTable<Boxed<DownloadRegisters>>.Replaced?
    ) {
        guard let replaced else { return }
        let old = ListedJob(replaced.id, replaced.old)
        let new = ListedJob(replaced.id, replaced.new)
        byCity.replace(old, with: new, by: \.city)
        byStatus.replace(old, with: new, by: \.status)
    }

    private mutating func set(
        _ jobId: String, _ state: DownloadRegisters.State, _ change: inout ViewChange,
        _ body: (inout DownloadRegisters, inout ViewChange) -> Void = { _, _ in }
    ) {
        updateIndexes(
            downloads.update(jobId, &change) { job, change in
                change.set(&job.state, to: state)
                body(&job, &change)
            })
    }

    // MARK: Queries

    /// The job with an id; nil if there is none or it was removed. O(1).
    public subscript(jobId: String) -> DownloadJob? { rowValue(EntityID(jobId)) }

    /// The LWW timestamp of a job's state; nil if there is no such job. O(1).
    func lwwTimestamp(_ jobId: String) -> LWWTimestamp? {
        downloads[jobId]?.value.state?.lwwTimestamp
    }

    /// Whether a job was removed. O(1).
    public func isRemoved(_ jobId: String) -> Bool { downloads.isDeleted(jobId) }

    public func rowValue(_ id: EntityID) -> DownloadJob? {
        downloads[id].flatMap { DownloadJob(id, $0.value) }
    }

    public var rowIDs: [EntityID] { downloads.ids { $0.value.origin != nil } }

    /// The jobs of a city, oldest first. O(k) for k jobs of the city.
    public func jobs(of cityId: String) -> [DownloadJob] {
        byCity[EntityID(cityId)].compactMap(\.job)
    }

    /// The jobs in a state, oldest first. O(k) for k jobs in it.
    public func jobs(_ status: DownloadStatus) -> [DownloadJob] {
        byStatus[status].compactMap(\.job)
    }

    /// The jobs that are QUEUED or DOWNLOADING, in the order in which they are downloaded: explicit ones
    /// first, then by age, the oldest first. O(k log k) for k such jobs.
    public var active: [DownloadJob] {
        (jobs(.queued) + jobs(.downloading)).sorted(by: DownloadJob.precedes)
    }

    /// The number of jobs in a state. O(1).
    public func count(_ status: DownloadStatus) -> Int { byStatus[status].count }

    /// All jobs, by id. O(jobs and removed jobs).
    public var jobs: [DownloadJob] { rowIDs.sorted().compactMap(rowValue) }
}

extension DownloadJob {
    fileprivate init?(_ id: EntityID, _ registers: DownloadRegisters) {
        guard let origin = registers.origin?.value, let first = registers.first,
            let state = registers.state
        else { return nil }
        let numbers = state.value.numbers
        self.init(
            id: id.string, cityId: origin.cityId, isExplicit: origin.isExplicit,
            status: state.value.status, currentStep: numbers.currentStep,
            totalBytes: numbers.totalBytes, downloadedBytes: numbers.downloadedBytes,
            queued: first,
            completedAt: state.value.status == .completed ? state.lwwTimestamp.time : nil,
            errorMessage: state.value.errorMessage, pauseReason: state.value.pauseReason,
            changedAt: state.lwwTimestamp.time)
    }
}
