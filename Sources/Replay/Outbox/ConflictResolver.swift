// Conflicts between local changes and newer changes on the server: a resolver decides, the replayer records
// the decision. Spec/protocol/conflicts.md.

import EventSourcing
import Foundation

/// A lane whose first event the server did not apply because its entity has changed there.
public struct Conflict: Sendable {
    /// The lane.
    public let lane: String
    /// The event that set the entity's state on the server. Nil if the server has none or did not send it.
    public let current: EventDraft?
    /// The events of the lane that the server has not applied, in order. The first is in conflict; the
    /// others may depend on it.
    public let pending: [Event]
    /// The id of the server's event, also if the log does not have that event.
    let currentID: UUID?

    /// Describes a conflict.
    public init(lane: String, current: EventDraft?, pending: [Event]) {
        self.init(lane: lane, current: current, currentID: current?.id, pending: pending)
    }

    init(lane: String, current: EventDraft?, currentID: UUID?, pending: [Event]) {
        self.lane = lane
        self.current = current
        self.currentID = currentID
        self.pending = pending
    }
}

/// The decision on a conflict's pending events.
public enum Resolution: Sendable {
    /// Records the pending events again, based on the server's event: this device's changes win.
    case keepMine
    /// Retracts the pending events: the server's state wins.
    case keepTheirs
    /// Retracts the pending events and records these instead, based on the server's event.
    case replace([EventDraft])
    /// Decides nothing now: the lane stays held, and its events are shown as CONFLICT.
    case undecided
}

/// Decides conflicts.
public protocol ConflictResolver: Sendable {
    /// Decides one conflict. The replayer calls it during a run, and again in later runs while the conflict
    /// is undecided.
    ///
    /// - Throws: any error; the conflict then stays undecided.
    func resolve(_ conflict: Conflict) async throws -> Resolution
}

/// A resolver by which this device's changes win.
public struct KeepMine: ConflictResolver {
    /// Creates the resolver.
    public init() {}
    public func resolve(_ conflict: Conflict) -> Resolution { .keepMine }
}

/// A resolver by which the server's state wins.
public struct KeepTheirs: ConflictResolver {
    /// Creates the resolver.
    public init() {}
    public func resolve(_ conflict: Conflict) -> Resolution { .keepTheirs }
}

/// A resolver that merges both sides into one event.
///
/// ```swift
/// let resolver = Merge { conflict in
///     guard let mine = conflict.pending.last?.content, … else { return nil }
///     return try EventDraft(TripPlanned(trip: "spring", stops: theirs + ours))
/// }
/// ```
public struct Merge: ConflictResolver {
    private let merge: @Sendable (Conflict) async throws -> EventDraft?

    /// Creates a resolver from a function.
    ///
    /// - Parameter merge: returns the event that replaces all pending events, or nil to leave the
    ///   conflict undecided.
    public init(_ merge: @escaping @Sendable (Conflict) async throws -> EventDraft?) {
        self.merge = merge
    }

    public func resolve(_ conflict: Conflict) async throws -> Resolution {
        try await merge(conflict).map { .replace([$0]) } ?? .undecided
    }
}
