// What the outbox says to compaction: which events it still needs, and which are settled.
// Spec/compaction.md.

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
        if event.isOwn, event.action != nil, unsettled(at: event.position) != nil {
            return .needed(.unsettled)
        }
        if event.isOwn, !event.isKnownType { return .needed(.unknownType) }
        // The newest line says how far the outbox has come.
        return event.position == through ? .needed(.current) : .unconcerned
    }

    private func unsettled(at position: Position) -> OutboxEntry? {
        index(at: position).map { queue[$0] }.flatMap { $0.isSettled ? nil : $0 }
    }
}

extension Outbox: SettlementView {
    /// True for all events that were folded but own ones of shipped types that no record has settled:
    /// what came from elsewhere or is never shipped has nothing left to be decided. The event must
    /// have been folded. O(log n).
    public func isSettled(_ stamp: Stamp) -> Bool {
        unsettled(at: Position(stamp.sequence))?.source.integer != stamp.source
    }
}
