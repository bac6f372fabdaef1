// The queue of append requests, from the callers to the store. Before PendingAppends. Spec/overview.md.

import DequeModule
import Foundation
import LogFormat
import Synchronization

/// One caller's request to record events.
struct AppendRequest: Sendable {
    /// Decides on the store's queue which events are recorded.
    typealias Decision = @Sendable (isolated EventStore) throws -> [PreparedEvent]

    let durability: Durability
    /// True for what must be recorded although the disk is full.
    let drawsOnReserve: Bool
    let decide: Decision
    let caller: PendingAppends.Caller
}

/// Requests in the order in which they came. A caller does not wait for the store's queue here: an append
/// that comes while the store writes or syncs shares the next commit.
final class AppendInbox: Sendable {
    private struct Queue {
        var requests = Deque<AppendRequest>()
        /// True while a job of the store is queued or at work that takes the requests.
        var hasJob = false
    }

    private let queue = Mutex(Queue())

    /// - Returns: true where the caller has to queue a job of the store.
    func enqueue(_ request: AppendRequest) -> Bool {
        queue.withLock { queue in
            queue.requests.append(request)
            defer { queue.hasJob = true }
            return !queue.hasJob
        }
    }

    /// Takes the first request. O(1).
    func dequeue() -> AppendRequest? { queue.withLock { $0.requests.popFirst() } }

    /// Ends a job of the store.
    ///
    /// - Returns: true where requests are left, so that the job has to be queued again.
    func endJob() -> Bool {
        queue.withLock { queue in
            queue.hasJob = !queue.requests.isEmpty
            return queue.hasJob
        }
    }

    /// Waits for as many requests as shared the last commit, as long as one comes every few
    /// microseconds: one that comes after the next commit has begun waits for two syncs.
    ///
    /// - Returns: true if there are any.
    func waitForRequests(count: Int) -> Bool {
        var (found, since) = (0, ContinuousClock.now)
        repeat {
            let present = queue.withLock { $0.requests.count }
            if present >= count { return true }
            if present > found { (found, since) = (present, .now) }
            sched_yield()
        } while .now - since < Self.gap
        return found > 0
    }

    private static let gap = Duration.microseconds(20)
}
