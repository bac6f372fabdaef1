// The queues of the outbox, one for each lane: ready, waiting, or held. Part of Sending, and like it
// without clock, network or randomness. Spec/protocol/replay.md, RPL-1 and RPL-2.

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
    /// The index of the next event of the lane; `LaneSet.none` for the last.
    var next = LaneSet.none

    init(_ entry: OutboxEntry) {
        id = entry.id
        position = entry.position
        source = entry.source
        lineBytes = entry.lineBytes
        retryCount = entry.retryCount
    }
}

/// The lanes, each with its events to send in order.
///
/// The events of all lanes are in one array, in which an event has the index of the next of its lane: most lanes
/// have one event, and an array for each would be allocated and freed for it.
struct LaneSet: Sendable {
    /// The index that stands for no event.
    fileprivate static let none = -1

    private struct Lane {
        var name = EntityID("")
        /// `LaneNames.hash(of:)` of the name.
        var nameHash: UInt32 = 0
        /// A number that no earlier lane had.
        var generation: UInt64 = 0
        /// The indices of the lane's first and last event in `items`.
        var first = LaneSet.none
        var last = LaneSet.none
        /// The number of the lane's events.
        var count = 0
        var hold = Hold.none
        /// True while events of the lane are in an unanswered request.
        var isUnderWay = false
        /// The lane's turn in `ready`; nil if the lane is not ready.
        var turn: Turn?
        /// The lowest turn of a deferred lane. A lane that failed comes after the events that were there at
        /// the time, so that failing lanes do not slow the others.
        var turnMin: UInt64 = 0
        /// The index of the lane's last event in the batch that is being assembled.
        var lastDequeued = LaneSet.none
    }

    /// The reason why a lane may not send.
    enum Hold: Hashable {
        case none
        /// Until a time, in milliseconds since 1970 by the device's clock.
        case until(Int64)
        /// Until a decision is recorded.
        case forever
    }

    /// The place of an event among the first events of all lanes: its position, or later after its lane was
    /// deferred. Of deferred events the one with the lower position comes first.
    private struct Turn: Comparable {
        var number: UInt64
        var position: Position
        init(_ position: Position, in lane: Lane) {
            number = max(position.rawValue, lane.turnMin)
            self.position = position
        }
        static func < (lhs: Turn, rhs: Turn) -> Bool {
            (lhs.number, lhs.position) < (rhs.number, rhs.position)
        }
    }

    private struct Ready: Comparable {
        var turn: Turn
        var lane: Int
        static func < (lhs: Ready, rhs: Ready) -> Bool { lhs.turn < rhs.turn }
    }

    private struct Waiting: Comparable {
        var time: Int64
        var lane: Int
        static func < (lhs: Waiting, rhs: Waiting) -> Bool { lhs.time < rhs.time }
    }

