// The state of one lane, and its turn. Part of LaneSet. Spec/protocol/replay.md, RPL-2.

import EventSourcing
import Foundation
import LogFormat

extension LaneSet {
    struct Lane {
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
    struct Turn: Comparable {
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

    struct Ready: Comparable {
        var turn: Turn
        var lane: Int
        static func < (lhs: Ready, rhs: Ready) -> Bool { lhs.turn < rhs.turn }
    }

    struct Waiting: Comparable {
        var time: Int64
        var lane: Int
        static func < (lhs: Waiting, rhs: Waiting) -> Bool { lhs.time < rhs.time }
    }
}
