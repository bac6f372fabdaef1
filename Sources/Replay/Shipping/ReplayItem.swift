// An event in the queues of the outbox, and in a batch. Part of LaneSet. Spec/protocol/replay.md, RPL-1.

import EventSourcing
import Foundation
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
    /// How often requests with the event alone failed, if it is set aside; else 0.
    let failuresAlone: Int
    /// Whether the event is sent in a batch of its own, because it may be the reason of a failure.
    let isAlone: Bool
    /// The lane at the time when the event was dequeued.
    let handle: LaneHandle

    init(_ queued: QueuedItem, in lane: EntityID, at handle: LaneHandle) {
        id = queued.id
        position = queued.position
        self.lane = lane.string
        source = queued.source
        lineBytes = queued.lineBytes
        retryCount = queued.retryCount
        failuresAlone = queued.failuresAlone
        isAlone = queued.isAlone
        self.handle = handle
    }

    var laneID: EntityID { EntityID(lane) }
}

/// A lane's index with its generation, which finds the lane without hashing its name. It is no part of an
/// item's value, so all handles are equal.
struct LaneHandle: Hashable {
    var number: Int
    /// The generation of the lane: an index is used again after its lane was removed.
    var generation: UInt64
    static func == (lhs: LaneHandle, rhs: LaneHandle) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}

/// An event in the queue of its lane. It holds no reference, so moving it costs no reference counting; the
/// lane has the name.
struct QueuedItem {
    let id: UUID
    let position: Position
    let source: UUID
    let lineBytes: Int
    var retryCount: Int
    var failuresAlone: Int
    var isAlone: Bool
    /// The index of the next event of the lane; `LaneSet.none` for the last.
    var next = LaneSet.none

    init(_ entry: OutboxEntry) {
        id = entry.id
        position = entry.position
        source = entry.source
        lineBytes = entry.lineBytes
        retryCount = entry.retryCount
        failuresAlone = entry.failuresAlone
        isAlone = entry.failuresAlone > 0
    }
}
