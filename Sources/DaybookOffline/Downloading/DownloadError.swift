// What can go wrong while a city is downloaded. The text is what the user reads as the job's
// errorMessage. Spec/model/downloads.md, DL-16.

import Daybook
import Foundation

/// A failure of a download.
public struct DownloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// No complete answer came, or the server asks for patience. It is tried again.
        case unavailable
        /// The server does not give what was asked for.
        case refused
        /// The server does not take the token, and there is no other.
        case unauthorized
        /// The manifest is not what the contract says, or has an address that must not be asked.
        case badManifest = "bad-manifest"
        /// More bytes than were announced or are allowed.
        case tooLarge = "too-large"
        /// Not the bytes that the manifest or the server promises.
        case wrongContent = "wrong-content"
        /// The device is full.
        case noSpace = "no-space"
        /// The system failed an operation on a file.
        case io
    }

    /// The kind of failure.
    public var code: Code
    /// What happened, in words for people.
    public var detail: String
    /// How long the server asks to be left alone, in seconds; only with `unavailable`.
    public var retryAfterSeconds: Double?

    /// Creates an error. `detail` must hold no token and nothing that a server wrote.
    public init(_ code: Code, _ detail: String, retryAfterSeconds: Double? = nil) {
        self.code = code
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }

    init(_ error: FileError) {
        self.init(
            error.code == .noSpace ? .noSpace : .io,
            error.code == .noSpace
                ? Self.deviceIsFull : "a file could not be written: \(error.reason)")
    }

    static let deviceIsFull =
        "the device is full. Nothing that was stored is lost; make room and try again"

    /// The detail text.
    public var description: String { detail }
}

extension DownloadError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { detail }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .unavailable: "Nothing: it is tried again."
        case .refused, .badManifest, .wrongContent, .tooLarge:
            "Report it to the operator of the server."
        case .unauthorized: "Sign in again."
        case .noSpace: "Free some space, then try again."
        case .io: "Try again. If it fails again, check the device."
        }
    }
}

/// Runs a file operation, with its failure as a `DownloadError`.
func onDisk<T>(_ body: () throws(FileError) -> T) throws(DownloadError) -> T {
    do { return try body() } catch { throw DownloadError(error) }
}
