// Selects the cached cities to remove so that a user's limits are kept. No side effects.
// Spec/model/cities.md, CITY-8 ff.

import Daybook
import Foundation

/// The cities that the user asked for exceed the storage limit, and no other city can be removed.
public struct StorageLimitError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The user's limit in bytes.
    public var limit: Int
    /// Bytes of the cities that the user asked for.
    public var explicitBytes: Int
    /// Bytes of the city that was to be added; 0 if none was.
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

    /// The bytes, the limit and what to do.
    public var description: String {
        "the downloaded cities have \(explicitBytes) bytes"
            + (neededBytes > 0 ? " and the new one \(neededBytes)" : "")
            + "; the storage limit is \(limit). Remove a downloaded city or raise the limit"
    }
}

/// The storage rules for one user's limits.
struct CityStorage {
    let cities: CitiesView
    let preferences: OfflinePreferences
    /// The time of the decision.
    let now: Timestamp

    /// The cities to evict; the error if that is not enough.
    struct Evictions {
        var cityIds: [String] = []
        var error: StorageLimitError?
    }

    /// The cities whose last access is more than `pruneAfterDays` ago. If it is as far ahead, the clock was wrong
    /// then or is wrong now: the time of the download decides. O(their number + cities accessed in the future).
    func outdated() -> [String] {
        let days = Int64(preferences.daysUntilPruning) * 86_400_000
        let oldest = Timestamp(milliseconds: now.milliseconds - days)
        let ahead = Timestamp(milliseconds: now.milliseconds + days)
        let old = cities.evictionCandidates.prefix { $0.lastAccessedAt < oldest }
        let wrong = cities.evictionCandidates(accessedAfter: ahead).filter {
            $0.downloadedAt < oldest
        }
        return (Array(old) + wrong).map(\.cityId)
    }

    /// Selects the cities to evict so that the others fit: first those whose last access is in the future,
    /// because the clock was wrong then, after them the least recently accessed. Cities that the user asked
    /// for stay. O(evicted cities + cities accessed in the future).
    ///
    /// - Parameters:
    ///   - removed: cities that are removed in any case.
    ///   - new: a city that is to be cached; it replaces its present copy.
    func evictions(
        removed: [String] = [], new: (cityId: String, bytes: Int, isExplicit: Bool)? = nil
    ) -> Evictions {
        var leaving = Set((removed + [new?.cityId].compactMap(\.self)).map(EntityID.init))
        var used = Int128(cities.storageUsed) + Int128(new?.bytes ?? 0)
        var explicitBytes = Int128(cities.explicitStorageUsed)
        for city in leaving.compactMap({ cities.offline($0.string) }) {
            used -= Int128(city.storageSize)
            if city.isExplicitDownload { explicitBytes -= Int128(city.storageSize) }
        }
        let limit = Int128(preferences.storageLimit)
        guard explicitBytes + Int128(new?.bytes ?? 0) <= limit || new == nil else {
            return Evictions(
                error: StorageLimitError(
                    limit: preferences.storageLimit,
                    explicitBytes: Int(clamping: explicitBytes), neededBytes: new?.bytes ?? 0))
        }
        var evictions = Evictions()
        let future = Timestamp(
            milliseconds: now.milliseconds + CityCommands.accessIntervalMilliseconds)
        let wrong = cities.evictionCandidates(accessedAfter: future)
        for city in [AnySequence(wrong), AnySequence(cities.evictionCandidates)].lazy.joined() {
            guard used > limit else { return evictions }
            guard leaving.insert(EntityID(city.cityId)).inserted else { continue }
            evictions.cityIds.append(city.cityId)
            used -= Int128(city.storageSize)
        }
        if used > limit {
            evictions.error = StorageLimitError(
                limit: preferences.storageLimit, explicitBytes: Int(clamping: explicitBytes),
                neededBytes: 0)
        }
        return evictions
    }
}
