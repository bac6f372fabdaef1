// The queues of the outbox, one for each lane: ready, waiting, or held. Part of ReplayState, and like it
// without clock, network or randomness. Spec/protocol/replay.md, RPL-1 and RPL-2.

import DequeModule
import EventSourcing
import Foundation
import HeapModule
import LogFormat

/// One event to send.
public struct ReplayItem: Hashable, Sendable {
    /// The event's id.
    public let id: UUID
    /// The event's position.
    public let position: Position
    /// The event's lane.
    public let lane: String
    /// The incarnation that recorded the event.
    let source: UUID
    let lineBytes: Int
    var retryCount: Int
    /// The lane at the time when the event was dequeued.
    fileprivate let handle: LaneHandle

    fileprivate init(_ queued: QueuedItem, in lane: EntityID, at handle: LaneHandle) {
        id = queued.id
        position = queued.position
        self.lane = lane.string
        source = queued.source
        lineBytes = queued.lineBytes
        retryCount = queued.retryCount
        self.handle = handle
    }

    var laneID: EntityID { EntityID(lane) }
}

/// A lane's index with its generation, which finds the lane without hashing its name. It is no part of an
/// item's value, so all handles are equal.
private struct LaneHandle: Hashable {
    var number: Int
    /// The generation of the lane: an index is used again after its lane was removed.
    var generation: UInt64
    static func == (lhs: LaneHandle, rhs: LaneHandle) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}

/// An event in the queue of its lane. It holds no reference, so moving it costs no reference counting; the
/// lane has the name.
private struct QueuedItem {
    let id: UUID
    let position: Position
    let source: UUID
    let lineBytes: Int
    var retryCount: Int

    init(_ entry: OutboxEntry) {
        id = entry.id
        position = entry.position
        source = entry.source
        lineBytes = entry.lineBytes
        retryCount = entry.retryCount
    }
}

/// The lanes, each with its events to send in order.
struct LaneSet: Sendable {
    private struct Lane {
        var name: EntityID
        /// A number that no earlier lane had.
        var generation: UInt64
        var queue: Deque<QueuedItem> = []
        var hold = Hold.none
        /// True while events of the lane are in an unanswered request or in the prefetched batch.
        var isUnderWay = false
        /// The lane's turn in `ready`; nil if the lane is not ready.
        var turn: UInt64?
        /// The lowest turn of a deferred lane. A lane that failed comes after the events that were there at
        /// the time, so that failing lanes do not slow the others.
        var turnMin: UInt64 = 0
        /// The number of events in the batch that is being assembled.
        var dequeuedCount = 0

        /// True if the lane waits because the retries of its first event are used up.
        var isExhausted: Bool {
            guard case .until = hold else { return false }
            return queue.first?.retryCount == Retries.max
        }
    }

    /// The reason why a lane may not send.
    enum Hold: Hashable {
        case none
        /// Until a time, in milliseconds since 1970 by the device's clock.
        case until(Int64)
        /// Until a decision is recorded.
        case forever
    }

    private struct Ready: Comparable {
        var turn: UInt64
        /// The position of the lane's first event: it orders lanes with the same turn.
        var position: Position
        var lane: Int
        static func < (lhs: Ready, rhs: Ready) -> Bool {
            (lhs.turn, lhs.position) < (rhs.turn, rhs.position)
        }
    }

    private struct Waiting: Comparable {
        var time: Int64
        var lane: Int
        static func < (lhs: Waiting, rhs: Waiting) -> Bool { lhs.time < rhs.time }
    }

    /// All lanes. The index of an empty lane is used again for the next new one.
    private var lanes: [Lane] = []
    private var numbers: [EntityID: Int] = [:]
    private var unused: [Int] = []
    private var lastGeneration: UInt64 = 0
    /// The ready lanes by turn. An entry whose turn differs from its lane's is stale; it is dropped when it
    /// comes first.
    private var ready = Heap<Ready>()
    /// The number of ready lanes.
    private(set) var readyCount = 0
    private var waiting = Heap<Waiting>()
    /// The newest position of the outbox, enqueued or not.
    private var newest: UInt64 = 0
    /// Whether a lane was deferred since the last `replace(by:)`.
    private(set) var hasDeferredLanes = false

    // MARK: Lanes

    private func number(of item: ReplayItem) -> Int? {
        let handle = item.handle
        if lanes.indices.contains(handle.number),
            lanes[handle.number].generation == handle.generation
        {
            return handle.number
        }
        return numbers[item.laneID]
    }

    /// The index of the lane with this name, which is created if it is missing.
    private mutating func number(of name: EntityID) -> Int {
        if let number = numbers[name] { return number }
        let number = unused.popLast() ?? lanes.count
        lastGeneration += 1
        if number == lanes.count {
            lanes.append(Lane(name: name, generation: lastGeneration))
        } else {
            lanes[number] = Lane(name: name, generation: lastGeneration)
        }
        numbers[name] = number
        return number
    }

