// The inbox of a store: what callers want to have recorded, until the store takes all of it at once. Before
// PendingAppends. Spec/overview.md.

import Foundation
import LogFormat
import Synchronization

/// What one caller wants to have recorded.
struct AppendRequest: Sendable {
    /// Decides on the store's queue which events are recorded.
    typealias Decision = @Sendable (isolated EventStore) throws -> [PreparedEvent]

    let durability: Durability
    /// True for what must be recorded although the disk is full.
    let drawsOnReserve: Bool
    let decide: Decision
    let caller: PendingAppends.Caller
}

/// Requests in the order in which they came. A caller does not wait for the store's queue here: a request
/// that comes while the store writes or syncs shares the next commit.
final class AppendInbox: Sendable {
    private struct Queue {
        var incoming: [AppendRequest] = []
        /// Earlier ones, the first of them last.
        var outgoing: [AppendRequest] = []

        var count: Int { incoming.count + outgoing.count }
    }

    private let queue = Mutex(Queue())

    var isEmpty: Bool { queue.withLock { $0.count == 0 } }

    /// - Returns: true for the first one: the store has to be woken.
    func put(_ request: AppendRequest) -> Bool {
        queue.withLock { queue in
            queue.incoming.append(request)
            return queue.count == 1
        }
    }

    /// Takes the first request. O(1) on average.
    func next() -> AppendRequest? {
        queue.withLock { queue in
            if queue.outgoing.isEmpty {
                queue.outgoing = queue.incoming.reversed()
                queue.incoming = []
            }
            return queue.outgoing.popLast()
        }
    }

    /// Waits for as many requests as shared the last commit, as long as one comes every few
    /// microseconds: one that comes after the next commit has begun waits for two syncs.
    ///
    /// - Returns: true if there are any.
    func fills(_ count: Int) -> Bool {
        var (found, since) = (0, ContinuousClock.now)
        repeat {
            let present = queue.withLock { $0.count }
            if present >= count { return true }
            if present > found { (found, since) = (present, .now) }
            sched_yield()
        } while .now - since < Self.gap
        return found > 0
    }

    private static let gap = Duration.microseconds(20)
}
