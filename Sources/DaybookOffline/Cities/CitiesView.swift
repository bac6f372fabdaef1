// Which cities are saved, and by whom: one register for each city and user; and which are cached.
// Spec/model/views.md, VIEW-5; Spec/model/cities.md.

import Daybook
import HashTreeCollections

/// The saved cities, and those that are cached.
public struct CitiesView: DeclaredView, KeyedView {
    public static let name = "cities"
    public static let version = 4
    public static let events: ViewEvents<CitiesView> = [
        .on(CitySaved.self) { $1.setSaved(true, $0.cityId, $0.userId, &$2) },
        .on(CityUnsaved.self) { $1.setSaved(false, $0.cityId, $0.userId, &$2) },
        .on(CityCached.self) { $1.cached.set($0, &$2) },
        .on(CityRemoved.self) { $1.cached.remove($0.cityId, &$2) },
        .on(CityAccessed.self) { $1.cached.setAccess($0, &$2) },
    ]

    private var saved: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Bool>>> = [:]
    private var cached = CachedCities()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&saved, &cached)
    }

    private mutating func setSaved(
        _ isSaved: Bool, _ cityId: String, _ userId: String, _ change: inout ViewChange
    ) {
        change.list(key: EntityID(cityId))
        change.set(
            &saved[EntityID(cityId), default: [:]][EntityID(userId)], to: isSaved)
    }

    /// Whether a user has saved a city. O(1).
    public func isSaved(_ cityId: String, by userId: String) -> Bool {
        saved[EntityID(cityId)]?[EntityID(userId)]?.value ?? false
    }

    /// The users who have saved a city, sorted. O(users of the city).
    public func savers(of cityId: String) -> [String] {
        (saved[EntityID(cityId)] ?? [:]).filter { $0.value.value }.map(\.key).sorted()
            .map(\.string)
    }

    /// The cities that at least one user has saved, sorted. O(cities).
    public var cityIDs: [String] {
        saved.filter { $0.value.contains { $0.value.value } }.map(\.key).sorted().map(\.string)
    }

    /// The LWW timestamp of a user's last save or unsave of a city. O(1).
    func lwwTimestamp(_ cityId: String, by userId: String) -> LWWTimestamp? {
        saved[EntityID(cityId)]?[EntityID(userId)]?.lwwTimestamp
    }

    /// The LWW timestamp of a user's save of a city; nil if the user has not saved it. O(1).
    func saveTimestamp(_ cityId: String, by userId: String) -> LWWTimestamp? {
        guard let register = saved[EntityID(cityId)]?[EntityID(userId)], register.value else {
            return nil
        }
        return register.lwwTimestamp
    }

    /// The greatest LWW timestamp of the saves of a city by all users. O(users of the city).
    func lastSave(of cityId: String) -> LWWTimestamp? {
        saved[EntityID(cityId)]?.lazy.filter { $0.value.value }.map(\.value.lwwTimestamp).max()
    }

    // MARK: Cached cities

    /// The LWW timestamp that the next copy of a city, or its removal, must exceed. O(1).
    func copyTimestamp(_ cityId: String) -> LWWTimestamp? { cached.copyTimestamp(EntityID(cityId)) }

    /// The cached copy of a city. O(1).
    public func offline(_ cityId: String) -> OfflineCity? { cached[EntityID(cityId)] }

    /// The cached cities, the last accessed first. O(1) each.
    public var offlineCities: some Sequence<OfflineCity> { cached.lastAccessedFirst }

    /// The cached cities that the user did not ask for, the least recently accessed first. They are evicted
    /// in this order, after those whose last access is in the future (CITY-8). O(1) each.
    public var evictionCandidates: some Sequence<OfflineCity> { cached.evictionCandidates }

    /// The evictable cities whose last access is after a time, the earliest first. O(their number).
    func evictionCandidates(accessedAfter time: Timestamp) -> [OfflineCity] {
        cached.evictionCandidates(accessedAfter: time)
    }

    /// The LWW timestamp of the last access of a copy. O(1).
    func accessTimestamp(_ cityId: String) -> LWWTimestamp? {
        cached.accessTimestamp(EntityID(cityId))
    }

    /// The number of cached cities. O(1).
    public var offlineCount: Int { cached.count }

    /// Bytes of all cached cities. O(1).
    public var storageUsed: Int { cached.storageUsed }

    /// Bytes of the cached cities that the user asked for. O(1).
    public var explicitStorageUsed: Int { cached.explicitStorageUsed }

    /// The LWW timestamp of the removal of a city's copy; nil if the city is cached or never was. O(1).
    func removalTimestamp(_ cityId: String) -> LWWTimestamp? {
        cached.removalTimestamp(EntityID(cityId))
    }

    public static let keyNames = ["cityId"]
    public static let columns = [
        "cityId", "savedBy", "cityData", "images", "downloadedAt", "lastAccessedAt", "storageSize",
        "isExplicitDownload", "version",
    ]

    public func rows() -> ViewRows {
        let saved = saved.filter { $0.value.contains { $0.value.value } }.map(\.key)
        return ViewRows(ids: Set(saved + cached.ids)) { row($0) }
    }

    public func row(key: [String]) -> ViewRow? {
        let id = EntityID(key[0])
        let isSaved = saved[id]?.contains { $0.value.value } ?? false
        return isSaved || cached[id] != nil ? row(id) : nil
    }

    private func row(_ id: EntityID) -> ViewRow {
        var row = ViewRow()
        row.appendField("cityId", id.string)
        row.appendField(
            "savedBy",
            raw: JSONObjectWriter.array(savers(of: id.string).map(JSONObjectWriter.string)))
        guard let city = cached[id] else { return row }
        row.appendField("cityData", member: "cityData", ofEvent: city.event)
        row.appendField("images", raw: JSONObjectWriter.array(city.images.map(\.row)))
        row.appendField("downloadedAt", city.downloadedAt.description)
        row.appendField("lastAccessedAt", city.lastAccessedAt.description)
        row.appendField("storageSize", city.storageSize)
        row.appendField("isExplicitDownload", city.isExplicitDownload)
        row.appendField("version", city.version)
        return row
    }
}

extension CachedImage {
    /// The image in a row of the view. Its path is relative to the log's folder.
    fileprivate var row: [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("id", id)
        writer.appendMember("url", url)
        writer.appendMember("localUri", "files/\(file)")
        writer.appendMember("size", size)
        writer.appendMember("type", kind.rawValue)
        writer.appendMember("width", width)
        writer.appendMember("height", height)
        return writer.finished()
    }
}

extension CitiesView: FileReferring {
    public func refers(to file: FileID) -> Bool { cached.refers(to: file) }
}
