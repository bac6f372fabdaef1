// The events of a city's cached content. They describe this device and are not shipped.
// Spec/model/events.md, EVT-7.

import Daybook

/// The list of cities was fetched. It replaces the previous one.
public struct CitiesListed: EventPayload, Hashable {
    public static let type = "daybook.cities.listed"
    /// The cities, in the server's order.
    public var cities: [ListedCity]

    /// Creates the event's data.
    public init(cities: [ListedCity]) { self.cities = cities }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        cities = try fields.required(try fields.objects("cities"), "cities")
            .map { try ListedCity($0, .event) }
        try requireUnique(cities.map(\.code), "data.cities: the city")
    }

    /// The data as JSON text.
    ///
    /// - Throws: `EventError` for properties that are no object, or contain a member of the city itself.
    public func json() throws -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember(
            "cities", raw: JSONObjectWriter.array(try cities.map { try $0.json(.event) }))
        return writer.finished()
    }
}

/// The languages of a city were fetched. They replace the previous ones.
public struct LanguagesListed: EventPayload, Hashable {
    public static let type = "daybook.languages.listed"
    /// The city.
    public var city: String
    /// Its languages, in the server's order.
    public var languages: [ListedLanguage]

    /// Creates the event's data.
    public init(city: String, languages: [ListedLanguage]) {
        self.city = city
        self.languages = languages
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        city = try fields.identifier("city")
        languages = try fields.required(try fields.objects("languages"), "languages")
            .map { try ListedLanguage($0, .event) }
        try requireUnique(languages.map(\.code), "data.languages: the language")
    }

    public var subject: String? { city }

    /// The data as JSON text.
    ///
    /// - Throws: `EventError` for properties that are no object, or contain a member of the language.
    public func json() throws -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("city", city)
        writer.appendMember(
            "languages", raw: JSONObjectWriter.array(try languages.map { try $0.json(.event) }))
        return writer.finished()
    }
}

/// A page was stored. It replaces the one with the same city, language and path.
public struct PageStored: EventPayload, Hashable {
    public static let type = "daybook.page.stored"
    /// The city.
    public var city: String
    /// The language.
    public var language: String
    /// The page.
    public var page: ContentPage

    /// Creates the event's data.
    public init(city: String, language: String, page: ContentPage) {
        self.city = city
        self.language = language
        self.page = page
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        city = try fields.identifier("city")
        language = try fields.identifier("language")
        let name = try fields.optionalString("kind") ?? PageKind.category.rawValue
        guard let kind = PageKind(rawValue: name) else {
            throw EventError(.invalidData, "data.kind is none of category, event, poi")
        }
        page = try ContentPage(fields, kind: kind, .event)
    }

    public var subject: String? { page.path }

    /// The data as JSON text: equal pages give equal bytes.
    ///
    /// - Throws: `EventError` (`invalidData`) for coordinates that are not finite, and for properties that
    ///   are no object, or contain a member of the page itself.
    public func json() throws -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("city", city)
        writer.appendMember("language", language)
        if page.kind != .category { writer.appendMember("kind", page.kind.rawValue) }
        try page.appendMembers(to: &writer, .event)
        return writer.finished()
    }

    /// The digest of `json()`, which detects a changed page.
    static func digest(of json: [UInt8]) -> UInt64 {
        json.withUnsafeBytes { XXH64.hash($0.bytes) }
    }
}

/// A page was removed.
public struct PageRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.page.removed"
    /// The city.
    public var city: String
    /// The language.
    public var language: String
    /// The page's path.
    public var path: String

    public var subject: String? { path }
}

/// A language of a city equals the server's content at a time. Recorded after the pages and resources of
/// that update.
public struct ContentUpdated: DeclaredPayload, Hashable {
    public static let type = "daybook.content.updated"
    /// The city.
    public var city: String
    /// The language.
    public var language: String
    /// The time of the update.
    public var lastUpdate: ZonedTime

    public var subject: String? { city }
}

/// The user opened a city.
public struct ContentUsed: DeclaredPayload, Hashable {
    public static let type = "daybook.content.used"
    /// The city.
    public var city: String
    /// The time of the use.
    public var lastUsage: ZonedTime

    public var subject: String? { city }
}

/// All content of a city was removed: pages, resources, languages, times.
public struct ContentRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.content.removed"
    /// The city.
    public var city: String

    public var subject: String? { city }
}
