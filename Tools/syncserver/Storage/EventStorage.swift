// The seam between the server's HTTP side and a database; each database has one implementation.
// Spec/protocol/sync-protocol.md, SYNC-16 to SYNC-36.

import EventSourcing
import Foundation

/// The storage of the events of all accounts.
package protocol EventStorage: Sendable {
    /// Applies a batch and its effects in one durable transaction.
    ///
    /// - Parameter check: called when the batch has waited for its turn in the database, so that a batch
    ///   whose right to be stored has ended meanwhile is not.
    /// - Returns: one verdict for each event, in the same order. Their effects are on the disk.
    /// - Throws: `StorageError`, and what `check` throws; then nothing of the batch was applied.
    func append(
        _ batch: [ReceivedEvent], account: String, check: @escaping @Sendable () throws -> Void
    ) async throws -> [EventVerdict]

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

    /// The name of the database, and the restores that were on record when it was opened.
    var restores: Restores { get }

    /// The streams of this server. `append` signals an account's new events there.
    var signals: AccountSignals { get }

    /// Forwards to `signals` what other servers of the same database have stored, until the calling task is
    /// cancelled. Signals may be lost; `lastSerials` shows what they were about.
    func forwardSignals() async

    /// Reads the serials of the last events of accounts. Those of unknown accounts are missing.
    ///
    /// - Throws: `StorageError`.
    func lastSerials(of accounts: [String]) async throws -> [EntityID: Int64]

    /// Checks that the database answers and can store a batch. May write a page and sync it, so
    /// probes, which need no token, share one check (`ReadinessProbe`).
    ///
    /// - Throws: `StorageError`.
    func checkReadiness() async throws

    /// Finishes pending work and closes the database.
    func close() throws
}

extension EventStorage {
    /// Applies a batch whose right to be stored cannot end.
    package func append(
        _ batch: [ReceivedEvent], account: String
    ) async throws -> [EventVerdict] {
        try await append(batch, account: account, check: {})
    }
}
