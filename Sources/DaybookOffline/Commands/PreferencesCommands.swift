// The commands of an app on a user's settings.

import Daybook

/// Commands on a user's settings.
public struct PreferencesCommands: Sendable {
    private let store: EventStore

    init(_ store: EventStore) { self.store = store }

    /// Changes settings: `body` receives the current ones and modifies them. Unchanged settings are not
    /// recorded, so another device's change of them survives. Durable on return.
    ///
    /// - Returns: the settings after the change.
    /// - Throws: `EventError` (`refused`) for an empty user id, a storage limit outside 50 to
    ///   500 MB, or pruning outside 1 to 90 days; `LogError` as `EventStore.append`.
    @discardableResult
    public func update(
        for userId: String, _ body: @escaping @Sendable (inout OfflinePreferences) -> Void
    ) async throws -> OfflinePreferences {
        try PreferencesUpdated.require(userId, "user id")
        try await store.write { transaction in
            let preferences = transaction.view(PreferencesView.self)
            let old = preferences[userId]
            var new = old
            body(&new)
            if new.maxStorageLimit != old.maxStorageLimit { try Self.check(new.maxStorageLimit) }
            if new.pruneAfterDays != old.pruneAfterDays,
                !OfflinePreferences.pruneDays.contains(new.pruneAfterDays)
            {
                throw EventError(
                    .refused, "\(new.pruneAfterDays) days until pruning; 1 to 90 are possible")
            }
            let changes = try new.values.differences(from: old.values)
            guard changes != PreferencesUpdated.Changes() else { return }
            try transaction.append(
                PreferencesUpdated(userId: userId, changes: changes),
                replacing: try preferences.registers[userId]?.lwwTimestamps(of: changes)
                    .compactMap(\.self).max())
        }
        return store.view(PreferencesView.self)[userId]
    }

    private static func check(_ limit: Int) throws(EventError) {
        guard OfflinePreferences.storageLimits.contains(limit) else {
            throw EventError(
                .refused,
                "a storage limit of \(limit) bytes; 50 to 500 MB are possible "
                    + "(\(OfflinePreferences.storageLimits.lowerBound) to "
                    + "\(OfflinePreferences.storageLimits.upperBound) bytes)")
        }
    }
}
