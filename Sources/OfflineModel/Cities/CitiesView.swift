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
