// What happens to a download job. Each event of a state carries the numbers of its moment; progress
// between two of them is not recorded. Spec/model/events.md, EVT-7; Spec/model/downloads.md.

import Daybook
import Foundation

/// How far a download had come when an event was recorded.
public struct DownloadNumbers: Hashable, Sendable {
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

    init(_ fields: JSONFields) throws(EventError) {
        currentStep = try fields.string("currentStep")
        totalBytes = try fields.bytes("totalBytes")
        downloadedBytes = try fields.bytes("downloadedBytes")
        guard downloadedBytes <= totalBytes else {
            throw EventError(.invalidData, "data.downloadedBytes is more than totalBytes")
        }
    }

    func add(to writer: inout JSONObjectWriter) {
        writer.add("currentStep", currentStep)
        writer.add("totalBytes", totalBytes)
        writer.add("downloadedBytes", downloadedBytes)
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
public struct DownloadQueued: EventPayload, Hashable {
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        jobId = try fields.jobId()
        cityId = try fields.identifier("cityId")
        guard let isExplicit = try fields.bool("isExplicit") else {
            throw EventError(.invalidData, "data.isExplicit is missing")
        }
        self.isExplicit = isExplicit
    }

    public var subject: String? { jobId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("jobId", jobId)
        writer.add("cityId", cityId)
        writer.add("isExplicit", isExplicit)
        return writer.finished()
    }
}

/// A download began, or went on.
public struct DownloadStarted: EventPayload, Hashable {
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        jobId = try fields.jobId()
        numbers = try DownloadNumbers(fields)
    }

    public var subject: String? { jobId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("jobId", jobId)
        numbers.add(to: &writer)
        return writer.finished()
    }
}

/// A download rests.
public struct DownloadPaused: EventPayload, Hashable {
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        jobId = try fields.jobId()
        numbers = try DownloadNumbers(fields)
        reason = try fields.oneOf(PauseReason.self, "reason")
    }

    public var subject: String? { jobId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("jobId", jobId)
        numbers.add(to: &writer)
        writer.add("reason", reason.rawValue)
        return writer.finished()
    }
}

/// Everything was fetched and stored.
public struct DownloadCompleted: EventPayload, Hashable {
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        jobId = try fields.jobId()
        totalBytes = try fields.bytes("totalBytes")
    }

    public var subject: String? { jobId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("jobId", jobId)
        writer.add("totalBytes", totalBytes)
        return writer.finished()
    }
}

/// A download failed; the user can try it again.
public struct DownloadFailed: EventPayload, Hashable {
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        jobId = try fields.jobId()
        numbers = try DownloadNumbers(fields)
        errorMessage = try fields.string("errorMessage")
        guard !errorMessage.isEmpty else {
            throw EventError(.invalidData, "data.errorMessage is empty")
        }
    }

    public var subject: String? { jobId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("jobId", jobId)
        numbers.add(to: &writer)
        writer.add("errorMessage", errorMessage)
        return writer.finished()
    }
}

/// The user does not want the city any more.
public struct DownloadCancelled: EventPayload, Hashable {
    public static let type = "daybook.download.cancelled"
    /// The job.
    public var jobId: String

    /// Creates the event's data.
    public init(jobId: String) { self.jobId = jobId }

    public init(json: [UInt8]) throws { jobId = try JSONFields(json).jobId() }

    public var subject: String? { jobId }

    public func json() -> [UInt8] { JSONObjectWriter.object("jobId", jobId) }
}

/// A job is gone, for ever: cleaned up, or its city was deleted.
public struct DownloadRemoved: EventPayload, Hashable {
    public static let type = "daybook.download.removed"
    /// The job.
    public var jobId: String

    /// Creates the event's data.
    public init(jobId: String) { self.jobId = jobId }

    public init(json: [UInt8]) throws { jobId = try JSONFields(json).jobId() }

    public var subject: String? { jobId }

    public func json() -> [UInt8] { JSONObjectWriter.object("jobId", jobId) }
}

extension JSONFields {
    /// The job that an event is about: a UUID, lower case.
    fileprivate func jobId() throws(EventError) -> String {
        let text = try string("jobId")
        guard UUID(uuidString: text)?.text == text else {
            throw EventError(.invalidData, "data.jobId is not a UUID in lower case")
        }
        return text
    }

    /// A count that must be there.
    fileprivate func bytes(_ name: StaticString) throws(EventError) -> Int {
        guard let value = try count(name) else {
            throw EventError(.invalidData, "data.\(name) is missing")
        }
        return value
    }
}
