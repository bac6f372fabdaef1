// A user saves a city, or no longer saves it. Spec/model/events.md.

import Daybook

/// A user saved a city.
public struct CitySaved: DeclaredPayload, Hashable {
    public static let type = "daybook.city.saved"
    /// The user who saved it.
    public var userId: String
    /// The city.
    public var cityId: String

    public var subject: String? { cityId }
    public var lane: String? { "city:\(userId):\(cityId)" }
}

/// A user no longer saves a city.
public struct CityUnsaved: DeclaredPayload, Hashable {
    public static let type = "daybook.city.unsaved"
    /// The user who had saved it.
    public var userId: String
    /// The city.
    public var cityId: String

    public var subject: String? { cityId }
    public var lane: String? { "city:\(userId):\(cityId)" }
}
