// The commands of an app on cached cities. Spec/model/cities.md.

import Daybook
import Foundation
import Telemetry

/// An image of a city with its bytes, to be cached.
public struct CityImage: Hashable, Sendable {
    /// The image's id.
    public var id: String
    /// The URL from which it was fetched.
    public var url: String
    /// The kind of picture.
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

extension CityImage {
    /// The image as a copy stores it, or as one that it lacks: one that is no image, or breaks a rule of EVT-7.
    ///
    /// - Parameter index: its place in the list.
    fileprivate func cached(at index: Int) -> Result<CachedImage, UnfetchedImage> {
        let image = CachedImage(
            id: id, url: url, file: FileID(of: content), size: content.count, kind: kind,
            width: width, height: height)
        var reason = WebPage.fault(of: content).map { "its content \($0)" }
        do {
            _ = try EventDraft.checked(
                CityCached(
                    cityId: CityData.example.id, version: 1, isExplicitDownload: false,
                    cityData: CityData.example.json, images: [image]))
        } catch {
            reason = reason ?? ((error as? EventError)?.detail ?? "\(error)")
        }
        guard let reason else { return .success(image) }
        func named(_ text: String) -> String {
            EntityID.isIdentifier(text) ? text : "images[\(index)]"
        }
        return .failure(
            UnfetchedImage(
                image: MissingImage(
                    id: named(id), url: named(url),
                    reason: String(reason.prefix(MissingImage.reasonMax)))))
    }
}

/// The result of a clean-up of cached cities.
public struct CityCleanUp: Hashable, Sendable {
    /// Cities whose last access was longer ago than `pruneAfterDays`.
    public var outdated: [String] = []
    /// Cities that were evicted to keep the storage limit.
    public var evicted: [String] = []
    /// The deleted files: those of these cities, and files left by a kill.
    public var files = FileCollection()
    /// The reason for which the limit is still exceeded; nil if it is kept.
    public var limit: StorageLimitError?

    /// Creates an empty result.
    public init() {}
}

extension CityCommands {
    /// The time in milliseconds within which a further access to a city is not recorded.
    static let accessIntervalMilliseconds: Int64 = 5 * 60_000

    /// Caches a city that the app has downloaded itself. `DownloadManager` does the same for its
    /// downloads. If the user's storage limit is exceeded, other cities are evicted, the least recently
    /// accessed first; cities that the user asked for stay. Durable on return, images included.
    ///
    /// What is wrong with one element keeps no city out. An element of the city's lists that breaks the rules of its
    /// type is left out, with a note in the log output. An image that is empty, a web page or breaks the rules is one
    /// that the copy lacks (`OfflineCity.missingImages`); an image of the present copy with its URL or id stays.
    ///
    /// - Parameters:
    ///   - json: the server's JSON of the city, kept as it is but for the elements left out, including members
    ///     that `CityData` does not name.
    ///   - images: its images.
    ///   - isExplicit: whether the user asked for it. An explicit copy stays explicit.
    ///   - userId: the user whose storage limit applies.
    /// - Throws: `StorageLimitError` if the cities that the user asked for leave too little space;
    ///   `EventError`: `invalidData` for invalid JSON of a city, `unknownReference` for a city that the
    ///   `ReferenceCheck` does not know; `FileStoreError`; `LogError` as `EventStore.append`. Nothing is
    ///   changed then.
    @discardableResult
    public func cache(
        json: [UInt8], images: [CityImage] = [], isExplicit: Bool, for userId: String
    ) async throws -> OfflineCity {
        let (json, notes) = try CityData.readable(json)
        let city = try CityData(json: json)
        for note in notes { Instruments().logger.warning("left out of a cached city: \(note)") }
        var retained: [FileID] = []
        do {
            var cached: [Result<CachedImage, UnfetchedImage>] = []
            for (index, image) in images.enumerated() {
                let result = image.cached(at: index)
                if case .success = result {
                    retained.append(try await files.storeRetained(image.content))
                }
                cached.append(result)
            }
            let images = cached
            try await files.requireRetained(retained)
            try await store.write { [references] transaction in
                try references?.require(.city(city.id), transaction)
                try Self.cache(
                    json: json, images: images, isExplicit: isExplicit, for: userId,
                    in: &transaction)
            }
        } catch {
            await files.release(retained)
            // Deletes the files that were stored in vain; if it fails, the next collection does.
            _ = try? await files.collect()
            throw error
        }
        await files.release(retained)
        // The copy is recorded: a later collection deletes the replaced files if this one cannot.
        _ = try? await files.collect()
        guard let cached = store.view(CitiesView.self).offline(city.id) else {
            throw EventError(.refused, "the city \(city.id) was removed while it was cached")
        }
        return cached
    }

