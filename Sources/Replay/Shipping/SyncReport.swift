// What a run of the replayer came to.

import Foundation

/// What a run of the replayer came to.
public struct SyncReport: Hashable, Sendable {
    /// Events that the server has applied.
    public var applied = 0
    /// Events that the server already had.
    public var duplicate = 0
    /// Events that were parked: rejected ones, and those whose retries are used up.
    public var rejected = 0
    /// Events in conflict, those that were resolved included.
    public var conflict = 0
    /// Conflicts that were resolved.
    public var resolved = 0
    /// Events that are still to be sent, held ones included.
    public var pending = 0
    /// Those of them that are parked or in conflict, or after one that is in their lane.
    public var held = 0
    /// Events of other logs that were recorded: those of pages, and what the server holds in a conflict.
    public var received = 0
    /// Whether other logs' events were to be read and not all of them were.
    public var isBehind = false
    /// Events that the server handed out and that could not be taken in: they are no events, they
    /// hold a token that was sent, or their id stands for something else here.
    public var unusable = 0
    /// Events that the server handed out although their types never leave a device: contents of
    /// caches, settings, records of another log. They were left out.
    public var refused = 0
    /// Events that are on their way to the server: what an app shows as SYNCING.
    public var underWay: Set<UUID> = []
    /// Whether another log was found to write under this one's name, so that it took a new one.
    public var tookNewName = false
    /// Whether nothing was done because another run exchanges this store's events.
    public var isElsewhere = false
    /// Why the run stopped with something left to do that nobody holds.
    public var message: String?

    /// What the transport refuses, where that is why the run stopped: a token of another account,
    /// or one that cannot be sent. `message` has it in words.
    public var refusal: TransportError?

    /// An empty report.
    public init() {}
}
