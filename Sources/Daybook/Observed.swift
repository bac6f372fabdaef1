// The value of a query on the main actor, observable by SwiftUI.

import EventSourcing
import Observation

/// The present value of a query, for SwiftUI views.
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
/// It follows the query until it is deallocated. Values are computed off the main actor.
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
                guard await self?.setValue(value) != nil else { return }
            }
        }
    }

    /// Sets the value. Observers are not notified of an equal value: `@Observable` compares.
    private func setValue(_ value: Value) { self.value = value }

    // Not `isolated`: the runtime function for that aborts on some systems (issue 85663 of swiftlang/swift).
    deinit { following?.cancel() }
}
