// One download of a city, and the table of its states. Created by DownloadsView; DownloadCommands enforces
// the table. Spec/model/downloads.md, DL-1 to DL-3.

import Daybook

/// A state of a download. The rows of the view contain the raw value.
public enum DownloadStatus: String, Hashable, Sendable, CaseIterable {
    /// Waiting to start.
    case queued = "QUEUED"
    /// In progress.
    case downloading = "DOWNLOADING"
    /// Paused by the user, or because there is no connection or no Wi-Fi.
    case paused = "PAUSED"
    /// Everything is on the device.
    case completed = "COMPLETED"
    /// Failed with an error that an automatic retry would not fix.
    case failed = "FAILED"
    /// Cancelled by the user.
    case cancelled = "CANCELLED"

    /// Whether the job is QUEUED or DOWNLOADING.
    public var isActive: Bool { self == .queued || self == .downloading }

    /// Whether the job is QUEUED, DOWNLOADING or PAUSED.
    public var isUnfinished: Bool { isActive || self == .paused }

    /// The states to which commands can change a job in this state.
    public var successors: Set<DownloadStatus> {
        switch self {
        case .queued: [.downloading, .paused, .cancelled]
        case .downloading: [.paused, .completed, .failed, .cancelled]
        case .paused: [.queued, .downloading, .cancelled]
        case .failed: [.queued]
        case .completed, .cancelled: []
        }
    }
}

/// A download of a city.
public struct DownloadJob: Hashable, Sendable, Identifiable {
    /// A UUID, lower case.
    public let id: String
    /// The city that is downloaded.
    public let cityId: String
    /// Whether the user asked for it; false for an automatic download.
    public let isExplicit: Bool
    /// The state.
    public let status: DownloadStatus
    /// The current step for display: `Downloading images (5/10)`.
    public let currentStep: String
    /// The total bytes to download, as far as they are known.
    public let totalBytes: Int
    /// The bytes downloaded so far; at most `totalBytes`.
    public let downloadedBytes: Int
    /// The time when it was first queued.
    public var startedAt: Timestamp { queued.time }
    /// The LWW timestamp of the event that first queued it.
    let queued: LWWTimestamp
    /// The time of the completion if `status` is COMPLETED, else nil.
    public let completedAt: Timestamp?
    /// The error if `status` is FAILED, else nil.
    public let errorMessage: String?
    /// The reason of the pause if `status` is PAUSED, else nil.
    public let pauseReason: PauseReason?
    /// The time of the last change of the state.
    public let changedAt: Timestamp

    /// The percentage, 0 to 100, rounded down; 100 only if every byte is downloaded. 0 while the total is
    /// unknown.
    public var progress: Int {
        if status == .completed { return 100 }
        guard totalBytes > 0 else { return 0 }
        let product = UInt64(downloadedBytes).multipliedFullWidth(by: 100)
        return Int(UInt64(totalBytes).dividingFullWidth(product).quotient)
    }

    /// The same job with other numbers.
    func with(_ numbers: DownloadNumbers) -> DownloadJob {
        DownloadJob(
            id: id, cityId: cityId, isExplicit: isExplicit, status: status,
            currentStep: numbers.currentStep, totalBytes: numbers.totalBytes,
            downloadedBytes: numbers.downloadedBytes, queued: queued,
            completedAt: completedAt, errorMessage: errorMessage, pauseReason: pauseReason,
            changedAt: changedAt)
    }

    /// The progress.
    public var numbers: DownloadNumbers {
        DownloadNumbers(
            currentStep: currentStep, totalBytes: totalBytes, downloadedBytes: downloadedBytes)
    }
}

extension DownloadJob {
    /// The order in which jobs are downloaded: explicit ones first, then by age, the oldest first.
    static func precedes(_ lhs: DownloadJob, _ rhs: DownloadJob) -> Bool {
        guard lhs.isExplicit == rhs.isExplicit else { return lhs.isExplicit }
        return lhs.queued < rhs.queued
    }
}
