// The live queries of an app on saved and cached cities.

import Daybook
import Foundation

extension CityCommands {
    /// The cities that a user has saved, sorted. O(cities).
    public func saved(by userId: String) -> ViewQuery<[String]> {
        store.query(CitiesView.self) { cities in
            cities.cityIDs.filter { cities.isSaved($0, by: userId) }
        }
    }

    /// The users who have saved a city, sorted. O(users of the city).
    public func savers(of cityId: String) -> ViewQuery<[String]> {
        store.query(CitiesView.self) { $0.savers(of: cityId) }
    }

    // MARK: Cached cities

    /// The cached copy of a city; nil if there is none. This query does not count as an access;
    /// `read(_:)` does. O(1).
    public func offline(_ cityId: String) -> ViewQuery<OfflineCity?> {
        store.query(CitiesView.self) { $0.offline(cityId) }
    }

    /// The cached cities, the last accessed first. O(cached cities).
    public var offlineCities: ViewQuery<[OfflineCity]> {
        store.query(CitiesView.self) { Array($0.offlineCities) }
    }

    /// Bytes of all cached cities. O(1).
    public var storageUsed: ViewQuery<Int> {
        store.query(CitiesView.self) { $0.storageUsed }
    }

    /// The cities that would be evicted first. O(`count`).
    public func evictionCandidates(_ count: Int) -> ViewQuery<[OfflineCity]> {
        store.query(CitiesView.self) { Array($0.evictionCandidates.prefix(count)) }
    }

    /// The cached cities that are older than 30 days by the corrected clock, the last accessed first;
    /// empty if the user has turned `showStaleDataWarning` off. O(cached cities).
    public func stale(for userId: String) async -> [OfflineCity] {
        guard store.view(PreferencesView.self)[userId].showStaleDataWarning else { return [] }
        let now = await store.timestamp
        return store.view(CitiesView.self).offlineCities.filter { $0.isStale(at: now) }
    }
}
