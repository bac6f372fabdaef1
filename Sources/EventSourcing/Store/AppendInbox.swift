// The inbox of a store: what callers want to have recorded, until the store takes all of it at once. Before
// PendingAppends. Spec/overview.md.

import DequeModule
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
    private let requests = Mutex(Deque<AppendRequest>())

    var isEmpty: Bool { requests.withLock { $0.isEmpty } }

    /// - Returns: true for the first one: the store has to be woken.
    func put(_ request: AppendRequest) -> Bool {
        requests.withLock { requests in
            requests.append(request)
            return requests.count == 1
        }
    }

    /// Takes the first request. O(1).
    func next() -> AppendRequest? { requests.withLock { $0.popFirst() } }

    /// Waits for as many requests as shared the last commit, as long as one comes every few
    /// microseconds: one that comes after the next commit has begun waits for two syncs.
    ///
    /// - Returns: true if there are any.
    func fills(_ count: Int) -> Bool {
        var (found, since) = (0, ContinuousClock.now)
        repeat {
            let present = requests.withLock { $0.count }
            if present >= count { return true }
            if present > found { (found, since) = (present, .now) }
            sched_yield()
        } while .now - since < Self.gap
        return found > 0
    }

    private static let gap = Duration.microseconds(20)
}
