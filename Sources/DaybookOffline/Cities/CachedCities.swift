// Which cities are cached: one register for the copy of each city, and one for its last
// access. Part of CitiesView. Spec/model/cities.md.

import Daybook
import Foundation
import HashTreeCollections

/// The cached copies of cities, with indexes for the queries.
struct CachedCities: StateValue {
    /// One copy. A class, so that an entry and with it a node of the dictionary stay small.
    final class Copy: StateValue, Hashable {
        let event: UUID
        let version: Int
        let isExplicitDownload: Bool
        let storageSize: Int
        let images: [CachedImage]
        let missingImages: [MissingImage]

        init(
            event: UUID, version: Int, isExplicitDownload: Bool, storageSize: Int,
            images: [CachedImage], missingImages: [MissingImage]
        ) {
            self.event = event
            self.version = version
            self.isExplicitDownload = isExplicitDownload
            self.storageSize = storageSize
            self.images = images
            self.missingImages = missingImages
        }

        func write(to state: inout StateWriter) throws(EventError) {
            state.write(event)
            state.write(count: version)
            state.write(isExplicitDownload)
            state.write(count: storageSize)
            try images.write(to: &state)
            try missingImages.write(to: &state)
        }

        init(from state: inout StateReader) throws(EventError) {
            event = try state.uuid()
            version = try state.nonNegative()
            isExplicitDownload = try state.bool()
            storageSize = try state.nonNegative()
            images = try [CachedImage](from: &state)
            missingImages = try [MissingImage](from: &state)
        }

        /// Two copies from one event are the same.
        static func == (lhs: Copy, rhs: Copy) -> Bool { lhs.event == rhs.event }

        func hash(into hasher: inout Hasher) { hasher.combine(event) }
    }

