// Which cities are saved, and by whom: one register for each city and user; and which are cached.
// Spec/model/views.md, VIEW-5; Spec/model/cities.md.

import Daybook
import HashTreeCollections

/// The saved cities, and those that are cached.
public struct CitiesView: ListableView {
    public static let name = "cities"
    public static let version = 2
    public static let eventTypes: Set<String>? = [
        CitySaved.type, CityUnsaved.type, CityCached.type, CityRemoved.type, CityAccessed.type,
    ]

    private var saved: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Bool>>> = [:]
    private var cached = CachedCities()
    /// Events whose data no rule can make sense of.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case CitySaved.type: set(true, event)
        case CityUnsaved.type: set(false, event)
        case CityCached.type:
            take(CityCached.self, event) { $0.fold($1, event) }
        case CityRemoved.type:
            take(CityRemoved.self, event) { $0.fold($1, event) }
        case CityAccessed.type:
            take(CityAccessed.self, event) { $0.fold($1, event) }
        default: break
        }
    }

    private mutating func take<Payload: EventPayload>(
        _ type: Payload.Type, _ event: Event, _ body: (inout CachedCities, Payload) -> Void
    ) {
        guard let payload = try? event.payload(as: type) else {
            return ignored += 1
        }
        body(&cached, payload)
    }

    private mutating func set(_ isSaved: Bool, _ event: Event) {
        guard let city = try? event.payload(as: CitySaved.self) else {
            ignored += 1
            return
        }
        saved[EntityID(city.cityId), default: [:]][EntityID(city.userId)]
            .set(isSaved, event.stamp)
    }

    /// Whether a user has saved a city. O(1).
    public func isSaved(_ cityId: String, by userId: String) -> Bool {
        saved[EntityID(cityId)]?[EntityID(userId)]?.value ?? false
    }

    /// Who has saved a city, sorted. O(users of the city).
    public func savers(of cityId: String) -> [String] {
        (saved[EntityID(cityId)] ?? [:]).filter { $0.value.value }.map(\.key).sorted()
            .map(\.string)
    }

    /// The cities that somebody has saved, sorted. O(cities).
    public var cityIDs: [String] {
        saved.filter { $0.value.contains { $0.value.value } }.map(\.key).sorted().map(\.string)
    }

    /// The LWW timestamp of what a user did last: saved a city, or unsaved it. O(1).
    func stamp(_ cityId: String, by userId: String) -> Stamp? {
        saved[EntityID(cityId)]?[EntityID(userId)]?.stamp
    }

    /// When a user saved a city, if that is what the user did last. O(1).
    func saved(_ cityId: String, by userId: String) -> Stamp? {
        guard let register = saved[EntityID(cityId)]?[EntityID(userId)], register.value else {
            return nil
        }
        return register.stamp
    }

    /// The greatest stamp with which anybody saved a city. O(users of the city).
    func lastSave(of cityId: String) -> Stamp? {
        saved[EntityID(cityId)]?.lazy.filter { $0.value.value }.map(\.value.stamp).max()
    }

    // MARK: Cached cities

    /// What the next copy of a city, or its removal, has to count more than. O(1).
    func copyStamp(_ cityId: String) -> Stamp? { cached.copyStamp(EntityID(cityId)) }

    /// The cached copy of a city. O(1).
    public func offline(_ cityId: String) -> OfflineCity? { cached[EntityID(cityId)] }

    /// The cached cities, the last accessed first. O(1) each.
    public var offlineCities: some Sequence<OfflineCity> { cached.lastAccessedFirst }

    /// The cached cities that the user did not ask for, those first that nobody has looked at for
    /// longest: the order in which they go when room is needed. O(1) each.
    public var evictionCandidates: some Sequence<OfflineCity> { cached.evictionCandidates }

    /// How many cities are cached. O(1).
    public var offlineCount: Int { cached.count }

    /// Bytes of all cached cities. O(1).
    public var storageUsed: Int { cached.storageUsed }

    /// Bytes of the cached cities that the user asked for. O(1).
    public var explicitStorageUsed: Int { cached.explicitStorageUsed }

    /// When the copy of a city was removed, if that is what happened to it last. O(1).
    func removed(_ cityId: String) -> Stamp? { cached.removed(EntityID(cityId)) }

    public func rows() -> [ViewRow] {
        let saved = saved.filter { $0.value.contains { $0.value.value } }.map(\.key)
        return Set(saved + cached.ids).sorted().map { id in
            var row = ViewRow()
            row.add("cityId", id.string)
            row.add(
                "savedBy",
                raw: JSONObjectWriter.array(savers(of: id.string).map(JSONObjectWriter.string)))
            guard let city = cached[id] else { return row }
            row.add("cityData", member: "cityData", ofEvent: city.event)
            row.add("images", raw: JSONObjectWriter.array(city.images.map(\.row)))
            row.add("downloadedAt", city.downloadedAt.description)
            row.add("lastAccessedAt", city.lastAccessedAt.description)
            row.add("storageSize", city.storageSize)
            row.add("isExplicitDownload", city.isExplicitDownload)
            row.add("version", city.version)
            return row
        }
    }
}

extension CachedImage {
    /// As a row of a view shows it: the path is the one below the log's folder.
    fileprivate var row: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("id", id)
        writer.add("url", url)
        writer.add("localUri", "files/\(file)")
        writer.add("size", size)
        writer.add("type", kind.rawValue)
        writer.add("width", width)
        writer.add("height", height)
        return writer.finished()
    }
}

extension CitiesView: FileReferring {
    public func refers(to file: FileID) -> Bool { cached.refers(to: file) }
}

extension CitiesView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        var cities = writer.entries(count: saved.count)
        for (cityId, users) in saved {
            writer.begin(cityId, of: &cities)
            var savers = writer.entries(count: users.count)
            for (userId, isSaved) in users {
                writer.begin(userId, of: &savers)
                writer.add(isSaved.value)
                writer.add(isSaved.stamp)
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
                users[userId] = Register(try reader.bool(), try reader.stamp())
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
    /// An event is needed while it holds its register.
    public func retention(of event: Event) -> Retention {
        guard event.type.hasPrefix("daybook.city.") else { return .unconcerned }
        switch event.type {
        case CitySaved.type, CityUnsaved.type:
            guard let city = try? event.payload(as: CitySaved.self) else {
                return .needed(.notUnderstood)
            }
            return .of(
                event, heldBy: [saved[EntityID(city.cityId)]?[EntityID(city.userId)]?.stamp])
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
