// What an app shows of one action: what was done, and how far it has come on its way to the server.
// Spec/protocol/sync-records.md, OUT-5.

import EventSourcing
import Foundation

/// Something a user did that the server is to hear of.
public struct SyncAction: Hashable, Sendable, Identifiable {
    /// The event's id: the idempotency key.
    public let id: UUID
    /// The action's name: `PLAN_TRIP`.
    public let actionType: String
    /// What the action is about.
    public let entityId: String
    /// The event's data, as JSON.
    public let actionData: [UInt8]
    /// When it was performed.
    public let timestamp: Timestamp
    /// How far it has come.
    public let syncStatus: Status
    /// How often the server asked for a retry: 0 to 5. Attempts without a verdict charge nothing.
    public let retryCount: Int
    /// When an attempt was made last; nil if none was. After a success: when the log recorded it, nil
    /// once compaction has folded that record.
    public let lastAttemptAt: Timestamp?
    /// Why the last attempt did not succeed; nil if none was made or it has succeeded.
    public let errorMessage: String?
    /// Why the action is parked; nil unless it is FAILED.
    public let parking: OutboxEntry.Parking?
    /// When an exhausted action is sent again by itself, on a device that syncs then; nil for others.
    public let nextAttemptAt: Timestamp?

    /// The states of an action.
    public enum Status: String, Sendable, CaseIterable {
        /// It waits to be sent.
        case pending = "PENDING"
        /// It is on its way.
        case syncing = "SYNCING"
        /// The server has it, durably.
        case success = "SUCCESS"
        /// It is parked; `parking` says why.
        case failed = "FAILED"
        /// The server has a newer change; its lane waits for a resolution.
        case conflict = "CONFLICT"
    }
}

extension OutboxCommands {
    /// An action by its id, whether or not the server has it by now.
    ///
    /// - Parameters:
    ///   - id: the event's.
    ///   - report: of the sync that is under way, if there is one: it knows what is on its way.
    ///     `SyncService.report` has it.
    /// - Returns: nil for an id that the log does not know, that is none of an action of this
    ///   device, or whose event was discarded or compacted away.
    /// - Throws: `LogError`.
    /// - Complexity: one frame of the log to read, O(log outbox). For an action that has succeeded
    ///   also O(bytes of the log from its event to the record of that).
    public func action(_ id: UUID, during report: SyncReport = SyncReport()) async throws
        -> SyncAction?
    {
        guard let event = try await store.event(id: id), event.isOwn, let action = event.action,
            await !store.isTakenBack(event.position)
        else { return nil }
        let entry = store.view(Outbox.self).entry(at: event.position)?
            .with(store.transient(SyncAttempts.self)[event.position])
        // It may have been discarded meanwhile.
        if entry == nil, await store.isTakenBack(event.position) { return nil }
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

    /// The actions that wait to be sent, the oldest first: without those that are parked or in
    /// conflict. O(1), then O(1) each of the outbox.
    public var pending: some Sequence<OutboxEntry> {
        entries.lazy.filter { $0.status == .pending }
    }

    /// The actions about an entity that the server has not settled, the oldest first. O(outbox).
    public func entries(about entityId: String) -> [OutboxEntry] {
        entries.filter { EntityID($0.entityId) == EntityID(entityId) }
    }
}
