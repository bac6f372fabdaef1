// Follows a log from another process by polling: there is no signal between processes.
// Spec/format/following.md.

import LogFormat

/// The positions of the views of a read-only store: the current one, then each new one.
///
/// When a position is delivered, the views have folded all events up to it. A slow consumer gets only the
/// newest position. Ends when the iterating task is cancelled.
public struct ReadOnlyChanges: AsyncSequence, Sendable {
    public typealias Element = Position
    public typealias Failure = any Error

    private let store: ReadOnlyStore
    private let interval: Duration

    init(_ store: ReadOnlyStore, _ interval: Duration) {
        self.store = store
        self.interval = interval
    }

    /// Creates an iterator that begins with the current position. Iterators are independent.
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

        /// The current position, then the next different one.
        ///
        /// - Throws: as `ReadOnlyStore.refresh()`. The next call tries again.
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
