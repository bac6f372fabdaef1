// Which cached cities have to go so that a user's limits are kept. Pure. Spec/model/cities.md, CITY-8 ff.

import Daybook
import Foundation

/// The cities that the user asked for leave no room: there is nothing that could be removed for more.
public struct StorageLimitError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The user's limit in bytes.
    public var limit: Int
    /// Bytes of the cities that the user asked for.
    public var explicitBytes: Int
    /// Bytes of the city that was to be added; 0 where none was.
    public var neededBytes: Int

    /// Creates an error.
    public init(limit: Int, explicitBytes: Int, neededBytes: Int) {
        self.limit = limit
        self.explicitBytes = explicitBytes
        self.neededBytes = neededBytes
    }

    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        "Remove a downloaded city, or raise the storage limit."
    }

    /// What is too much, and what to do.
    public var description: String {
        "the downloaded cities have \(explicitBytes) bytes"
            + (neededBytes > 0 ? " and the new one \(neededBytes)" : "")
            + "; the storage limit is \(limit). Remove a downloaded city or raise the limit"
    }
}

/// The rules of a user's storage.
struct CityStorage {
    let cities: CitiesView
    let preferences: OfflinePreferences

    /// What has to go, and whether that is enough.
    struct Evictions {
        var cityIds: [String] = []
        var error: StorageLimitError?
    }

    /// What nobody has looked at for longer than the user keeps it. O(what goes).
    func outdated(at now: Timestamp) -> [String] {
        // Imported history may have set any number.
        let days = min(preferences.pruneAfterDays, OfflinePreferences.pruneDays.upperBound)
        let oldest = now.milliseconds - Int64(days) * 86_400_000
        return cities.evictionCandidates.prefix { $0.lastAccessedAt.milliseconds < oldest }
            .map(\.cityId)
    }

    /// What has to go, the least recently accessed first, so that everything fits. What the user
    /// asked for stays. O(what goes).
    ///
    /// - Parameters:
    ///   - gone: what goes anyway.
    ///   - new: a city that is to be cached, in place of a copy that there may be.
    func evictions(
        gone: [String] = [], new: (cityId: String, bytes: Int, isExplicit: Bool)? = nil
    ) -> Evictions {
        let leaving = Set((gone + [new?.cityId].compactMap(\.self)).map(EntityID.init))
        var used = Int128(cities.storageUsed) + Int128(new?.bytes ?? 0)
        var explicit = Int128(cities.explicitStorageUsed)
        for city in leaving.compactMap({ cities.offline($0.string) }) {
            used -= Int128(city.storageSize)
            if city.isExplicitDownload { explicit -= Int128(city.storageSize) }
        }
        let limit = Int128(preferences.maxStorageLimit)
        guard explicit + Int128(new?.bytes ?? 0) <= limit || new == nil else {
            return Evictions(
                error: StorageLimitError(
                    limit: preferences.maxStorageLimit, explicitBytes: Int(clamping: explicit),
                    neededBytes: new?.bytes ?? 0))
        }
        var evictions = Evictions()
        for city in cities.evictionCandidates {
            guard used > limit else { return evictions }
            guard !leaving.contains(EntityID(city.cityId)) else { continue }
            evictions.cityIds.append(city.cityId)
            used -= Int128(city.storageSize)
        }
        if used > limit {
            evictions.error = StorageLimitError(
                limit: preferences.maxStorageLimit, explicitBytes: Int(clamping: explicit),
                neededBytes: 0)
        }
        return evictions
    }
}
