// What can go wrong with a file beside the log.

import Daybook
import Foundation

/// A failure of the file store, with its place.
public struct FileStoreError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// There is no such file: it was collected, or the folder is not complete.
        case missing
        /// The content is another than the name says. It was not deleted.
        case damaged
        /// More bytes than a file may have.
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
    /// What happened, in words, with what to do where that is not plain.
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

    init(_ error: FileError) {
        let code: Code =
            switch error.code {
            case .notFound: .missing
            case .noSpace: .noSpace
            case .exists, .readOnly, .symbolicLink, .wrongKind, .io: .io
            }
        self.init(code, path: error.path, "\(error.operation): \(error.reason)")
    }

    static func damaged(_ path: String, _ expected: FileID) -> FileStoreError {
        FileStoreError(
            .damaged, path: path,
            "the content is not the one with the SHA-256 \(expected). Fetch the file anew")
    }

    static func tooLarge(_ path: String, _ bytes: Int) -> FileStoreError {
        FileStoreError(
            .tooLarge, path: path,
            "a file of \(bytes) bytes; at most \(FileStore.fileBytesMax) can be stored")
    }

    /// Place and reason in one line.
    public var description: String { "\(path): \(detail)" }
}
