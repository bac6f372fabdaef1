// A user saves a city, or no longer saves it. Spec/model/events.md.

import Daybook

/// A user saved a city.
public struct CitySaved: DeclaredPayload, Hashable {
    public static let type = "daybook.city.saved"
    /// The user who saved it.
    public var userId: String
    /// The city.
    public var cityId: String

    /// Creates the event's data.
    public init(userId: String, cityId: String) {
        self.userId = userId
        self.cityId = cityId
    }

    public static var example: Self {
        Self(userId: "-", cityId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("cityId", &cityId, .identifier)
    }

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

    /// Creates the event's data.
    public init(userId: String, cityId: String) {
        self.userId = userId
        self.cityId = cityId
    }

    public static var example: Self {
        Self(userId: "-", cityId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("cityId", &cityId, .identifier)
    }

    public var subject: String? { cityId }
    public var lane: String? { "city:\(userId):\(cityId)" }
}