    /// The images of a new copy and those that it lacks. For an image that could not be stored the present copy's image
    /// with its URL or id stays, unless the server says that it does not have it. If that may be an older version, it
    /// is listed as lacking as well, so that it is fetched again.
    private static func images(
        _ results: [Result<CachedImage, UnfetchedImage>], keepingThoseOf old: OfflineCity?
    ) -> (images: [CachedImage], missing: [MissingImage]) {
        var ids = Set(results.compactMap { try? EntityID($0.get().id) })
        var (images, missing): ([CachedImage], [MissingImage]) = ([], [])
        for result in results {
            switch result {
            case .success(let image): images.append(image)
            case .failure(let lacking):
                let stored = lacking.isGone ? [] : old?.images ?? []
                guard let kept = present(lacking.image, among: stored),
                    ids.insert(EntityID(kept.id)).inserted
                else {
                    missing.append(lacking.image)
                    continue
                }
                images.append(kept)
                if !lacking.isSame(as: kept) { missing.append(lacking.image) }
            }
        }
        return (images, missing)
    }

    /// The image of the present copy that stays in the place of one: that with its URL and id, else that with its URL,
    /// which gets its id, else that with its id.
    private static func present(
        _ image: MissingImage, among stored: [CachedImage]
    ) -> CachedImage? {
        let id = EntityID(image.id)
        if let same = stored.first(where: { $0.url == image.url && EntityID($0.id) == id }) {
            return same
        }
        guard var kept = stored.first(where: { $0.url == image.url }) else {
            return stored.first { EntityID($0.id) == id }
        }
        // A place in the list is no id.
        if !image.id.hasSuffix("]") { kept.id = image.id }
        return kept
    }

    /// Caches a city in a transaction of the caller. The caller has stored the images and collects files
    /// afterwards.
    static func cache(
        json: [UInt8], images results: [Result<CachedImage, UnfetchedImage>], isExplicit: Bool,
        for userId: String, in transaction: inout EventStore.Transaction
    ) throws {
        let city = try CityData(json: json)
        let cities = transaction.view(CitiesView.self)
        let old = cities.offline(city.id)
        let (images, missing) = images(results, keepingThoseOf: old)
        let cached = CityCached(
            cityId: city.id, version: old.map { $0.version == .max ? .max : $0.version + 1 } ?? 1,
            isExplicitDownload: isExplicit || (old?.isExplicitDownload ?? false),
            cityData: json, images: images, missingImages: missing)
        let storage = CityStorage(
            cities: cities, preferences: transaction.view(PreferencesView.self)[userId],
            now: transaction.now)
        let evictions = storage.evictions(
            new: (city.id, cached.storageSize, cached.isExplicitDownload))
        if let error = evictions.error { throw error }
        for cityId in evictions.cityIds {
            try removeWithDownloads(cityId, .limit, in: &transaction)
        }
        let last = cities.copyTimestamp(city.id)
        try transaction.append(cached, replacing: last)
        // A copy is completed without the user: that must not keep it from ageing. Nor must a clock that was ahead
        // at the last copy, whose event this one had to exceed.
        let isCompletion = old.map { !$0.missingImages.isEmpty } ?? false
        guard isCompletion || last.map({ $0.time >= transaction.now }) ?? false else { return }
        let accessedAt = isCompletion ? old.map { min($0.lastAccessedAt, transaction.now) } : nil
        try transaction.append(
            CityAccessed(
                cityId: city.id, accessedAt: ZonedTime(accessedAt ?? transaction.now)),
            replacing: transaction.view(CitiesView.self).accessTimestamp(city.id))
    }

