// What an app asks about saved and cached cities, now and as it changes.

import Daybook
import Foundation

extension CityCommands {
    /// The cities that a user has saved, sorted. O(cities).
    public func saved(by userId: String) -> ViewQuery<[String]> {
        store.query(CitiesView.self) { cities in
            cities.cityIDs.filter { cities.isSaved($0, by: userId) }
        }
    }

    /// Who has saved a city, sorted. O(users of the city).
    public func savers(of cityId: String) -> ViewQuery<[String]> {
        store.query(CitiesView.self) { $0.savers(of: cityId) }
    }

    // MARK: Cached cities

    /// The cached copy of a city; nil if there is none. Asking is no access: `read(_:)` is. O(1).
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

    /// The cities that would go first if room were needed. O(`count`).
    public func evictionCandidates(_ count: Int) -> ViewQuery<[OfflineCity]> {
        store.query(CitiesView.self) { Array($0.evictionCandidates.prefix(count)) }
    }

    /// The cached cities about whose age a user wants to be warned: those that are older than 30
    /// days by the corrected clock, the last accessed first; none if the settings say so. O(cached
    /// cities).
    public func stale(for userId: String) async -> [OfflineCity] {
        guard store.view(PreferencesView.self)[userId].showStaleDataWarning else { return [] }
        let now = await store.timestamp
        return store.view(CitiesView.self).offlineCities.filter { $0.isStale(at: now) }
    }
}
