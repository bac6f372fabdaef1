// A query of a view, with its current value and its changes. Between the views and the screens of an app.
// Spec/format/following.md.

/// A value computed from a view: its current state, or a part of it.
///
/// ```swift
/// for await stop in store.query(Trips.self) { $0.stops["spring"] }.changes {
///     show(stop)
/// }
/// ```
public struct ViewQuery<Value: Equatable & Sendable>: Sendable {
    /// The current value, then each new one; a slow subscriber gets only the newest. See `ViewChanges`.
    public let changes: ViewChanges<Value>

    /// The current value. It includes every append that has returned.
    ///
    /// - Complexity: that of the query.
    public var current: Value { changes.read().value }

    init<View: Projection>(
        _ store: EventStore, _ answer: @escaping @Sendable (View) -> Value
    ) {
        changes = ViewChanges(store, answer, isSame: ==)
    }

    init<View: Projection, Key, Transient>(
        _ store: EventStore, _ table: TransientTable<Key, Transient>,
        _ answer: @escaping @Sendable (View, [Key: Transient]) -> Value
    ) {
        changes = ViewChanges(store, with: table, { answer($0, table.values) }, isSame: ==)
    }
}

extension ViewQuery {
    init(_ changes: ViewChanges<Value>) { self.changes = changes }

    /// A query whose value is computed from this one's.
    ///
    /// ```swift
    /// let count = store.query(Trips.self) { $0.trips }.map(\.count)
    /// ```
    public func map<Other: Equatable & Sendable>(
        _ transform: @escaping @Sendable (Value) -> Other
    ) -> ViewQuery<Other> {
        ViewQuery<Other>(ViewChanges(changes, transform, isSame: ==))
    }
}

extension ViewQuery where Value: StructureSharing, Value.Element: Sendable {
    /// The differences of the collection: first all elements as insertions, then each difference from the
    /// last value. A slow subscriber gets one difference for all changes that it missed.
    public var differences: ViewDifferences<Value> { ViewDifferences(changes) }

    /// The number of elements. The elements are not built.
    public var count: ViewQuery<Int> { map(\.count) }
}

/// The differences of a collection over time.
public struct ViewDifferences<Value: StructureSharing & Equatable & Sendable>: AsyncSequence,
    Sendable
where Value.Element: Sendable {
    public typealias Element = CollectionDifference<Value.Element>
    public typealias Failure = Never

    private let changes: ViewChanges<Value>

    init(_ changes: ViewChanges<Value>) { self.changes = changes }

    /// Creates an iterator that begins with all elements. Iterators are independent.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(values: changes.makeAsyncIterator())
    }

    /// One subscriber's differences.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var values: ViewChanges<Value>.AsyncIterator
        private var last: Value?
        /// The first difference, kept until the next call.
        private var first: CollectionDifference<Value.Element>?

        init(values: ViewChanges<Value>.AsyncIterator) { self.values = values }

        /// All elements as insertions, then the next difference; nil at the end.
        ///
        /// - Complexity: that of the query, and of `changes(since:)`.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async -> CollectionDifference<Value.Element>? {
            if first != nil { await Self.release(&first) }
            guard let value = await values.next(isolation: actor) else { return nil }
            let difference = await Self.difference(of: value, since: last)
            if last == nil { first = difference }
            last = value
            return difference
        }

        /// Releases a difference outside the caller's actor: freeing 100,000 elements takes milliseconds.
        @concurrent private static func release(
            _ difference: inout CollectionDifference<Value.Element>?
        ) async { free(&difference) }

        // A separate function: Swift 6.3 stays on the caller's actor if the body only frees memory.
        @inline(never)
        private static func free(_ difference: inout CollectionDifference<Value.Element>?) {
            difference = nil
        }

        /// Computes a difference outside the caller's actor: the first one has all elements.
        @concurrent private static func difference(
            of value: Value, since last: Value?
        ) async -> CollectionDifference<Value.Element> {
            if let last { return value.changes(since: last) }
            let all = value.enumerated().map {
                CollectionDifference<Value.Element>.Change.insert(
                    offset: $0.offset, element: $0.element, associatedWith: nil)
            }
            guard let difference = CollectionDifference(all) else {
                preconditionFailure("each offset is inserted once")
            }
            return difference
        }
    }
}

extension EventStore {
    /// Queries a view that was passed to `open`. The value is computed again after each commit that
    /// changes the view.
    ///
    /// ```swift
    /// let stops = store.query(Trips.self) { $0.stops }
    /// ```
    ///
    /// - Parameters:
    ///   - view: a view that was passed to `open`.
    ///   - answer: computes the value from a snapshot of the view, and from nothing else. It runs in the
    ///     subscriber's task, outside its actor, at most once for each commit that changes the view.
    public nonisolated func query<View: Projection, Value: Equatable & Sendable>(
        _ view: View.Type, _ answer: @escaping @Sendable (View) -> Value
    ) -> ViewQuery<Value> {
        ViewQuery(self, answer)
    }

    /// Queries a view and a transient table. The value is computed again after a change of either.
    public nonisolated func query<View: Projection, State: TransientState, Value>(
        _ view: View.Type, with state: State.Type,
        _ answer: @escaping @Sendable (View, [State.Key: State.Value]) -> Value
    ) -> ViewQuery<Value> {
        ViewQuery(self, transient(state), answer)
    }

    /// The states of a view: the current one, then one after each commit that the view has folded.
    public nonisolated func changes<View: Projection>(of view: View.Type) -> ViewChanges<View> {
        ViewChanges(self, { (view: View) in view }, isSame: { _, _ in false })
    }

    /// The states of a view: the current one, then each different one.
    public nonisolated func changes<View: Projection & Equatable>(
        of view: View.Type
    ) -> ViewChanges<View> {
        ViewChanges(self, { (view: View) in view }, isSame: ==)
    }
}
