// What an app does with cached cities. Spec/model/cities.md.

import Daybook
import Foundation

/// An image of a city with its bytes, to be cached.
public struct CityImage: Hashable, Sendable {
    /// The image.
    public var id: String
    /// Where it came from.
    public var url: String
    /// What it shows.
    public var kind: CachedImage.Kind
    /// Width in pixels.
    public var width: Int
    /// Height in pixels.
    public var height: Int
    /// Its bytes.
    public var content: [UInt8]

    /// Creates an image.
    public init(
        id: String, url: String, kind: CachedImage.Kind, width: Int, height: Int,
        content: [UInt8]
    ) {
        self.id = id
        self.url = url
        self.kind = kind
        self.width = width
        self.height = height
        self.content = content
    }
}

/// What a clean-up of cached cities removed.
public struct CityCleanUp: Hashable, Sendable {
    /// Cities that nobody had looked at for too long.
    public var outdated: [String] = []
    /// Cities that went to keep the storage limit.
    public var evicted: [String] = []
    /// Files that went, of these cities and of what a kill had left.
    public var files = FileCollection()
    /// Why the limit is not kept all the same.
    public var limit: StorageLimitError?

    /// Nothing.
    public init() {}
}

extension CityCommands {
    /// How long an access counts: looking at a city more often records nothing.
    static let accessIntervalMilliseconds: Int64 = 5 * 60_000

    /// Caches a city: what an app does that has downloaded it by itself. `DownloadManager` does the
    /// same for those that it downloads. Other cities go if the user's storage limit demands it, the
    /// least recently accessed first; cities that the user asked for stay. Durable on return, images
    /// included.
    ///
    /// - Parameters:
    ///   - json: the city as the server describes it; kept as it is, members that `CityData` does
    ///     not name included.
    ///   - images: its images.
    ///   - isExplicit: whether the user asked for it. A city that was asked for stays so.
    ///   - userId: whose storage limit counts.
    /// - Throws: `StorageLimitError` if the cities that the user asked for leave no room;
    ///   `EventError` (`invalidData`) for a description that is none; `FileStoreError`; `LogError`
    ///   as `EventStore.append`. Nothing was changed then.
    @discardableResult
    public func cache(
        json: [UInt8], images: [CityImage] = [], isExplicit: Bool, for userId: String
    ) async throws -> OfflineCity {
        let city = try CityData(json: json)
        var cached: [CachedImage] = []
        do {
            for image in images {
                cached.append(
                    CachedImage(
                        id: image.id, url: image.url, file: try await files.add(image.content),
                        size: image.content.count, kind: image.kind, width: image.width,
                        height: image.height))
            }
            let images = cached
            try await files.requireHeld(images.map(\.file))
            try await store.write { transaction in
                try Self.cache(
                    json: json, images: images, isExplicit: isExplicit, for: userId,
                    in: &transaction)
            }
        } catch {
            await files.release(cached.map(\.file))
            // What was stored in vain goes with the next collection, if not with this one.
            _ = try? await files.collect()
            throw error
        }
        await files.release(cached.map(\.file))
        // It is on record; what it has replaced goes with a later collection, if not with this one.
        _ = try? await files.collect()
        guard let cached = store.view(CitiesView.self).offline(city.id) else {
            throw EventError(.refused, "the city \(city.id) was removed while it was cached")
        }
        return cached
    }

    /// As the other one, in a transaction of the caller, who has stored the images and collects
    /// files later.
    static func cache(
        json: [UInt8], images: [CachedImage], isExplicit: Bool, for userId: String,
        in transaction: inout EventStore.Transaction
    ) throws {
        let city = try CityData(json: json)
        let cities = transaction.view(CitiesView.self)
        let old = cities.offline(city.id)
        let cached = CityCached(
            cityId: city.id, version: old.map { $0.version == .max ? .max : $0.version + 1 } ?? 1,
            isExplicitDownload: isExplicit || (old?.isExplicitDownload ?? false),
            cityData: json, images: images)
        let storage = CityStorage(
            cities: cities, preferences: transaction.view(PreferencesView.self)[userId])
        let evictions = storage.evictions(
            new: (city.id, cached.storageSize, cached.isExplicitDownload))
        if let error = evictions.error { throw error }
        for cityId in evictions.cityIds {
            try removeWithDownloads(cityId, .limit, in: &transaction)
        }
        try transaction.append(cached, replacing: cities.copyStamp(city.id))
    }

    /// Removes a copy, also one that was made, or a city that was saved, while the clock was ahead.
    static func remove(
        _ cityId: String, _ reason: CityRemoved.Reason,
        in transaction: inout EventStore.Transaction
    ) throws {
        let cities = transaction.view(CitiesView.self)
        let last = [cities.copyStamp(cityId), cities.lastSave(of: cityId)].compactMap(\.self).max()
        try transaction.append(CityRemoved(cityId: cityId, reason: reason), replacing: last)
    }

