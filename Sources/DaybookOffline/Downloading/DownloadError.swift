// The failures of a city's download. The user reads the text as the job's errorMessage.
// Spec/model/downloads.md, DL-16.

import Daybook
import Foundation

/// A failure of a download.
public struct DownloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a failure. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The response was incomplete, or the server asks for a later retry. The request is retried.
        case unavailable
        /// The server refuses the request.
        case refused
        /// The server rejects the token, and the credentials have no other.
        case unauthorized
        /// The manifest breaks the protocol, or has an address that must not be requested.
        case badManifest = "bad-manifest"
        /// The content has more bytes than were announced or are allowed.
        case tooLarge = "too-large"
        /// The content differs from what the manifest or the server announced.
        case wrongContent = "wrong-content"
        /// The device is full.
        case noSpace = "no-space"
        /// An operation on a file failed.
        case io
    }

    /// The kind of failure.
    public var code: Code
    /// A human-readable message.
    public var detail: String
    /// The value of the server's `Retry-After`, in seconds; only with `unavailable`.
    public var retryAfterSeconds: Double?
    /// Whether the answer was a portal's, as far as the device can tell; only with `unavailable`.
    var isPortal = false
    /// Whether the server says that it does not have the content; only with `refused`.
    var isMissing = false

    /// Creates an error. `detail` must contain no token and no text from a server.
    public init(_ code: Code, _ detail: String, retryAfterSeconds: Double? = nil) {
        self.code = code
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }

    init(_ error: FileError) {
        self.init(
            error.code == .noSpace ? .noSpace : .io,
            error.code == .noSpace
                ? Self.deviceIsFull
                : "cannot \(error.operation) \(URL(filePath: error.path).lastPathComponent): \(error.reason)"
        )
    }

    /// The error of content that the server says it does not have.
    init(missing detail: String) {
        self.init(.refused, detail)
        isMissing = true
    }

    static let deviceIsFull =
        "the device is full; stored data is intact; free some space and try again"

    /// The detail text.
    public var description: String { detail }
}

extension DownloadError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { detail }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .unavailable: "Nothing: the download is retried."
        case .refused, .badManifest, .wrongContent, .tooLarge:
            "Report it to the operator of the server."
        case .unauthorized: "Sign in again."
        case .noSpace: "Free some space, then try again."
        case .io: "Try again. If it fails again, check the device."
        }
    }
}

/// Runs a file operation and converts its failure to a `DownloadError`.
func onDisk<T>(_ body: () throws(FileError) -> T) throws(DownloadError) -> T {
    do { return try body() } catch { throw DownloadError(error) }
}
