// A user marks a city to keep, or takes the mark back. Spec/model/events.md.

import Daybook

/// A user saved a city.
public struct CitySaved: EventPayload, Hashable {
    public static let type = "daybook.city.saved"
    /// Who saved it.
    public var userId: String
    /// The city.
    public var cityId: String

    /// Creates the event's data.
    public init(userId: String, cityId: String) {
        self.userId = userId
        self.cityId = cityId
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        cityId = try fields.identifier("cityId")
    }

    public var subject: String? { cityId }
    public var lane: String? { "city:\(userId):\(cityId)" }

    public func json() -> [UInt8] { CityJSON.of(userId, cityId) }
}

/// A user no longer saves a city.
public struct CityUnsaved: EventPayload, Hashable {
    public static let type = "daybook.city.unsaved"
    /// Who had saved it.
    public var userId: String
    /// The city.
    public var cityId: String

    /// Creates the event's data.
    public init(userId: String, cityId: String) {
        self.userId = userId
        self.cityId = cityId
    }

    public init(json: [UInt8]) throws {
        let saved = try CitySaved(json: json)
        self.init(userId: saved.userId, cityId: saved.cityId)
    }

    public var subject: String? { cityId }
    public var lane: String? { "city:\(userId):\(cityId)" }

    public func json() -> [UInt8] { CityJSON.of(userId, cityId) }
}

private enum CityJSON {
    static func of(_ userId: String, _ cityId: String) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("cityId", cityId)
        return writer.finished()
    }
}
