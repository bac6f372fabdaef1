// A query as a property of a SwiftUI view. On Linux only its types are checked (Tools/checks/appletypes); it has never
// run.

#if canImport(SwiftUI)
    import EventSourcing
    import SwiftUI

    /// The present value of a query, as a property of a SwiftUI view.
    ///
    /// ```swift
    /// struct MinutesLabel: View {
    ///     @Queried private var minutes: Int
    ///
    ///     init(_ store: EventStore, habit: String) {
    ///         _minutes = Queried(store.query(Habits.self) { $0.minutes[habit] ?? 0 })
    ///     }
    ///
    ///     var body: some View { Text("\(minutes) minutes") }
    /// }
    /// ```
    ///
    /// The view is drawn again when the value changes. It keeps the query of its first drawing: a view that shows
    /// another query needs another identity, such as `MinutesLabel(store, habit: habit).id(habit)`.
    ///
    /// The project's tests run on Linux and do not reach this type.
    @MainActor @propertyWrapper
    public struct Queried<Value: Equatable & Sendable>: DynamicProperty {
        /// Follows the query once the view is drawn: a view is created more often than that.
        @MainActor
        private final class Follower {
            private var observed: Observed<Value>?

            nonisolated init() {}

            func value(of query: ViewQuery<Value>) -> Value {
                let observed = observed ?? Observed(query)
                self.observed = observed
                return observed.value
            }
        }

        @State private var follower = Follower()
        private let query: ViewQuery<Value>

        /// Creates a property that follows a query while its view exists.
        public init(_ query: ViewQuery<Value>) { self.query = query }

        /// The newest value.
        public var wrappedValue: Value { follower.value(of: query) }
    }
#endif
