// Appends records that only a store can record, for tests. Spec/model/events.md, EVT-14.

import DaybookOffline
import EventSourcing

extension EventStore {
    /// Appends a record of the store. Durable on return.
    package func append(record: EventDraft) async throws {
        try await write { $0.append(record: record) }
    }

    /// Appends a record of the store. Durable on return.
    package func append(record: some EventPayload) async throws {
        try await append(record: try EventDraft(record))
    }

    /// Retracts an event, or reinstates it if it is retracted. Durable on return.
    ///
    /// - Returns: true if the event was reinstated; nil if nothing was done: the log has no event there, or a record.
    @discardableResult
    package func retractOrReinstate(at position: Position) async throws -> Bool? {
        guard let event = try event(at: position), !event.isRecord else { return nil }
        let targets = [EventTarget(position: position, id: event.id)]
        let isRetracted = isRetracted(position)
        if isRetracted {
            try await append(record: EventsReinstated(by: incarnation, events: targets))
        } else {
            try await append(
                record: EventsDiscarded(by: incarnation, events: targets, reason: .discarded))
        }
        return isRetracted
    }
}
