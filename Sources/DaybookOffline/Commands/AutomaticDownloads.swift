// Queues saved cities for automatic download. Spec/model/cities.md, CITY-12.

import Daybook

extension DownloadCommands {
    /// Queues a user's saved cities for automatic download: while `autoDownloadEnabled` is on, those
    /// that are not cached, have no job that is QUEUED, DOWNLOADING, PAUSED or FAILED, and were not
    /// removed since the save. Durable on return. A `DownloadManager` calls it by itself.
    ///
    /// - Returns: the queued cities, at most 1,000.
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(saved cities of all users), while `autoDownloadEnabled` is on.
    @discardableResult
    public func queueWanted(for userId: String) async throws -> [String] {
        guard
            !Self.citiesToQueue(
                userId, store.view(CitiesView.self), store.view(DownloadsView.self),
                store.view(PreferencesView.self)
            ).isEmpty
        else { return [] }
        return try await store.write { [store] transaction in
            let cityIds = Self.citiesToQueue(
                userId, transaction.view(CitiesView.self), transaction.view(DownloadsView.self),
                transaction.view(PreferencesView.self))
            for cityId in cityIds {
                try transaction.append(
                    DownloadQueued(jobId: store.newID().text, cityId: cityId, isExplicit: false))
            }
            return cityIds
        }
    }

    private static func citiesToQueue(
        _ userId: String, _ cities: CitiesView, _ downloads: DownloadsView,
        _ preferences: PreferencesView
    ) -> [String] {
        guard preferences[userId].autoDownloadEnabled else { return [] }
        let cityIds = cities.cityIDs.lazy.filter { cityId in
            guard let save = cities.saveTimestamp(cityId, by: userId),
                cities.offline(cityId) == nil,
                cities.removalTimestamp(cityId).map({ $0 < save }) ?? true
            else { return false }
            return downloads.jobs(of: cityId).allSatisfy {
                !$0.status.isUnfinished && $0.status != .failed
            }
        }
        // A batch has a limit; the next call queues the remaining cities.
        return Array(cityIds.prefix(1_000))
    }
}
