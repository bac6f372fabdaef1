// The reasons why an event cannot be undone or redone. Spec/model/undo.md.

import Foundation

/// The reason why an event was not undone or redone. Nothing was recorded.
public struct UndoError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a reason. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The log has no event with the id.
        case unknownEvent = "unknown-event"
        /// Another device has recorded the event.
        case notOwn = "not-own"
        /// The type of the event has no inverse, or this event has none, such as the first one that sets a value.
        case noInverse = "no-inverse"
        /// A newer change has replaced what the event has set.
        case superseded
        /// The event is undone already.
        case alreadyUndone = "already-undone"
        /// The event is not undone, so it cannot be redone.
        case notUndone = "not-undone"
        /// The event was discarded, or replaced when a conflict was decided.
        case retracted
        /// Compaction may have removed what was set before the event.
        case compacted
    }

    /// The kind of reason.
    public var code: Code
    /// A human-readable message.
    public var detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .unknownEvent: "Pass the id of an event of this log."
        case .notOwn, .superseded, .retracted, .compacted, .noInverse:
            "Record the wanted value as a new change."
        case .alreadyUndone: "Redo the event to have its change again."
        case .notUndone: "Undo the event first."
        }
    }

    /// The detail text.
    public var description: String { detail }
}
