// Records the decision on a conflict: retracts the superseded events and appends their replacements in one
// commit. Spec/protocol/conflicts.md.

import EventSourcing
import Foundation
import LogFormat

extension EventStore {
    /// The conflict of a lane with the server's event, if the log has that event; nil if the lane is not in
    /// conflict.
    ///
    /// - Throws: `LogError`.
    package func conflict(in lane: String) throws -> Conflict? {
        let entries = view(Outbox.self).entries.filter {
            EntityID($0.lane) == EntityID(lane)
        }
        guard let first = entries.first, first.status == .conflict else { return nil }
        let pending = try entries.compactMap { try event(at: $0.position) }
        let current = try first.conflictsWith.flatMap { try event(id: $0) }
        return Conflict(lane: lane, current: current?.content, pending: pending)
    }

    /// The event in a verdict's `current`; nil if that is not an event.
    package static func event(_ json: JSONValue?) -> ForeignEvent? {
        guard let json else { return nil }
        return try? ForeignEvent(json.json.span.bytes)
    }

    /// Records a decision on a conflict. Durable on return.
    ///
    /// The superseded events are retracted. A replacement has as `causationid` the id of the pending event
    /// at the same index, or of the last one. The `baseid` of the first is the id of the server's event;
    /// that of each further one is the id of the replacement before it. If the server's event is unknown,
    /// the first keeps its `baseid`, so that the server sends its event. The time of a replacement is after
    /// that of the server's event. A replacement in another lane has neither: it is no change of the entity.
    ///
    /// - Parameters:
    ///   - resolution: the decision.
    ///   - conflict: the conflict. If the lane has other events by now, nothing is recorded: the server
    ///     has given no verdict on those. Nor if the lane is in conflict with another event by now.
    /// - Returns: true if the decision was recorded.
    /// - Throws: `DecisionError` (`entityEnded`) if the server's event ends the entity and the last
    ///   replacement in the lane does not; `EventError` for a replacement that is refused; `LogError`. Nothing
    ///   was recorded then.
    @discardableResult
    package func resolve(
        _ conflict: Conflict, _ resolution: Resolution
    ) async throws -> Bool {
        let new: [EventDraft]
        switch resolution {
        case .undecided: return false
        case .keepTheirs: new = []
        case .keepMine:
            new = conflict.pending.map { event in
                var draft = event.content
                draft.time = nil
                return draft
            }
        case .replace(let drafts): new = drafts
        }
        try refuseWithoutEffect(new, conflict)
        // The device that wrote the server's event may have had a clock far ahead of this one.
        let theirs = conflict.current?.time.map {
            LWWTimestamp(time: $0, source: .max, sequence: .max)
        }
        let ids = new.map { _ in newID() }
        return try await write(drawingOnReserve: new.isEmpty) { transaction in
            let superseded = transaction.view(Outbox.self).entries
                .filter { EntityID($0.lane) == EntityID(conflict.lane) }
            guard superseded.map(\.id) == conflict.pending.map(\.id),
                superseded.first?.status == .conflict,
                // Not about a state that was read after the decision was asked for.
                conflict.current == nil
                    || superseded.first?.conflictsWith == conflict.current?.id
            else { return false }
            transaction.append(
                record: try EventDraft(
                    EventsDiscarded(
                        by: transaction.incarnation,
                        events: superseded.map { .init(position: $0.position, id: $0.id) },
                        reason: .superseded)))
            var base = conflict.current?.id
            for (index, draft) in new.enumerated() {
                var draft = draft
                draft.id = ids[index]
                draft.lane = draft.lane ?? conflict.lane
                draft.causeID = conflict.pending[min(index, conflict.pending.count - 1)].id
                guard conflict.isAbout(draft) else {
                    transaction.append(draft)
                    continue
                }
                if let base { draft.baseID = base }
                transaction.append(draft, replacing: theirs)
                base = draft.id
            }
            return true
        }
    }

    /// CON-4: refuses replacements of a lane whose entity the server's event has ended.
    private func refuseWithoutEffect(_ new: [EventDraft], _ conflict: Conflict)
        throws(DecisionError)
    {
        func ends(_ draft: EventDraft?) -> Bool {
            draft.flatMap { catalogue[$0.type] }?.endsEntity ?? false
        }
        guard ends(conflict.current), let pending = conflict.pending.first,
            let last = new.last(where: conflict.isAbout), !ends(last)
        else { return }
        throw DecisionError(.entityEnded, pending.id)
    }
}

extension Conflict {
    /// Whether a replacement is of the conflict's lane, as one without a lane is.
    fileprivate func isAbout(_ draft: EventDraft) -> Bool {
        draft.lane.map { EntityID($0) == EntityID(lane) } ?? true
    }
}
