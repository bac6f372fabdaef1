// The app's own event and view: how many stars a traveller gives a city.

import DaybookOffline

/// A rating of a city. A later rating of the same city replaces it.
struct CityStarred: DeclaredPayload {
    static let type = "com.example.city.starred"
    var city: String
    var stars: Int
    var subject: String? { city }

    static var example: Self { Self(city: "-", stars: 1) }

    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("city", &city, .identifier)
        try members.required("stars", &stars, .count(1...5))
    }
}

/// The newest rating of each city, on any device.
struct CityStars: RegisterView {
    static let name = "stars"
    static let version = 1
    static let eventTypes: Set<String>? = [CityStarred.type]
    static let keyNames = ["city"]
    var registers = RegisterTable(initial: CityStarred.example)

    static func change(in event: Event) throws -> RegisterChange<CityStarred> {
        let starred = try event.payload(as: CityStarred.self)
        return RegisterChange(of: [starred.city], to: starred)
    }

    /// From 1 to 5; nil without a rating.
    subscript(city: String) -> Int? { registers[city]?.values.stars }
}
