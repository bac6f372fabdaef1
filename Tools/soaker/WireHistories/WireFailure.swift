// The error of a WireHistory.

/// An invariant that does not hold in a history, or a failure of its setup.
public struct WireFailure: Error, CustomStringConvertible {
    /// The message.
    public let description: String

    init(_ description: String) { self.description = description }
}
