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

    /// The first cities to be evicted, unless the last access of another is in the future (CITY-8).
    /// O(`count`).
    public func evictionCandidates(_ count: Int) -> ViewQuery<[OfflineCity]> {
        store.query(CitiesView.self) { Array($0.evictionCandidates.prefix(count)) }
    }

    /// The cached cities that are older than 30 days by the corrected clock, the last accessed first;
    /// empty if the user has turned `showStaleDataWarning` off. O(cached cities).
    /// `staleChanges(for:)` follows them.
    public func stale(for userId: String) async -> [OfflineCity] {
        guard store.view(PreferencesView.self)[userId].showStaleDataWarning else { return [] }
        let now = await store.timestamp
        return store.view(CitiesView.self).offlineCities.filter { $0.isStale(at: now) }
    }

    /// A stream of `stale(for:)`: the present cities, then each other list, after a change of the cached
    /// cities or of the setting, and as time passes, exact to an hour. The stream buffers only the newest
    /// list. It ends when the store is closed.
    public func staleChanges(for userId: String) -> AsyncStream<[OfflineCity]> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: [OfflineCity].self, bufferingPolicy: .bufferingNewest(1))
        let (signals, signal) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let task = Task { [store] in
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in store.changes(of: CitiesView.self) { signal.yield() }
                    signal.finish()
                }
                group.addTask {
                    let setting = store.query(PreferencesView.self) {
                        $0[userId].showStaleDataWarning
                    }
                    for await _ in setting.changes { signal.yield() }
                }
                group.addTask {
                    while (try? await store.environment.sleep(.seconds(3_600))) != nil,
                        !Task.isCancelled
                    {
                        signal.yield()
                    }
                }
                var last: [OfflineCity]?
                for await _ in signals {
                    let cities = await stale(for: userId)
                    if cities != last { continuation.yield(cities) }
                    last = cities
                }
                group.cancelAll()
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }
}
