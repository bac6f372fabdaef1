// Contents that are too large for a view's state: the view stores the id of the event, and the caller
// reads the event from the log. Spec/decisions/0028.

import Foundation
import LogStorage

extension EventStore {
    /// Reads the data of the event that a view names, in their newest form. If the event is replaced and
    /// compacted during the read, reads the event that the view names then.
    ///
    /// - Parameters:
    ///   - type: the type of the data.
    ///   - find: looks the entry up in a view; nil ends the search.
    ///   - event: returns the id of the entry's event.
    /// - Returns: the view's entry and the data of its event; nil if `find` returns nil.
    /// - Throws: `LogError`, `corrupt` if the log has lost the event; what the payload throws.
    /// - Complexity: one frame to read.
    public nonisolated func named<Found: Sendable, Payload: EventPayload>(
        _ type: Payload.Type, by find: @Sendable () -> Found?,
        event: @Sendable (Found) -> UUID
    ) async throws -> (found: Found, payload: Payload)? {
        while let found = find() {
            let id = event(found)
            if let payload: Payload = try await payload(of: id) { return (found, payload) }
            // The event may be pending.
            try await flush()
            if let payload: Payload = try await payload(of: id) { return (found, payload) }
            guard find().map(event) != id else {
                throw LogError(
                    .corrupt, path: directory,
                    "the event \(id.text), which a view names as the newest \(Payload.type), is missing"
                )
            }
        }
        return nil
    }

    private nonisolated func payload<Payload: EventPayload>(of id: UUID) async throws -> Payload? {
        guard let event = try await event(id: id) else { return nil }
        return try Payload(json: catalogue.newestForm(of: event).content.json ?? [])
    }
}
