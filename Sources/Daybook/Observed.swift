// A query's value where SwiftUI looks: on the main actor, observed. Comes after the queries, before
// the screens.

import EventSourcing
import Observation

/// The present value of a query, for screens.
///
/// ```swift
/// struct Minutes: View {
///     @State private var minutes: Observed<Int>
///
///     init(_ store: EventStore) {
///         let query = store.query(Habits.self) { $0.minutes["reading"] ?? 0 }
///         _minutes = State(initialValue: Observed(query))
///     }
///
///     var body: some View { Text("\(minutes.value) minutes") }
/// }
/// ```
///
/// It follows the query until it goes. Values are computed off the main actor.
@MainActor @Observable
public final class Observed<Value: Equatable & Sendable> {
    /// The newest value.
    public private(set) var value: Value
    @ObservationIgnored private var following: Task<Void, Never>?

    /// Begins with the query's current value, and follows it.
    public init(_ query: ViewQuery<Value>) {
        value = query.current
        let changes = query.changes
        following = Task.detached { [weak self] in
            for await value in changes {
                guard await self?.take(value) != nil else { return }
            }
        }
    }

    /// An equal value is told to nobody: `@Observable` compares.
    private func take(_ value: Value) { self.value = value }

    // Not `isolated`: what Swift calls for that aborts on some systems (issue 85663 of swiftlang/swift).
    deinit { following?.cancel() }
}
