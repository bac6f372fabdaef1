// The refusal to erase a store with unsynced events.

/// The log has events that no server has: erasing it would lose them.
public struct UnsyncedError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The number of events in the outbox, parked ones included.
    public let count: Int

    /// Creates an error.
    public init(count: Int) { self.count = count }

    /// The number of unsynced events, with the remedy.
    public var description: String {
        "\(count) \(count == 1 ? "event has" : "events have") not reached the server; sync first, "
            + "or discard them with discardingUnsynced: true"
    }
}
