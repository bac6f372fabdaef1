// Which cities are saved, and by whom: one register for each city and user. Spec/views.md.

import EventSourcing
import HashTreeCollections

/// The saved cities.
public struct CitiesView: ListableView {
    public static let name = "cities"
    public static let version = 1

    private var saved: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Bool>>> = [:]
    /// Events whose data no rule can make sense of.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case CitySaved.type: set(true, event)
        case CityUnsaved.type: set(false, event)
        default: break
        }
    }

    private mutating func set(_ isSaved: Bool, _ event: Event) {
        guard let json = event.content.json, let city = try? CitySaved(json: json) else {
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

    public func rows() -> [ViewRow] {
        cityIDs.map { cityId in
            var row = ViewRow()
            row.add("cityId", cityId)
            row.add(
                "savedBy",
                raw: JSONObjectWriter.array(savers(of: cityId).map(JSONObjectWriter.string)))
            return row
        }
    }
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
        try reader.finish()
        self.saved = saved
    }
}

extension CitiesView: CompactableView {
    /// An event is needed while it holds its register.
    public func retention(of event: Event) -> Retention {
        guard event.type == CitySaved.type || event.type == CityUnsaved.type else {
            return .unconcerned
        }
        guard let json = event.content.json, let city = try? CitySaved(json: json) else {
            return .needed(.notUnderstood)
        }
        return .of(event, heldBy: [saved[EntityID(city.cityId)]?[EntityID(city.userId)]?.stamp])
    }
}
