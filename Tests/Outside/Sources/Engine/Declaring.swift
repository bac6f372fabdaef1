// The code of the article "Declaring events": data that declare their members, and a view of registers.

import Daybook

// Declaring-1 begins
public struct CityRated: DeclaredPayload {
    public static let type = "com.example.city.rated"
    public var userId: String
    public var cityId: String
    public var stars: Int
    public var comment: String?

    public init(userId: String, cityId: String, stars: Int, comment: String? = nil) {
        self.userId = userId
        self.cityId = cityId
        self.stars = stars
        self.comment = comment
    }

    public static var example: Self { Self(userId: "-", cityId: "-", stars: 1) }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("cityId", &cityId, .identifier)
        try members.required("stars", &stars, .count(1...5))
        try members.optional("comment", &comment, .nonEmptyText)
    }

    public var subject: String? { cityId }
    public var lane: String? { "rating:\(userId):\(cityId)" }
}
// Declaring-1 ends

// Declaring-2 begins
public struct CityRatings: RegisterView {
    public static let name = "ratings"
    public static let version = 1
    public static let eventTypes: Set<String>? = [CityRated.type]
    public static let keyNames = ["userId", "cityId"]
    public var registers = RegisterTable(initial: CityRated.example)

    public init() {}

    public static func change(in event: Event) throws -> RegisterChange<CityRated> {
        let rated = try event.payload(as: CityRated.self)
        return RegisterChange(of: [rated.userId, rated.cityId], to: rated)
    }

    /// A user's stars for a city, from 1 to 5; nil without a rating.
    public func stars(_ cityId: String, by userId: String) -> Int? {
        registers[userId, cityId]?.values.stars
    }
}
// Declaring-2 ends

package enum Declaring {
    package static let rules: [EventRule] = [.of(CityRated.self, action: "RATE_CITY")]

    package static func rate(in store: EventStore) async throws -> Int? {
        // Declaring-3 begins
        try await store.append(CityRated(userId: "ana", cityId: "lisbon", stars: 4))
        try await store.append(
            CityRated(userId: "ana", cityId: "lisbon", stars: 5, comment: "Trams!"))
        let stars = store.view(CityRatings.self).stars("lisbon", by: "ana")  // 5
        // Declaring-3 ends
        return stars
    }

    package static func sql() -> String {
        // Declaring-4 begins
        let catalogue = EventCatalogue([.of(CityRated.self, action: "RATE_CITY")])
        let sql = catalogue.supabaseSQL
        // Declaring-4 ends
        return sql
    }
}
