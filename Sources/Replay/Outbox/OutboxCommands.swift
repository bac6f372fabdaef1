// Decisions of the user or the app on events that the server did not apply: retry, discard, resolve. Each is
// recorded in the log. Spec/protocol/parking.md.

import EventSourcing
import Foundation
import LogFormat

/// Why a decision was refused.
public struct DecisionError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The reasons for a refusal.
    public enum Code: Hashable, Sendable {
        /// The outbox has no event with this id.
        case notInOutbox
        /// The event is neither parked nor in conflict, and its lane is not held by such an event: it
        /// may be on its way to the server.
        case notHeld
        /// Later events of the lane depend on it.
        case hasDependents
        /// The lane's events, or the server's state, have changed since the conflict was read; read it again.
        case changedMeanwhile
        /// The server has an event that ends the entity for ever, such as a note's deletion, so the decision
        /// would be without effect.
        case entityEnded
    }

    /// The reason.
    public var code: Code
    /// The event.
    public var id: UUID
    /// The events that depend on it, in order.
    public var dependents: [UUID]

    /// Creates an error.
    public init(_ code: Code, _ id: UUID, dependents: [UUID] = []) {
        self.code = code
        self.id = id
        self.dependents = dependents
    }

    /// The same as `description`.
    public var errorDescription: String? { description }

    /// The remedy.
    public var recoverySuggestion: String? {
        switch code {
        case .notInOutbox: "Nothing: the server has settled the event, or it was discarded."
        case .notHeld: "Sync, then read the outbox again."
        case .changedMeanwhile: "Read the outbox again, then decide."
        case .hasDependents: "Discard the dependent events with it, or none of them."
        case .entityEnded:
            "Keep theirs, or replace the changes by an event that begins another entity, such as a new "
                + "note with the text."
        }
    }

    /// What happened, to which event.
    public var description: String {
        switch code {
        case .notInOutbox: "no event with the id \(id.text) is in the outbox"
        case .notHeld:
            "the event \(id.text) is neither parked nor in conflict nor after one that is; it may "
                + "be on its way to the server"
        case .changedMeanwhile:
            "the lane of the event \(id.text) has changed meanwhile; nothing was recorded; read the "
                + "outbox again"
        case .hasDependents:
            "\(dependents.count) later events of its lane depend on the event \(id.text); discard "
                + "them with it"
        case .entityEnded:
            "the server has a deletion of what the event \(id.text) changes, which is final: keeping this "
                + "device's changes would show them nowhere; keep theirs, and add the content anew under "
                + "another id"
        }
    }
}

/// The outbox of a store, and the decisions on its events.
public struct OutboxCommands: Sendable {
    let store: EventStore

    package init(_ store: EventStore) { self.store = store }

    /// The unsettled actions in order of position, parked ones and those in conflict included, with the
    /// attempts of this process. O(1), then O(1) each.
    public var entries: some BidirectionalCollection<OutboxEntry> {
        let attempts = store.transient(SyncAttempts.self).values
        return store.view(Outbox.self).entries.lazy.map { $0.with(attempts[$0.position]) }
    }

    /// The number of unsettled actions. O(1).
    public var count: Int { store.view(Outbox.self).count }

