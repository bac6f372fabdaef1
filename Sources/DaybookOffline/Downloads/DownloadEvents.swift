// What happens to a download job. Each event of a state carries the numbers of its moment; progress
// between two of them is not recorded. Spec/model/events.md, EVT-7; Spec/model/downloads.md.

import Daybook
import Foundation

/// How far a download had come when an event was recorded.
public struct DownloadNumbers: DeclaredObject, Hashable {
    /// What was being done, in words for people: `Downloading images (5/10)`.
    public var currentStep: String
    /// Bytes to fetch, as far as that was known.
    public var totalBytes: Int
    /// Bytes fetched; at most `totalBytes`.
    public var downloadedBytes: Int

    /// What a job says before anything is known.
    public static let initial = DownloadNumbers(
        currentStep: "Initializing...", totalBytes: 0, downloadedBytes: 0)

    /// Creates numbers; what is fetched counts as part of the total, and nothing is negative.
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

/// Why a download is paused. The raw value is what events hold.
public enum PauseReason: String, Hashable, Sendable, CaseIterable {
    /// The user said so.
    case user
    /// The server cannot be reached.
    case connection
    /// The network is paid by volume, and the user wants Wi-Fi only.
    case cellular
}

/// A city is to be downloaded.
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
        try members.required("jobId", &jobId, JobKind())
        try members.required("cityId", &cityId, .identifier)
        try members.required("isExplicit", &isExplicit, .flag)
    }

    public var subject: String? { jobId }
}

/// A download began, or went on.
public struct DownloadStarted: DeclaredPayload, Hashable {
    public static let type = "daybook.download.started"
    /// The job.
    public var jobId: String
    /// How far it had come.
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
        try members.required("jobId", &jobId, JobKind())
        try numbers.declareMembers(&members)
    }

    public var subject: String? { jobId }
}

/// A download rests.
public struct DownloadPaused: DeclaredPayload, Hashable {
    public static let type = "daybook.download.paused"
    /// The job.
    public var jobId: String
    /// How far it had come.
    public var numbers: DownloadNumbers
    /// Why.
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
        try members.required("jobId", &jobId, JobKind())
        try numbers.declareMembers(&members)
        try members.required("reason", &reason, .choice(PauseReason.self))
    }

    public var subject: String? { jobId }
}

/// Everything was fetched and stored.
public struct DownloadCompleted: DeclaredPayload, Hashable {
    public static let type = "daybook.download.completed"
    /// The job.
    public var jobId: String
    /// Bytes that were fetched.
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
        try members.required("jobId", &jobId, JobKind())
        try members.required("totalBytes", &totalBytes, .count)
    }

    public var subject: String? { jobId }
}

/// A download failed; the user can try it again.
public struct DownloadFailed: DeclaredPayload, Hashable {
    public static let type = "daybook.download.failed"
    /// The job.
    public var jobId: String
    /// How far it had come.
    public var numbers: DownloadNumbers
    /// What went wrong, in words for people. Not empty.
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
        try members.required("jobId", &jobId, JobKind())
        try numbers.declareMembers(&members)
        try members.required("errorMessage", &errorMessage, .nonEmptyText)
    }

    public var subject: String? { jobId }
}

/// The user does not want the city any more.
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
        try members.required("jobId", &jobId, JobKind())
    }

    public var subject: String? { jobId }
}

/// A job is gone, for ever: cleaned up, or its city was deleted.
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
        try members.required("jobId", &jobId, JobKind())
    }

    public var subject: String? { jobId }
}

/// The job that an event is about: a UUID, lower case.
private struct JobKind: MemberKind {
    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> String {
        let text = try object.string(name)
        guard UUID(uuidString: text)?.text == text else {
            throw EventError(.invalidData, "\(object.place).\(name) is not a UUID in lower case")
        }
        return text
    }

    func write(
        _ value: String, _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.add(member: name, value)
    }

    var schema: MemberSchema.Kind {
        .meaningful(
            "a UUID in lower case",
            samples: ["a", "b", "c"].map { "00000000-0000-4000-8000-00000000000\($0)" })
    }

    func placeholder(_ text: String) -> String? { text }
}
