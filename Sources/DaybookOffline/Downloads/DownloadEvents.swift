// The events of a download job. The event of a state contains the progress at that time; progress between
// two events is not recorded. Spec/model/events.md, EVT-7; Spec/model/downloads.md.

import Daybook
import Foundation

/// The progress of a download when an event was recorded.
public struct DownloadNumbers: DeclaredObject, Hashable {
    /// The step for display: `Downloading images (5/10)`.
    public var currentStep: String
    /// The total bytes to fetch, as far as they are known.
    public var totalBytes: Int
    /// The bytes fetched so far; at most `totalBytes`.
    public var downloadedBytes: Int

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

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("currentStep", &currentStep, .text)
        try members.required("totalBytes", &totalBytes, .count)
        try members.required("downloadedBytes", &downloadedBytes, .count)
        try members.constraint(
            .atMost("downloadedBytes", "totalBytes"), isMet: downloadedBytes <= totalBytes)
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
    public var jobId: String
    /// The city.
    public var cityId: String
    /// Whether the user asked for it.
    public var isExplicit: Bool

    /// Creates the event's data.
    public init(jobId: String, cityId: String, isExplicit: Bool) {
        self.jobId = jobId
        self.cityId = cityId
        self.isExplicit = isExplicit
    }

    public static var example: Self {
        Self(jobId: "-", cityId: "-", isExplicit: false)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try members.required("cityId", &cityId, .identifier)
        try members.required("isExplicit", &isExplicit, .flag)
    }

    public var subject: String? { jobId }
}

/// A download was started or continued.
public struct DownloadStarted: DeclaredPayload, Hashable {
    public static let type = "daybook.download.started"
    /// The job.
    public var jobId: String
    /// The progress.
    public var numbers: DownloadNumbers

    /// Creates the event's data.
    public init(jobId: String, numbers: DownloadNumbers) {
        self.jobId = jobId
        self.numbers = numbers
    }

    public static var example: Self {
        Self(jobId: "-", numbers: .example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try numbers.declareMembers(&members)
    }

    public var subject: String? { jobId }
}

/// A download was paused.
public struct DownloadPaused: DeclaredPayload, Hashable {
    public static let type = "daybook.download.paused"
    /// The job.
    public var jobId: String
    /// The progress.
    public var numbers: DownloadNumbers
    /// The reason.
    public var reason: PauseReason

    /// Creates the event's data.
    public init(jobId: String, numbers: DownloadNumbers, reason: PauseReason) {
        self.jobId = jobId
        self.numbers = numbers
        self.reason = reason
    }

    public static var example: Self {
        Self(jobId: "-", numbers: .example, reason: .user)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try numbers.declareMembers(&members)
        try members.required("reason", &reason, .choice(PauseReason.self))
    }

    public var subject: String? { jobId }
}

/// A download was completed: everything was fetched and stored.
public struct DownloadCompleted: DeclaredPayload, Hashable {
    public static let type = "daybook.download.completed"
    /// The job.
    public var jobId: String
    /// The number of fetched bytes.
    public var totalBytes: Int

    /// Creates the event's data.
    public init(jobId: String, totalBytes: Int) {
        self.jobId = jobId
        self.totalBytes = totalBytes
    }

    public static var example: Self {
        Self(jobId: "-", totalBytes: 0)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try members.required("totalBytes", &totalBytes, .count)
    }

    public var subject: String? { jobId }
}

/// A download failed. The user can retry it.
public struct DownloadFailed: DeclaredPayload, Hashable {
    public static let type = "daybook.download.failed"
    /// The job.
    public var jobId: String
    /// The progress.
    public var numbers: DownloadNumbers
    /// The error for display. Not empty.
    public var errorMessage: String

    /// Creates the event's data.
    public init(jobId: String, numbers: DownloadNumbers, errorMessage: String) {
        self.jobId = jobId
        self.numbers = numbers
        self.errorMessage = errorMessage
    }

    public static var example: Self {
        Self(jobId: "-", numbers: .example, errorMessage: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try numbers.declareMembers(&members)
        try members.required("errorMessage", &errorMessage, .nonEmptyText)
    }

    public var subject: String? { jobId }
}

/// The user cancelled a download.
public struct DownloadCancelled: DeclaredPayload, Hashable {
    public static let type = "daybook.download.cancelled"
    /// The job.
    public var jobId: String

    /// Creates the event's data.
    public init(jobId: String) { self.jobId = jobId }

    public static var example: Self {
        Self(jobId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
    }

    public var subject: String? { jobId }
}

/// A job was removed permanently: by a clean-up, or because its city was deleted.
public struct DownloadRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.download.removed"
    /// The job.
    public var jobId: String

    /// Creates the event's data.
    public init(jobId: String) { self.jobId = jobId }

    public static var example: Self {
        Self(jobId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
    }

    public var subject: String? { jobId }
}

/// The kind of the member `jobId`: a UUID in lower case.
private struct JobIDKind: MemberKind {
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
