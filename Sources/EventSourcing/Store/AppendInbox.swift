// The queue of append requests, from the callers to the store. PendingAppends comes next. Spec/overview.md.

import DequeModule
import Foundation
import LogFormat
import Synchronization

/// One caller's request to record events.
struct AppendRequest: Sendable {
    /// Runs on the store's queue and returns the events to record.
    typealias Preparation = @Sendable (isolated EventStore) throws -> [PreparedEvent]

    let durability: Durability
    /// True for events that must be recorded even if the disk is full.
    let drawsOnReserve: Bool
    let prepare: Preparation
    let caller: PendingAppends.Caller
}

/// Requests in order of arrival. Enqueueing does not wait for the store's queue: an append that arrives
/// while the store writes or syncs shares the next commit.
final class AppendInbox: Sendable {
    private struct Queue {
        var requests = Deque<AppendRequest>()
        /// True while a job of the store that dequeues requests is scheduled or running.
        var hasJob = false
    }

    private let queue = Mutex(Queue())

    /// Appends a request.
    ///
    /// - Returns: true if the caller must schedule a job of the store.
    func enqueue(_ request: AppendRequest) -> Bool {
        queue.withLock { queue in
            queue.requests.append(request)
            defer { queue.hasJob = true }
            return !queue.hasJob
        }
    }

    /// Removes and returns the first request. O(1).
    func dequeue() -> AppendRequest? { queue.withLock { $0.requests.popFirst() } }

    /// Ends a job of the store.
    ///
    /// - Returns: true if requests remain: the job must be scheduled again.
    func endJob() -> Bool {
        queue.withLock { queue in
            queue.hasJob = !queue.requests.isEmpty
            return queue.hasJob
        }
    }

    /// Waits until `count` requests are queued, or no request has arrived for 20 microseconds. A request
    /// that misses the next commit waits for two syncs.
    ///
    /// - Parameter count: the number of callers that shared the last commit.
    /// - Returns: true if a request is queued.
    func waitForRequests(count: Int) -> Bool {
        var (waiting, lastArrival) = (0, ContinuousClock.now)
        repeat {
            let present = queue.withLock { $0.requests.count }
            if present >= count { return true }
            if present > waiting { (waiting, lastArrival) = (present, .now) }
            sched_yield()
        } while .now - lastArrival < Self.gap
        return waiting > 0
    }

    private static let gap = Duration.microseconds(20)
}
