// The queues of the outbox, one a lane: which may send, which wait, which are held. Part of
// ReplayState, and as pure. Spec/protocol/replay.md, RPL-1 and RPL-2.

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
    /// Where its lane was when it was taken.
    fileprivate let place: LanePlace

    fileprivate init(_ queued: QueuedItem, in lane: EntityID, at place: LanePlace) {
        id = queued.id
        position = queued.position
        self.lane = lane.string
        source = queued.source
        lineBytes = queued.lineBytes
        retryCount = queued.retryCount
        self.place = place
    }

    var laneID: EntityID { EntityID(lane) }
}

/// Where a lane is found without its name. Says nothing of the event, so all are equal.
private struct LanePlace: Hashable {
    var number: Int
    /// Which of the lanes that had this number one after the other.
    var life: UInt64
    static func == (lhs: LanePlace, rhs: LanePlace) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}

/// An event in the queue of its lane, which has the name: numbers only, so that nothing is counted
/// where it is moved.
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

/// Lanes with what they have to send, in order.
struct LaneSet: Sendable {
    private struct Lane {
        var name: EntityID
        /// A number that no lane had before.
        var life: UInt64
        var queue: Deque<QueuedItem> = []
        var hold = Hold.none
        /// Events of it are in a request that was not answered yet.
        var isUnderWay = false
        /// The turn under which the lane stands in `ready`, if it does.
        var turn: UInt64?
        /// A lane that failed stands behind what was there at the time, so that any number of
        /// failing lanes do not slow the others.
        var turnMin: UInt64 = 0
        /// Events that are in the batch which is being put together.
        var taken = 0

        /// True if the lane waits because the retries of its first event are used up.
        var isExhausted: Bool {
            guard case .until = hold else { return false }
            return queue.first?.retryCount == Retries.max
        }
    }

    /// What keeps a lane from sending.
    enum Hold: Hashable {
        case none
        /// A time, in milliseconds since 1970 by the device's clock.
        case until(Int64)
        /// Until a decision is on record.
        case forever
    }

    private struct Ready: Comparable {
        var turn: UInt64
        /// Of two with one turn the older goes first.
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

    /// A lane that is empty gives its place to the next new one.
    private var lanes: [Lane] = []
    private var numbers: [EntityID: Int] = [:]
    private var unused: [Int] = []
    private var lives: UInt64 = 0
    /// Entries of lanes that have changed since stay until it is their turn, and count for nothing.
    private var ready = Heap<Ready>()
    /// How many lanes can send now.
    private(set) var readyCount = 0
    private var waiting = Heap<Waiting>()
    /// The last position that is known to be there, added or not.
    private var newest: UInt64 = 0
    /// Whether some lane was put behind what was there at the time.
    private(set) var hasStragglers = false

    // MARK: Lanes

    private func number(of item: ReplayItem) -> Int? {
        let place = item.place
        if lanes.indices.contains(place.number), lanes[place.number].life == place.life {
            return place.number
        }
        return numbers[item.laneID]
    }

    /// The number of a lane, which is made if there is none.
    private mutating func number(of name: EntityID) -> Int {
        if let number = numbers[name] { return number }
        let number = unused.popLast() ?? lanes.count
        lives += 1
        if number == lanes.count {
            lanes.append(Lane(name: name, life: lives))
        } else {
            lanes[number] = Lane(name: name, life: lives)
        }
        numbers[name] = number
        return number
    }

    // MARK: What is there

    /// Appends an event to its lane, which `hold` keeps from sending. O(log lanes).
    mutating func enqueue(_ entry: OutboxEntry, hold: Hold) {
        reaches(entry.position)
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
        hasChanged(number)
    }

    /// Events are there up to a position, whether they were added yet or not.
    mutating func reaches(_ position: Position) { newest = max(newest, position.rawValue) }

    /// Takes over what the outbox holds after somebody decided something. Times to wait, and what is
    /// under way, stay. O(events).
    mutating func replace(by entries: [(entry: OutboxEntry, hold: Hold)]) {
        let old = lanes
        (lanes, numbers, unused, count, ready, readyCount) = ([], [:], [], 0, Heap(), 0)
        // What waits names lanes by their places.
        waiting = Heap()
        hasStragglers = false
        for (entry, hold) in entries { enqueue(entry, hold: hold) }
        for before in old where !before.queue.isEmpty || before.isUnderWay {
            guard before.isUnderWay || numbers[before.name] != nil else { continue }
            let number = number(of: before.name)
            lanes[number].isUnderWay = before.isUnderWay
            lanes[number].turnMin = before.turnMin
            if before.turnMin > 0 { hasStragglers = true }
            if lanes[number].hold != .forever, let first = lanes[number].queue.first,
                first.position == before.queue.first?.position, first.retryCount != 0
            {
                switch before.hold {
                case .until(let time):
                    lanes[number].hold = before.hold
                    waiting.insert(Waiting(time: time, lane: number))
                // An exhausted event that is due, or that `releaseExhausted()` has freed.
                case .none: lanes[number].hold = .none
                case .forever: break
                }
            }
            setTurn(of: number, nil)
            hasChanged(number)
        }
    }

    /// How many events wait, held ones included.
    private(set) var count = 0

    /// The number of events in lanes that are held by something parked or in conflict. O(lanes).
    var heldCount: Int {
        lanes.reduce(0) { $0 + ($1.hold == .forever || $1.isExhausted ? $1.queue.count : 0) }
    }

    /// Whether some lane can send now.
    var isReady: Bool { readyCount > 0 }

