// The errors of the log as sentences for an app to show, each with a remedy. `failureReason` is the error's
// own description.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension LogError: LocalizedError {
    /// What happened, to which folder or file, and why.
    public var errorDescription: String? {
        switch code {
        case .noSuchLog: "There is no log at \(path): \(detail)."
        case .notALog where isDamage: "The log is damaged: \(description)."
        case .notALog: "\(path) is not the folder of a log: \(detail)."
        case .newerVersion: "\(path) was written by a newer version of this software: \(detail)."
        case .unknownFeature: "\(path) uses a feature that this version does not have: \(detail)."
        case .corrupt: "The log is damaged: \(description)."
        case .locked: "\(path) is in use: \(detail)."
        case .wrongAccount: "The account does not fit \(path): \(detail)."
        case .readOnly: "\(path) cannot be written to: \(detail)."
        case .diskFull: "The device is full: \(description). Nothing was changed."
        case .io: "\(path) could not be read or written: \(detail)."
        case .indeterminate: "Writing to \(path) failed: \(detail)."
        case .tooLarge: "There is more data than \(path) accepts: \(detail)."
        case .closed: "The store at \(path) is closed."
        case .suspended: "The store at \(path) is suspended."
        }
    }

    /// The file or folder, the location in it, and the system's reason.
    public var failureReason: String? { description }

    /// The remedy.
    public var recoverySuggestion: String? {
        switch code {
        case .noSuchLog:
            "Check the path. Only EventStore.open creates a log, in a folder whose parent exists, and not "
                + "with create: false. If the files were removed or replaced under an open store, close the "
                + "store and open it again."
        case .notALog where !isDamage: "Choose an empty folder, or the folder of a log."
        case .newerVersion, .unknownFeature: "Update the app."
        case .corrupt, .notALog:
            "Nothing was deleted. In the app, repair the log with LogMaintenance.repair(), which keeps "
                + "the replaced files, or copy what is intact into a new folder with "
                + "LogMaintenance.salvage(to:). On a computer, use logtool repair."
        case .locked: "Close the other store or process, then try again."
        case .wrongAccount:
            "Open the log with the account for which it was created, or choose another folder: every "
                + "account has a log of its own, and so has what all accounts share."
        case .readOnly: "Give the app write permission to the folder."
        case .diskFull: "Free some space, then try again."
        case .io:
            "Do what the description says. Otherwise try again; if it fails again, check the device and "
                + "the folder's permissions."
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
    /// What was refused, and why.
    public var errorDescription: String? {
        switch code {
        case .notJSON, .badAttribute, .idReused: "The event was refused: \(detail)."
        case .invalidData: "The data are invalid: \(detail)."
        case .tooLarge: "The data are too large: \(detail)."
        case .refused, .unknownReference: "The call was refused: \(detail)."
        }
    }

    /// The remedy.
    public var recoverySuggestion: String? {
        switch code {
        case .notJSON: "Give the data as JSON."
        case .badAttribute: "Correct the attribute that the description names."
        case .invalidData:
            "Correct the data, the rule of their type, or the type as which they are read."
        case .tooLarge:
            "Append fewer events at once. Keep larger content as a file, and its name in the event: an event "
                + "that is shipped has at most 256 KiB, any other 1 MiB, a commit 4 MiB."
        case .idReused: "Give the new event an id of its own."
        case .refused: "Correct what the description names, then try again."
        case .unknownReference: "Name an id that the store knows, or store the list that has it."
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

    /// The remedy.
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
    public var errorDescription: String? { "The bytes are not those of a log: \(detail)." }

    /// The remedy.
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

    /// The remedy.
    public var recoverySuggestion: String? { "Correct the text at that byte." }
}

extension UnsyncedError: LocalizedError {
    /// The number of unsynced changes, in one sentence.
    public var errorDescription: String? {
        count == 1
            ? "1 change has not been saved online yet."
            : "\(count) changes have not been saved online yet."
    }

    /// The remedy.
    public var recoverySuggestion: String? {
        "Sync first, or discard the changes with discardingUnsynced: true."
    }
}
