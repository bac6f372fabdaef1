// Values that a process keeps in memory and never records: progress of a transfer, attempts without an
// answer. Queries merge them with the views, which are folded from the log. Spec/format/following.md, FOL-11.

import Foundation
import Synchronization

/// The name of a transient table of a store, with the types of its keys and values.
public protocol TransientState {
    /// The key of a value.
    associatedtype Key: Hashable & Sendable
    /// The stored value.
    associatedtype Value: Equatable & Sendable
}

extension EventStore {
    /// The store's table for `State`, initially empty. The same object on every call. O(1).
    public nonisolated func transient<State: TransientState>(
        _ state: State.Type
    ) -> TransientTable<State.Key, State.Value> {
        transients.withLock { tables in
            if let table = tables[ObjectIdentifier(state)]
                as? TransientTable<State.Key, State.Value>
            {
                return table
            }
            let table = TransientTable<State.Key, State.Value>()
            tables[ObjectIdentifier(state)] = table
            return table
        }
    }
}

/// The part of a transient table that a query needs to observe changes.
protocol TransientSource: Sendable {
    /// A number that every change increases.
    var revision: UInt64 { get }
    /// Signals every change until `unsubscribe`.
    func subscribe(_ id: UUID, _ signal: AsyncStream<Void>.Continuation)
    func unsubscribe(_ id: UUID)
}

/// Values by key, in memory, with a signal for every change.
public final class TransientTable<Key: Hashable & Sendable, Value: Equatable & Sendable>:
    TransientSource
{
    private struct State {
        var values: [Key: Value] = [:]
        var revision: UInt64 = 0
        var signals: [UUID: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    /// True if there are no values. O(1).
    public var isEmpty: Bool { state.withLock { $0.values.isEmpty } }

    /// All values. O(1).
    public var values: [Key: Value] { state.withLock { $0.values } }

    /// The value of a key, or nil. O(1).
    public subscript(key: Key) -> Value? { state.withLock { $0.values[key] } }

    /// Changes the value of a key; nil removes it. `change` runs under the table's lock, so that the
    /// change that reads its source last is stored last. O(subscribers) if the value changes.
    public func update(_ key: Key, _ change: (Value?) -> Value?) {
        update(CollectionOfOne(key), change)
    }

    /// Changes the values of keys as one change. O(keys), and O(subscribers) if a value changes.
    public func update(_ keys: some Sequence<Key>, _ change: (Value?) -> Value?) {
        let signals = state.withLock { state -> [AsyncStream<Void>.Continuation] in
            var isChanged = false
            for key in keys {
                let old = state.values[key]
                let new = change(old)
                guard new != old else { continue }
                state.values[key] = new
                isChanged = true
            }
            guard isChanged else { return [] }
            state.revision += 1
            return Array(state.signals.values)
        }
        for signal in signals { signal.yield() }
    }

    /// The number of queries that observe the table.
    package var subscriberCount: Int { state.withLock { $0.signals.count } }

    var revision: UInt64 { state.withLock { $0.revision } }

    func subscribe(_ id: UUID, _ signal: AsyncStream<Void>.Continuation) {
        state.withLock { $0.signals[id] = signal }
    }

    func unsubscribe(_ id: UUID) { state.withLock { _ = $0.signals.removeValue(forKey: id) } }
}
