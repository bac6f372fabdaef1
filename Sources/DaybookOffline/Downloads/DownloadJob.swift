// One download of a city, as apps see it, and which states may follow each other. Made by
// DownloadsView; DownloadCommands keep to the table. Spec/model/downloads.md, DL-1 to DL-3.

import Daybook

/// A state of a download. The raw value is what rows show.
public enum DownloadStatus: String, Hashable, Sendable, CaseIterable {
    /// Waiting to start.
    case queued = "QUEUED"
    /// In progress.
    case downloading = "DOWNLOADING"
    /// Paused by the user, for want of a connection or of Wi-Fi.
    case paused = "PAUSED"
    /// Everything is on the device.
    case completed = "COMPLETED"
    /// Something went wrong that trying again by itself would not mend.
    case failed = "FAILED"
    /// Cancelled by the user.
    case cancelled = "CANCELLED"

    /// Whether the job waits to be worked on, or is.
    public var isActive: Bool { self == .queued || self == .downloading }

    /// Whether the job is not done with: QUEUED, DOWNLOADING or PAUSED.
    public var isUnfinished: Bool { isActive || self == .paused }

    /// What a command may make of a job in this state.
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
    /// Whether the user asked for it; otherwise the app did by itself.
    public let isExplicit: Bool
    /// Where it stands.
    public let status: DownloadStatus
    /// What is being done, in words: `Downloading images (5/10)`.
    public let currentStep: String
    /// Bytes to download, as far as that is known.
    public let totalBytes: Int
    /// Bytes downloaded so far; at most `totalBytes`.
    public let downloadedBytes: Int
    /// When it was queued for the first time.
    public var startedAt: Timestamp { queued.time }
    /// The event that queued it first.
    let queued: Stamp
    /// When it was completed; set if `status` is COMPLETED, else nil.
    public let completedAt: Timestamp?
    /// What went wrong; set if `status` is FAILED, else nil.
    public let errorMessage: String?
    /// Why it is paused; set if `status` is PAUSED, else nil.
    public let pauseReason: PauseReason?
    /// When it came into its state.
    public let changedAt: Timestamp

    /// 0 to 100, rounded down; 100 only where every byte is there. A total that is not known is 0.
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

    /// How far it has come.
    public var numbers: DownloadNumbers {
        DownloadNumbers(
            currentStep: currentStep, totalBytes: totalBytes, downloadedBytes: downloadedBytes)
    }
}

extension DownloadJob {
    /// The order in which jobs are worked on: what the user asked for first, then the oldest.
    static func precedes(_ a: DownloadJob, _ b: DownloadJob) -> Bool {
        guard a.isExplicit == b.isExplicit else { return a.isExplicit }
        return a.queued < b.queued
    }
}
