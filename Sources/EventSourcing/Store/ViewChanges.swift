// The values of a question to a view, over time. Each subscriber computes its own, in its own task,
// when it is ready for one; the store only says that there was a commit. Spec/model/following.md.

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

    /// How far a value goes: the last position that the view has folded, and the transient table's
    /// revision.
    struct Version: Equatable {
        var position: Position
        var revision: UInt64?
    }

    private let store: EventStore
    private let table: (any TransientSource)?
    private let isSame: @Sendable (Value, Value) -> Bool
    private let version: @Sendable () -> Version
    /// The value, and what is in it at least.
    let read: @Sendable () -> (value: Value, version: Version)

    init<View: Projection>(
        _ store: EventStore, with table: (any TransientSource)? = nil,
        _ answer: @escaping @Sendable (View) -> Value,
        isSame: @escaping @Sendable (Value, Value) -> Bool
    ) {
        self.store = store
        self.table = table
        self.isSame = isSame
        version = {
            Version(position: store.present(View.self).through, revision: table?.revision)
        }
        read = {
            // Before the value is computed: a change meanwhile is noticed by the next look.
            let revision = table?.revision
            let (view, through) = store.present(View.self)
            return (answer(view), Version(position: through, revision: revision))
        }
    }

    /// Begins with the current value; every iterator by itself.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// One subscriber's values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let changes: ViewChanges
        private var signals: AsyncStream<Void>.AsyncIterator?
        private var last: (value: Value, version: Version)?

        init(_ changes: ViewChanges) { self.changes = changes }

        /// The current value at first, then the next one that is another; nil at the end.
        ///
        /// - Complexity: that of the question for each commit that was noticed.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> Value? {
            if signals == nil {
                // Before the first look, so that no commit is missed.
                signals = await changes.store.commits(and: changes.table).makeAsyncIterator()
                guard !Task.isCancelled else { return nil }
                last = changes.read()
                return last?.value
            }
            while await signals?.next(isolation: actor) != nil {
                guard changes.version() != last?.version else { continue }
                let new = changes.read()
                let isSame = last.map { changes.isSame($0.value, new.value) } ?? false
                last = new
                if !isSame { return new.value }
            }
            return nil
        }
    }
}
