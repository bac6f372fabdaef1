// The events that the store has accepted and not yet written: the next commit. Spec/overview.md.

import Foundation
import LogFormat
import Synchronization

/// The next commit: first relaxed events, which the views already include, then durable events with their
/// waiting callers.
struct PendingAppends {
    private(set) var lines = CommitLines()
    private(set) var events: [Event] = []
    /// Indexes of events by id, filled when an id is looked up: most commits need none.
    private var indexes = IDTable()
    private(set) var relaxedCount = 0
    /// Callers that are resumed when the commit is durable or has failed.
    private var waiters: [(caller: Caller, results: [Appended])] = []

    typealias Caller = CheckedContinuation<[Appended], any Error>
    var hasTimer = false
    /// The store's time floor before the durable events, restored if they cannot be written.
    var floorBefore: TimeFloor?
    /// True if the commit may use the log's reserve file on a full disk.
    var drawsOnReserve = false

    var isEmpty: Bool { events.isEmpty }
    /// The number of callers that wait for the next commit.
    var waiterCount: Int { waiters.count }

    /// Adds a caller that gets these results after the commit.
    mutating func addWaiter(_ caller: Caller, for results: [Appended]) {
        waiters.append((caller, results))
    }

    /// Resumes the waiting callers: with their results, or with the error of the commit.
    func resumeWaiters(throwing error: (any Error)? = nil) {
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

    mutating func append(_ batch: Batch, relaxed: Bool) {
        if isEmpty { events = batch.events } else { events += batch.events }
        lines.append(batch.lines)
        if relaxed { relaxedCount = events.count }
    }

    /// The relaxed events alone, which stay pending when the disk is full.
    mutating func keepRelaxed() -> PendingAppends {
        var remaining = PendingAppends()
        remaining.lines = lines.prefix(relaxedCount)
        remaining.events = Array(events[..<relaxedCount])
        remaining.relaxedCount = relaxedCount
        remaining.drawsOnReserve = drawsOnReserve
        return remaining
    }
}
