// Why a history on the wire failed.

/// A history that must not be.
public struct WireFailure: Error, CustomStringConvertible {
    /// What is wrong.
    public let description: String

    init(_ description: String) { self.description = description }
}