    // MARK: Content

    /// Appends an event to its lane, which is held according to `hold`. O(log lanes).
    mutating func enqueue(_ entry: OutboxEntry, hold: Hold) {
        advanceNewestPosition(to: entry.position)
        count += 1
        let number = number(of: EntityID(entry.lane))
        lanes[number].queue.append(QueuedItem(entry))
        switch hold {
        case .none: break
        case .until(let time):
            if lanes[number].hold == .none {
                lanes[number].hold = hold
                waiting.insert(Waiting(time: time, lane: number))
            }
        case .forever: lanes[number].hold = .forever
        }
        updateReadiness(of: number)
    }

    /// Raises the newest position, whose event need not be enqueued yet.
    mutating func advanceNewestPosition(to position: Position) {
        newest = max(newest, position.rawValue)
    }

    /// Replaces the events by those of the outbox after a decision. Waits and requests under way stay.
    /// O(events).
    mutating func replace(by entries: [(entry: OutboxEntry, hold: Hold)]) {
        let old = lanes
        (lanes, numbers, unused, count, ready, readyCount) = ([], [:], [], 0, Heap(), 0)
        // Its entries refer to lanes by index.
        waiting = Heap()
        hasDeferredLanes = false
        for (entry, hold) in entries { enqueue(entry, hold: hold) }
        for before in old where !before.queue.isEmpty || before.isUnderWay {
            guard before.isUnderWay || numbers[before.name] != nil else { continue }
            let number = number(of: before.name)
            lanes[number].isUnderWay = before.isUnderWay
            lanes[number].turnMin = before.turnMin
            if before.turnMin > 0 { hasDeferredLanes = true }
            if lanes[number].hold != .forever, let first = lanes[number].queue.first,
                first.position == before.queue.first?.position, first.retryCount != 0
            {
                switch before.hold {
                case .until(let time):
                    lanes[number].hold = before.hold
                    waiting.insert(Waiting(time: time, lane: number))
                // An exhausted event that is due, or that `releaseExhausted()` has released.
                case .none: lanes[number].hold = .none
                case .forever: break
                }
            }
            setTurn(of: number, nil)
            updateReadiness(of: number)
        }
    }

    /// The number of enqueued events, held ones included.
    private(set) var count = 0

    /// The number of events in lanes that are held by a parked event or a conflict. O(lanes).
    var heldCount: Int {
        lanes.reduce(0) { $0 + ($1.hold == .forever || $1.isExhausted ? $1.queue.count : 0) }
    }

    /// Whether a lane can send now.
    var isReady: Bool { readyCount > 0 }

    /// True if a lane waits after a retry and is not exhausted. O(lanes).
    var isBackingOff: Bool {
        lanes.contains { lane in
            if case .until = lane.hold { !lane.isExhausted } else { false }
        }
    }

    /// The earliest time at which a waiting lane is released.
    var nextDue: Int64? { waiting.min?.time }

    /// Inserts a lane into `ready` or removes it from there; removes the lane if it is empty.
    private mutating func updateReadiness(of number: Int) {
        guard let first = lanes[number].queue.first else {
            // A decision may have emptied a lane that is under way.
            guard !lanes[number].isUnderWay else { return }
            numbers[lanes[number].name] = nil
            setTurn(of: number, nil)
            lanes[number] = Lane(name: EntityID(""), generation: 0)
            unused.append(number)
            return
        }
        if lanes[number].hold == .none, !lanes[number].isUnderWay {
            let turn = max(first.position.rawValue, lanes[number].turnMin)
            if lanes[number].turn != turn {
                setTurn(of: number, turn)
                ready.insert(Ready(turn: turn, position: first.position, lane: number))
            }
        } else {
            setTurn(of: number, nil)
        }
    }

    private mutating func setTurn(of number: Int, _ turn: UInt64?) {
        if lanes[number].turn == nil, turn != nil { readyCount += 1 }
        if lanes[number].turn != nil, turn == nil { readyCount -= 1 }
        lanes[number].turn = turn
    }

    /// Changes the lane of an event.
    private mutating func updateLane(of item: ReplayItem, _ change: (inout Lane) -> Void) {
        guard let number = number(of: item) else { return }
        change(&lanes[number])
        updateReadiness(of: number)
    }

    // MARK: Dequeuing and releasing

    /// Releases the lanes whose wait is over, and those that wait beyond `latest`.
    /// O(released lanes · log lanes).
    mutating func releaseDueLanes(now: Int64, latest: Int64) {
        while let last = waiting.max, last.time > latest { releaseLane(waiting.removeMax()) }
        while let first = waiting.min, first.time <= now { releaseLane(waiting.removeMin()) }
    }

    /// Releases the lanes that wait because the retries of their first event are used up. O(lanes).
    mutating func releaseExhausted() {
        for number in lanes.indices where lanes[number].isExhausted {
            lanes[number].hold = .none
            updateReadiness(of: number)
        }
    }

