// The queues of the outbox, one a lane: which may send, which wait, which are held. Part of
// ReplayState, and as pure. Spec/replay.md, RPL-1 and RPL-2.

import DequeModule
import EventSourcing
import Foundation
import HeapModule
import LogFormat

/// One event to send.
public struct ReplayItem: Hashable, Sendable {
    /// The event.
    public let id: UUID
    /// Its place, by which its line is found.
    public let position: Position
    /// Its lane.
    public let lane: String
    /// The incarnation that made it.
    let source: UUID
    let lineBytes: Int
    var retryCount: Int

    init(_ entry: OutboxEntry) {
        id = entry.id
        position = entry.position
        lane = entry.lane
        source = entry.source
        lineBytes = entry.lineBytes
        retryCount = entry.retryCount
    }

    var laneID: EntityID { EntityID(lane) }
}

/// Lanes with what they have to send, in order.
struct LaneSet: Sendable {
    private struct Lane {
        var queue: Deque<ReplayItem> = []
        var hold = Hold.none
        /// Events of it are in a request that was not answered yet.
        var isUnderWay = false
        /// The turn under which the lane stands in `ready`, if it does.
        var turn: UInt64?
        /// A lane that failed stands behind what was there at the time, so that any number of
        /// failing lanes do not slow the others.
        var turnMin: UInt64 = 0
    }

    private enum Hold: Hashable {
        case none
        case until(Int64)
        case forever
    }

    private struct Ready: Comparable {
        var turn: UInt64
        /// Of two with one turn the older goes first.
        var position: Position
        var lane: EntityID
        static func < (lhs: Ready, rhs: Ready) -> Bool {
            (lhs.turn, lhs.position) < (rhs.turn, rhs.position)
        }
    }

    private struct Waiting: Comparable {
        var time: Int64
        var lane: EntityID
        static func < (lhs: Waiting, rhs: Waiting) -> Bool { lhs.time < rhs.time }
    }

    private var lanes: [EntityID: Lane] = [:]
    private var ready = Heap<Ready>()
    private var waiting = Heap<Waiting>()
    /// The last position that was added.
    private var newest: UInt64 = 0

    // MARK: What is there

    /// Adds an event behind all others. O(log lanes).
    mutating func add(_ item: ReplayItem, isHeld: Bool) {
        newest = max(newest, item.position.rawValue)
        count += 1
        update(item.laneID) { lane in
            lane.queue.append(item)
            if isHeld { lane.hold = .forever }
        }
    }

    /// Takes over what the outbox holds after somebody decided something. Times to wait, and what is
    /// under way, stay. O(events).
    mutating func replace(by items: [(item: ReplayItem, isHeld: Bool)]) {
        let old = lanes
        lanes = [:]
        count = 0
        ready = Heap()
        for (item, isHeld) in items { add(item, isHeld: isHeld) }
        for (name, before) in old {
            guard var lane = lanes[name] ?? (before.isUnderWay ? Lane() : nil) else { continue }
            lane.isUnderWay = before.isUnderWay
            lane.turnMin = before.turnMin
            if case .until = before.hold, lane.hold == .none,
                lane.queue.first?.position == before.queue.first?.position,
                lane.queue.first?.retryCount != 0
            {
                lane.hold = before.hold
            }
            lane.turn = nil
            lanes[name] = lane
            update(name) { _ in }
        }
    }

    /// How many events wait, held ones included.
    private(set) var count = 0

    /// How many events wait in lanes that only somebody's decision sets free. O(lanes).
    var heldCount: Int {
        lanes.values.reduce(0) { $0 + ($1.hold == .forever ? $1.queue.count : 0) }
    }

    /// Whether some lane can send now.
    var isReady: Bool { !ready.isEmpty }

    /// When the next lane is free again.
    var nextDue: Int64? { waiting.min?.time }

    /// Changes a lane, and puts it among those that can send, if it can.
    private mutating func update(_ name: EntityID, _ change: (inout Lane) -> Void) {
        var lane = lanes.removeValue(forKey: name) ?? Lane()
        change(&lane)
        guard let first = lane.queue.first else {
            // What was decided meanwhile may have emptied a lane that is under way.
            if lane.isUnderWay { lanes[name] = lane }
            return
        }
        if lane.hold == .none, !lane.isUnderWay {
            let turn = max(first.position.rawValue, lane.turnMin)
            if lane.turn != turn {
                lane.turn = turn
                ready.insert(Ready(turn: turn, position: first.position, lane: name))
            }
        } else {
            lane.turn = nil
        }
        lanes[name] = lane
    }