    /// True if a lane waits for a time although its retries are not used up. O(lanes).
    var isBackingOff: Bool {
        lanes.contains { lane in
            if case .until = lane.hold { !lane.isExhausted } else { false }
        }
    }

    /// When the next lane is free again.
    var nextDue: Int64? { waiting.min?.time }

    /// Puts a lane among those that can send, if it can.
    private mutating func hasChanged(_ number: Int) {
        guard let first = lanes[number].queue.first else {
            // What was decided meanwhile may have emptied a lane that is under way.
            guard !lanes[number].isUnderWay else { return }
            numbers[lanes[number].name] = nil
            setTurn(of: number, nil)
            lanes[number] = Lane(name: EntityID(""), life: 0)
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
    private mutating func update(_ item: ReplayItem, _ change: (inout Lane) -> Void) {
        guard let number = number(of: item) else { return }
        change(&lanes[number])
        hasChanged(number)
    }

    // MARK: Taking and giving back

    /// Frees the lanes whose time has come, and those that would wait longer than any may.
    /// O(lanes freed · log lanes).
    mutating func release(now: Int64, latest: Int64) {
        while let last = waiting.max, last.time > latest { release(waiting.removeMax()) }
        while let first = waiting.min, first.time <= now { release(waiting.removeMin()) }
    }

    /// Frees the lanes that wait because the retries of their first event are used up. O(lanes).
    mutating func releaseExhausted() {
        for number in lanes.indices where lanes[number].isExhausted {
            lanes[number].hold = .none
            hasChanged(number)
        }
    }

    /// Frees a lane, unless something else holds it by now.
    private mutating func release(_ due: Waiting) {
        guard lanes[due.lane].hold == .until(due.time) else { return }
        lanes[due.lane].hold = .none
        hasChanged(due.lane)
    }

    /// Takes the oldest events of all lanes that can send; their lanes send nothing else until they
    /// are given back. O(events · log lanes).
    mutating func takeBatch(eventsMax: Int, bytesMax: Int) -> [ReplayItem] {
        var items: [ReplayItem] = []
        var bytes = 0
        var taken: [Int] = []
        while items.count < eventsMax, let next = ready.min {
            let number = next.lane
            guard lanes[number].turn == next.turn else {
                ready.removeMin()
                continue
            }
            let index = lanes[number].taken
            let item = lanes[number].queue[index]
            guard items.isEmpty || bytes + item.lineBytes + 1 <= bytesMax else { break }
            let place = LanePlace(number: number, life: lanes[number].life)
            items.append(ReplayItem(item, in: lanes[number].name, at: place))
            bytes += item.lineBytes + 1
            if index == 0 { taken.append(number) }
            lanes[number].taken = index + 1
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
        for number in taken {
            lanes[number].isUnderWay = true
            setTurn(of: number, nil)
            lanes[number].taken = 0
        }
        return items
    }

    /// Takes events that were in a batch before: those that are next in their lanes by now.
    mutating func take(again items: [ReplayItem]) -> [ReplayItem] {
        var taken: [Int: Int] = [:]
        let result = items.filter { item in
            guard let number = number(of: item) else { return false }
            let index = taken[number, default: 0]
            guard lanes[number].hold == .none, !lanes[number].isUnderWay,
                index < lanes[number].queue.count,
                lanes[number].queue[index].position == item.position
            else { return false }
            taken[number] = index + 1
            return true
        }
        for number in taken.keys {
            lanes[number].isUnderWay = true
            setTurn(of: number, nil)
        }
        return result
    }

    /// A request has been answered: its lanes can send again, if nothing holds them.
    mutating func giveBack(_ items: [ReplayItem]) {
        for item in items {
            guard let number = number(of: item), lanes[number].isUnderWay else { continue }
            lanes[number].isUnderWay = false
            hasChanged(number)
        }
    }

    /// The first event of a lane leaves.
    mutating func settle(_ item: ReplayItem) {
        guard let number = number(of: item),
            lanes[number].queue.first?.position == item.position
        else { return }
        lanes[number].queue.removeFirst()
        count -= 1
    }

    /// The retries of an event that is the next of its lane: a decision may have reset them while it was
    /// under way. Else those that it was taken with.
    func retryCount(of item: ReplayItem) -> Int {
        guard let first = number(of: item).flatMap({ lanes[$0].queue.first }),
            first.position == item.position
        else { return item.retryCount }
        return first.retryCount
    }

    /// Whether an event is the next of its lane.
    func isFirst(_ item: ReplayItem) -> Bool {
        number(of: item).map { lanes[$0].queue.first?.position == item.position } ?? false
    }

    /// Lets a lane stand behind what is there now.
    mutating func putBehind(_ item: ReplayItem) {
        let turn = newest + 1
        hasStragglers = true
        update(item) { $0.turnMin = turn }
    }

    // MARK: Holding

    /// Holds a lane until somebody decides.
    mutating func hold(_ item: ReplayItem) { update(item) { $0.hold = .forever } }

    /// Holds a lane for a time, and lets it stand behind what is there now.
    mutating func hold(_ item: ReplayItem, until time: Int64, retryCount: Int) {
        let turn = newest + 1
        hasStragglers = true
        guard let number = number(of: item) else { return }
        lanes[number].hold = .until(time)
        lanes[number].turnMin = turn
        if lanes[number].queue.first?.position == item.position {
            lanes[number].queue[0].retryCount = retryCount
        }
        hasChanged(number)
        waiting.insert(Waiting(time: time, lane: number))
    }

    /// Sets a lane free.
    mutating func free(_ item: ReplayItem) { update(item) { $0.hold = .none } }
}
