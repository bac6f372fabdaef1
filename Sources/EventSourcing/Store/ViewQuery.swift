// A question to a view, with its answer now and whenever it becomes another. Comes after the views,
// before the screens of an app. Spec/format/following.md.

/// A value that follows from a view: its present state, or a part of it.
///
/// ```swift
/// for await stop in store.query(Trips.self) { $0.stops["spring"] }.changes {
///     show(stop)
/// }
/// ```
public struct ViewQuery<Value: Equatable & Sendable>: Sendable {
    /// The value now and as it changes: begins with the current one, keeps only the newest. See
    /// `ViewChanges`.
    public let changes: ViewChanges<Value>

    /// The value as it is now. It includes every append that has returned.
    /// - Complexity: that of the question.
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

    /// A question whose answer follows from the answer to this one.
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
    /// What changes in the collection: at first all that is in it, as insertions, then the difference from
    /// the value before, whenever it is another. A subscriber that is slow gets one difference for all that
    /// it missed.
    public var differences: ViewDifferences<Value> { ViewDifferences(changes) }

    /// How many elements there are; they are not built for it.
    public var count: ViewQuery<Int> { map(\.count) }
}

/// What changes in a collection, over time.
public struct ViewDifferences<Value: StructureSharing & Equatable & Sendable>: AsyncSequence,
    Sendable
where Value.Element: Sendable {
    public typealias Element = CollectionDifference<Value.Element>
    public typealias Failure = Never

    private let changes: ViewChanges<Value>

    init(_ changes: ViewChanges<Value>) { self.changes = changes }

    /// Begins with all that is in the collection; every iterator by itself.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(values: changes.makeAsyncIterator())
    }

    /// One subscriber's differences.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var values: ViewChanges<Value>.AsyncIterator
        private var last: Value?
        /// The first difference, until the next call.
        private var first: CollectionDifference<Value.Element>?

        init(values: ViewChanges<Value>.AsyncIterator) { self.values = values }

        /// All elements at first, then the next difference; nil at the end.
        ///
        /// - Complexity: that of the question, and of `changes(since:)`.
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

        /// Away from the caller's actor: to free a hundred thousand elements takes milliseconds.
        @concurrent private static func release(
            _ difference: inout CollectionDifference<Value.Element>?
        ) async { free(&difference) }

        // A call: Swift 6.3 stays on the caller's actor where there is only something to free.
        @inline(never)
        private static func free(_ difference: inout CollectionDifference<Value.Element>?) {
            difference = nil
        }

        /// Away from the caller's actor: the first difference has all elements.
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
    /// Asks a view that was given to `open` for a value, and again whenever the view has folded
    /// something.
    ///
    /// ```swift
    /// let stops = store.query(Trips.self) { $0.stops }
    /// ```
    ///
    /// - Parameters:
    ///   - view: a view that was given to `open`.
    ///   - answer: gets a snapshot of the view; must follow from it alone. It runs in the
    ///     subscriber's task, off its actor, at most once for each commit that concerns the view.
    public nonisolated func query<View: Projection, Value: Equatable & Sendable>(
        _ view: View.Type, _ answer: @escaping @Sendable (View) -> Value
    ) -> ViewQuery<Value> {
        ViewQuery(self, answer)
    }

    /// Asks a view and a transient table for a value, and again whenever either has changed.
    public nonisolated func query<View: Projection, State: TransientState, Value>(
        _ view: View.Type, with state: State.Type,
        _ answer: @escaping @Sendable (View, [State.Key: State.Value]) -> Value
    ) -> ViewQuery<Value> {
        ViewQuery(self, transient(state), answer)
    }

    /// The states of a view, the present one first: a new one whenever it has folded something.
    public nonisolated func changes<View: Projection>(of view: View.Type) -> ViewChanges<View> {
        ViewChanges(self, { (view: View) in view }, isSame: { _, _ in false })
    }

    /// The states of a view, the present one first: a new one whenever it has become another.
    public nonisolated func changes<View: Projection & Equatable>(
        of view: View.Type
    ) -> ViewChanges<View> {
        ViewChanges(self, { (view: View) in view }, isSame: ==)
    }
}
