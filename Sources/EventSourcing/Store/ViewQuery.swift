// A question to a view, with its answer now and whenever it becomes another. Comes after the views,
// before the screens of an app. Spec/model/following.md.

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
    ///   - answer: gets a snapshot of the view; must follow from it alone. It runs in the task of
    ///     whoever asks, once for each commit at most.
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
