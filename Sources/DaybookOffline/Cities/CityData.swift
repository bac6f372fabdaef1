// What an app knows about a city: the document that a server sends. Spec/model/cities.md, CITY-2.

import Daybook

/// A city as the server describes it.
public struct CityData: DeclaredObject, Hashable {
    /// The city.
    public var id: String
    /// Its name.
    public var name: String
    /// The country it is in.
    public var country: String
    /// A text about it.
    public var description: String
    /// What living costs there, in the server's unit.
    public var costOfLiving: Double
    /// How fast the network is, in the server's unit.
    public var internetSpeed: Double
    /// How safe it is, in the server's unit.
    public var safetyRating: Double
    /// Words about the climate.
    public var climate: String
    /// What to see.
    public var touristAttractions: [TouristAttraction]
    /// What the city is listed under.
    public var categories: [CityCategory]
    /// Ids of cities like this one.
    public var relatedCities: [String]

    /// Creates a description.
    public init(
        id: String, name: String, country: String, description: String, costOfLiving: Double,
        internetSpeed: Double, safetyRating: Double, climate: String,
        touristAttractions: [TouristAttraction] = [], categories: [CityCategory] = [],
        relatedCities: [String] = []
    ) {
        self.id = id
        self.name = name
        self.country = country
        self.description = description
        self.costOfLiving = costOfLiving
        self.internetSpeed = internetSpeed
        self.safetyRating = safetyRating
        self.climate = climate
        self.touristAttractions = touristAttractions
        self.categories = categories
        self.relatedCities = relatedCities
    }

    public static var example: Self {
        Self(
            id: "-", name: "", country: "", description: "", costOfLiving: 0, internetSpeed: 0,
            safetyRating: 0, climate: "")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("name", &name, .text)
        try members.required("country", &country, .text)
        try members.required("description", &description, .text)
        try members.required("costOfLiving", &costOfLiving, .number)
        try members.required("internetSpeed", &internetSpeed, .number)
        try members.required("safetyRating", &safetyRating, .number)
        try members.required("climate", &climate, .text)
        try members.required(
            "touristAttractions", &touristAttractions, .objects(TouristAttraction.self))
        try members.required("categories", &categories, .objects(CityCategory.self))
        try members.required("relatedCities", &relatedCities, .identifiers)
    }
}

/// Something to see in a city.
public struct TouristAttraction: DeclaredObject, Hashable {
    /// The attraction.
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

/// What cities are listed under.
public struct CityCategory: DeclaredObject, Hashable {
    /// The category.
    public var id: String
    /// Its name.
    public var name: String

    /// Creates a category.
    public init(id: String, name: String) {
        self.id = id
        self.name = name
    }

    public static var example: Self {
        Self(id: "-", name: "")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("name", &name, .text)
    }
}

extension TouristAttraction {
    /// The coordinates as the server nests them.
    private struct Location: DeclaredObject {
        var lat: Double
        var lng: Double

        static var example: Self { Self(lat: 0, lng: 0) }

        mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
            try members.required("lat", &lat, .number)
            try members.required("lng", &lng, .number)
        }
    }

    private var location: Location {
        get { Location(lat: latitude, lng: longitude) }
        set { (latitude, longitude) = (newValue.lat, newValue.lng) }
    }
}

extension CityData {
    /// Reads a city's JSON. Members that are not named here are passed over.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    public init(json: [UInt8]) throws(EventError) {
        try self.init(members: try JSONFields(json, place: "cityData"))
    }

    /// The city as JSON. The numbers must be finite: JSON has no infinities.
    public var json: [UInt8] {
        do throws(EventError) { return try memberJSON() } catch { preconditionFailure("\(error)") }
    }
}
