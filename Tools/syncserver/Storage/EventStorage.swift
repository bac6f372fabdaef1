// The seam between the server's HTTP side and a database; each database has one implementation.
// Spec/protocol/sync-protocol.md, SYNC-16 to SYNC-36.

import Foundation

/// The storage of the events of all accounts.
package protocol EventStorage: Sendable {
    /// Applies a batch and its effects in one durable transaction.
    ///
    /// - Returns: one verdict for each event, in the same order. Their effects are on the disk.
    /// - Throws: `StorageError`; then nothing of the batch was applied.
    func append(_ batch: [ReceivedEvent], account: String) async throws -> [EventVerdict]

    /// Reads events of an account.
    ///
    /// - Parameters:
    ///   - source: with a source, its events by sequence; without, all in the server's order.
    ///   - cursor: the cursor of an earlier page in the same order.
    ///   - limit: the most events. The page is shorter if it would have too many bytes.
    /// - Throws: `StorageError`.
    func page(
        account: String, source: UUID?, after cursor: EventCursor?, limit: Int
    ) async throws -> ServedPage

    /// Checks that the database answers and can store a batch. May write a page and sync it, so
    /// probes, which need no token, share one check (`ReadinessProbe`).
    ///
    /// - Throws: `StorageError`.
    func checkReadiness() async throws

    /// Finishes pending work and closes the database.
    func close() throws
}
