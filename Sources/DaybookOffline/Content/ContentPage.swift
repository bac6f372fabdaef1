// One page of a city's content, as the server sends it and a screen shows it. Spec/model/content.md.

import Daybook

/// The kind of a page.
public enum PageKind: String, Hashable, Sendable, CaseIterable {
    /// A page of the tree of categories.
    case category
    /// An event, with a date.
    case event
    /// A point of interest.
    case poi
}

/// A page: HTML and its metadata.
public struct ContentPage: Hashable, Sendable {
    /// Its path: `/augsburg/en/welcome/`. Unique in a city's language.
    public var path: String
    /// Its kind.
    public var kind: PageKind
    /// Its title.
    public var title: String
    /// Its HTML.
    public var content: String
    /// The time of the server's last change.
    public var lastUpdate: ZonedTime
    /// The URL of a picture; may be empty.
    public var thumbnail: String?
    /// The same page in other languages, sorted by language.
    public var availableLanguages: [Translation]?
    /// The path of its parent in the tree; empty for a top page.
    public var parentPath: String?
    /// The paths of its children.
    public var children: [String]?
    /// Its sort key among its siblings, ascending.
    public var order: Int?
    /// The server's hash of the page.
    public var hash: String?
    /// An excerpt of its text.
    public var excerpt: String?
    /// The date of an event.
    public var date: EventDate?
    /// The location of an event or a point of interest.
    public var location: Location?
    /// Its other members in the server's JSON: one object, as it was written.
    public var properties: [UInt8]?

    /// A page in another language.
    public struct Translation: Hashable, Sendable {
        /// The language.
        public var language: String
        /// Its path there.
        public var path: String

        /// Creates a translation.
        public init(language: String, path: String) {
            self.language = language
            self.path = path
        }
    }

    /// The date of an event.
    public struct EventDate: Hashable, Sendable {
        /// Its start.
        public var start: ZonedTime
        /// Its end.
        public var end: ZonedTime
        /// Whether it lasts the whole day.
        public var isAllDay: Bool
        /// Its other members in the server's JSON: one object, as it was written.
        public var properties: [UInt8]?

        /// Creates a date.
        public init(
            start: ZonedTime, end: ZonedTime, isAllDay: Bool = false, properties: [UInt8]? = nil
        ) {
            self.start = start
            self.end = end
            self.isAllDay = isAllDay
            self.properties = properties
        }
    }

    /// A location.
    public struct Location: Hashable, Sendable {
        /// Street and number.
        public var address: String?
        /// The town.
        public var town: String?
        /// The postcode.
        public var postcode: String?
        /// Degrees of latitude, north positive.
        public var latitude: Double?
        /// Degrees of longitude, east positive.
        public var longitude: Double?
        /// Its other members in the server's JSON: one object, as it was written.
        public var properties: [UInt8]?

        /// Creates a location.
        public init(
            address: String? = nil, town: String? = nil, postcode: String? = nil,
            latitude: Double? = nil, longitude: Double? = nil, properties: [UInt8]? = nil
        ) {
            self.address = address
            self.town = town
            self.postcode = postcode
            self.latitude = latitude
            self.longitude = longitude
            self.properties = properties
        }
    }

    /// Creates a page; optional members are nil.
    public init(
        path: String, kind: PageKind = .category, title: String, content: String,
        lastUpdate: ZonedTime
    ) {
        self.path = path
        self.kind = kind
        self.title = title
        self.content = content
        self.lastUpdate = lastUpdate
    }
}

extension ContentPage {
    private static let memberNames: [StaticString] = [
        "path", "title", "content", ContentSpelling.file.lastUpdate, "thumbnail",
        ContentSpelling.file.availableLanguages, ContentSpelling.file.parentPath, "children",
        "order", "hash", "excerpt", "date", "location",
    ]
    private static let dateNames = [
        ContentSpelling.file.startDate, ContentSpelling.file.endDate, ContentSpelling.file.allDay,
    ]
    fileprivate static let locationNames: [StaticString] = [
        "address", "town", "postcode", "latitude", "longitude",
    ]

    /// The names of members in folders of other years.
    private static let otherNames: KeyValuePairs<StaticString, StaticString> = [
        "lastUpdate": ContentSpelling.file.lastUpdate,
        "availableLanguages": ContentSpelling.file.availableLanguages,
        "parentPath": ContentSpelling.file.parentPath,
    ]
    private static let otherDateNames: KeyValuePairs<StaticString, StaticString> = [
        "start": ContentSpelling.file.startDate, "startDate": ContentSpelling.file.startDate,
        "end": ContentSpelling.file.endDate, "endDate": ContentSpelling.file.endDate,
        "allDay": ContentSpelling.file.allDay,
    ]

