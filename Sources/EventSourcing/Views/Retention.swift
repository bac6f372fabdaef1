// Which events a log still needs. The views decide: a view that knows the winner of a register knows which
// events have lost. Spec/format/compaction.md.

/// A view's need for an event that it has folded.
public enum Retention: Hashable, Sendable {
    /// The view does not fold the event.
    case unconcerned
    /// The state needs the event.
    case needed(KeptReason)
    /// The events with these LWW timestamps have set every value that the event set: a fold without it
    /// gives the same state, whatever is folded later.
    case superseded(by: [LWWTimestamp])
}

extension Retention {
    /// The retention of an event that has set registers: needed while it is the winner of any of them, else
    /// superseded by the winners.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - holders: the current LWW timestamps of its registers. One that is nil is unset: the view has not
    ///     folded the event, which therefore is needed.
    public static func of(_ event: Event, heldBy holders: [LWWTimestamp?]) -> Retention {
        of(event.lwwTimestamp, heldBy: holders)
    }

    @usableFromInline
    static func of(_ lwwTimestamp: LWWTimestamp, heldBy holders: [LWWTimestamp?]) -> Retention {
        let lwwTimestamps = holders.compactMap(\.self)
        guard lwwTimestamps.count == holders.count, !lwwTimestamps.isEmpty,
            !lwwTimestamps.contains(lwwTimestamp)
        else {
            return .needed(.current)
        }
        return .superseded(by: lwwTimestamps)
    }
}

/// Why compaction kept an event. The raw value is stable and machine-readable.
public enum KeptReason: String, Hashable, Sendable, CaseIterable {
    /// It set a current value of a view.
    case current
    /// It deletes an entity, which must stay deleted.
    case deletion
    /// It began an entity that still exists.
    case origin
    /// It is shipped, and the server has not settled it.
    case unsettled
    /// The event that has replaced it is not settled and could still be retracted.
    case successorUnsettled = "successor-unsettled"
    /// Its data cannot be decoded, so the values that it set are unknown.
    case notUnderstood = "not-understood"
    /// Its type is unknown.
    case unknownType = "unknown-type"
    /// No view states when events of its type are superseded.
    case noRule = "no-rule"
    /// A view folds its type and does not state which events it no longer needs.
    case view
    /// It is after the last position that all stored states of all views have folded.
    case afterCheckpoint = "after-checkpoint"
    /// It is in the live segment.
    case liveSegment = "live-segment"
    /// Its segment's list of removed ids is full.
    case idListFull = "id-list-full"
}

/// A view that states which events it no longer needs.
public protocol CompactableView: Projection {
    /// This state's need for an event that it has folded. Pure; O(log state).
    func retention(of event: Event) -> Retention
    /// The LWW timestamps of the registers that an event would set, nil for an unset one. Nil if they are unknown:
    /// the default, with which an undo cannot tell if a newer change has set them.
    func holders(of event: Event) -> [LWWTimestamp?]?
}

extension CompactableView {
    /// Nil: the registers are unknown.
    public func holders(of event: Event) -> [LWWTimestamp?]? { nil }
}

/// A view that knows the LWW timestamps of a lane's events. An event that is appended to the lane without a time is
/// recorded after them, whatever the clock says (LINE-7).
package protocol LaneFloorView: Projection {
    /// The newest LWW timestamp in a lane; nil if the view knows none. O(log state).
    func floor(ofLane lane: String) -> LWWTimestamp?
}

/// A view that knows which events the server has settled.
public protocol SettlementView: Projection {
    /// True if no verdict is pending for an own or foreign event with this LWW timestamp: the server has
    /// it, it came from the server, or it is never shipped. False if unknown.
    func isSettled(_ lwwTimestamp: LWWTimestamp) -> Bool
}
