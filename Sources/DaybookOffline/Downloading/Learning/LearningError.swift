// Why a lesson or a review session cannot be started or fetched now. What a server or the connection
// did wrong is a DownloadError. Spec/model/learning.md, LRN-38.

import Foundation

/// A refusal of learning without a network.
public struct LearningError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of refusal it is. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// Review sessions are being downloaded: none can be started until that has ended.
        case downloadInProgress = "download-in-progress"
        /// It is not on the device.
        case notStored = "not-stored"
        /// There is no network.
        case offline
        /// There is a mobile network, and the user wants downloads on Wi-Fi only.
        case cellular
        /// The user has not chosen what to learn.
        case noCombination = "no-combination"
    }

    /// The kind of refusal.
    public var code: Code
    /// What is the matter, in words for people.
    public var detail: String

    /// Creates an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The detail text.
    public var description: String { detail }
}

extension LearningError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { detail }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .downloadInProgress: "Wait until the download has ended."
        case .notStored: "Download it first."
        case .offline: "Connect to a network, then try again."
        case .cellular: "Connect to Wi-Fi, or allow downloads over mobile networks."
        case .noCombination: "Choose what to learn first."
        }
    }
}
