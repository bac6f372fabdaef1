// The values of a query over time. Each subscriber computes its own when it asks for the next one; the
// store only signals commits. Spec/format/following.md.

/// The states that a value was computed from: the revisions of the view and of the transient table.
struct StateRevision: Equatable {
    var view: UInt64
    var table: UInt64?
}

/// The values of a query: the current one, then each new one.
///
/// A slow subscriber gets only the newest value; equal values are not repeated. Relaxed events are
/// included as soon as their append has returned, so a kill may undo a value. Ends when the store is
/// closed, and when the iterating task is cancelled.
public struct ViewChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    private let store: EventStore
    private let table: (any TransientSource)?
    private let isSame: @Sendable (Value, Value) -> Bool
    private let revision: @Sendable () -> StateRevision
    /// Computes the value, and returns the revisions that it includes at least.
    let read: @Sendable () -> (value: Value, revision: StateRevision)

    init<View: Projection>(
        _ store: EventStore, with table: (any TransientSource)? = nil,
        _ answer: @escaping @Sendable (View) -> Value,
        isSame: @escaping @Sendable (Value, Value) -> Bool
    ) {
        self.store = store
        self.table = table
        self.isSame = isSame
        revision = {
            StateRevision(view: store.revision(of: View.self), table: table?.revision)
        }
        read = {
            // Read before the value is computed, so that the next comparison detects a change meanwhile.
            let table = table?.revision
            let (view, revision) = store.present(View.self)
            return (answer(view), StateRevision(view: revision, table: table))
        }
    }

    /// Transforms the values of another sequence.
    init<Base>(
        _ base: ViewChanges<Base>, _ transform: @escaping @Sendable (Base) -> Value,
        isSame: @escaping @Sendable (Value, Value) -> Bool
    ) {
        store = base.store
        table = base.table
        revision = base.revision
        self.isSame = isSame
        let read = base.read
        self.read = {
            let (value, revision) = read()
            return (transform(value), revision)
        }
    }

    /// Creates an iterator that begins with the current value. Iterators are independent.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Computes a value outside the caller's actor, and compares it with the last one.
    @concurrent private func compute(
        after last: Value?
    ) async -> (value: Value, revision: StateRevision, isSame: Bool) {
        let (value, revision) = read()
        return (value, revision, last.map { isSame($0, value) } ?? false)
    }

    /// One subscriber's values.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let changes: ViewChanges
        private var signals: AsyncStream<Void>.AsyncIterator?
        private var last: Value?
        private var revision: StateRevision?

        init(_ changes: ViewChanges) { self.changes = changes }

        /// The current value, then the next different one; nil at the end.
        ///
        /// Values are computed outside the caller's actor, so that the main actor is not blocked.
        ///
        /// - Complexity: O(1) for a commit that does not change the view, else that of the query.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> Value? {
            if signals == nil {
                // Before the first value is computed, so that no commit is missed.
                signals = await changes.store.commits(and: changes.table).makeAsyncIterator()
                guard !Task.isCancelled else { return nil }
                (last, revision, _) = await changes.compute(after: nil)
                return last
            }
            while await signals?.next(isolation: actor) != nil {
                guard changes.revision() != revision else { continue }
                let isSame: Bool
                (last, revision, isSame) = await changes.compute(after: last)
                if !isSame { return last }
            }
            return nil
        }
    }
}
