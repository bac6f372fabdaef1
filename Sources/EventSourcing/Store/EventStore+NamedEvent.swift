// Contents that are too big for a state: the view names the event that holds one, and a caller reads it
// from the log. Spec/decisions/0028.

import Foundation
import LogStorage

extension EventStore {
    /// The data of the event that a view names, in its newest form. The event may be replaced, and
    /// compacted away, while it is looked for; then the one that the view names by now counts.
    ///
    /// - Parameters:
    ///   - type: of the data.
    ///   - find: asks a view for what is looked for; nil ends the search.
    ///   - event: the event that holds it.
    /// - Returns: what the view said, and the data that go with it; nil where the view names nothing.
    /// - Throws: `LogError`, `corrupt` where the log has lost the event; what the payload throws.
    /// - Complexity: one frame to read.
    public nonisolated func named<Found: Sendable, Payload: EventPayload>(
        _ type: Payload.Type, by find: @Sendable () -> Found?,
        event: @Sendable (Found) -> UUID
    ) async throws -> (found: Found, payload: Payload)? {
        while let found = find() {
            let id = event(found)
            if let payload: Payload = try await payload(of: id) { return (found, payload) }
            // It may wait for the disk.
            try await flush()
            if let payload: Payload = try await payload(of: id) { return (found, payload) }
            guard find().map(event) != id else {
                throw LogError(
                    .corrupt, path: directory,
                    "the event \(id.text), which a view names as the newest \(Payload.type), is not "
                        + "there")
            }
        }
        return nil
    }

    private nonisolated func payload<Payload: EventPayload>(of id: UUID) async throws -> Payload? {
        guard let event = try await event(id: id) else { return nil }
        return try Payload(json: catalogue.newestForm(of: event).content.json ?? [])
    }
}
