// The errors of the file store.

import Foundation
import LogStorage

/// A failure of the file store, with the path.
public struct FileStoreError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// There is no such file: it was collected, or the folder is incomplete.
        case missing
        /// The content does not match the hash in the name. The file was not deleted.
        case damaged
        /// The content exceeds the maximum size of a file.
        case tooLarge = "too-large"
        /// The device is full. Nothing was changed.
        case noSpace = "no-space"
        /// The system failed an operation.
        case io
    }

    /// The kind of failure.
    public var code: Code
    /// The file or folder.
    public var path: String
    /// A description of the failure, and what to do unless that is obvious.
    public var detail: String

    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .missing, .damaged: "Fetch the file again."
        case .tooLarge: "Store a smaller file."
        case .noSpace: "Free some space, then try again."
        case .io: "Try again. If it fails again, check the device."
        }
    }

    /// Creates an error.
    public init(_ code: Code, path: String, _ detail: String) {
        self.code = code
        self.path = path
        self.detail = detail
    }

    /// Creates the error of a failed operation on a file.
    public init(_ error: FileError) {
        let code: Code =
            switch error.code {
            case .notFound: .missing
            case .noSpace: .noSpace
            case .exists, .readOnly, .symbolicLink, .wrongKind, .io: .io
            }
        self.init(code, path: error.path, "\(error.operation): \(error.reason)")
    }

    /// The error of a file whose content does not match its id.
    public static func damaged(_ path: String, _ expected: FileID) -> FileStoreError {
        FileStoreError(
            .damaged, path: path,
            "the content does not have the SHA-256 \(expected); fetch the file again")
    }

    static func tooLarge(_ path: String, _ bytes: Int) -> FileStoreError {
        FileStoreError(
            .tooLarge, path: path,
            "the file has \(bytes) bytes; at most \(FileStore.fileBytesMax) can be stored")
    }

    /// The path and the detail in one line.
    public var description: String { "\(path): \(detail)" }
}
