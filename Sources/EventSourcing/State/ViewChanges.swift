// The values of a question to a view, over time. Each subscriber computes its own, in its own task,
// when it is ready for one; the store only says that there was a commit. Spec/following.md.

import LogFormat

/// A value now, and again whenever it is another.
///
/// Begins with the current value. Whoever takes values slowly gets the newest only; values that did
/// not change are not repeated. Relaxed events are in it as soon as their append has returned, so a
/// kill may take a value back. Ends when the store is closed, and when the iterating task is
/// cancelled.
public struct ViewChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    private let store: EventStore
    private let isSame: @Sendable (Value, Value) -> Bool
    /// The last position that the view has folded.
    private let through: @Sendable () -> Position
    /// The value, and the last position that is in it.
    let read: @Sendable () -> (value: Value, through: Position)

    init<View: Projection>(
        _ store: EventStore, _ answer: @escaping @Sendable (View) -> Value,
        isSame: @escaping @Sendable (Value, Value) -> Bool
    ) {
        self.store = store
        self.isSame = isSame
        through = { store.present(View.self).through }
        read = {
            let (view, through) = store.present(View.self)
            return (answer(view), through)
        }
    }

    /// Begins with the current value; every iterator by itself.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// One subscriber's values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let changes: ViewChanges
        private var signals: AsyncStream<Void>.AsyncIterator?
        private var last: (value: Value, through: Position)?

        init(_ changes: ViewChanges) { self.changes = changes }

        /// The current value at first, then the next one that is another; nil at the end.
        ///
        /// - Complexity: that of the question for each commit that was noticed.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> Value? {
            if signals == nil {
                // Before the first look, so that no commit is missed.
                signals = await changes.store.commits().makeAsyncIterator()
                guard !Task.isCancelled else { return nil }
                last = changes.read()
                return last?.value
            }
            while await signals?.next(isolation: actor) != nil {
                guard changes.through() != last?.through else { continue }
                let new = changes.read()
                let isSame = last.map { changes.isSame($0.value, new.value) } ?? false
                last = new
                if !isSame { return new.value }
            }
            return nil
        }
    }
}
