// Which events a log still needs. The views say it: whoever knows the winner of a register knows
// its losers. Spec/format/compaction.md.

/// What a view's state says of an event that it has folded.
public enum Retention: Hashable, Sendable {
    /// The view has nothing to do with the event.
    case unconcerned
    /// The state needs the event.
    case needed(KeptReason)
    /// All that the event set has been set again, by the events with these stamps: a fold without
    /// it comes to the same state, whatever is folded later.
    case superseded(by: [Stamp])
}

extension Retention {
    /// What becomes of an event that has set registers, by the stamps that hold them now: it is
    /// needed while it holds one, else those have superseded it.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - holders: the stamps of its registers; nil for one that nothing has set: then the event was
    ///     not folded, and all that is known is that it is needed.
    public static func of(_ event: Event, heldBy holders: [Stamp?]) -> Retention {
        let stamps = holders.compactMap(\.self)
        guard stamps.count == holders.count, !stamps.isEmpty, !stamps.contains(event.stamp) else {
            return .needed(.current)
        }
        return .superseded(by: stamps)
    }
}

/// Why compaction kept an event. The raw value is stable and machine-readable.
public enum KeptReason: String, Hashable, Sendable, CaseIterable {
    /// A view's present value comes from it.
    case current
    /// It deletes something, which must stay deleted.
    case deletion
    /// An entity that still exists began with it.
    case origin
    /// It is shipped, and the server has not settled it.
    case unsettled
    /// The event that has replaced it is not settled yet and could still be discarded.
    case successorUnsettled = "successor-unsettled"
    /// Its data break the rules of its type, so nobody knows what it set.
    case notUnderstood = "not-understood"
    /// Its type is not known here.
    case unknownType = "unknown-type"
    /// No view has a rule that says when events of its type have lost.
    case noRule = "no-rule"
    /// A view takes in its type and does not say which events it no longer needs.
    case view
    /// It lies behind a view's oldest checkpoint.
    case afterCheckpoint = "after-checkpoint"
    /// Its segment is still written to.
    case liveSegment = "live-segment"
    /// Its segment's list of removed ids is full.
    case idListFull = "id-list-full"
}

/// A view that can tell which events it no longer needs.
public protocol CompactableView: Projection {
    /// What this state says of an event that has been folded into it. Pure; O(log state).
    func retention(of event: Event) -> Retention
}

/// A view that knows what the server has settled.
public protocol SettlementView: Projection {
    /// Whether nothing is left to be decided about an own or foreign event with this stamp: the
    /// server has it, it came from there, or it is never shipped. In doubt false.
    func isSettled(_ stamp: Stamp) -> Bool
}
