// What somebody decides on events that the server will not take: to try them again, or to do without
// them. Both are on record. Spec/protocol/parking.md.

import EventSourcing
import Foundation
import LogFormat

/// Why a decision was refused.
public struct DecisionError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons.
    public enum Code: Hashable, Sendable {
        /// No event with this id waits to be sent.
        case notInOutbox
        /// The event is neither parked nor in conflict, and does not wait behind one that is: it
        /// may be on its way to the server.
        case notHeld
        /// Other events of the lane make no sense without it.
        case hasDependents
        /// The lane has other events by now; look again.
        case changedMeanwhile
    }

    /// The kind.
    public var code: Code
    /// The event.
    public var id: UUID
    /// The events that depend on it, in order.
    public var dependents: [UUID]

    /// Describes a refusal.
    public init(_ code: Code, _ id: UUID, dependents: [UUID] = []) {
        self.code = code
        self.id = id
        self.dependents = dependents
    }

    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .notInOutbox: "Nothing: the server has settled the event, or it was discarded."
        case .notHeld: "Sync, and look at the outbox again."
        case .changedMeanwhile: "Look at the outbox again, then decide."
        case .hasDependents: "Discard the dependent events with it, or none of them."
        }
    }

    /// What happened, and what to do.
    public var description: String {
        switch code {
        case .notInOutbox: "no event with the id \(id.text) waits to be sent"
        case .notHeld:
            "the event \(id.text) is neither parked nor in conflict nor behind one that is; it may "
                + "be on its way to the server"
        case .changedMeanwhile:
            "the lane of the event \(id.text) has changed meanwhile; nothing was decided. Look again"
        case .hasDependents:
            "\(dependents.count) later events of its lane depend on the event \(id.text). Discard "
                + "them with it"
        }
    }
}

/// What the server has not settled, and what somebody decides on it.
public struct OutboxCommands: Sendable {
    let store: EventStore

    package init(_ store: EventStore) { self.store = store }

    /// The actions that wait, in order of their positions: parked ones and those in conflict
    /// included. With the attempts of this process. O(1), then O(1) each.
    public var entries: some BidirectionalCollection<OutboxEntry> {
        let attempts = store.transient(SyncAttempts.self).values
        return store.view(Outbox.self).entries.lazy.map { $0.with(attempts[$0.position]) }
    }

    /// The number of actions that wait. O(1).
    public var count: Int { store.view(Outbox.self).count }

    /// Sends a parked event, or one in conflict, once more, as if it had never been tried. Durable
    /// on return; a running replayer sends it by itself.
    ///
    /// - Throws: `DecisionError` (`notInOutbox`, `notHeld`); `LogError`.
    public func retry(_ id: UUID) async throws {
        let recordID = store.newID()
        try await store.write { transaction in
            guard let entry = transaction.view(Outbox.self).entries.first(where: { $0.id == id })
            else { throw DecisionError(.notInOutbox, id) }
            guard entry.status != .pending else { throw DecisionError(.notHeld, id) }
            var record = SyncSettled(by: transaction.incarnation)
            record.entries = [
                SyncSettled.Entry(
                    position: entry.position.rawValue, id: id, outcome: .retry, retryCount: 0)
            ]
            transaction.append(record: try EventDraft(record, id: recordID))
        }
    }

    /// Does without an event that is parked or in conflict, or that waits behind one that is. From
    /// then on it counts as never recorded: views are what they would be without it. Its line stays.
    /// Durable on return.
    ///
    /// - Parameters:
    ///   - id: the event's.
    ///   - dependents: whether the events that depend on it go with it.
    /// - Returns: the ids of what was discarded.
    /// - Throws: `DecisionError` (`notInOutbox`, `notHeld`; `hasDependents` with their ids);
    ///   `LogError`.
    /// - Complexity: O(events): views are folded anew.
    @discardableResult
    public func discard(_ id: UUID, withDependents dependents: Bool = false) async throws -> [UUID]
    {
        let recordID = store.newID()
        let catalogue = store.catalogue
        return try await store.write { transaction in
            let outbox = transaction.view(Outbox.self)
            guard let entry = outbox.entries.first(where: { $0.id == id }) else {
                throw DecisionError(.notInOutbox, id)
            }
            let lane = outbox.entries.filter { EntityID($0.lane) == EntityID(entry.lane) }
            guard let first = lane.first, first.status != .pending else {
                throw DecisionError(.notHeld, id)
            }
            let behind = Outbox.dependents(of: entry, in: lane, catalogue)
            guard behind.isEmpty || dependents else {
                throw DecisionError(.hasDependents, id, dependents: behind.map(\.id))
            }
            let targets = [entry] + behind
            transaction.append(
                record: try EventDraft(
                    EventsDiscarded(
                        by: transaction.incarnation,
                        events: targets.map { .init(position: $0.position, id: $0.id) },
                        reason: .discarded),
                    id: recordID))
            return targets.map(\.id)
        }
    }

    /// The events that make no sense without an event: those behind one that has begun its entity.
    /// O(outbox).
    ///
    /// - Throws: `DecisionError` (`notInOutbox`).
    public func dependents(of id: UUID) throws -> [OutboxEntry] {
        let outbox = store.view(Outbox.self)
        guard let entry = outbox.entries.first(where: { $0.id == id }) else {
            throw DecisionError(.notInOutbox, id)
        }
        return Outbox.dependents(
            of: entry, in: outbox.entries.filter { EntityID($0.lane) == EntityID(entry.lane) },
            store.catalogue)
    }

    /// Records what is to become of a conflict. See `Resolution`. Durable on return.
    ///
    /// - Parameters:
    ///   - id: the event that is in conflict.
    ///   - resolution: what was decided. If what the server holds has changed since, the next sync
    ///     meets another conflict.
    /// - Throws: `DecisionError` (`notInOutbox`, `notHeld`, `changedMeanwhile`); `EventError` for a
    ///   replacement that is refused; `LogError`.
    public func resolve(_ id: UUID, _ resolution: Resolution) async throws {
        guard let entry = store.view(Outbox.self).entries.first(where: { $0.id == id }) else {
            throw DecisionError(.notInOutbox, id)
        }
        guard let conflict = try await store.conflict(in: entry.lane),
            conflict.pending.first?.id == id
        else { throw DecisionError(.notHeld, id) }
        if case .undecided = resolution { return }
        guard try await store.resolve(conflict, resolution) else {
            throw DecisionError(.changedMeanwhile, id)
        }
    }
}

extension Outbox {
    /// The events of a lane behind one that has begun its entity: without it they cannot be applied
    /// anywhere.
    static func dependents(
        of entry: OutboxEntry, in lane: [OutboxEntry], _ catalogue: EventCatalogue
    ) -> [OutboxEntry] {
        guard catalogue.beginsEntity(action: entry.action) else { return [] }
        return lane.filter { $0.position > entry.position }
    }
}
