// An action as an app shows it, with its state on the way to the server. Spec/protocol/sync-records.md,
// OUT-5.

import EventSourcing
import Foundation

/// An action of the user that is sent to the server.
public struct SyncAction: Hashable, Sendable, Identifiable {
    /// The event's id: the idempotency key.
    public let id: UUID
    /// The action's name: `PLAN_TRIP`.
    public let actionType: String
    /// The id of the action's entity.
    public let entityId: String
    /// The event's data, as JSON.
    public let actionData: [UInt8]
    /// The event's time.
    public let timestamp: Timestamp
    /// The state on the way to the server.
    public let syncStatus: Status
    /// The number of `retry` verdicts: 0 to 5. Attempts without a verdict are not counted.
    public let retryCount: Int
    /// The time of the last attempt; nil before the first. After a success, the time of its record, or nil
    /// once a folded record has replaced that record.
    public let lastAttemptAt: Timestamp?
    /// The reason why the last attempt failed; nil before the first attempt and after a success.
    public let errorMessage: String?
    /// The reason why the action is parked; nil unless it is FAILED.
    public let parking: OutboxEntry.Parking?
    /// The earliest time at which the replayer sends an exhausted action again; nil for other actions.
    public let nextAttemptAt: Timestamp?

    /// The states of an action.
    public enum Status: String, Sendable, CaseIterable {
        /// Not sent yet, or to be sent again.
        case pending = "PENDING"
        /// In a request that was not answered yet.
        case syncing = "SYNCING"
        /// The server has it, durably.
        case success = "SUCCESS"
        /// Parked; `parking` has the reason.
        case failed = "FAILED"
        /// The server has a newer change; its lane waits for a resolution.
        case conflict = "CONFLICT"
    }
}

extension OutboxCommands {
    /// The action with an id, settled or not.
    ///
    /// - Parameters:
    ///   - id: the event's id.
    ///   - report: the report of the sync under way, such as `SyncService.report`: it has the ids of the
    ///     events in unanswered requests.
    /// - Returns: nil if no event has the id, if it is not an action of this device, or if the event was
    ///   retracted or removed by compaction.
    /// - Throws: `LogError`.
    /// - Complexity: one frame of the log, O(log outbox). For an action that has succeeded also O(bytes of
    ///   the log from its event to the record that settled it).
    public func action(_ id: UUID, during report: SyncReport = SyncReport()) async throws
        -> SyncAction?
    {
        guard let event = try await store.event(id: id), event.isOwn, let action = event.action,
            await !store.isRetracted(event.position)
        else { return nil }
        let entry = store.view(Outbox.self).entry(at: event.position)?
            .with(store.transient(SyncAttempts.self)[event.position])
        // It may have been retracted meanwhile.
        if entry == nil, await store.isRetracted(event.position) { return nil }
        let status: SyncAction.Status =
            switch entry?.status {
            case nil: .success
            case .pending: report.underWay.contains(id) ? .syncing : .pending
            case .failed: .failed
            case .conflict: .conflict
            }
        var settled = SettledAttempts()
        if entry == nil { settled = try await store.settledAttempts(of: id, at: event.position) }
        return SyncAction(
            id: id, actionType: action, entityId: event.subject ?? "",
            actionData: event.content.json ?? [], timestamp: event.time, syncStatus: status,
            retryCount: entry?.retryCount ?? settled.retryCount,
            lastAttemptAt: entry?.lastAttemptAt ?? settled.settledAt,
            errorMessage: entry?.errorMessage, parking: entry?.parking,
            nextAttemptAt: entry?.nextAttemptAt)
    }

    /// The actions that are neither parked nor in conflict, the oldest first. O(1), then O(1) for each action
    /// of the outbox.
    public var pending: some Sequence<OutboxEntry> {
        entries.lazy.filter { $0.status == .pending }
    }

    /// The unsettled actions of an entity, the oldest first. O(outbox).
    public func entries(about entityId: String) -> [OutboxEntry] {
        entries.filter { EntityID($0.entityId) == EntityID(entityId) }
    }
}
