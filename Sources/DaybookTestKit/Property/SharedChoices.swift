// One row of choices for several parts of a simulation that draw from it in turn: a property passes its
// choices to an independent network, server and app, and reads them back at the end.

import Synchronization

/// Choices protected by a lock, shared by the parts of a simulation.
///
/// ```swift
/// let shared = SharedChoices(choices)
/// defer { choices = shared.choices }
/// ```
///
/// A run is deterministic only if its parts draw in a fixed order. The lock does not ensure that.
public final class SharedChoices: Sendable {
    private let state: Mutex<Choices>

    /// Creates shared choices that continue a row of choices.
    public init(_ choices: Choices) { state = Mutex(choices) }

    /// The choices so far.
    public var choices: Choices { state.withLock { $0 } }

    /// Draws under the lock.
    public func draw<Result: Sendable>(
        _ body: (inout Choices) throws -> Result
    ) rethrows -> Result {
        try state.withLock { try body(&$0) }
    }

    /// Counts an occurrence; see `Choices.count(_:by:)`.
    public func count(_ label: String, by number: Int = 1) {
        state.withLock { $0.count(label, by: number) }
    }

    /// Adds a note for the failure report; see `Choices.note(_:)`.
    public func note(_ text: String) { state.withLock { $0.note(text) } }
}
