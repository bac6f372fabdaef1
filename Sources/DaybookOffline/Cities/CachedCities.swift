// Which cities are cached: one register for the copy of each city, and one for its last
// access. Part of CitiesView. Spec/model/cities.md.

import Daybook
import Foundation
import HashTreeCollections

/// The cached copies of cities, with indexes for the queries.
struct CachedCities: Sendable {
    /// One copy. A class, so that an entry and with it a node of the dictionary stay small.
    final class Copy: Sendable, Hashable {
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

        /// Two copies from one event are the same.
        static func == (lhs: Copy, rhs: Copy) -> Bool { lhs.event == rhs.event }

        func hash(into hasher: inout Hasher) { hasher.combine(event) }
    }

    private struct Entry: Sendable {
        /// The copy, or nil for one that was removed.
        var copy: Register<Copy?>?
        /// The time of the last access.
        var accessed: Register<Timestamp>?

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

    mutating func fold(_ city: CityCached, _ event: Event) {
        let copy = Copy(
            event: event.id, version: city.version, isExplicitDownload: city.isExplicitDownload,
            storageSize: city.storageSize, images: city.images,
            missingImages: city.missingImages)
        updateEntry(EntityID(city.cityId)) { $0.copy.set(copy, event.lwwTimestamp) }
    }

    mutating func fold(_ city: CityRemoved, _ event: Event) {
        updateEntry(EntityID(city.cityId)) { $0.copy.set(nil, event.lwwTimestamp) }
    }

    mutating func fold(_ city: CityAccessed, _ event: Event) {
        updateEntry(EntityID(city.cityId)) {
            let lwwTimestamp = event.lwwTimestamp
            $0.accessed.set(city.accessedAt?.moment ?? lwwTimestamp.time, lwwTimestamp)
        }
    }

    private mutating func updateEntry(_ id: EntityID, _ body: (inout Entry) -> Void) {
        var entry = entries[id] ?? Entry()
        updateIndexes(id, entry, by: -1)
        body(&entry)
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

    func encode(to writer: inout StateWriter) {
        var list = writer.entries(count: entries.count)
        for (cityId, entry) in entries {
            writer.begin(cityId, of: &list)
            writer.write(entry.accessed != nil)
            if let accessed = entry.accessed {
                writer.write(accessed.lwwTimestamp)
                writer.write(accessed.value)
            }
            writer.write(entry.copy != nil)
            guard let copy = entry.copy else { continue }
            writer.write(copy.lwwTimestamp)
            writer.write(copy.value != nil)
            guard let value = copy.value else { continue }
            writer.write(value.event)
            writer.write(count: value.version)
            writer.write(value.isExplicitDownload)
            writer.write(count: value.storageSize)
            writer.write(count: value.images.count)
            for image in value.images {
                writer.write(image.id)
                writer.write(image.url)
                writer.write(image.file)
                writer.write(count: image.size)
                writer.write(image.kind.rawValue)
                writer.write(count: image.width)
                writer.write(count: image.height)
            }
            writer.write(count: value.missingImages.count)
            for image in value.missingImages {
                writer.write(image.id)
                writer.write(image.url)
                writer.write(image.reason)
            }
        }
        writer.end(list)
    }

    init() {}

    init(from reader: inout StateReader) throws(EventError) {
        var cities: [(EntityID, Entry)] = []
        try reader.entries { (reader, cityId) throws(EventError) in
            var entry = Entry()
            if try reader.bool() {
                let lwwTimestamp = try reader.lwwTimestamp()
                entry.accessed = Register(try reader.time(), lwwTimestamp)
            }
            if try reader.bool() {
                let lwwTimestamp = try reader.lwwTimestamp()
                entry.copy = Register(
                    try reader.bool() ? try Self.decodeCopy(&reader) : nil, lwwTimestamp)
            }
            guard entry.copy != nil || entry.accessed != nil else {
                throw reader.fault("a city has neither a copy nor an access")
            }
            cities.append((cityId, entry))
        }
        for (cityId, entry) in cities {
            entries[cityId] = entry
            updateIndexes(cityId, entry, by: 1)
        }
    }

    private static func decodeCopy(_ reader: inout StateReader) throws(EventError) -> Copy {
        let event = try reader.uuid()
        let version = try reader.nonNegative()
        let isExplicitDownload = try reader.bool()
        let storageSize = try reader.nonNegative()
        var images: [CachedImage] = []
        for _ in 0..<(try reader.count()) {
            let id = try reader.string()
            let url = try reader.string()
            let file = try reader.file()
            let size = try reader.nonNegative()
            guard let kind = CachedImage.Kind(rawValue: try reader.string()) else {
                throw reader.fault("an image has an unknown kind")
            }
            images.append(
                CachedImage(
                    id: id, url: url, file: file, size: size, kind: kind,
                    width: try reader.nonNegative(), height: try reader.nonNegative()))
        }
        var missing: [MissingImage] = []
        for _ in 0..<(try reader.count()) {
            missing.append(
                MissingImage(
                    id: try reader.string(), url: try reader.string(),
                    reason: try reader.string()))
        }
        return Copy(
            event: event, version: version, isExplicitDownload: isExplicitDownload,
            storageSize: storageSize, images: images, missingImages: missing)
    }

    // MARK: Compaction

    /// A copy or a removal is needed while it is the register's winner.
    func retention(of event: Event, copyOf cityId: String) -> Retention {
        .of(event, heldBy: [entries[EntityID(cityId)]?.copy?.lwwTimestamp])
    }

    /// An access is needed while it is the last one.
    func retention(of event: Event, accessTo cityId: String) -> Retention {
        .of(event, heldBy: [entries[EntityID(cityId)]?.accessed?.lwwTimestamp])
    }
}
