// What becomes of changes that were made without knowing a newer one: a resolver decides, the replayer
// records the decision. Spec/protocol/conflicts.md.

import EventSourcing
import Foundation

/// A lane whose first event the server did not take, since its entity has changed there.
public struct Conflict: Sendable {
    /// The lane.
    public let lane: String
    /// What the server holds instead: the event that the entity's state there comes from. Nil where
    /// the server has none, or did not say.
    public let current: EventDraft?
    /// All events of the lane that the server has not taken, in order; the first is in conflict, the
    /// others were made in its light.
    public let pending: [Event]

    /// Describes a conflict.
    public init(lane: String, current: EventDraft?, pending: [Event]) {
        self.lane = lane
        self.current = current
        self.pending = pending
    }
}

/// What is to become of a conflict's pending events.
public enum Resolution: Sendable {
    /// They are made again, on top of what the server holds: this device's changes win.
    case keepMine
    /// They are taken back: the server's state wins.
    case keepTheirs
    /// These events stand for them, on top of what the server holds.
    case replace([EventDraft])
    /// Nothing is decided now; the lane goes on waiting, and its events show as CONFLICT.
    case undecided
}

/// Decides conflicts.
public protocol ConflictResolver: Sendable {
    /// Decides one conflict. Called while syncing, and again for a conflict that was left undecided
    /// in an earlier run.
    ///
    /// - Throws: anything; the conflict then stays undecided.
    func resolve(_ conflict: Conflict) async throws -> Resolution
}

/// This device's changes win.
public struct KeepMine: ConflictResolver {
    /// Creates it.
    public init() {}
    public func resolve(_ conflict: Conflict) -> Resolution { .keepMine }
}

/// The server's state wins.
public struct KeepTheirs: ConflictResolver {
    /// Creates it.
    public init() {}
    public func resolve(_ conflict: Conflict) -> Resolution { .keepTheirs }
}

/// A function makes one event of both sides.
///
/// ```swift
/// let resolver = Merge { conflict in
///     guard let mine = conflict.pending.last?.content, … else { return nil }
///     return try EventDraft(TripPlanned(trip: "spring", stops: theirs + ours))
/// }
/// ```
public struct Merge: ConflictResolver {
    private let merge: @Sendable (Conflict) async throws -> EventDraft?

    /// Wraps a function.
    ///
    /// - Parameter merge: makes the event that stands for all pending ones, or nil to leave the
    ///   conflict undecided.
    public init(_ merge: @escaping @Sendable (Conflict) async throws -> EventDraft?) {
        self.merge = merge
    }

    public func resolve(_ conflict: Conflict) async throws -> Resolution {
        try await merge(conflict).map { .replace([$0]) } ?? .undecided
    }
}