    /// Resets the retries of an event that is parked or in conflict, so that it is sent again. Durable on
    /// return; a running replayer sends it without being asked. An event that is parked with `key_expired` is sent
    /// although the API may apply it a second time.
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
                    position: entry.position.rawValue, id: id, outcome: .retry, retryCount: 0,
                    code: entry.code == FailureCode.keyExpired ? entry.code : nil)
            ]
            transaction.append(record: try EventDraft(record, id: recordID))
        }
    }

    /// Discards an event of the outbox. The event is retracted: views are what they would be without it. Its line
    /// stays in the log. Durable on return. An event that is neither parked nor in conflict may be on its way to the
    /// server: if the server accepts it, it is reinstated when it is read back.
    ///
    /// - Parameters:
    ///   - id: the event's id.
    ///   - dependents: true to discard the events that depend on it, too.
    /// - Returns: the ids of the discarded events.
    /// - Throws: `DecisionError` (`notInOutbox`; `hasDependents` with their ids); `LogError`.
    /// - Complexity: O(events): the views are rebuilt.
    @discardableResult
    public func discard(_ id: UUID, withDependents dependents: Bool = false) async throws -> [UUID]
    {
        let (recordID, conflictID) = (store.newID(), store.newID())
        let catalogue = store.catalogue
        return try await store.write(drawingOnReserve: true) { transaction in
            let outbox = transaction.view(Outbox.self)
            guard let entry = outbox.entries.first(where: { $0.id == id }) else {
                throw DecisionError(.notInOutbox, id)
            }
            let lane = outbox.entries.filter { EntityID($0.lane) == EntityID(entry.lane) }
            let later = Outbox.dependents(of: entry, in: lane, catalogue)
            guard later.isEmpty || dependents else {
                throw DecisionError(.hasDependents, id, dependents: later.map(\.id))
            }
            let targets = [entry] + later
            transaction.append(
                record: try EventDraft(
                    EventsDiscarded(
                        by: transaction.incarnation,
                        events: targets.map { .init(position: $0.position, id: $0.id) },
                        reason: .discarded),
                    id: recordID))
            // READ-4: what remains of the lane is based on the same older state.
            if entry.code == FailureCode.newerState, let current = entry.conflictsWith,
                let next = lane.first(where: { !targets.map(\.id).contains($0.id) })
            {
                var record = SyncSettled(by: transaction.incarnation)
                record.entries = [
                    SyncSettled.Entry(
                        position: next.position.rawValue, id: next.id, outcome: .conflict,
                        retryCount: next.retryCount, code: FailureCode.newerState,
                        detail: entry.errorMessage, current: current)
                ]
                transaction.append(record: try EventDraft(record, id: conflictID))
            }
            return targets.map(\.id)
        }
    }

    /// The events that depend on an event: if it began its entity, all later ones of its lane. O(outbox).
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

    /// The conflict that begins with an event: the pending events of its lane, and the server's event, for
    /// the user to compare.
    ///
    /// - Returns: nil if the event is not in conflict.
    /// - Throws: `LogError`.
    /// - Complexity: O(outbox), and a frame to read for each event.
    public func conflict(_ id: UUID) async throws -> Conflict? {
        guard let entry = store.view(Outbox.self).entries.first(where: { $0.id == id }) else {
            return nil
        }
        return try await conflict(of: entry)
    }

    private func conflict(of entry: OutboxEntry) async throws -> Conflict? {
        let conflict = try await store.conflict(in: entry.lane)
        return conflict?.pending.first?.id == entry.id ? conflict : nil
    }

    /// Records a decision on a conflict. See `Resolution`. Durable on return.
    ///
    /// - Parameters:
    ///   - conflict: the conflict that the user has seen.
    ///   - resolution: the decision. If the server's state has changed since the last sync, the next one ends in
    ///     another conflict.
    /// - Throws: `DecisionError`: `changedMeanwhile` if the lane has other events by now, or a newer state of the server
    ///   is on record; `notInOutbox`, `notHeld`, `entityEnded`. `EventError` for a replacement that is refused;
    ///   `LogError`.
    public func resolve(_ conflict: Conflict, _ resolution: Resolution) async throws {
        guard let id = conflict.pending.first?.id else { return }
        guard let entry = store.view(Outbox.self).entries.first(where: { $0.id == id }) else {
            throw DecisionError(.notInOutbox, id)
        }
        guard entry.status == .conflict else { throw DecisionError(.notHeld, id) }
        if case .undecided = resolution { return }
        guard try await store.resolve(conflict, resolution) else {
            throw DecisionError(.changedMeanwhile, id)
        }
    }

    /// Records a decision on a conflict that does not depend on the server's state: it is about the one on record, also
    /// if that was read after the user has looked. Otherwise as `resolve(_:_:)` for a conflict.
    ///
    /// - Parameters:
    ///   - id: the id of the event in conflict.
    ///   - resolution: the decision.
    /// - Throws: as that method.
    public func resolve(_ id: UUID, _ resolution: Resolution) async throws {
        guard let entry = store.view(Outbox.self).entries.first(where: { $0.id == id }) else {
            throw DecisionError(.notInOutbox, id)
        }
        guard let conflict = try await conflict(of: entry) else {
            throw DecisionError(.notHeld, id)
        }
        try await resolve(conflict, resolution)
    }
}

extension Outbox {
    /// The later events of a lane if `entry` began its entity: without it they cannot be applied. None
    /// otherwise.
    package static func dependents(
        of entry: OutboxEntry, in lane: [OutboxEntry], _ catalogue: EventCatalogue
    ) -> [OutboxEntry] {
        guard catalogue.beginsEntity(action: entry.action) else { return [] }
        return lane.filter { $0.position > entry.position }
    }
}
