// Appends records that only a store can record, for tests. Spec/model/events.md, EVT-14.

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
}
