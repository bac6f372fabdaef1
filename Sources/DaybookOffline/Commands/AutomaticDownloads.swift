// Queues saved cities for automatic download. Spec/model/cities.md, CITY-12.

import Daybook

extension DownloadCommands {
    /// Queues a user's saved cities for automatic download: while `autoDownloadEnabled` is on, those
    /// that are not cached, have no job that is QUEUED, DOWNLOADING, PAUSED or FAILED, and were not
    /// removed since the save. And all cached cities that lack images and were downloaded a day ago or
    /// longer, and have no such job. An automatic job that failed a day ago or longer is queued again: its
    /// reason, such as a full device or a rejected token, may have ended. A city that the `ReferenceCheck` does not
    /// know, or for which it throws, is not queued. Durable on return. A `DownloadManager` calls it by itself.
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
        return try await store.write { [store, references] transaction in
            let wanted = Self.citiesToQueue(
                userId, transaction.view(CitiesView.self), transaction.view(DownloadsView.self),
                transaction.view(PreferencesView.self), at: transaction.now)
            var cityIds: [String] = []
            // A batch has a limit; the next call queues the remaining cities.
            for cityId in wanted where cityIds.count < 1_000 {
                // A check that fails for one city keeps that city out, and no other.
                let isKnown =
                    references.map { (try? $0.knows(.city(cityId), transaction)) ?? false } ?? true
                if isKnown { cityIds.append(cityId) }
            }
            let downloads = transaction.view(DownloadsView.self)
            for cityId in cityIds {
                let failed = downloads.jobs(of: cityId).last { $0.status == .failed }
                let jobId = failed?.id ?? store.newID().text
                try transaction.append(
                    DownloadQueued(jobId: jobId, cityId: cityId, isExplicit: false),
                    replacing: downloads.lwwTimestamp(jobId))
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
            guard !city.missingImages.isEmpty, abs(age) >= Self.retryMilliseconds else {
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
        return (Array(incomplete) + (isAutomatic ? Array(saved) : [])).filter { cityId in
            downloads.jobs(of: cityId).allSatisfy { job in
                guard job.status == .failed else { return !job.status.isUnfinished }
                // A job that the user asked for waits for the user.
                return !job.isExplicit
                    && abs(now.milliseconds - job.changedAt.milliseconds) >= Self.retryMilliseconds
            }
        }
    }

    /// The time in milliseconds after which a failed download, or the images that a copy lacks, are tried again.
    private static let retryMilliseconds: Int64 = 86_400_000
}
