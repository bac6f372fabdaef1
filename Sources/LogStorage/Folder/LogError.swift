// The error type of the storage layer: what happened, where, why, and what to do.

import LogFormat

/// A failure of a log, with its location.
public struct LogError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// There is no log at the path, or the log's files were removed, renamed or replaced while it
        /// was open.
        case noSuchLog = "no-such-log"
        /// The folder or file is not a log.
        case notALog = "not-a-log"
        /// The log was written by a newer version.
        case newerVersion = "newer-version"
        /// The log uses a feature that this version does not support.
        case unknownFeature = "unknown-feature"
        /// Synced bytes are damaged or missing. Nothing was truncated.
        case corrupt
        /// Another writer has the log open.
        case locked
        /// The log belongs to another account.
        case wrongAccount = "wrong-account"
        /// The folder or file is not writable.
        case readOnly = "read-only"
        /// The device is full. Nothing was changed; reading still works.
        case diskFull = "disk-full"
        /// An operation of the file system failed.
        case io
        /// A write or sync failed in this session, so the state on disk is not known. Open the log again
        /// to find out.
        case indeterminate
        /// A commit, a line or an account name exceeds its limit.
        case tooLarge = "too-large"
        /// The log was closed.
        case closed
        /// The log is suspended: its lock is released until it is resumed.
        case suspended
    }

    /// The kind of failure.
    public var code: Code
    /// The file or folder.
    public var path: String
    /// The byte offset in the file, if there is one.
    public var offset: Int?
    /// The affected positions, if they are known.
    public var positions: ClosedRange<Position>?
    /// The message: what happened and, where it is not obvious, what to do.
    public var detail: String

    /// Creates an error.
    public init(
        _ code: Code, path: String, offset: Int? = nil, positions: ClosedRange<Position>? = nil,
        _ detail: String
    ) {
        self.code = code
        self.path = path
        self.offset = offset
        self.positions = positions
        self.detail = detail
    }

    /// True if a file of the log is damaged, so that a repair helps: `corrupt`, and `notALog` for a segment
    /// whose header cannot be read.
    public var isDamage: Bool {
        switch code {
        case .corrupt: true
        case .notALog:
            path.split(separator: "/").last.flatMap { SegmentName.base(String($0)) } != nil
        default: false
        }
    }

    /// Wraps a failed file operation.
    public init(_ error: FileError) {
        let code: Code =
            switch error.code {
            case .notFound: .noSuchLog
            case .noSpace: .diskFull
            case .readOnly: .readOnly
            case .exists, .symbolicLink, .wrongKind, .io: .io
            }
        self.init(code, path: error.path, "\(error.operation): \(error.reason)")
    }

    /// Wraps a format error found in a file.
    package init(_ error: FormatError, path: String, offset: Int?) {
        let code: Code =
            switch error.code {
            case .newerVersion: .newerVersion
            case .unknownFeature: .unknownFeature
            case .foreign: .notALog
            default: .corrupt
            }
        self.init(code, path: path, offset: offset, error.detail)
    }

    /// Path, location and detail in one line.
    public var description: String {
        var text = path
        if let offset { text += ", byte \(offset)" }
        if let positions {
            text +=
                positions.count == 1
                ? ", position \(positions.lowerBound)"
                : ", positions \(positions.lowerBound)–\(positions.upperBound)"
        }
        return text + ": " + detail
    }
}

/// Runs a file operation and converts its error to a `LogError`.
package func storage<T>(_ body: () throws(FileError) -> T) throws(LogError) -> T {
    do { return try body() } catch { throw LogError(error) }
}