    /// Removes a copy. The removal wins even if the copy or the last save of the city was recorded while
    /// the clock was ahead.
    static func remove(
        _ cityId: String, _ reason: CityRemoved.Reason,
        in transaction: inout EventStore.Transaction
    ) throws {
        let cities = transaction.view(CitiesView.self)
        let last = [cities.copyTimestamp(cityId), cities.lastSave(of: cityId)].compactMap(\.self)
            .max()
        try transaction.append(CityRemoved(cityId: cityId, reason: reason), replacing: last)
    }

    /// Removes a copy and the download jobs of its city. If the user did not remove the copy, an
    /// unfinished job that the user asked for stays, because it brings a new copy.
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

    /// Reads a cached city, which counts as an access.
    ///
    /// - Returns: the city with its data, or nil if it is not cached.
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
        if abs(now - city.lastAccessedAt.milliseconds) >= Self.accessIntervalMilliseconds {
            let last = store.view(CitiesView.self).accessTimestamp(cityId)
            // If the clock was ahead at the last access, so is the time of the event that replaces it.
            let wasAhead = last.map { $0.time.milliseconds >= now } ?? false
            try await store.append(
                CityAccessed(
                    cityId: cityId,
                    accessedAt: wasAhead ? ZonedTime(Timestamp(milliseconds: now)) : nil),
                replacing: last, durability: .relaxed)
        }
        return (store.view(CitiesView.self).offline(cityId) ?? city, data)
    }

    /// Removes the cached copy of a city, with its images and its downloads. The user's events that are
    /// not settled stay in the outbox. Durable on return.
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
            // Also without a copy: the removal keeps automatic download from queueing the city again.
            try Self.removeWithDownloads(cityId, .user, in: &transaction)
        }
        try await files.collect()
    }

    /// As `cleanUp(for:)`, but deletes only the files of the removed copies. Images that were fetched for
    /// an unfinished download, and that no manager holds yet, stay. Records nothing if nothing is due.
    ///
    /// - Throws: `LogError` as `EventStore.append`.
    /// - Complexity: O(removed cities).
    func prune(for userId: String) async throws {
        let storage = CityStorage(
            cities: store.view(CitiesView.self),
            preferences: store.view(PreferencesView.self)[userId], now: await store.timestamp)
        guard
            !storage.outdated().isEmpty
                || !storage.evictions().cityIds.isEmpty
        else { return }
        let removed = try await store.write(drawingOnReserve: true) { transaction in
            let cities = transaction.view(CitiesView.self)
            let report = try Self.removeDue(for: userId, in: &transaction)
            return (report.outdated + report.evicted).flatMap { cityId in
                cities.offline(cityId)?.images.map(\.file) ?? []
            }
        }
        // The removal is recorded: a later collection deletes what this one cannot.
        _ = try? await files.collect(only: removed)
    }

    /// Removes the cities whose last access is more than the user's `pruneAfterDays` ago, then evicts
    /// cities until the storage limit is kept, the least recently accessed first, and deletes the files
    /// of both. Cities that the user asked for stay. Durable on return.
    ///
    /// - Throws: `LogError` as `EventStore.append`; `FileStoreError`.
    /// - Complexity: O(removed cities + files).
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
            preferences: transaction.view(PreferencesView.self)[userId], now: transaction.now)
        report.outdated = storage.outdated()
        let evictions = storage.evictions(removed: report.outdated)
        report.evicted = evictions.cityIds
        report.limit = evictions.error
        for cityId in report.outdated { try removeWithDownloads(cityId, .age, in: &transaction) }
        for cityId in report.evicted { try removeWithDownloads(cityId, .limit, in: &transaction) }
        return report
    }
}
