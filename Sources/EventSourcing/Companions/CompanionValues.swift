// What a companion is bounded by, and what an append returns. Spec/format/companions.md.

import Foundation
import LogFormat

/// The bounds of what a companion may have waiting for the owner.
public struct CompanionLimits: Hashable, Sendable {
    /// The most events.
    public var events: Int
    /// The most bytes of their lines.
    public var bytes: Int

    /// Creates bounds.
    public init(events: Int = 10_000, bytes: Int = 4 * 1024 * 1024) {
        self.events = events
        self.bytes = bytes
    }
}

/// A refused append: more events would wait for the owner than the companion's limits allow. Nothing was recorded,
/// and nothing that waits is lost. The app that owns the log absorbs what waits when it is opened.
public struct CompanionFullError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The companion's name.
    public let companion: String
    /// The events that wait.
    public let backlog: CompanionBacklog
    /// The companion's limits.
    public let limits: CompanionLimits

    /// What waits, and the limits.
    public var description: String {
        "the companion \(companion) has \(backlog.events.counted("event")) of "
            + "\(backlog.bytes.counted("byte")) waiting for the log's owner; at most \(limits.events) events and "
            + "\(limits.bytes) bytes may wait; open the app that owns the log"
    }

    /// The same as `description`, as a sentence.
    public var errorDescription: String? { "The event was not recorded: \(description)." }
}

/// The result of appending one event to a companion.
public struct SpooledEvent: Hashable, Sendable {
    /// The event's identity.
    public let id: UUID
    /// True if the event was recorded now; false if the log or a spool already had it, with the same content.
    public let isNew: Bool
}
