// What an app knows about a city: the document that a server sends. Spec/model/cities.md, CITY-2.

import Daybook

/// A city as the server describes it.
public struct CityData: Hashable, Sendable {
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
}

/// Something to see in a city.
public struct TouristAttraction: Hashable, Sendable {
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
}

/// What cities are listed under.
public struct CityCategory: Hashable, Sendable {
    /// The category.
    public var id: String
    /// Its name.
    public var name: String

    /// Creates a category.
    public init(id: String, name: String) {
        self.id = id
        self.name = name
    }
}

extension CityData {
    /// Reads a city's JSON. Members that are not named here are passed over.
    ///
    /// - Throws: `EventError` (`invalidData`), naming the member.
    public init(json: [UInt8]) throws(EventError) {
        try self.init(try JSONFields(json, place: "cityData"))
    }

    init(_ fields: JSONFields) throws(EventError) {
        id = try fields.identifier("id")
        name = try fields.string("name")
        country = try fields.string("country")
        description = try fields.string("description")
        costOfLiving = try fields.finite("costOfLiving")
        internetSpeed = try fields.finite("internetSpeed")
        safetyRating = try fields.finite("safetyRating")
        climate = try fields.string("climate")
        touristAttractions = []
        for attraction in try fields.required(
            try fields.objects("touristAttractions"), "touristAttractions")
        {
            let location = try attraction.required(try attraction.object("location"), "location")
            touristAttractions.append(
                TouristAttraction(
                    id: try attraction.identifier("id"), name: try attraction.string("name"),
                    description: try attraction.string("description"),
                    latitude: try location.finite("lat"), longitude: try location.finite("lng")))
        }
        categories = []
        for category in try fields.required(try fields.objects("categories"), "categories") {
            categories.append(
                CityCategory(
                    id: try category.identifier("id"), name: try category.string("name")))
        }
        relatedCities = try fields.required(
            try fields.identifiers("relatedCities"), "relatedCities")
    }

    /// The city as JSON.
    public var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("id", id)
        writer.add("name", name)
        writer.add("country", country)
        writer.add("description", description)
        writer.add("costOfLiving", costOfLiving)
        writer.add("internetSpeed", internetSpeed)
        writer.add("safetyRating", safetyRating)
        writer.add("climate", climate)
        writer.add(
            "touristAttractions",
            raw: JSONObjectWriter.array(
                touristAttractions.map { attraction in
                    var location = JSONObjectWriter()
                    location.add("lat", attraction.latitude)
                    location.add("lng", attraction.longitude)
                    var writer = JSONObjectWriter()
                    writer.add("id", attraction.id)
                    writer.add("name", attraction.name)
                    writer.add("description", attraction.description)
                    writer.add("location", raw: location.finished())
                    return writer.finished()
                }))
        writer.add(
            "categories",
            raw: JSONObjectWriter.array(
                categories.map { category in
                    var writer = JSONObjectWriter()
                    writer.add("id", category.id)
                    writer.add("name", category.name)
                    return writer.finished()
                }))
        writer.add(
            "relatedCities",
            raw: JSONObjectWriter.array(relatedCities.map(JSONObjectWriter.string)))
        return writer.finished()
    }
}
