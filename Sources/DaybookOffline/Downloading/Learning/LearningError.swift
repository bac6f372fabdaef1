// The reasons why a lesson or a review session cannot be started or fetched now. Failures of a server or
// the connection are a DownloadError. Spec/model/learning.md, LRN-38.

import Foundation

/// A refusal to start or fetch learning material.
public struct LearningError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a refusal. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// Review sessions are being downloaded. No session can be started until the download ends.
        case downloadInProgress = "download-in-progress"
        /// The session is not on the device.
        case notStored = "not-stored"
        /// There is no network connection.
        case offline
        /// The network is cellular, and the user's setting permits downloads on Wi-Fi only.
        case cellular
        /// The user has not chosen a combination of languages.
        case noCombination = "no-combination"
    }

    /// The kind of refusal.
    public var code: Code
    /// A human-readable message.
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
        case .noCombination: "Choose a combination of languages first."
        }
    }
}
