// Batches out of the lanes, and the reasons why a lane waits. Part of LaneSet. Spec/protocol/replay.md, RPL-1 to
// RPL-3.

import EventSourcing
import Foundation
import HeapModule
import LogFormat

extension LaneSet {
    // MARK: Dequeuing and releasing

    /// Releases the lanes whose wait is over, and those that wait beyond `latest`.
    /// O(released lanes · log lanes).
    mutating func releaseDueLanes(now: Int64, latest: Int64) {
        while let last = waiting.max, last.time > latest { releaseLane(waiting.removeMax()) }
        while let first = waiting.min, first.time <= now { releaseLane(waiting.removeMin()) }
    }

    /// Releases the lanes that wait because their first event is parked. O(lanes).
    ///
    /// - Parameter all: false for those only whose first event is set aside.
    mutating func releaseParked(all: Bool) {
        for number in lanes.indices
        where isParked(number) && (all || first(of: number)?.failuresAlone != 0) {
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
        while batch.count < eventsMax, batch.last?.isAlone != true, let next = ready.min {
            let number = next.lane
            guard lanes[number].turn == next.turn else {
                ready.removeMin()
                continue
            }
            let last = lanes[number].lastDequeued
            let index = last == Self.none ? lanes[number].first : items[last].next
            let item = items[index]
            let fits = !item.isAlone && bytes + item.lineBytes + 1 <= bytesMax
            guard batch.isEmpty || fits else { break }
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

    /// Whether an event, or an earlier one of its lane, is in the queue.
    func isQueued(_ item: ReplayItem) -> Bool {
        number(of: item).flatMap(first).map { $0.position <= item.position } ?? false
    }

    /// Moves a lane after all events that are there now.
    ///
    /// - Parameter isAlone: whether the event is sent in a batch of its own.
    mutating func deferLane(of item: ReplayItem, isAlone: Bool = false) {
        guard let number = number(of: item) else { return }
        setDeferred(number)
        // An event that is set aside is never sent with others, also after W3 has suspected it.
        updateFirst(of: number, ifIt: item) { $0.isAlone = isAlone || $0.failuresAlone > 0 }
        updateReadiness(of: number)
    }

    /// Moves a lane after all others, deferred ones included.
    mutating func moveLaneToEnd(of item: ReplayItem) {
        guard let number = number(of: item) else { return }
        lastTurn = max(lastTurn, newest) + 1
        lanes[number].turnMin = lastTurn
        hasDeferredLanes = true
        updateReadiness(of: number)
    }

    mutating func setDeferred(_ number: Int) {
        lanes[number].turnMin = newest + 1
        hasDeferredLanes = true
    }

    /// Changes the first event of a lane, if it is `item`.
    private mutating func updateFirst(
        of number: Int, ifIt item: ReplayItem, _ change: (inout QueuedItem) -> Void
    ) {
        guard first(of: number)?.position == item.position else { return }
        change(&items[lanes[number].first])
    }

    // MARK: Holding

    /// Holds a lane until a decision is recorded.
    mutating func holdLane(of item: ReplayItem) { updateLane(of: item) { $0.hold = .forever } }

    /// Holds a lane until a time, sets its first event's retry count, and defers it.
    mutating func holdLane(of item: ReplayItem, until time: Int64, retryCount: Int) {
        holdLane(of: item, until: time) {
            ($0.retryCount, $0.failuresAlone, $0.isAlone) = (retryCount, 0, false)
        }
    }

    /// Holds a lane until a time, and defers it. Its first event is sent in a batch of its own.
    mutating func holdLane(of item: ReplayItem, until time: Int64, failuresAlone: Int) {
        holdLane(of: item, until: time) {
            ($0.failuresAlone, $0.isAlone) = (failuresAlone, true)
        }
    }

    /// Holds a lane until a time, and defers it.
    ///
    /// - Parameter change: changes its first event.
    mutating func holdLane(
        of item: ReplayItem, until time: Int64, _ change: (inout QueuedItem) -> Void = { _ in }
    ) {
        guard let number = number(of: item) else { return }
        setDeferred(number)
        lanes[number].hold = .until(time)
        updateFirst(of: number, ifIt: item, change)
        updateReadiness(of: number)
        waiting.insert(Waiting(time: time, lane: number))
    }

    /// Releases a held lane.
    mutating func releaseLane(of item: ReplayItem) { updateLane(of: item) { $0.hold = .none } }
}