    init(_ fields: JSONFields, kind: PageKind, _ spelling: ContentSpelling) throws(EventError) {
        let fields = try fields.renamed(Self.otherNames, spelling)
        path = try fields.identifier("path")
        self.kind = kind
        title = try fields.string("title")
        content = try fields.string("content")
        lastUpdate = try fields.time(spelling.lastUpdate)
        thumbnail = try fields.optionalString("thumbnail")
        availableLanguages = try fields.translations(spelling.availableLanguages)
        parentPath = try fields.optionalString(spelling.parentPath)
        children = try fields.identifiers("children")
        order = try fields.integer("order")
        hash = try fields.optionalString("hash")
        excerpt = try fields.optionalString("excerpt")
        if let date = try fields.object("date")?.renamed(Self.otherDateNames, spelling) {
            let start = try date.time(spelling.startDate)
            // In folders since 2025 an event may have no end.
            let hasNoEnd = spelling.isFolder && !date.has(spelling.endDate)
            self.date = EventDate(
                start: start, end: hasNoEnd ? start : try date.time(spelling.endDate),
                isAllDay: try date.required(try date.bool(spelling.allDay), spelling.allDay),
                properties: date.properties(spelling, beside: Self.dateNames))
        }
        if let location = try fields.object("location") {
            self.location = Location(
                address: try location.optionalString("address"),
                town: try location.optionalString("town"),
                postcode: try location.optionalString("postcode"),
                latitude: try location.coordinate("latitude", spelling),
                longitude: try location.coordinate("longitude", spelling),
                properties: location.properties(spelling, beside: Self.locationNames))
        }
        properties = fields.properties(spelling, beside: Self.memberNames)
    }

    /// Appends the page's members, always in the same order.
    ///
    /// - Throws: `EventError` (`invalidData`) for coordinates that are not finite, and for properties that
    ///   cannot be written.
    func appendMembers(
        to writer: inout JSONObjectWriter, _ spelling: ContentSpelling
    ) throws(EventError) {
        writer.appendMember("path", path)
        writer.appendMember("title", title)
        writer.appendMember("content", content)
        writer.appendMember("\(spelling.lastUpdate)", lastUpdate.text)
        if let thumbnail { writer.appendMember("thumbnail", thumbnail) }
        if let availableLanguages {
            var inner = JSONObjectWriter()
            for page in availableLanguages.sorted(by: {
                EntityID($0.language) < EntityID($1.language)
            }) {
                inner.appendMember(page.language, page.path)
            }
            writer.appendMember("\(spelling.availableLanguages)", raw: inner.finished())
        }
        if let parentPath { writer.appendMember("\(spelling.parentPath)", parentPath) }
        if let children {
            writer.appendMember(
                "children", raw: JSONObjectWriter.array(children.map(JSONObjectWriter.string)))
        }
        if let order { writer.appendMember("order", order) }
        if let hash { writer.appendMember("hash", hash) }
        if let excerpt { writer.appendMember("excerpt", excerpt) }
        if let date {
            var inner = JSONObjectWriter()
            inner.appendMember("\(spelling.startDate)", date.start.text)
            inner.appendMember("\(spelling.endDate)", date.end.text)
            inner.appendMember("\(spelling.allDay)", date.isAllDay)
            try inner.appendProperties(date.properties, spelling, beside: Self.dateNames)
            writer.appendMember("date", raw: inner.finished())
        }
        if let location { writer.appendMember("location", raw: try location.json(spelling)) }
        try writer.appendProperties(properties, spelling, beside: Self.memberNames)
    }
}

extension ContentPage.Location {
    fileprivate func json(_ spelling: ContentSpelling) throws(EventError) -> [UInt8] {
        var writer = JSONObjectWriter()
        if let address { writer.appendMember("address", address) }
        if let town { writer.appendMember("town", town) }
        if let postcode { writer.appendMember("postcode", postcode) }
        for (name, value) in [("latitude", latitude), ("longitude", longitude)] {
            guard let value else { continue }
            guard value.isFinite else {
                throw EventError(.invalidData, "location.\(name) is not a finite number")
            }
            writer.appendMember(name, value)
        }
        try writer.appendProperties(properties, spelling, beside: ContentPage.locationNames)
        return writer.finished()
    }
}

extension JSONFields {
    /// An optional member that must be a whole number.
    fileprivate func integer(_ name: StaticString) throws(EventError) -> Int? {
        guard let number = try number(name) else { return nil }
        guard let value = number.integerValue else {
            throw EventError(.invalidData, "\(path).\(name) is not a whole number")
        }
        return value
    }

    /// An optional member that must be a finite number.
    fileprivate func finite(_ name: StaticString) throws(EventError) -> Double? {
        guard let value = try double(name) else { return nil }
        guard value.isFinite else {
            throw EventError(.invalidData, "\(path).\(name) is not a finite number")
        }
        return value
    }

    /// An optional member that must be a finite number; in a folder also as text, as until 2021. An empty
    /// text counts as missing.
    fileprivate func coordinate(
        _ name: StaticString, _ spelling: ContentSpelling
    ) throws(EventError) -> Double? {
        guard spelling.isFolder, raw(name)?.first == UInt8(ascii: "\"") else {
            return try finite(name)
        }
        let text = try string(name)
        guard !text.isEmpty else { return nil }
        guard let value = Double(text), value.isFinite else {
            throw EventError(.invalidData, "\(path).\(name) is not a finite number")
        }
        return value
    }

    /// An optional member that must be an object of languages and paths.
    fileprivate func translations(
        _ name: StaticString
    ) throws(EventError) -> [ContentPage.Translation]? {
        guard let fields = try object(name) else { return nil }
        let translations = try fields.allIdentifiers().map {
            ContentPage.Translation(language: $0.name, path: $0.value)
        }
        try requireUnique(translations.map(\.language), "\(path).\(name): the language")
        return translations.sorted { EntityID($0.language) < EntityID($1.language) }
    }
}
