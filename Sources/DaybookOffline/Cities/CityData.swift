// The server's JSON document about a city. Spec/model/cities.md, CITY-2.

import Daybook

/// A city as the server describes it.
public struct CityData: DeclaredObject, Hashable {
    /// The city's id.
    public var id: String
    /// Its name.
    public var name: String  // .text
    /// Its country.
    public var country: String  // .text
    /// A text about it.
    public var description: String  // .text
    /// The cost of living, in the server's unit.
    public var costOfLiving: Double
    /// The speed of the internet connection, in the server's unit.
    public var internetSpeed: Double
    /// The safety rating, in the server's unit.
    public var safetyRating: Double
    /// A description of the climate.
    public var climate: String  // .text
    /// The attractions of the city.
    public var touristAttractions: [TouristAttraction] = []  // required
    /// The categories under which the city is listed.
    public var categories: [CityCategory] = []  // required
    /// The ids of similar cities.
    public var relatedCities: [String] = []  // required
}

/// A tourist attraction of a city.
public struct TouristAttraction: DeclaredObject, Hashable {
    /// The attraction's id.
    public var id: String
    /// Its name.
    public var name: String
    /// A text about it.
    public var description: String
    /// Degrees of latitude, north positive.
    public var latitude: Double
    /// Degrees of longitude, east positive.
    public var longitude: Double

    /// Creates an attraction.
    public init(
        id: String, name: String, description: String, latitude: Double, longitude: Double
    ) {
        self.id = id
        self.name = name
        self.description = description
        self.latitude = latitude
        self.longitude = longitude
    }

    public static var example: Self {
        Self(id: "-", name: "", description: "", latitude: 0, longitude: 0)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("name", &name, .text)
        try members.required("description", &description, .text)
        try members.required("location", &location, .object(Location.self))
    }
}

/// A category under which cities are listed.
public struct CityCategory: DeclaredObject, Hashable {
    /// The category's id.
    public var id: String
    /// Its name.
    public var name: String  // .text
}

extension TouristAttraction {
    /// The coordinates as the server nests them.
    struct Location: DeclaredObject {
        var lat: Double
        var lng: Double
    }

    private var location: Location {
        get { Location(lat: latitude, lng: longitude) }
        set { (latitude, longitude) = (newValue.lat, newValue.lng) }
    }
}

extension CityData {
    /// Reads a city's JSON. Unknown members are ignored.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    public init(json: [UInt8]) throws(EventError) {
        try self.init(members: try JSONFields(json, path: "cityData"))
    }

    /// The city as JSON. The numbers must be finite: JSON has no infinities.
    public var json: [UInt8] {
        do throws(EventError) { return try memberJSON() } catch { preconditionFailure("\(error)") }
    }
}
