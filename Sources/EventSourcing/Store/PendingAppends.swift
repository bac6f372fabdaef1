// What the store has accepted and not yet written: the next commit. Spec/overview.md.

import Foundation
import LogFormat
import Synchronization

/// What waits for the next commit: first relaxed events, already in the views, then durable
/// ones with their waiting callers.
struct PendingAppends {
    private(set) var lines: [UInt8] = []
    private(set) var events: [Event] = []
    /// Of the events that were looked through so far: mostly nobody asks.
    private var indexes = IDTable()
    private(set) var relaxedCount = 0
    private var relaxedBytes = 0
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
    /// Whether somebody waits for the next commit.
    var isAwaited: Bool { !waiters.isEmpty }

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
        if isEmpty {
            (events, lines) = (batch.events, batch.lines)
        } else {
            events.append(contentsOf: batch.events)
            lines.append(contentsOf: batch.lines)
        }
        if relaxed {
            relaxedCount = events.count
            relaxedBytes = lines.count
        }
    }

    /// The relaxed events alone: they go on waiting when there is no room for more.
    mutating func keepRelaxed() -> PendingAppends {
        var rest = PendingAppends()
        rest.lines = Array(lines[..<relaxedBytes])
        rest.events = Array(events[..<relaxedCount])
        rest.relaxedCount = relaxedCount
        rest.drawsOnReserve = drawsOnReserve
        rest.relaxedBytes = relaxedBytes
        return rest
    }
}

/// Appends that callers have handed in, until the store takes all of them at once. Nobody waits here
/// for the store's queue: whoever comes while it writes or syncs shares the next commit.
final class AppendInbox: Sendable {
    struct Request: Sendable {
        let drafts: [EventDraft]
        let durability: Durability
        /// True for events that were recorded elsewhere before.
        let isHistory: Bool
        let caller: PendingAppends.Caller
    }

    private let requests = Mutex<[Request]>([])

    /// - Returns: whether it is the first, so that somebody has to be told.
    func put(_ request: Request) -> Bool {
        requests.withLock { requests in
            requests.append(request)
            return requests.count == 1
        }
    }

    /// Waits for as many appends as shared the last commit, as long as one comes every few
    /// microseconds: who comes after the next commit has begun waits for two syncs.
    ///
    /// - Returns: whether there are any.
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

    /// All that is there.
    func take() -> [Request] {
        requests.withLock { requests in
            defer { requests = [] }
            return requests
        }
    }
}
