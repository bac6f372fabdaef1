// What the store has accepted and not yet written: the next commit. Spec/overview.md.

import Foundation
import LogFormat
import Synchronization

/// What waits for the next commit: first relaxed events, already in the views, then durable
/// ones with their waiting callers.
struct PendingAppends {
    private(set) var lines = CommitLines()
    private(set) var events: [Event] = []
    /// Of the events that were looked through so far: mostly nobody asks.
    private var indexes = IDTable()
    private(set) var relaxedCount = 0
    /// Callers who are told when everything is on the disk, or why it is not.
    private var waiters: [(caller: Caller, results: [Appended])] = []

    typealias Caller = CheckedContinuation<[Appended], any Error>
    var hasTimer = false
    /// The store's floor without the durable events: their times do not count if they cannot be
    /// written.
    var floorBefore: TimeFloor?
    /// Whether something waits that must be recorded although the disk is full.
    var drawsOnReserve = false

    var isEmpty: Bool { events.isEmpty }
    /// The number of callers that wait for the next commit.
    var waiterCount: Int { waiters.count }

    /// Lets a caller wait for the next commit, to be told these results.
    mutating func add(_ caller: Caller, for results: [Appended]) {
        waiters.append((caller, results))
    }

    /// Tells everybody who waits that it is on the disk, or why it is not.
    func tell(_ error: (any Error)? = nil) {
        for (caller, results) in waiters {
            if let error {
                caller.resume(throwing: error)
            } else {
                caller.resume(returning: results)
            }
        }
    }

    mutating func event(_ id: UUID) -> Event? {
        for index in indexes.count..<events.count {
            indexes.set(events[index].prefix.id, to: UInt64(index))
        }
        return indexes[id.integer].map { events[Int($0)] }
    }

    mutating func add(_ batch: Batch, relaxed: Bool) {
        if isEmpty { events = batch.events } else { events += batch.events }
        lines.append(batch.lines)
        if relaxed { relaxedCount = events.count }
    }

    /// The relaxed events alone: they go on waiting when there is no room for more.
    mutating func keepRelaxed() -> PendingAppends {
        var rest = PendingAppends()
        rest.lines = lines.prefix(relaxedCount)
        rest.events = Array(events[..<relaxedCount])
        rest.relaxedCount = relaxedCount
        rest.drawsOnReserve = drawsOnReserve
        return rest
    }
}
