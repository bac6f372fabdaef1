// Which cities are cached: one register for the copy of each city, and the greatest stamp of its
// accesses. Part of CitiesView. Spec/model/cities.md.

import Daybook
import Foundation
import HashTreeCollections

/// The cached copies of cities, with what is asked of them at hand.
struct CachedCities: Sendable {
    /// What is known of one copy. In a box of its own: a small entry makes the dictionary's nodes
    /// small.
    final class Copy: Sendable, Hashable {
        let event: UUID
        let version: Int
        let isExplicitDownload: Bool
        let storageSize: Int
        let images: [CachedImage]

        init(
            event: UUID, version: Int, isExplicitDownload: Bool, storageSize: Int,
            images: [CachedImage]
        ) {
            self.event = event
            self.version = version
            self.isExplicitDownload = isExplicitDownload
            self.storageSize = storageSize
            self.images = images
        }

        /// Two copies from one event are the same.
        static func == (lhs: Copy, rhs: Copy) -> Bool { lhs.event == rhs.event }

        func hash(into hasher: inout Hasher) { hasher.combine(event) }
    }

    private struct Entry: Sendable {
        /// The copy, or nil for one that was removed.
        var copy: Register<Copy?>?
        var accessed: Stamp?

        /// The last access: to have got the copy counts as one.
        var lastAccess: Stamp? {
            guard let copy, copy.value != nil else { return nil }
            return max(copy.stamp, accessed ?? copy.stamp)
        }
    }

    /// Where a copy stands among the others.
    private struct Place: Comparable, Sendable {
        var access: Stamp
        var cityId: EntityID

        static func < (lhs: Place, rhs: Place) -> Bool {
            (lhs.access, lhs.cityId) < (rhs.access, rhs.cityId)
        }
    }

    private var entries: TreeDictionary<EntityID, Entry> = [:]
    /// Follow from the entries.
    private var byAccess = SortedIndex<Place>()
    private var evictable = SortedIndex<Place>()
    private var files: TreeDictionary<FileID, Int> = [:]
    private var totalBytes: Int128 = 0
    private var explicitBytes: Int128 = 0

    // MARK: Folding

    mutating func fold(_ city: CityCached, _ event: Event) {
        let copy = Copy(
            event: event.id, version: city.version, isExplicitDownload: city.isExplicitDownload,
            storageSize: city.storageSize, images: city.images)
        change(EntityID(city.cityId)) { $0.copy.set(copy, event.stamp) }
    }

    mutating func fold(_ city: CityRemoved, _ event: Event) {
        change(EntityID(city.cityId)) { $0.copy.set(nil, event.stamp) }
    }

    mutating func fold(_ city: CityAccessed, _ event: Event) {
        change(EntityID(city.cityId)) { $0.accessed = max($0.accessed ?? event.stamp, event.stamp) }
    }

    private mutating func change(_ id: EntityID, _ body: (inout Entry) -> Void) {
        var entry = entries[id] ?? Entry()
        list(id, entry, by: -1)
        body(&entry)
        list(id, entry, by: 1)
        entries[id] = entry
    }

    /// Takes an entry into what follows from the entries, or out of it.
    private mutating func list(_ id: EntityID, _ entry: Entry, by sign: Int) {
        guard let copy = entry.copy?.value, let access = entry.lastAccess else { return }
        let place = Place(access: access, cityId: id)
        if sign > 0 { byAccess.insert(place) } else { byAccess.remove(place) }
        let bytes = Int128(sign) * Int128(copy.storageSize)
        totalBytes += bytes
        if copy.isExplicitDownload {
            explicitBytes += bytes
        } else if sign > 0 {
            evictable.insert(place)
        } else {
            evictable.remove(place)
        }
        for image in copy.images {
            let count = (files[image.file] ?? 0) + sign
            files[image.file] = count > 0 ? count : nil
        }
    }

    // MARK: Questions

    /// A cached city. O(1).
    subscript(cityId: EntityID) -> OfflineCity? {
        guard let entry = entries[cityId], let copy = entry.copy, let value = copy.value,
            let access = entry.lastAccess
        else { return nil }
        return OfflineCity(
            cityId: cityId.string, images: value.images, downloadedAt: copy.stamp.time,
            lastAccessedAt: access.time, storageSize: value.storageSize,
            isExplicitDownload: value.isExplicitDownload, version: value.version,
            event: value.event)
    }