    // MARK: Taking and giving back

    /// Frees the lanes whose time has come, and those that would wait longer than any may.
    /// O(lanes freed · log lanes).
    mutating func release(now: Int64, latest: Int64) {
        while let last = waiting.max, last.time > latest { release(waiting.removeMax()) }
        while let first = waiting.min, first.time <= now { release(waiting.removeMin()) }
    }

    /// Frees a lane, unless something else holds it by now.
    private mutating func release(_ due: Waiting) {
        guard lanes[due.lane]?.hold == .until(due.time) else { return }
        update(due.lane) { $0.hold = .none }
    }

    /// Takes the oldest events of all lanes that can send; their lanes send nothing else until they
    /// are given back. O(events · log lanes).
    mutating func takeBatch(eventsMax: Int, bytesMax: Int) -> [ReplayItem] {
        var items: [ReplayItem] = []
        var bytes = 0
        var taken: [EntityID: Int] = [:]
        while items.count < eventsMax, let next = ready.min {
            guard let lane = lanes[next.lane], lane.turn == next.turn else {
                ready.removeMin()
                continue
            }
            let index = taken[next.lane, default: 0]
            let item = lane.queue[index]
            guard items.isEmpty || bytes + item.lineBytes + 1 <= bytesMax else { break }
            ready.removeMin()
            items.append(item)
            bytes += item.lineBytes + 1
            taken[next.lane] = index + 1
            guard index + 1 < lane.queue.count else {
                lanes[next.lane]?.turn = nil
                continue
            }
            let turn = max(lane.queue[index + 1].position.rawValue, lane.turnMin)
            lanes[next.lane]?.turn = turn
            ready.insert(
                Ready(turn: turn, position: lane.queue[index + 1].position, lane: next.lane))
        }
        for name in taken.keys {
            lanes[name]?.isUnderWay = true
            lanes[name]?.turn = nil
        }
        return items
    }

    /// Takes events that were in a batch before: those that are next in their lanes by now.
    mutating func take(again items: [ReplayItem]) -> [ReplayItem] {
        var taken: [EntityID: Int] = [:]
        let result = items.filter { item in
            let index = taken[item.laneID, default: 0]
            guard let lane = lanes[item.laneID], lane.hold == .none, !lane.isUnderWay,
                index < lane.queue.count, lane.queue[index].position == item.position
            else { return false }
            taken[item.laneID] = index + 1
            return true
        }
        for name in taken.keys {
            lanes[name]?.isUnderWay = true
            lanes[name]?.turn = nil
        }
        return result
    }

    /// A request has been answered: its lanes can send again, if nothing holds them.
    mutating func giveBack(_ items: [ReplayItem]) {
        for name in Set(items.map(\.laneID)) { update(name) { $0.isUnderWay = false } }
    }

    /// The first event of a lane leaves.
    mutating func settle(_ item: ReplayItem) {
        guard isFirst(item) else { return }
        lanes[item.laneID]?.queue.removeFirst()
        count -= 1
    }

    /// Whether an event is the next of its lane.
    func isFirst(_ item: ReplayItem) -> Bool {
        lanes[item.laneID]?.queue.first?.position == item.position
    }

    /// Lets a lane stand behind what is there now.
    mutating func putBehind(_ item: ReplayItem) {
        let turn = newest + 1
        update(item.laneID) { $0.turnMin = turn }
    }

    // MARK: Holding

    /// Holds a lane until somebody decides.
    mutating func hold(_ item: ReplayItem) { update(item.laneID) { $0.hold = .forever } }

    /// Holds a lane for a time, and lets it stand behind what is there now.
    mutating func hold(_ item: ReplayItem, until time: Int64, retryCount: Int) {
        let turn = newest + 1
        update(item.laneID) { lane in
            lane.hold = .until(time)
            lane.turnMin = turn
            if lane.queue.first?.position == item.position {
                lane.queue[0].retryCount = retryCount
            }
        }
        waiting.insert(Waiting(time: time, lane: item.laneID))
    }

    /// Sets a lane free.
    mutating func free(_ item: ReplayItem) { update(item.laneID) { $0.hold = .none } }
}
