// Which cities are saved, and by whom: one register for each city and user; and which are cached.
// Spec/model/views.md, VIEW-5; Spec/model/cities.md.

import Daybook
import HashTreeCollections

/// The saved cities, and those that are cached.
public struct CitiesView: KeyedView {
    public static let name = "cities"
    public static let version = 3
    public static let eventTypes: Set<String>? = [
        CitySaved.type, CityUnsaved.type, CityCached.type, CityRemoved.type, CityAccessed.type,
    ]

    private var saved: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Bool>>> = [:]
    private var cached = CachedCities()
    /// The number of events whose data is invalid.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case CitySaved.type: setSaved(true, event)
        case CityUnsaved.type: setSaved(false, event)
        case CityCached.type:
            foldCached(CityCached.self, event) { $0.fold($1, event) }
        case CityRemoved.type:
            foldCached(CityRemoved.self, event) { $0.fold($1, event) }
        case CityAccessed.type:
            foldCached(CityAccessed.self, event) { $0.fold($1, event) }
        default: break
        }
    }

    private mutating func foldCached<Payload: EventPayload>(
        _ type: Payload.Type, _ event: Event, _ body: (inout CachedCities, Payload) -> Void
    ) {
        guard let payload = try? event.payload(as: type) else {
            return ignored += 1
        }
        body(&cached, payload)
    }

    private mutating func setSaved(_ isSaved: Bool, _ event: Event) {
        guard let city = try? event.payload(as: CitySaved.self) else {
            ignored += 1
            return
        }
        saved[EntityID(city.cityId), default: [:]][EntityID(city.userId)]
            .set(isSaved, event.lwwTimestamp)
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

    public func rowKeys(changedBy event: Event) -> [[String]]? {
        let id: String? =
            switch event.type {
            case CitySaved.type, CityUnsaved.type: try? event.payload(as: CitySaved.self).cityId
            case CityCached.type: try? event.payload(as: CityCached.self).cityId
            case CityRemoved.type: try? event.payload(as: CityRemoved.self).cityId
            case CityAccessed.type: try? event.payload(as: CityAccessed.self).cityId
            default: nil
            }
        return id.map { [[$0]] } ?? []
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

extension CitiesView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var cities = writer.entries(count: saved.count)
        for (cityId, users) in saved {
            writer.begin(cityId, of: &cities)
            var savers = writer.entries(count: users.count)
            for (userId, isSaved) in users {
                writer.begin(userId, of: &savers)
                writer.write(isSaved.value)
                writer.write(isSaved.lwwTimestamp)
            }
            writer.end(savers)
        }
        writer.end(cities)
        cached.encode(to: &writer)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var saved = self.saved
        try reader.entries { (reader, cityId) throws(EventError) in
            var users: TreeDictionary<EntityID, Register<Bool>> = [:]
            try reader.entries { (reader, userId) throws(EventError) in
                users[userId] = Register(try reader.bool(), try reader.lwwTimestamp())
            }
            guard !users.isEmpty else { throw reader.fault("a city has no users") }
            saved[cityId] = users
        }
        cached = try CachedCities(from: &reader)
        try reader.finish()
        self.saved = saved
    }
}

extension CitiesView: CompactableView {
    /// An event is needed while it is its register's winner.
    public func retention(of event: Event) -> Retention {
        guard event.type.hasPrefix("daybook.city.") else { return .unconcerned }
        switch event.type {
        case CitySaved.type, CityUnsaved.type:
            guard let city = try? event.payload(as: CitySaved.self) else {
                return .needed(.notUnderstood)
            }
            return .of(
                event, heldBy: [saved[EntityID(city.cityId)]?[EntityID(city.userId)]?.lwwTimestamp])
        case CityCached.type:
            guard let city = try? event.payload(as: CityCached.self) else {
                return .needed(.notUnderstood)
            }
            return cached.retention(of: event, copyOf: city.cityId)
        case CityRemoved.type:
            guard let city = try? event.payload(as: CityRemoved.self) else {
                return .needed(.notUnderstood)
            }
            return cached.retention(of: event, copyOf: city.cityId)
        case CityAccessed.type:
            guard let city = try? event.payload(as: CityAccessed.self) else {
                return .needed(.notUnderstood)
            }
            return cached.retention(of: event, accessTo: city.cityId)
        default: return .unconcerned
        }
    }
}
