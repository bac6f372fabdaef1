// The values of a question to a view, over time. Each subscriber computes its own when it is ready for
// one; the store only says that there was a commit. Spec/format/following.md.

/// The states from which a value follows, by the revisions of the view and of the transient table.
struct StateRevision: Equatable {
    var view: UInt64
    var table: UInt64?
}

/// A value now, and again whenever it is another.
///
/// Begins with the current value. A subscriber that is slow gets the newest only; values that did not
/// change are not repeated. Relaxed events are in it as soon as their append has returned, so a kill may
/// take a value back. Ends when the store is closed, and when the iterating task is cancelled.
public struct ViewChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = Never

    private let store: EventStore
    private let table: (any TransientSource)?
    private let isSame: @Sendable (Value, Value) -> Bool
    private let revision: @Sendable () -> StateRevision
    /// The value, and the states that are in it at least.
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
            // Before the value is computed: a change meanwhile is noticed by the next look.
            let table = table?.revision
            let (view, revision) = store.present(View.self)
            return (answer(view), StateRevision(view: revision, table: table))
        }
    }

    /// Values that follow from those of another sequence.
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

    /// Begins with the current value; every iterator by itself.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Computes a value away from the caller's actor, and compares it with the one before.
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

        /// The current value at first, then the next one that is another; nil at the end.
        ///
        /// Values are computed away from the caller's actor, so that the main actor is not blocked.
        ///
        /// - Complexity: O(1) for a commit that does not concern the view, that of the question for any
        ///   other that was noticed.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> Value? {
            if signals == nil {
                // Before the first look, so that no commit is missed.
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
