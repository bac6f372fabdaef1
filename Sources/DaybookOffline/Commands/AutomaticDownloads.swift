// Which saved cities are downloaded without being asked for. Spec/model/cities.md, CITY-12.

import Daybook

extension DownloadCommands {
    /// Puts the cities in the queue that a user has saved and wants to have without asking for each:
    /// where `autoDownloadEnabled` is on, those that are not cached, have no job that waits, runs,
    /// rests or failed, and were not removed since they were saved. Durable on return. A
    /// `DownloadManager` calls it by itself.
    ///
    /// - Returns: the cities.
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(cities that anybody has saved), while `autoDownloadEnabled` is on.
    @discardableResult
    public func queueWanted(for userId: String) async throws -> [String] {
        guard
            !Self.wanted(
                userId, store.view(CitiesView.self), store.view(DownloadsView.self),
                store.view(PreferencesView.self)
            ).isEmpty
        else { return [] }
        return try await store.write { [store] transaction in
            let wanted = Self.wanted(
                userId, transaction.view(CitiesView.self), transaction.view(DownloadsView.self),
                transaction.view(PreferencesView.self))
            for cityId in wanted {
                try transaction.append(
                    DownloadQueued(jobId: store.newID().text, cityId: cityId, isExplicit: false))
            }
            return wanted
        }
    }

    private static func wanted(
        _ userId: String, _ cities: CitiesView, _ downloads: DownloadsView,
        _ preferences: PreferencesView
    ) -> [String] {
        guard preferences[userId].autoDownloadEnabled else { return [] }
        let wanted = cities.cityIDs.lazy.filter { cityId in
            guard let saved = cities.saved(cityId, by: userId), cities.offline(cityId) == nil,
                cities.removed(cityId).map({ $0 < saved }) ?? true
            else { return false }
            return downloads.jobs(of: cityId).allSatisfy {
                !$0.status.isUnfinished && $0.status != .failed
            }
        }
        // A batch has its limit; the next call takes the rest.
        return Array(wanted.prefix(1_000))
    }
}
