// Why a store is not erased without further ado.

/// The log holds events that no server has: erasing it would lose them.
public struct UnsyncedError: Error, Hashable, Sendable, CustomStringConvertible {
    /// How many events are in the outbox, parked ones included.
    public let count: Int

    /// Creates an error.
    public init(count: Int) { self.count = count }

    /// What is at stake and what to do.
    public var description: String {
        "\(count) \(count == 1 ? "event has" : "events have") not reached the server. Sync first, "
            + "or say that they are to be discarded"
    }
}
