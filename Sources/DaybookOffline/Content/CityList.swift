// The lists from which users choose: the cities, and the languages of a city. Spec/model/content.md.

import Daybook

/// A city of the list from which users choose.
public struct ListedCity: Hashable, Sendable {
    /// Its display name.
    public var name: String
    /// Its code in paths and in events.
    public var code: String
    /// The prefix of its name: `Stadt`; nil if unknown.
    public var prefix: String?
    /// Whether it is shown to users.
    public var isLive: Bool
    /// Whether it has offers in addition to its pages.
    public var extrasEnabled: Bool
    /// Whether it has events.
    public var eventsEnabled: Bool
    /// The name by which it is sorted.
    public var sortingName: String
    /// Its other members in the server's JSON: one object, as it was written.
    public var properties: [UInt8]?

    /// Creates a city.
    public init(
        name: String, code: String, prefix: String? = nil, isLive: Bool = true,
        extrasEnabled: Bool = false, eventsEnabled: Bool = false, sortingName: String,
        properties: [UInt8]? = nil
    ) {
        self.name = name
        self.code = code
        self.prefix = prefix
        self.isLive = isLive
        self.extrasEnabled = extrasEnabled
        self.eventsEnabled = eventsEnabled
        self.sortingName = sortingName
        self.properties = properties
    }

    private static let memberNames: [StaticString] = [
        "name", "live", "code", "prefix", ContentSpelling.file.extrasEnabled,
        ContentSpelling.file.eventsEnabled, ContentSpelling.file.sortingName,
    ]

    /// The names of members in folders of other years.
    private static let otherNames: KeyValuePairs<StaticString, StaticString> = [
        "extrasEnabled": ContentSpelling.file.extrasEnabled,
        "eventsEnabled": ContentSpelling.file.eventsEnabled,
        "sortingName": ContentSpelling.file.sortingName,
    ]

    init(_ fields: JSONFields, _ spelling: ContentSpelling) throws(EventError) {
        let fields = try fields.renamed(Self.otherNames, spelling)
        name = try fields.identifier("name")
        code = try fields.identifier("code")
        prefix = try fields.optionalString("prefix")
        isLive = try fields.required(try fields.bool("live"), "live")
        let extras = try fields.bool(spelling.extrasEnabled)
        // Folders since 2024 do not have it.
        extrasEnabled =
            spelling.isFolder
            ? extras ?? false : try fields.required(extras, spelling.extrasEnabled)
        eventsEnabled = try fields.required(
            try fields.bool(spelling.eventsEnabled), spelling.eventsEnabled)
        sortingName = try fields.identifier(spelling.sortingName)
        properties = fields.properties(spelling, beside: Self.memberNames)
    }

    /// - Throws: `EventError` for properties that cannot be written.
    func json(_ spelling: ContentSpelling) throws(EventError) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("name", name)
        writer.appendMember("live", isLive)
        writer.appendMember("code", code)
        if let prefix { writer.appendMember("prefix", prefix) }
        writer.appendMember("\(spelling.extrasEnabled)", extrasEnabled)
        writer.appendMember("\(spelling.eventsEnabled)", eventsEnabled)
        writer.appendMember("\(spelling.sortingName)", sortingName)
        try writer.appendProperties(properties, spelling, beside: Self.memberNames)
        return writer.finished()
    }
}

/// A language in which a city has content.
public struct ListedLanguage: Hashable, Sendable {
    /// Its code in paths and in events: `de`.
    public var code: String
    /// Its display name; nil if unknown.
    public var name: String?
    /// Its other members in the server's JSON: one object, as it was written.
    public var properties: [UInt8]?

    /// Creates a language.
    public init(code: String, name: String? = nil, properties: [UInt8]? = nil) {
        self.code = code
        self.name = name
        self.properties = properties
    }

    private static let memberNames: [StaticString] = ["code", "name"]

    init(_ fields: JSONFields, _ spelling: ContentSpelling) throws(EventError) {
        // Folders until 2023 have these names.
        let fields = try fields.renamed(["_code": "code", "_name": "name"], spelling)
        code = try fields.identifier("code")
        name = try fields.optionalString("name")
        properties = fields.properties(spelling, beside: Self.memberNames)
    }

    /// The language in a row of the view, without properties.
    var row: [UInt8] { writer.finished() }

    private var writer: JSONObjectWriter {
        var writer = JSONObjectWriter()
        writer.appendMember("code", code)
        if let name { writer.appendMember("name", name) }
        return writer
    }

    /// - Throws: `EventError` for properties that cannot be written.
    func json(_ spelling: ContentSpelling) throws(EventError) -> [UInt8] {
        var writer = writer
        try writer.appendProperties(properties, spelling, beside: Self.memberNames)
        return writer.finished()
    }
}

/// The names of members that events and the folder layout spell differently.
struct ContentSpelling: Sendable {
    let extrasEnabled: StaticString
    let eventsEnabled: StaticString
    let sortingName: StaticString
    let lastUpdate: StaticString
    let availableLanguages: StaticString
    let parentPath: StaticString
    let startDate: StaticString
    let endDate: StaticString
    let allDay: StaticString
    /// Whether the members that the type does not name are in the member `properties`.
    let nestsProperties: Bool

    /// True for the folder layout.
    var isFolder: Bool { !nestsProperties }

    /// The names in events.
    static let event = ContentSpelling(
        extrasEnabled: "extrasEnabled", eventsEnabled: "eventsEnabled", sortingName: "sortingName",
        lastUpdate: "lastUpdate", availableLanguages: "availableLanguages",
        parentPath: "parentPath", startDate: "startDate", endDate: "endDate", allDay: "allDay",
        nestsProperties: true)
    /// The names in the files of the folder layout.
    static let file = ContentSpelling(
        extrasEnabled: "extras_enabled", eventsEnabled: "events_enabled",
        sortingName: "sorting_name", lastUpdate: "last_update",
        availableLanguages: "available_languages", parentPath: "parent_path",
        startDate: "start_date", endDate: "end_date", allDay: "all_day",
        nestsProperties: false)
}

/// Refuses a list with a duplicate key.
func requireUnique(
    _ keys: some Sequence<String>, _ what: String
) throws(EventError) {
    var unique: Set<EntityID> = []
    for key in keys where !unique.insert(EntityID(key)).inserted {
        throw EventError(.invalidData, "\(what) \(key) occurs twice")
    }
}
