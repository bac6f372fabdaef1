// The outbox's answers to compaction: which events it still needs, and which are settled.
// Spec/format/compaction.md.

import EventSourcing
import LogFormat

extension Outbox: CompactableView {
    /// Why the outbox needs the event, or what supersedes it. A folded record supersedes the records that it
    /// replaces. Own events are needed until they are settled; own events of unknown types for ever.
    /// O(log n).
    public func retention(of event: Event) -> Retention {
        if event.type == SyncSettled.type {
            guard let record = try? SyncSettled(json: event.content.json ?? []) else {
                return .needed(.notUnderstood)
            }
            if Self.isOwn(record, event) {
                guard let folded, event.position <= folded.replaces else {
                    return .needed(.current)
                }
                return .superseded(by: [folded.lwwTimestamp])
            }
        }
        if event.type == SyncPulled.type, let pulled {
            guard event.lwwTimestamp != pulled.lwwTimestamp else { return .needed(.current) }
            return .superseded(by: [pulled.lwwTimestamp])
        }
        if event.type == SyncRequested.type {
            // Without the record, the event's next request could have other bytes.
            return isNeeded(requestAt: event.position) ? .needed(.unsettled) : .superseded(by: [])
        }
        // It must stay as long as the lines that it retracts or reinstates.
        if event.type == EventsDiscarded.type || event.type == EventsReinstated.type {
            return .needed(.deletion)
        }
        if event.isOwn, event.action != nil, entry(at: event.position) != nil {
            return .needed(.unsettled)
        }
        if event.isOwn, !event.isKnownType { return .needed(.unknownType) }
        // `through` is the position of the newest line, so that line must stay.
        return event.position == through ? .needed(.current) : .unconcerned
    }
}

extension Outbox: SettlementView {
    /// True unless the event is an own event of a shipped type that no record has settled. Events of other
    /// logs and events that are never shipped count as settled. The event must have been folded. O(log n).
    public func isSettled(_ lwwTimestamp: LWWTimestamp) -> Bool {
        entry(at: Position(lwwTimestamp.sequence))?.source.integer != lwwTimestamp.source
    }
}
