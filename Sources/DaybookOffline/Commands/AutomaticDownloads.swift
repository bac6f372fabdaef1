// Queues saved cities for automatic download. Spec/model/cities.md, CITY-12.

import Daybook

extension DownloadCommands {
    /// Queues a user's saved cities for automatic download: while `autoDownloadEnabled` is on, those
    /// that are not cached, have no job that is QUEUED, DOWNLOADING, PAUSED or FAILED, and were not
    /// removed since the save. And all cached cities that lack images and were downloaded a day ago or
    /// longer, and have no such job. Durable on return. A `DownloadManager` calls it by itself.
    ///
    /// - Returns: the queued cities, at most 1,000.
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(cached cities), and O(saved cities of all users) while `autoDownloadEnabled` is on.
    @discardableResult
    public func queueWanted(for userId: String) async throws -> [String] {
        guard
            await !Self.citiesToQueue(
                userId, store.view(CitiesView.self), store.view(DownloadsView.self),
                store.view(PreferencesView.self), at: store.timestamp
            ).isEmpty
        else { return [] }
        return try await store.write { [store] transaction in
            let cityIds = Self.citiesToQueue(
                userId, transaction.view(CitiesView.self), transaction.view(DownloadsView.self),
                transaction.view(PreferencesView.self), at: transaction.now)
            for cityId in cityIds {
                try transaction.append(
                    DownloadQueued(jobId: store.newID().text, cityId: cityId, isExplicit: false))
            }
            return cityIds
        }
    }

    private static func citiesToQueue(
        _ userId: String, _ cities: CitiesView, _ downloads: DownloadsView,
        _ preferences: PreferencesView, at now: Timestamp
    ) -> [String] {
        let incomplete = cities.offlineCities.lazy.filter { city in
            let age = now.milliseconds - city.downloadedAt.milliseconds
            guard !city.missingImages.isEmpty, abs(age) >= Self.missingRetryMilliseconds else {
                return false
            }
            // The copy of a clock that was ahead has no known age, and neither has the one that replaces it. A
            // COMPLETED job is removed after a day.
            return age > 0
                || downloads.jobs(of: city.cityId).allSatisfy { $0.status != .completed }
        }.map(\.cityId)
        let saved = cities.cityIDs.lazy.filter { cityId in
            guard let save = cities.saveTimestamp(cityId, by: userId),
                cities.offline(cityId) == nil
            else { return false }
            return cities.removalTimestamp(cityId).map { $0 < save } ?? true
        }
        let isAutomatic = preferences[userId].autoDownloadEnabled
        let wanted = (Array(incomplete) + (isAutomatic ? Array(saved) : [])).filter { cityId in
            downloads.jobs(of: cityId).allSatisfy {
                !$0.status.isUnfinished && $0.status != .failed
            }
        }
        // A batch has a limit; the next call queues the remaining cities.
        return Array(wanted.prefix(1_000))
    }

    /// The time in milliseconds after which the images that a copy lacks are fetched again.
    private static let missingRetryMilliseconds: Int64 = 86_400_000
}
