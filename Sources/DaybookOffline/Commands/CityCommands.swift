// The commands of an app on saved and cached cities.

import Daybook

/// Commands on saved and cached cities.
public struct CityCommands: Sendable {
    let store: EventStore
    let files: FileStore
    let references: ReferenceCheck?

    init(_ store: EventStore, _ files: FileStore, _ references: ReferenceCheck? = nil) {
        self.store = store
        self.files = files
        self.references = references
    }

    /// Saves a city for a user. Durable on return.
    ///
    /// - Throws: `EventError`: `refused` for an empty id, `unknownReference` for a city that the
    ///   `ReferenceCheck` does not know; `LogError` as `EventStore.append`.
    @discardableResult
    public func save(_ cityId: String, by userId: String) async throws -> Appended {
        try Self.check(cityId, userId)
        return try await store.append(decidedBy: { transaction in
            try references?.require(.city(cityId), transaction)
            let cities = transaction.view(CitiesView.self)
            // After the removal of its copy too, so that automatic download includes the city again.
            let last = [
                cities.lwwTimestamp(cityId, by: userId), cities.removalTimestamp(cityId),
            ].compactMap(\.self).max()
            try transaction.append(CitySaved(userId: userId, cityId: cityId), replacing: last)
        })[0]
    }

    /// Records that a user no longer saves a city. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for an empty id or a city that the user has not saved;
    ///   `LogError` as `EventStore.append`.
    public func unsave(_ cityId: String, by userId: String) async throws {
        try Self.check(cityId, userId)
        try await store.write { transaction in
            let cities = transaction.view(CitiesView.self)
            guard cities.isSaved(cityId, by: userId) else {
                throw EventError(.refused, "the user \(userId) has not saved the city \(cityId)")
            }
            try transaction.append(
                CityUnsaved(userId: userId, cityId: cityId),
                replacing: cities.lwwTimestamp(cityId, by: userId))
        }
    }

    private static func check(_ cityId: String, _ userId: String) throws(EventError) {
        try CitySaved.require(cityId, "city id")
        try CitySaved.require(userId, "user id")
    }
}