    /// The ids of all cached cities, in no order. O(cities that ever were cached).
    var ids: [EntityID] { entries.filter { $0.value.lastAccess != nil }.map(\.key) }

    /// The cached cities, the last accessed first. O(1) each.
    var lastAccessedFirst: some Sequence<OfflineCity> {
        byAccess.descending.lazy.compactMap { self[$0.cityId] }
    }

    /// The cached cities that nobody asked for, the last accessed last. O(1) each.
    var evictionCandidates: some Sequence<OfflineCity> {
        evictable.ascending.lazy.compactMap { self[$0.cityId] }
    }

    /// When a copy was removed, if that is what happened to the city last. O(1).
    func removed(_ cityId: EntityID) -> Stamp? {
        guard let copy = entries[cityId]?.copy, copy.value == nil else { return nil }
        return copy.stamp
    }

    /// The stamp of the register of a copy. O(1).
    func copyStamp(_ cityId: EntityID) -> Stamp? { entries[cityId]?.copy?.stamp }

    /// How many cities are cached. O(1).
    var count: Int { byAccess.count }
    /// Bytes of all copies. O(1).
    var storageUsed: Int { Int(clamping: totalBytes) }
    /// Bytes of the copies that the user asked for. O(1).
    var explicitStorageUsed: Int { Int(clamping: explicitBytes) }
    /// Whether a copy names a file. O(1).
    func refers(to file: FileID) -> Bool { files[file] != nil }

    // MARK: Stored state

    func encode(to writer: inout StateWriter) {
        var list = writer.entries(count: entries.count)
        for (cityId, entry) in entries {
            writer.begin(cityId, of: &list)
            writer.add(entry.accessed != nil)
            if let accessed = entry.accessed { writer.add(accessed) }
            writer.add(entry.copy != nil)
            guard let copy = entry.copy else { continue }
            writer.add(copy.stamp)
            writer.add(copy.value != nil)
            guard let value = copy.value else { continue }
            writer.add(value.event)
            writer.add(count: value.version)
            writer.add(value.isExplicitDownload)
            writer.add(count: value.storageSize)
            writer.add(count: value.images.count)
            for image in value.images {
                writer.add(image.id)
                writer.add(image.url)
                writer.add(image.file)
                writer.add(count: image.size)
                writer.add(image.kind.rawValue)
                writer.add(count: image.width)
                writer.add(count: image.height)
            }
        }
        writer.end(list)
    }

    init() {}

    init(from reader: inout StateReader) throws(EventError) {
        var cities: [(EntityID, Entry)] = []
        try reader.entries { (reader, cityId) throws(EventError) in
            var entry = Entry()
            if try reader.bool() { entry.accessed = try reader.stamp() }
            if try reader.bool() {
                let stamp = try reader.stamp()
                entry.copy = Register(try reader.bool() ? try Self.copy(&reader) : nil, stamp)
            }
            guard entry.copy != nil || entry.accessed != nil else {
                throw reader.fault("nothing is known of a city")
            }
            cities.append((cityId, entry))
        }
        for (cityId, entry) in cities {
            entries[cityId] = entry
            list(cityId, entry, by: 1)
        }
    }

    private static func copy(_ reader: inout StateReader) throws(EventError) -> Copy {
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
                throw reader.fault("an image is of no known kind")
            }
            images.append(
                CachedImage(
                    id: id, url: url, file: file, size: size, kind: kind,
                    width: try reader.nonNegative(), height: try reader.nonNegative()))
        }
        return Copy(
            event: event, version: version, isExplicitDownload: isExplicitDownload,
            storageSize: storageSize, images: images)
    }

    // MARK: Compaction

    /// A copy or a removal is needed while it holds the register.
    func retention(of event: Event, copyOf cityId: String) -> Retention {
        .of(event, heldBy: [entries[EntityID(cityId)]?.copy?.stamp])
    }

    /// An access is needed while it is the last.
    func retention(of event: Event, accessTo cityId: String) -> Retention {
        .of(event, heldBy: [entries[EntityID(cityId)]?.accessed])
    }
}
