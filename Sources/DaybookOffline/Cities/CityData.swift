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

    /// A server's JSON without the elements of the city's lists that break the rules of their types: one of them must
    /// not keep the city off the device. A text without such elements is returned as it is.
    ///
    /// - Parameter path: the name of the text in the notes.
    /// - Returns: the text, and for each element left out its place and the reason.
    /// - Throws: `EventError` (`invalidData`) for a text that is no JSON object.
    static func readable(
        _ json: [UInt8], path: String = "cityData"
    ) throws(EventError) -> (json: [UInt8], notes: [String]) {
        let fields = try JSONFields(json, path: path)
        var notes: [String] = []
        var lists: [(name: StaticString, elements: [[UInt8]])] = []
        func sift(_ name: StaticString, _ check: (JSONFields) throws(EventError) -> Void) {
            // A member that is no list is reported by the reader.
            guard let text = fields.raw(name), let ranges = JSONScanner.elements(of: text) else {
                return
            }
            let count = notes.count
            let elements = ranges.map { Array(text[$0]) }.enumerated().filter { index, element in
                do throws(EventError) {
                    let place = "\(path).\(name)[\(index)]"
                    try check(
                        JSONFields(Array(#"{"element":"#.utf8) + element + [0x7D], path: place))
                    return true
                } catch {
                    notes.append(error.detail)
                    return false
                }
            }
            if notes.count > count { lists.append((name, elements.map(\.element))) }
        }
        sift("touristAttractions") { (fields) throws(EventError) in
            _ = try TouristAttraction(
                members: try fields.required(try fields.object("element"), "element"))
        }
        sift("categories") { (fields) throws(EventError) in
            _ = try CityCategory(
                members: try fields.required(try fields.object("element"), "element"))
        }
        sift("relatedCities") { (fields) throws(EventError) in _ = try fields.identifier("element")
        }
        guard !lists.isEmpty else { return (json, []) }
        var writer = JSONObjectWriter()
        for list in lists {
            writer.appendMember(literal: list.name, raw: JSONObjectWriter.array(list.elements))
        }
        if let others = fields.others(than: lists.map(\.name)) { writer.appendMembers(of: others) }
        return (writer.finished(), notes)
    }

    /// The city as JSON. The numbers must be finite: JSON has no infinities.
    public var json: [UInt8] {
        do throws(EventError) { return try memberJSON() } catch { preconditionFailure("\(error)") }
    }
}
