// What the outbox says to compaction: which events it still needs, and which are settled.
// Spec/format/compaction.md.

import EventSourcing
import LogFormat

extension Outbox: CompactableView {
    /// Records give way to a folded one; own lines stay while they are not settled, those of unknown
    /// types for ever. O(log n).
    public func retention(of event: Event) -> Retention {
        if event.type == SyncSettled.type {
            guard let record = try? SyncSettled(json: event.content.json ?? []) else {
                return .needed(.notUnderstood)
            }
            if Self.isOwn(record, event) {
                guard let folded, event.position <= folded.replaces else {
                    return .needed(.current)
                }
                return .superseded(by: [folded.stamp])
            }
        }
        if event.type == SyncPulled.type, let pulled {
            guard event.stamp != pulled.stamp else { return .needed(.current) }
            return .superseded(by: [pulled.stamp])
        }
        // As long as the lines are there that it takes back, it must be.
        if event.type == EventsDiscarded.type || event.type == EventsReinstated.type {
            return .needed(.deletion)
        }
        if event.isOwn, event.action != nil, entry(at: event.position) != nil {
            return .needed(.unsettled)
        }
        if event.isOwn, !event.isKnownType { return .needed(.unknownType) }
        // The newest line says how far the outbox has come.
        return event.position == through ? .needed(.current) : .unconcerned
    }
}

extension Outbox: SettlementView {
    /// True for all events that were folded but own ones of shipped types that no record has settled:
    /// what came from elsewhere or is never shipped has nothing left to be decided. The event must
    /// have been folded. O(log n).
    public func isSettled(_ stamp: Stamp) -> Bool {
        entry(at: Position(stamp.sequence))?.source.integer != stamp.source
    }
}
