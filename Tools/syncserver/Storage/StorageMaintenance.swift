// What is done to whole accounts, beside serving: erasure, retention, and telling the state of the
// schema. Used by the commands `migrate`, `erase` and `prune`. Spec/operations/operating.md.

import Foundation

/// A storage that can be looked after.
package protocol StorageMaintenance: Sendable {
    /// The last step of the schema, for people.
    func schemaVersion() async throws -> String

    /// How many events an account has.
    func eventCount(account: String) async throws -> Int

    /// Deletes all that is known of an account, in one transaction. Should the account come back, its
    /// events get numbers that no reader has passed yet. Traces in the database's files stay until
    /// `removeTraces()`.
    ///
    /// - Parameter limit: nothing is deleted if the account was used since then: it may have come
    ///   back after it was found unused.
    /// - Returns: whether there was something to delete.
    /// - Throws: `StorageError`, which says whether the account was erased.
    @discardableResult
    func erase(account: String, unusedSince limit: Date?) async throws -> Bool

    /// Overwrites what deleted events have left in the database's files, those of earlier erasures
    /// included. Does nothing where nothing is left, or where the database does so itself.
    ///
    /// - Throws: `StorageError`; then deleted events may still be found in the files.
    func removeTraces() async throws

    /// The accounts that no device has sent to or read from since then; to the day.
    func accounts(unusedSince limit: Date) async throws -> [String]

    /// Finishes what is under way and closes the database.
    func close() throws
}
