// The seam between the server's HTTP side and a database. Comes after BatchReader; one type for
// each database stands behind it. Spec/protocol/sync-protocol.md, SYNC-16 to SYNC-36.

import Foundation

/// Where a server keeps the events of its accounts.
package protocol EventStorage: Sendable {
    /// Takes in a batch in one durable transaction, with its effects.
    ///
    /// - Returns: one verdict for each event, in the same order. What they say is on the disk.
    /// - Throws: `StorageError`; then nothing of the batch was taken in.
    func append(_ batch: [ReceivedEvent], account: String) async throws -> [Verdict]

    /// Reads events of an account.
    ///
    /// - Parameters:
    ///   - source: with a source, its events by sequence; without, all in the server's order.
    ///   - cursor: where an earlier page ended; must have been made for the same kind of order.
    ///   - limit: events at most. The page is shorter where its bytes would grow too many.
    /// - Throws: `StorageError`.
    func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> EventPage

    /// Checks that the database answers and can store a batch. May write a page and sync it, so a
    /// probe that needs no token shares one check with others (`ReadinessProbe`).
    ///
    /// - Throws: `StorageError`.
    func checkReadiness() async throws

    /// Finishes what is under way and closes the database.
    func close() throws
}
