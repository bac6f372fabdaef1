// Follows a log and a companion's own spools: a look after each signal of the system, and none without one.
// Spec/format/companions.md, COMP-10.

import LogFormat

/// The positions of a companion's views: the current one, then one after each change of the views.
///
/// On Linux the system signals that the owner has written, and nothing runs between signals. Elsewhere the companion
/// looks every half second. A slow consumer gets only the newest position. Ends when the iterating task is cancelled.
public struct CompanionChanges: AsyncSequence, Sendable {
    public typealias Element = Position
    public typealias Failure = any Error

    private let store: CompanionStore

    init(_ store: CompanionStore) { self.store = store }

    /// Creates an iterator that begins with the current position. Iterators are independent.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(store) }

    /// One consumer's positions.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private static let interval = Duration.milliseconds(500)

        private let store: CompanionStore
        private let watch = FolderWatch()
        private var signals: AsyncStream<Void>.AsyncIterator?
        private var last: CompanionState?

        fileprivate init(_ store: CompanionStore) {
            self.store = store
            signals = watch?.signals.makeAsyncIterator()
            watch?.followSegments(of: store.directory)
        }

        /// The current position, then the next one after a change.
        ///
        /// - Throws: as `CompanionStore.refresh()`. The next call tries again after the next signal.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws -> Position? {
            while !Task.isCancelled {
                if watch != nil {
                    guard await signals?.next(isolation: actor) != nil else { return nil }
                } else if last != nil {
                    do { try await store.environment.sleep(Self.interval) } catch { return nil }
                }
                let state: CompanionState
                do { state = try await store.refreshedState() } catch is CancellationError {
                    return nil
                }
                guard state == last else {
                    last = state
                    return state.position
                }
            }
            return nil
        }
    }
}

/// What a companion's views are made of.
struct CompanionState: Hashable, Sendable {
    var position: Position
    var backlog: CompanionBacklog
}

extension CompanionStore {
    /// Looks when the system signals that the owner has written, and yields the position of the views: the current
    /// one, then one after each change. See `CompanionChanges`.
    public nonisolated func changes() -> CompanionChanges { CompanionChanges(self) }

    func refreshedState() throws -> CompanionState {
        try refresh()
        return CompanionState(position: position, backlog: backlog)
    }
}