    /// The events of all lanes. The index of a removed event is used again: `unusedItem` is the first of them,
    /// and they are linked like the events of a lane. With an array for each lane, and names that were hashed for
    /// each event, lanes took 20 instead of 13 % of shipping. Spec/decisions/0056-shipping.md.
    private var items: [QueuedItem] = []
    private var unusedItem = LaneSet.none
    /// All lanes. The index of an empty lane is used again for the next new one.
    private var lanes: [Lane] = []
    private var names = LaneNames()
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
    /// The turn of the last lane that was moved to the end.
    private var lastTurn: UInt64 = 0
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
        return existingNumber(of: item.laneID)
    }

    private func existingNumber(of name: EntityID, _ hash: UInt32? = nil) -> Int? {
        names.lane(with: hash ?? LaneNames.hash(of: name)) { lanes[$0].name == name }
    }

    /// The index of the lane with this name, which is created if it is missing.
    private mutating func number(of name: EntityID) -> Int {
        let hash = LaneNames.hash(of: name)
        if let number = existingNumber(of: name, hash) { return number }
        let number = unused.popLast() ?? lanes.count
        lastGeneration += 1
        let lane = Lane(name: name, nameHash: hash, generation: lastGeneration)
        if number == lanes.count {
            lanes.append(lane)
        } else {
            lanes[number] = lane
        }
        names.insert(number, with: hash)
        return number
    }

    // MARK: Events

    /// The first event of a lane.
    private func first(of number: Int) -> QueuedItem? {
        let first = lanes[number].first
        return first == Self.none ? nil : items[first]
    }

    /// Appends an event to a lane.
    private mutating func append(_ item: QueuedItem, to number: Int) {
        let index: Int
        if unusedItem == Self.none {
            index = items.count
            items.append(item)
        } else {
            index = unusedItem
            unusedItem = items[index].next
            items[index] = item
        }
        if lanes[number].count == 0 {
            lanes[number].first = index
        } else {
            items[lanes[number].last].next = index
        }
        lanes[number].last = index
        lanes[number].count += 1
        count += 1
    }

    /// Removes the first event of a lane.
    private mutating func removeFirst(of number: Int) {
        let index = lanes[number].first
        lanes[number].first = items[index].next
        lanes[number].count -= 1
        items[index].next = unusedItem
        unusedItem = index
        count -= 1
    }

    /// True if a lane waits because the retries of its first event are used up.
    private func isExhausted(_ number: Int) -> Bool {
        guard case .until = lanes[number].hold else { return false }
        return first(of: number)?.retryCount == Retries.max
    }

    // MARK: Content

    /// Appends an event to its lane, which is held according to `hold`. O(log lanes).
    mutating func enqueue(_ entry: OutboxEntry, hold: Hold) {
        advanceNewestPosition(to: entry.position)
        let number = number(of: EntityID(entry.lane))
        append(QueuedItem(entry), to: number)
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
        let (old, oldItems) = (lanes, items)
        (lanes, names, unused, ready, readyCount) = ([], LaneNames(), [], Heap(), 0)
        (items, unusedItem, count) = ([], Self.none, 0)
        // Its entries refer to lanes by index.
        waiting = Heap()
        hasDeferredLanes = false
        for (entry, hold) in entries { enqueue(entry, hold: hold) }
        for before in old where before.count > 0 || before.isUnderWay {
            guard before.isUnderWay || existingNumber(of: before.name) != nil else { continue }
            let number = number(of: before.name)
            lanes[number].isUnderWay = before.isUnderWay
            lanes[number].turnMin = before.turnMin
            if before.turnMin > 0 { hasDeferredLanes = true }
            if lanes[number].hold != .forever, before.count > 0, let first = first(of: number),
                first.position == oldItems[before.first].position, first.retryCount != 0
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
        lanes.indices.reduce(0) {
            $0 + (lanes[$1].hold == .forever || isExhausted($1) ? lanes[$1].count : 0)
        }
    }

    /// Whether a lane can send now.
    var isReady: Bool { readyCount > 0 }

    /// True if a lane waits after a retry and is not exhausted. O(lanes).
    var isBackingOff: Bool {
        lanes.indices.contains { number in
            if case .until = lanes[number].hold { !isExhausted(number) } else { false }
        }
    }

    /// The earliest time at which a waiting lane is released.
    var nextDue: Int64? { waiting.min?.time }

    /// Inserts a lane into `ready` or removes it from there; removes the lane if it is empty.
    private mutating func updateReadiness(of number: Int) {
        guard let first = first(of: number) else {
            // A decision may have emptied a lane that is under way.
            guard !lanes[number].isUnderWay else { return }
            names.remove(number, with: lanes[number].nameHash)
            setTurn(of: number, nil)
            lanes[number] = Lane()
            unused.append(number)
            return
        }
        if lanes[number].hold == .none, !lanes[number].isUnderWay {
            let turn = Turn(first.position, in: lanes[number])
            if lanes[number].turn != turn {
                setTurn(of: number, turn)
                ready.insert(Ready(turn: turn, lane: number))
            }
        } else {
            setTurn(of: number, nil)
        }
    }

    private mutating func setTurn(of number: Int, _ turn: Turn?) {
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
        for number in lanes.indices where isExhausted(number) {
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
        var batch: [ReplayItem] = []
        batch.reserveCapacity(min(eventsMax, readyCount))
        var bytes = 0
        var dequeued: [Int] = []
        while batch.count < eventsMax, let next = ready.min {
            let number = next.lane
            guard lanes[number].turn == next.turn else {
                ready.removeMin()
                continue
            }
            let last = lanes[number].lastDequeued
            let index = last == Self.none ? lanes[number].first : items[last].next
            let item = items[index]
            guard batch.isEmpty || bytes + item.lineBytes + 1 <= bytesMax else { break }
            let handle = LaneHandle(number: number, generation: lanes[number].generation)
            batch.append(ReplayItem(item, in: lanes[number].name, at: handle))
            bytes += item.lineBytes + 1
            if last == Self.none { dequeued.append(number) }
            lanes[number].lastDequeued = index
            guard item.next != Self.none else {
                ready.removeMin()
                setTurn(of: number, nil)
                continue
            }
            let turn = Turn(items[item.next].position, in: lanes[number])
            lanes[number].turn = turn
            ready.replaceMin(with: Ready(turn: turn, lane: number))
        }
        for number in dequeued {
            lanes[number].isUnderWay = true
            setTurn(of: number, nil)
            lanes[number].lastDequeued = Self.none
        }
        return batch
    }

    /// Dequeues those of the events of an earlier batch that are next in their lanes and whose lanes are
    /// ready.
    mutating func dequeueAgain(_ batch: [ReplayItem]) -> [ReplayItem] {
        /// The last dequeued event of each lane.
        var dequeued: [Int: Int] = [:]
        let result = batch.filter { item in
            guard let number = number(of: item) else { return false }
            let index = dequeued[number].map { items[$0].next } ?? lanes[number].first
            guard lanes[number].hold == .none, !lanes[number].isUnderWay, index != Self.none,
                items[index].position == item.position
            else { return false }
            dequeued[number] = index
            return true
        }
        for number in dequeued.keys {
            lanes[number].isUnderWay = true
            setTurn(of: number, nil)
        }
        return result
    }

    /// Makes the lanes of an answered request ready again unless they are held.
    mutating func releaseItems(_ batch: [ReplayItem]) {
        for item in batch {
            guard let number = number(of: item), lanes[number].isUnderWay else { continue }
            lanes[number].isUnderWay = false
            updateReadiness(of: number)
        }
    }

    /// Removes a settled event if it is the first of its lane.
    mutating func removeSettled(_ item: ReplayItem) {
        guard let number = number(of: item), first(of: number)?.position == item.position else {
            return
        }
        removeFirst(of: number)
    }

    /// The retry count of the event. While the event is the first of its lane, the count is the lane's: a
    /// decision may have reset it while the event was under way. Otherwise it is the item's.
    func retryCount(of item: ReplayItem) -> Int {
        guard let first = number(of: item).flatMap(first), first.position == item.position
        else { return item.retryCount }
        return first.retryCount
    }

    /// Whether an event is the first of its lane.
    func isFirst(_ item: ReplayItem) -> Bool {
        number(of: item).map { first(of: $0)?.position == item.position } ?? false
    }

    /// Moves a lane after all events that are there now.
    mutating func deferLane(of item: ReplayItem) {
        let turn = newest + 1
        hasDeferredLanes = true
        updateLane(of: item) { $0.turnMin = turn }
    }

    /// Moves a lane after all others, deferred ones included.
    mutating func moveLaneToEnd(of item: ReplayItem) {
        lastTurn = max(lastTurn, newest) + 1
        hasDeferredLanes = true
        updateLane(of: item) { [lastTurn] in $0.turnMin = lastTurn }
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
        if first(of: number)?.position == item.position {
            items[lanes[number].first].retryCount = retryCount
        }
        updateReadiness(of: number)
        waiting.insert(Waiting(time: time, lane: number))
    }

    /// Releases a held lane.
    mutating func releaseLane(of item: ReplayItem) { updateLane(of: item) { $0.hold = .none } }
}