    private struct Entry: StateObject {
        /// The copy, or nil for one that was removed.
        var copy: Register<Copy?>?
        /// The time of the last access.
        var accessed: Register<Timestamp>?

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&accessed, &copy)
        }

        /// The last access. Caching the copy counts as one.
        var lastAccess: Register<Timestamp>? {
            guard let copy, copy.value != nil else { return nil }
            if let accessed, accessed.lwwTimestamp > copy.lwwTimestamp { return accessed }
            return Register(copy.lwwTimestamp.time, copy.lwwTimestamp)
        }
    }

    /// The sort key of a copy: the time of its last access, then the event that recorded it, then the city's
    /// id.
    private struct AccessKey: Comparable, Sendable {
        var time: Timestamp
        var event: LWWTimestamp
        var cityId: EntityID

        init(_ access: Register<Timestamp>, _ cityId: EntityID) {
            (time, event, self.cityId) = (access.value, access.lwwTimestamp, cityId)
        }

        static func < (lhs: AccessKey, rhs: AccessKey) -> Bool {
            (lhs.time, lhs.event, lhs.cityId) < (rhs.time, rhs.event, rhs.cityId)
        }
    }

    private var entries: TreeDictionary<EntityID, Entry> = [:]
    /// This index and the fields below are derived from the entries.
    private var byAccess = SortedIndex<AccessKey>()
    private var evictable = SortedIndex<AccessKey>()
    private var files: TreeDictionary<FileID, Int> = [:]
    private var totalBytes: Int128 = 0
    private var explicitBytes: Int128 = 0

    // MARK: Folding

    mutating func set(_ city: CityCached, _ change: inout ViewChange) {
        let copy = Copy(
            event: change.event, version: city.version,
            isExplicitDownload: city.isExplicitDownload, storageSize: city.storageSize,
            images: city.images, missingImages: city.missingImages)
        updateEntry(city.cityId, &change) { $1.set(&$0.copy, to: copy) }
    }

    mutating func remove(_ cityId: String, _ change: inout ViewChange) {
        updateEntry(cityId, &change) { $1.set(&$0.copy, to: nil) }
    }

    mutating func setAccess(_ city: CityAccessed, _ change: inout ViewChange) {
        let time = city.accessedAt?.moment ?? change.lwwTimestamp.time
        updateEntry(city.cityId, &change) { $1.set(&$0.accessed, to: time) }
    }

    private mutating func updateEntry(
        _ cityId: String, _ change: inout ViewChange,
        _ body: (inout Entry, inout ViewChange) -> Void
    ) {
        let id = EntityID(cityId)
        change.list(key: id)
        var entry = entries[id] ?? Entry()
        guard change.isFolding else { return body(&entry, &change) }
        updateIndexes(id, entry, by: -1)
        body(&entry, &change)
        updateIndexes(id, entry, by: 1)
        entries[id] = entry
    }

    /// Adds an entry to the indexes and sums (`sign` 1), or removes it from them (−1).
    private mutating func updateIndexes(_ id: EntityID, _ entry: Entry, by sign: Int) {
        guard let copy = entry.copy?.value, let access = entry.lastAccess else { return }
        let key = AccessKey(access, id)
        if sign > 0 { byAccess.insert(key) } else { byAccess.remove(key) }
        let bytes = Int128(sign) * Int128(copy.storageSize)
        totalBytes += bytes
        if copy.isExplicitDownload {
            explicitBytes += bytes
        } else if sign > 0 {
            evictable.insert(key)
        } else {
            evictable.remove(key)
        }
        for image in copy.images {
            let count = (files[image.file] ?? 0) + sign
            files[image.file] = count > 0 ? count : nil
        }
    }

    // MARK: Queries

    /// A cached city. O(1).
    subscript(cityId: EntityID) -> OfflineCity? {
        guard let entry = entries[cityId], let copy = entry.copy, let value = copy.value,
            let access = entry.lastAccess
        else { return nil }
        return OfflineCity(
            cityId: cityId.string, images: value.images, missingImages: value.missingImages,
            downloadedAt: copy.lwwTimestamp.time, lastAccessedAt: access.value,
            storageSize: value.storageSize,
            isExplicitDownload: value.isExplicitDownload, version: value.version,
            event: value.event)
    }

    /// The ids of all cached cities, unordered. O(cities that were ever cached).
    var ids: [EntityID] { entries.filter { $0.value.lastAccess != nil }.map(\.key) }

    /// The cached cities, the last accessed first. O(1) each.
    var lastAccessedFirst: some Sequence<OfflineCity> {
        byAccess.descending.lazy.compactMap { self[$0.cityId] }
    }

    /// The cached cities that the user did not ask for, the least recently accessed first. O(1) each.
    var evictionCandidates: some Sequence<OfflineCity> {
        evictable.ascending.lazy.compactMap { self[$0.cityId] }
    }

    /// The evictable cities whose last access is after a time, the earliest first. O(their number).
    func evictionCandidates(accessedAfter time: Timestamp) -> [OfflineCity] {
        evictable.descending.prefix { $0.time > time }.reversed().compactMap { self[$0.cityId] }
    }

    /// The LWW timestamp of the last access of a copy. O(1).
    func accessTimestamp(_ cityId: EntityID) -> LWWTimestamp? {
        entries[cityId]?.lastAccess?.lwwTimestamp
    }

    /// The LWW timestamp of the removal of a city's copy; nil if the winner is a copy. O(1).
    func removalTimestamp(_ cityId: EntityID) -> LWWTimestamp? {
        guard let copy = entries[cityId]?.copy, copy.value == nil else { return nil }
        return copy.lwwTimestamp
    }

    /// The LWW timestamp of a copy's register. O(1).
    func copyTimestamp(_ cityId: EntityID) -> LWWTimestamp? { entries[cityId]?.copy?.lwwTimestamp }

    /// The number of cached cities. O(1).
    var count: Int { byAccess.count }
    /// Bytes of all copies. O(1).
    var storageUsed: Int { Int(clamping: totalBytes) }
    /// Bytes of the explicit copies, which the user asked for. O(1).
    var explicitStorageUsed: Int { Int(clamping: explicitBytes) }
    /// Whether a copy names a file. O(1).
    func refers(to file: FileID) -> Bool { files[file] != nil }

    // MARK: Stored state

    func write(to state: inout StateWriter) throws(EventError) { try entries.write(to: &state) }

    init() {}

    init(from state: inout StateReader) throws(EventError) {
        entries = try TreeDictionary(from: &state)
        for (cityId, entry) in entries { updateIndexes(cityId, entry, by: 1) }
    }
}

extension CachedImage: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&id, &url, &file, &size)
        try state.visit(&kind, &width, &height)
    }
}

extension CachedImage.Kind: StateValue {}

extension MissingImage: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&id, &url, &reason)
    }
}
