// The queues of the outbox, one for each lane: ready, waiting, or held. Part of Sending, and like it
// without clock, network or randomness. Spec/protocol/replay.md, RPL-1 and RPL-2.

import EventSourcing
import Foundation
import HeapModule
import LogFormat

/// The lanes, each with its events to send in order.
///
/// The events of all lanes are in one array, in which an event has the index of the next of its lane: most lanes
/// have one event, and an array for each would be allocated and freed for it.
struct LaneSet: Sendable {
    /// The index that stands for no event.
    static let none = -1

    /// The events of all lanes. The index of a removed event is used again: `unusedItem` is the first of them,
    /// and they are linked like the events of a lane. With an array for each lane, and names that were hashed for
    /// each event, lanes took 20 instead of 13 % of shipping. Spec/decisions/0056-shipping.md.
    var items: [QueuedItem] = []
    var unusedItem = LaneSet.none
    /// All lanes. The index of an empty lane is used again for the next new one.
    var lanes: [Lane] = []
    var names = LaneNames()
    var unused: [Int] = []
    var lastGeneration: UInt64 = 0
    /// The ready lanes by turn. An entry whose turn differs from its lane's is stale; it is dropped when it
    /// comes first.
    var ready = Heap<Ready>()
    /// The number of ready lanes.
    private(set) var readyCount = 0
    var waiting = Heap<Waiting>()
    /// The newest position of the outbox, enqueued or not.
    var newest: UInt64 = 0
    /// The turn of the last lane that was moved to the end.
    var lastTurn: UInt64 = 0
    /// Whether a lane was deferred since the last `replace(by:)`.
    var hasDeferredLanes = false

    // MARK: Lanes

    func number(of item: ReplayItem) -> Int? {
        let handle = item.handle
        if lanes.indices.contains(handle.number),
            lanes[handle.number].generation == handle.generation
        {
            return handle.number
        }
        return existingNumber(of: item.laneID)
    }

    func existingNumber(of name: EntityID, _ hash: UInt32? = nil) -> Int? {
        names.lane(with: hash ?? LaneNames.hash(of: name)) { lanes[$0].name == name }
    }

    /// The index of the lane with this name, which is created if it is missing.
    mutating func number(of name: EntityID) -> Int {
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
    func first(of number: Int) -> QueuedItem? {
        let first = lanes[number].first
        return first == Self.none ? nil : items[first]
    }

    /// Appends an event to a lane.
    mutating func append(_ item: QueuedItem, to number: Int) {
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
    mutating func removeFirst(of number: Int) {
        let index = lanes[number].first
        lanes[number].first = items[index].next
        lanes[number].count -= 1
        items[index].next = unusedItem
        unusedItem = index
        count -= 1
    }

    /// True if a lane waits because its first event is parked: its retries are used up, or it is set aside.
    func isParked(_ number: Int) -> Bool {
        guard case .until = lanes[number].hold, let first = first(of: number) else { return false }
        return first.retryCount == Retries.max || first.failuresAlone > 0
    }

    // MARK: Content

    /// Appends an event to its lane, which is held according to `hold`. O(log lanes).
    mutating func enqueue(_ entry: OutboxEntry, hold: Hold) {
        advanceNewestPosition(to: entry.position)
        let number = number(of: EntityID(entry.lane))
        let item = QueuedItem(entry)
        append(item, to: number)
        if item.isAlone, lanes[number].count == 1 { setDeferred(number) }
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
                case let old = oldItems[before.first], first.position == old.position,
                first.retryCount != 0 || first.isAlone || (old.isAlone && old.failuresAlone == 0)
            {
                items[lanes[number].first].isAlone = first.isAlone || old.isAlone
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
            $0 + (lanes[$1].hold == .forever || isParked($1) ? lanes[$1].count : 0)
        }
    }

    /// Whether a lane can send now.
    var isReady: Bool { readyCount > 0 }

    /// True if a lane waits after a retry and is not parked. O(lanes).
    var isBackingOff: Bool {
        lanes.indices.contains { number in
            if case .until = lanes[number].hold { !isParked(number) } else { false }
        }
    }

    /// The earliest time at which a waiting lane is released.
    var nextDue: Int64? { waiting.min?.time }

    /// Inserts a lane into `ready` or removes it from there; removes the lane if it is empty.
    mutating func updateReadiness(of number: Int) {
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

    mutating func setTurn(of number: Int, _ turn: Turn?) {
        if lanes[number].turn == nil, turn != nil { readyCount += 1 }
        if lanes[number].turn != nil, turn == nil { readyCount -= 1 }
        lanes[number].turn = turn
    }

    /// Changes the lane of an event.
    mutating func updateLane(of item: ReplayItem, _ change: (inout Lane) -> Void) {
        guard let number = number(of: item) else { return }
        change(&lanes[number])
        updateReadiness(of: number)
    }
}
