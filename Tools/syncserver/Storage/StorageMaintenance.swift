// What is done to whole accounts, beside serving: erasure, retention, and telling the state of the
// schema. Used by the commands `migrate`, `erase` and `prune`. Spec/operating.md.

import Foundation

/// A storage that can be looked after.
package protocol StorageMaintenance: Sendable {
    /// The last step of the schema, for people.
    func schemaVersion() async throws -> String

    /// How many events an account has.
    func eventCount(account: String) async throws -> Int

    /// Erases all that is known of an account, in one transaction, and its traces in the database's
    /// files. Should the account come back, its events get numbers that no reader has passed yet.
    ///
    /// - Parameter limit: nothing is erased if the account was used since then: it may have come
    ///   back after it was found unused.
    /// - Returns: whether there was something to erase.
    @discardableResult
    func erase(account: String, unusedSince limit: Date?) async throws -> Bool

    /// The accounts that nobody has sent to or read from since then; to the day.
    func accounts(unusedSince limit: Date) async throws -> [String]

    /// Finishes what is under way and closes the database.
    func close() throws
}
