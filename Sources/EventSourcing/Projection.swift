// A view is a fold over the log: a value that takes in one event after the other.

/// A state that follows from the events of a log alone.
///
/// The value is the state. Reading it anywhere gives a snapshot that never changes; copying must be
/// cheap, so states hold persistent collections (`TreeDictionary`) rather than arrays of everything.
/// `fold` must be a pure function: no clock, no randomness, no I/O.
public protocol Projection: Sendable {
    /// The view's name, stable across releases.
    static var name: String { get }
    /// Raised whenever `fold` or the state changes its meaning, so that stored states are rebuilt.
    static var version: Int { get }
    /// The state before the first event.
    init()
    /// Takes in one event. Events of unknown types must be ignored.
    mutating func fold(_ event: Event)
}
