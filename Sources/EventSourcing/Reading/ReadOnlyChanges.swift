// How a reader in another process follows a log: no signal crosses the processes, so the reader polls.
// Spec/format/following.md.

import LogFormat

/// The positions that the views of a read-only store come to, over time.
///
/// Begins with the present one. When a position is given, the views have folded the events up to it. A
/// consumer that is slow gets the newest position only. Ends when the iterating task is cancelled.
public struct ReadOnlyChanges: AsyncSequence, Sendable {
    public typealias Element = Position
    public typealias Failure = any Error

    private let store: ReadOnlyStore
    private let interval: Duration

    init(_ store: ReadOnlyStore, _ interval: Duration) {
        self.store = store
        self.interval = interval
    }

    /// Begins with the present position; every iterator by itself.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(store: store, interval: interval)
    }

    /// One consumer's positions.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let store: ReadOnlyStore
        fileprivate let interval: Duration
        private var last: Position?

        fileprivate init(store: ReadOnlyStore, interval: Duration) {
            self.store = store
            self.interval = interval
        }

        /// The present position at first, then the next one that is another.
        ///
        /// - Throws: as `ReadOnlyStore.refresh()`. The next call looks again.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws -> Position? {
            while !Task.isCancelled {
                if last != nil {
                    do { try await store.environment.sleep(interval) } catch { return nil }
                }
                let position: Position
                do { position = try await store.refresh() } catch is CancellationError {
                    return nil
                }
                guard position == last else {
                    last = position
                    return position
                }
            }
            return nil
        }
    }
}
