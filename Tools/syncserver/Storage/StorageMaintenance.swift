// Operations on whole accounts and on the schema, for the commands `migrate`, `erase` and `prune`.
// Spec/operations/operating.md.

import Foundation

/// A storage with maintenance operations.
package protocol StorageMaintenance: Sendable {
    /// Returns the newest migration of the schema, as a text for people.
    func schemaVersion() async throws -> String

    /// Counts the events of an account.
    func eventCount(account: String) async throws -> Int

    /// Deletes all data of an account in one transaction. If the account comes back, its events get
    /// serials that no reader has passed yet. Traces in the database's files stay until
    /// `removeTraces()`.
    ///
    /// - Parameter limit: an account that was used on or after this day is kept: a device may have
    ///   used it since it was listed as unused.
    /// - Returns: whether the account was deleted.
    /// - Throws: `StorageError`, whose message says whether the account was erased.
    @discardableResult
    func erase(account: String, unusedSince limit: Date?) async throws -> Bool

    /// Overwrites the traces of deleted events in the database's files, those of earlier erasures
    /// included. Does nothing if no traces are left, or if the database removes them by itself.
    ///
    /// - Throws: `StorageError`; then the files may still contain deleted events.
    func removeTraces() async throws

    /// Returns the accounts that no device has sent to or read from since a day.
    func accounts(unusedSince limit: Date) async throws -> [String]

    /// Records that the database was restored from a backup, so that devices that are ahead of it ship again
    /// what was lost. Servers take it into account when they open the database.
    func record(_ restore: Restores.Restore) async throws

    /// Finishes pending work and closes the database.
    func close() throws
}