    /// Releases a lane, unless its hold has changed since.
    private mutating func releaseLane(_ due: Waiting) {
        guard lanes[due.lane].hold == .until(due.time) else { return }
        lanes[due.lane].hold = .none
        updateReadiness(of: due.lane)
    }

    /// Dequeues the oldest events of all ready lanes. Their lanes are not ready until `releaseItems(_:)`.
    /// O(events · log lanes).
    mutating func dequeueBatch(eventsMax: Int, bytesMax: Int) -> [ReplayItem] {
        var items: [ReplayItem] = []
        var bytes = 0
        var dequeued: [Int] = []
        while items.count < eventsMax, let next = ready.min {
            let number = next.lane
            guard lanes[number].turn == next.turn else {
                ready.removeMin()
                continue
            }
            let index = lanes[number].dequeuedCount
            let item = lanes[number].queue[index]
            guard items.isEmpty || bytes + item.lineBytes + 1 <= bytesMax else { break }
            let handle = LaneHandle(number: number, generation: lanes[number].generation)
            items.append(ReplayItem(item, in: lanes[number].name, at: handle))
            bytes += item.lineBytes + 1
            if index == 0 { dequeued.append(number) }
            lanes[number].dequeuedCount = index + 1
            guard index + 1 < lanes[number].queue.count else {
                ready.removeMin()
                setTurn(of: number, nil)
                continue
            }
            let position = lanes[number].queue[index + 1].position
            let turn = max(position.rawValue, lanes[number].turnMin)
            lanes[number].turn = turn
            ready.replaceMin(with: Ready(turn: turn, position: position, lane: number))
        }
        for number in dequeued {
            lanes[number].isUnderWay = true
            setTurn(of: number, nil)
            lanes[number].dequeuedCount = 0
        }
        return items
    }

    /// Dequeues those of the events of an earlier batch that are next in their lanes and whose lanes are
    /// ready.
    mutating func dequeueAgain(_ items: [ReplayItem]) -> [ReplayItem] {
        var dequeued: [Int: Int] = [:]
        let result = items.filter { item in
            guard let number = number(of: item) else { return false }
            let index = dequeued[number, default: 0]
            guard lanes[number].hold == .none, !lanes[number].isUnderWay,
                index < lanes[number].queue.count,
                lanes[number].queue[index].position == item.position
            else { return false }
            dequeued[number] = index + 1
            return true
        }
        for number in dequeued.keys {
            lanes[number].isUnderWay = true
            setTurn(of: number, nil)
        }
        return result
    }

    /// Makes the lanes of an answered request, or of a dropped batch, ready again unless they are held.
    mutating func releaseItems(_ items: [ReplayItem]) {
        for item in items {
            guard let number = number(of: item), lanes[number].isUnderWay else { continue }
            lanes[number].isUnderWay = false
            updateReadiness(of: number)
        }
    }

    /// Removes a settled event if it is the first of its lane.
    mutating func removeSettled(_ item: ReplayItem) {
        guard let number = number(of: item),
            lanes[number].queue.first?.position == item.position
        else { return }
        lanes[number].queue.removeFirst()
        count -= 1
    }

    /// The retry count of the event. While the event is the first of its lane, the count is the lane's: a
    /// decision may have reset it while the event was under way. Otherwise it is the item's.
    func retryCount(of item: ReplayItem) -> Int {
        guard let first = number(of: item).flatMap({ lanes[$0].queue.first }),
            first.position == item.position
        else { return item.retryCount }
        return first.retryCount
    }

    /// Whether an event is the first of its lane.
    func isFirst(_ item: ReplayItem) -> Bool {
        number(of: item).map { lanes[$0].queue.first?.position == item.position } ?? false
    }

    /// Moves a lane after all events that are there now.
    mutating func deferLane(of item: ReplayItem) {
        let turn = newest + 1
        hasDeferredLanes = true
        updateLane(of: item) { $0.turnMin = turn }
    }

    // MARK: Holding

    /// Holds a lane until a decision is recorded.
    mutating func holdLane(of item: ReplayItem) { updateLane(of: item) { $0.hold = .forever } }

    /// Holds a lane until a time, sets its first event's retry count, and defers it.
    mutating func holdLane(of item: ReplayItem, until time: Int64, retryCount: Int) {
        let turn = newest + 1
        hasDeferredLanes = true
        guard let number = number(of: item) else { return }
        lanes[number].hold = .until(time)
        lanes[number].turnMin = turn
        if lanes[number].queue.first?.position == item.position {
            lanes[number].queue[0].retryCount = retryCount
        }
        updateReadiness(of: number)
        waiting.insert(Waiting(time: time, lane: number))
    }

    /// Releases a held lane.
    mutating func releaseLane(of item: ReplayItem) { updateLane(of: item) { $0.hold = .none } }
}
