// Decisions on parked events and conflicts, for `logtool parked` and for the outbox of Studio.

import DaybookOffline
import Foundation

/// The decisions on one opened log.
package struct Decisions {
    private let commands: OutboxCommands

    /// What was done to one event.
    package struct Done: Sendable {
        /// The event's id.
        package let id: UUID
        /// `retried`, `discarded`, `superseded` or `recorded`.
        package let done: String
    }

    /// Creates access to the outbox of a log.
    package init(_ store: EventStore) { commands = OutboxCommands(store) }

    private func entry(_ id: UUID) throws -> OutboxEntry {
        guard let entry = commands.entries.first(where: { $0.id == id }) else {
            throw DecisionError(.notInOutbox, id)
        }
        return entry
    }

    // MARK: Retrying

    /// Sends all parked events again, not those in conflict. Durable on return.
    package func retryAll() async throws -> [Done] {
        try await retry(commands.entries.filter { $0.status == .failed }.map(\.id))
    }

    /// Sends events again, all or none: the log's lock excludes other decisions between the check and the
    /// retries. Durable on return.
    ///
    /// - Throws: `DecisionError` (`notInOutbox`, `notHeld`); `LogError`.
    package func retry(_ ids: [UUID]) async throws -> [Done] {
        for id in ids {
            let entry = try entry(id)
            guard entry.status != .pending else { throw DecisionError(.notHeld, id) }
        }
        for id in ids { try await commands.retry(id) }
        return ids.map { Done(id: $0, done: "retried") }
    }

    // MARK: Discarding

    /// The other events that depend on some events, by position.
    ///
    /// - Throws: `DecisionError` (`notInOutbox`).
    package func dependents(of ids: [UUID]) throws -> [OutboxEntry] {
        var dependents: [UUID: OutboxEntry] = [:]
        for target in try targets(ids) {
            for entry in try commands.dependents(of: target.id) where !ids.contains(entry.id) {
                dependents[entry.id] = entry
            }
        }
        return dependents.values.sorted { $0.position < $1.position }
    }

    /// Retracts events. Durable on return.
    ///
    /// - Parameter withDependents: true to retract the events that depend on them, too.
    /// - Throws: `DecisionError` (`notInOutbox`, `hasDependents`); `LogError`.
    package func discard(_ ids: [UUID], withDependents: Bool) async throws -> [Done] {
        var discarded: [Done] = []
        for target in try targets(ids) {
            discarded += try await commands.discard(target.id, withDependents: withDependents)
                .map { Done(id: $0, done: "discarded") }
        }
        return discarded
    }

    /// The entries of ids, the last event first: dependents are discarded before the events that they
    /// depend on.
    private func targets(_ ids: [UUID]) throws -> [OutboxEntry] {
        try ids.map { try entry($0) }.sorted { $0.position > $1.position }
    }

    // MARK: Resolving

    /// Decides a conflict. Durable on return.
    ///
    /// - Returns: the events of the lane before as superseded, those after as recorded.
    /// - Throws: `DecisionError`; `LogError`.
    package func resolve(_ id: UUID, _ resolution: Resolution) async throws -> [Done] {
        let lane = EntityID(try entry(id).lane)
        func ids() -> [UUID] { commands.entries.filter { EntityID($0.lane) == lane }.map(\.id) }
        let before = ids()
        try await commands.resolve(id, resolution)
        return before.map { Done(id: $0, done: "superseded") }
            + ids().map { Done(id: $0, done: "recorded") }
    }
}
