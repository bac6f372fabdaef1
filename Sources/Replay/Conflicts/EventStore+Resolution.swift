// How a decision on a conflict is recorded: what it supersedes is taken back, what stands for it is
// appended, all in one commit. Spec/conflicts.md.

import EventSourcing
import Foundation
import LogFormat

extension EventStore {
    /// The conflict of a lane, if there is one.
    ///
    /// - Parameter current: what the server's answer said that it holds instead.
    /// - Throws: `LogError`.
    package func conflict(in lane: String, current: JSONValue?) throws -> Conflict? {
        let entries = view(Outbox.self).entries().filter {
            EntityID($0.lane) == EntityID(lane)
        }
        guard entries.first?.status == .conflict else { return nil }
        let pending = try entries.compactMap { try event(at: $0.position) }
        return Conflict(lane: lane, current: Self.event(current)?.draft, pending: pending)
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
    /// `baseid`, each further one that of the one before it.
    ///
    /// - Parameters:
    ///   - resolution: what was decided.
    ///   - conflict: on what. If the lane has other events by now, nothing is recorded: the server
    ///     has not said anything on those.
    ///   - current: what the server holds, to be recorded with it, if it is known as a whole.
    /// - Returns: whether anything was decided.
    /// - Throws: `EventError` for a replacement that is refused; `LogError`. Nothing was recorded
    ///   then.
    @discardableResult
    package func resolve(
        _ conflict: Conflict, _ resolution: Resolution, current: ForeignEvent?
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
        if let current { _ = try await receive([current]) }
        let (incarnation, ids) = (incarnation, new.map { _ in newID() })
        return try await write { transaction in
            let superseded = transaction.view(Outbox.self).entries()
                .filter { EntityID($0.lane) == EntityID(conflict.lane) }
            guard superseded.map(\.id) == conflict.pending.map(\.id),
                superseded.first?.status == .conflict
            else { return false }
            try transaction.append(
                EventsDiscarded(
                    by: incarnation,
                    events: superseded.map { .init(position: $0.position, id: $0.id) },
                    reason: .superseded))
            var base = conflict.current?.id
            for (index, draft) in new.enumerated() {
                var draft = draft
                draft.id = ids[index]
                draft.lane = draft.lane ?? conflict.lane
                draft.extensions.removeAll { ["baseid", "causationid"].contains($0.name) }
                if let base { draft.extensions.append(.init(name: "baseid", string: base.text)) }
                let cause = conflict.pending[min(index, conflict.pending.count - 1)].id
                draft.extensions.append(.init(name: "causationid", string: cause.text))
                transaction.append(draft)
                base = draft.id
            }
            return true
        }
    }
}
