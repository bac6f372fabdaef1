// The events of a download job. The event of a state contains the progress at that time; progress between
// two events is not recorded. Spec/model/events.md, EVT-7; Spec/model/downloads.md.

import Daybook
import Foundation

/// The progress of a download when an event was recorded.
public struct DownloadNumbers: DeclaredObject, Hashable {
    /// The step for display: `Downloading images (5/10)`.
    public var currentStep: String  // .text
    /// The total bytes to fetch, as far as they are known.
    public var totalBytes: Int
    /// The bytes fetched so far; at most `totalBytes`.
    public var downloadedBytes: Int  // at most totalBytes

    /// The progress of a new job.
    public static let initial = DownloadNumbers(
        currentStep: "Initializing...", totalBytes: 0, downloadedBytes: 0)

    /// Creates numbers. Negative bytes become 0, and the total is raised to the fetched bytes.
    public init(currentStep: String, totalBytes: Int, downloadedBytes: Int) {
        self.currentStep = currentStep
        self.downloadedBytes = max(0, downloadedBytes)
        self.totalBytes = max(totalBytes, self.downloadedBytes)
    }

    public static var example: Self {
        initial
    }
}

/// The reason of a pause. Events contain the raw value.
public enum PauseReason: String, Hashable, Sendable, CaseIterable {
    /// The user paused it.
    case user
    /// The server cannot be reached.
    case connection
    /// The network is metered, and the user allows Wi-Fi only.
    case cellular
}

/// The download of a city was queued.
public struct DownloadQueued: DeclaredPayload, Hashable {
    public static let type = "daybook.download.queued"
    /// The job: a UUID, lower case.
    public var jobId: String  // JobIDKind()
    /// The city.
    public var cityId: String
    /// Whether the user asked for it.
    public var isExplicit: Bool

    public var subject: String? { jobId }
}

/// A download was started or continued.
public struct DownloadStarted: DeclaredPayload, Hashable {
    public static let type = "daybook.download.started"
    /// The job.
    public var jobId: String  // JobIDKind()
    /// The progress.
    public var numbers: DownloadNumbers  // its members

    public var subject: String? { jobId }
}

/// A download was paused.
public struct DownloadPaused: DeclaredPayload, Hashable {
    public static let type = "daybook.download.paused"
    /// The job.
    public var jobId: String  // JobIDKind()
    /// The progress.
    public var numbers: DownloadNumbers  // its members
    /// The reason.
    public var reason: PauseReason

    public var subject: String? { jobId }
}

/// A download was completed: everything was fetched and stored.
public struct DownloadCompleted: DeclaredPayload, Hashable {
    public static let type = "daybook.download.completed"
    /// The job.
    public var jobId: String  // JobIDKind()
    /// The number of fetched bytes.
    public var totalBytes: Int

    public var subject: String? { jobId }
}

/// A download failed. The user can retry it.
public struct DownloadFailed: DeclaredPayload, Hashable {
    public static let type = "daybook.download.failed"
    /// The job.
    public var jobId: String  // JobIDKind()
    /// The progress.
    public var numbers: DownloadNumbers  // its members
    /// The error for display. Not empty.
    public var errorMessage: String  // .nonEmptyText

    public var subject: String? { jobId }
}

/// The user cancelled a download.
public struct DownloadCancelled: DeclaredPayload, Hashable {
    public static let type = "daybook.download.cancelled"
    /// The job.
    public var jobId: String  // JobIDKind()

    public var subject: String? { jobId }
}

/// A job was removed permanently: by a clean-up, or because its city was deleted.
public struct DownloadRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.download.removed"
    /// The job.
    public var jobId: String  // JobIDKind()

    public var subject: String? { jobId }
}

/// The kind of the member `jobId`: a UUID in lower case.
struct JobIDKind: MemberKind {
    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> String {
        let text = try object.string(name)
        guard UUID(uuidString: text)?.text == text else {
            throw EventError(.invalidData, "\(object.path).\(name) is not a UUID in lower case")
        }
        return text
    }

    func write(
        _ value: String, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, value)
    }

    var schema: MemberSchema.Kind {
        .meaningful(
            "a UUID in lower case",
            samples: ["a", "b", "c"].map { "00000000-0000-4000-8000-00000000000\($0)" })
    }

    func placeholder(_ text: String) -> String? { text }
}
