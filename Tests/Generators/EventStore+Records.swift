// Records of the store's own, as a test wants them: apps cannot append them. Spec/model/events.md, EVT-14.

import EventSourcing

extension EventStore {
    /// Records what the store itself would record. Durable on return.
    package func append(record: EventDraft) async throws {
        try await write { $0.append(record: record) }
    }

    /// Records what the store itself would record. Durable on return.
    package func append(record: some EventPayload) async throws {
        try await append(record: try EventDraft(record))
    }
}
