// What an app shows a person of the errors of the log, and what can be done about them. `failureReason` has
// the place: file, byte, positions.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension LogError: LocalizedError {
    /// What happened, in one sentence.
    public var errorDescription: String? {
        switch code {
        case .noSuchLog: "There is no log at \(path)."
        case .notALog: "\(path) is not the folder of a log."
        case .newerVersion: "The log was written by a newer version of this software."
        case .unknownFeature: "The log uses a feature that this version does not have."
        case .corrupt: "The log is damaged."
        case .locked: "The log is open elsewhere."
        case .wrongAccount: "The log belongs to another account."
        case .readOnly: "The log's folder cannot be written to."
        case .diskFull: "The device is full. Nothing was changed."
        case .io: "A file of the log could not be read or written."
        case .indeterminate: "Writing to the log failed. The last change may be missing."
        case .tooLarge: "There is more data than the log accepts at once."
        case .closed: "The log is closed."
        case .suspended: "The log is suspended."
        }
    }

    /// The file or folder, the place in it, and the system's reason.
    public var failureReason: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .noSuchLog:
            "Check the path. A log is created in a folder whose parent exists, unless it is opened "
                + "with create: false."
        case .notALog: "Choose an empty folder, or the folder of a log."
        case .newerVersion, .unknownFeature: "Update the app."
        case .corrupt:
            "Nothing was deleted. Keep a copy of the folder, then salvage what is intact with "
                + "EventStore.salvage(from:to:) or logtool repair."
        case .locked: "Close the other store or process, then try again."
        case .wrongAccount: "Open the log with the account for which it was created."
        case .readOnly: "Give the app write permission to the folder."
        case .diskFull: "Free some space, then try again."
        case .io: "Try again. If it fails again, check the device and the folder's permissions."
        case .indeterminate:
            "Close the store, open it again, and append the same drafts again: recorded ones are "
                + "recognised by their ids."
        case .tooLarge:
            "Append less at once, and keep content of more than \(EventDraft.lineBytesMax / 1_048_576) "
                + "MiB as a file."
        case .closed: "Open the log again."
        case .suspended: "Call resume(), then try again."
        }
    }
}

extension EventError: LocalizedError {
    /// What was refused and why, in one sentence.
    public var errorDescription: String? { "The event was refused: \(detail)." }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .notJSON: "Give the data as one JSON object."
        case .badAttribute: "Correct the attribute that the description names."
        case .invalidData: "Correct the data, or the rule of the event's type."
        case .tooLarge:
            "Keep larger content as a file, and its name in the event. An event that is shipped has at "
                + "most 256 KiB, any other 1 MiB."
        case .idReused: "Give the new event an id of its own."
        case .refused, .unknownReference: "Look at the present state, and correct the command."
        }
    }
}

extension FileError: LocalizedError {
    /// What failed, in one sentence.
    public var errorDescription: String? {
        switch code {
        case .notFound: "There is no file or folder at \(path)."
        case .exists: "There is a file or folder at \(path) already."
        case .noSpace: "The device is full."
        case .readOnly: "\(path) cannot be written to."
        case .symbolicLink: "\(path) is or crosses a symbolic link."
        case .wrongKind: "\(path) is a folder where a file belongs, or a file where a folder does."
        case .io: "\(path) could not be read or written."
        }
    }

    /// The operation, the path and the system's reason.
    public var failureReason: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .notFound: "Check the path."
        case .exists, .wrongKind: "Choose another path."
        case .noSpace: "Free some space, then try again."
        case .readOnly: "Give the app write permission."
        case .symbolicLink: "Give the path without the link."
        case .io: "Try again. If it fails again, check the device."
        }
    }
}

extension FormatError: LocalizedError {
    /// What is wrong with the bytes, in one sentence.
    public var errorDescription: String? { "The bytes are not what a log holds: \(detail)." }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .newerVersion, .unknownFeature: "Update the app."
        default: "Use an intact copy."
        }
    }
}

extension JSONError: LocalizedError {
    /// What is wrong with the text, and where.
    public var errorDescription: String? { "The text is not JSON: \(description)." }

    /// What to do next.
    public var recoverySuggestion: String? { "Correct the text at that byte." }
}

extension UnsyncedError: LocalizedError {
    /// How much the server does not have yet, in one sentence.
    public var errorDescription: String? {
        count == 1
            ? "1 change has not been saved online yet."
            : "\(count) changes have not been saved online yet."
    }

    /// What to do next.
    public var recoverySuggestion: String? {
        "Sync first, or discard the changes with discardingUnsynced: true."
    }
}
