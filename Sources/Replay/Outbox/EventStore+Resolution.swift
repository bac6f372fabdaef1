// How a decision on a conflict is recorded: what it supersedes is taken back, what stands for it is
// appended, all in one commit. Spec/protocol/conflicts.md.

import EventSourcing
import Foundation
import LogFormat

extension EventStore {
    /// The conflict of a lane, if there is one, with what the server holds instead as far as it is on
    /// record.
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

    /// The event that an answer names; nil if it is none.
    package static func event(_ json: JSONValue?) -> ForeignEvent? {
        guard let json else { return nil }
        return try? ForeignEvent(json.json.span.bytes)
    }

    /// Records what was decided. Durable on return.
    ///
    /// What it supersedes counts as never recorded from then on. Events that stand for others bear
    /// the id of the first of them as `causationid`, and the id of what the server holds as
    /// `baseid`, each further one that of the one before it. If what the server holds is not known,
    /// the first keeps its `baseid`, so that the server says it. Their times lie behind what they
    /// are based on.
    ///
    /// - Parameters:
    ///   - resolution: what was decided.
    ///   - conflict: on what. If the lane has other events by now, nothing is recorded: the server
    ///     has not said anything on those.
    /// - Returns: whether anything was decided.
    /// - Throws: `EventError` for a replacement that is refused; `LogError`. Nothing was recorded
    ///   then.
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
        // A clock that was far ahead may have written what the server holds.
        let theirs = conflict.current?.time.map {
            Stamp(time: $0, source: .max, sequence: .max)
        }
        let ids = new.map { _ in newID() }
        return try await write { transaction in
            let superseded = transaction.view(Outbox.self).entries
                .filter { EntityID($0.lane) == EntityID(conflict.lane) }
            guard superseded.map(\.id) == conflict.pending.map(\.id),
                superseded.first?.status == .conflict
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
                if let base { draft.baseID = base }
                draft.causeID = conflict.pending[min(index, conflict.pending.count - 1)].id
                transaction.append(draft, replacing: theirs)
                base = draft.id
            }
            return true
        }
    }
}