    /// Removes a copy and the download jobs of its city. A download that the user asked for and that
    /// is not finished outlives a copy that goes by itself: it brings a new one.
    private static func removeWithDownloads(
        _ cityId: String, _ reason: CityRemoved.Reason,
        in transaction: inout EventStore.Transaction
    ) throws {
        try remove(cityId, reason, in: &transaction)
        for job in transaction.view(DownloadsView.self).jobs(of: cityId)
        where reason == .user || !job.isExplicit || !job.status.isUnfinished {
            try transaction.append(DownloadRemoved(jobId: job.id))
        }
    }

    /// Looks at a cached city, which counts as an access.
    ///
    /// - Returns: the city with its description, or nil if it is not cached.
    /// - Throws: `LogError`.
    /// - Complexity: one frame of the log to read. An access is recorded, relaxed, if the last one
    ///   is more than five minutes ago.
    public func read(_ cityId: String) async throws -> (city: OfflineCity, data: CityData)? {
        guard
            let (city, cached) = try await store.named(
                CityCached.self, by: { store.view(CitiesView.self).offline(cityId) },
                event: \.event)
        else { return nil }
        let data = try CityData(json: cached.cityData)
        let now = await store.now
        if now - city.lastAccessedAt.milliseconds >= Self.accessIntervalMilliseconds {
            try await store.append(CityAccessed(cityId: cityId), durability: .relaxed)
        }
        return (store.view(CitiesView.self).offline(cityId) ?? city, data)
    }

    /// Removes the cached copy of a city, with its images and its downloads. What the user did with
    /// the city and the server has not heard of yet stays in the outbox. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a city that is neither cached nor being downloaded;
    ///   `LogError` as `EventStore.append`; `FileStoreError` if the copy is gone but its images
    ///   could not be deleted: a later clean-up deletes them.
    public func remove(_ cityId: String) async throws {
        try CitySaved.require(cityId, "city id")
        try await store.write(drawingOnReserve: true) { transaction in
            let isCached = transaction.view(CitiesView.self).offline(cityId) != nil
            guard
                isCached || !transaction.view(DownloadsView.self).jobs(of: cityId).isEmpty
            else {
                throw EventError(
                    .refused, "the city \(cityId) is neither cached nor being downloaded")
            }
            // Also if it was not cached yet: it is not wanted any more.
            try Self.removeWithDownloads(cityId, .user, in: &transaction)
        }
        try await files.collect()
    }

    /// As `cleanUp(for:)`, but of the files it deletes those of the removed copies only: images that
    /// were fetched for an unfinished download, and that no manager holds yet, stay. Records nothing
    /// where nothing is due.
    ///
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(what goes).
    func prune(for userId: String) async throws {
        let storage = CityStorage(
            cities: store.view(CitiesView.self),
            preferences: store.view(PreferencesView.self)[userId])
        guard
            await !storage.outdated(at: store.timestamp).isEmpty
                || !storage.evictions().cityIds.isEmpty
        else { return }
        let removed = try await store.write(drawingOnReserve: true) { transaction in
            let cities = transaction.view(CitiesView.self)
            let report = try Self.removeDue(for: userId, in: &transaction)
            return (report.outdated + report.evicted).flatMap { cityId in
                cities.offline(cityId)?.images.map(\.file) ?? []
            }
        }
        // The removal is on record: what cannot be deleted now goes with a later collection.
        _ = try? await files.collect(only: removed)
    }

    /// Removes what nobody has looked at for as many days as the user's settings say, then what the
    /// storage limit leaves no room for, the least recently accessed first, and the files of both.
    /// Cities that the user asked for stay. Durable on return.
    ///
    /// - Throws: `LogError` as `EventStore.append`; `FileStoreError`.
    /// - Complexity: O(what goes + files).
    @discardableResult
    public func cleanUp(for userId: String) async throws -> CityCleanUp {
        var report = try await store.write(drawingOnReserve: true) { transaction in
            try Self.removeDue(for: userId, in: &transaction)
        }
        report.files = try await files.collect()
        return report
    }

    private static func removeDue(
        for userId: String, in transaction: inout EventStore.Transaction
    ) throws -> CityCleanUp {
        var report = CityCleanUp()
        let storage = CityStorage(
            cities: transaction.view(CitiesView.self),
            preferences: transaction.view(PreferencesView.self)[userId])
        report.outdated = storage.outdated(at: transaction.now)
        let evictions = storage.evictions(gone: report.outdated)
        report.evicted = evictions.cityIds
        report.limit = evictions.error
        for cityId in report.outdated { try removeWithDownloads(cityId, .age, in: &transaction) }
        for cityId in report.evicted { try removeWithDownloads(cityId, .limit, in: &transaction) }
        return report
    }
}
