// One row of choices for several who draw from it in turn: a property hands its choices to a
// network, a server and an app that know nothing of each other, and takes them back at the end.
// Between Choices and everything in Network/.

import Synchronization

/// Choices behind a lock.
///
/// ```swift
/// let shared = SharedChoices(choices)
/// defer { choices = shared.choices }
/// ```
///
/// A run is deterministic only where its parts take turns; the lock does not see to that.
public final class SharedChoices: Sendable {
    private let state: Mutex<Choices>

    /// Takes over a row of choices.
    public init(_ choices: Choices) { state = Mutex(choices) }

    /// The choices so far.
    public var choices: Choices { state.withLock { $0 } }

    /// Draws.
    public func draw<Result: Sendable>(
        _ body: (inout Choices) throws -> Result
    ) rethrows -> Result {
        try state.withLock { try body(&$0) }
    }

    /// Counts something that happened; see `Choices.count(_:by:)`.
    public func count(_ label: String, by number: Int = 1) {
        state.withLock { $0.count(label, by: number) }
    }

    /// Says something in words; see `Choices.note(_:)`.
    public func note(_ text: String) { state.withLock { $0.note(text) } }
}
