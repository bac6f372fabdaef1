// The cached content except the pages: the list of cities, and for each city its languages, the times of
// updates and uses, and its files. All values are LWW registers; the removal of a city is an LWW
// timestamp. Spec/model/content.md, CONT-4; Spec/model/views.md.

import Daybook
import HashTreeCollections

/// A file that a page shows.
public struct CachedResource: Hashable, Sendable {
    /// The page's path.
    public let path: String
    /// The URL from which the file was fetched.
    public let url: String
    /// The file, in `OfflineStore.files`.
    public let file: FileID
    /// Its size in bytes.
    public let size: Int
    /// The time of the server's last change.
    public let lastUpdate: ZonedTime
    /// The server's hash of the file.
    public let hash: String?
    /// Its other members in the server's JSON: one object, as it was written.
    public let properties: [UInt8]?
}

/// The list of cities, and each city's languages, times and files.
public struct ContentView: ListableView, FileReferring {
    public static let name = "content"
    public static let version = 2
    public static let eventTypes: Set<String>? = [
        CitiesListed.type, LanguagesListed.type, ContentUpdated.type, ContentUsed.type,
        ResourceStored.type, ResourceRemoved.type, ContentRemoved.type,
    ]

    struct Resource: Hashable, Sendable {
        var file: FileID
        var size: Int
        var lastUpdate: ZonedTime
        var hash: String?
        var properties: [UInt8]?
    }

    typealias ByURL = TreeDictionary<EntityID, Register<Resource?>>
    typealias ByPath = TreeDictionary<EntityID, ByURL>

    struct City: Sendable {
        /// The last removal: all events up to it are void.
        var removed: LWWTimestamp?
        var languages: Register<[ListedLanguage]>?
        var usage: Register<ZonedTime>?
        var updates: TreeDictionary<EntityID, Register<ZonedTime>> = [:]
        /// The files by language. No inner dictionary is empty.
        var resources: TreeDictionary<EntityID, ByPath> = [:]

        var isEmpty: Bool {
            removed == nil && languages == nil && usage == nil && updates.isEmpty
                && resources.isEmpty
        }

        /// Whether any of its content is on the device.
        var isCached: Bool {
            languages != nil || usage != nil || !updates.isEmpty || hasFiles
        }

        var hasFiles: Bool {
            resources.values.contains { paths in
                paths.values.contains { $0.values.contains { $0.value != nil } }
            }
        }
    }

    var list: Register<[ListedCity]>?
    var cities: TreeDictionary<EntityID, City> = [:]
    /// The number of resources that name each file.
    var files: TreeDictionary<FileID, Int> = [:]
    /// The number of events whose data is invalid.
    public internal(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        let lwwTimestamp = event.lwwTimestamp
        do {
            switch event.type {
            case CitiesListed.type:
                list.set(try event.payload(as: CitiesListed.self).cities, lwwTimestamp)
            case LanguagesListed.type:
                let listed = try event.payload(as: LanguagesListed.self)
                updateCity(listed.city, lwwTimestamp) {
                    $0.languages.set(listed.languages, lwwTimestamp)
                }
            case ContentUpdated.type:
                let updated = try event.payload(as: ContentUpdated.self)
                updateCity(updated.city, lwwTimestamp) {
                    $0.updates[EntityID(updated.language)].set(updated.lastUpdate, lwwTimestamp)
                }
            case ContentUsed.type:
                let used = try event.payload(as: ContentUsed.self)
                updateCity(used.city, lwwTimestamp) { $0.usage.set(used.lastUsage, lwwTimestamp) }
            case ResourceStored.type:
                let stored = try event.payload(as: ResourceStored.self)
                let resource = Resource(
                    file: stored.file, size: stored.size, lastUpdate: stored.lastUpdate,
                    hash: stored.hash, properties: stored.properties)
                setResource(
                    resource, lwwTimestamp, stored.city, stored.language, stored.path, stored.url)
            case ResourceRemoved.type:
                let removed = try event.payload(as: ResourceRemoved.self)
                setResource(
                    nil, lwwTimestamp, removed.city, removed.language, removed.path, removed.url)
            case ContentRemoved.type:
                removeCity(EntityID(try event.payload(as: ContentRemoved.self).city), lwwTimestamp)
            default: break
            }
        } catch { ignored += 1 }
    }

    /// Changes a city unless it was removed later.
    private mutating func updateCity(
        _ city: String, _ lwwTimestamp: LWWTimestamp, _ body: (inout City) -> Void
    ) {
        let city = EntityID(city)
        guard cities[city]?.removed.map({ $0 < lwwTimestamp }) ?? true else { return }
        body(&cities[city, default: City()])
    }

    private mutating func setResource(
        _ resource: Resource?, _ lwwTimestamp: LWWTimestamp, _ city: String, _ language: String,
        _ path: String, _ url: String
    ) {
        var files = self.files
        updateCity(city, lwwTimestamp) { city in
            let old = city.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]
            guard old.map({ $0.lwwTimestamp < lwwTimestamp }) ?? true else { return }
            city.resources[EntityID(language), default: [:]][EntityID(path), default: [:]][
                EntityID(url)] = Register(resource, lwwTimestamp)
            if let resource { files[resource.file, default: 0] += 1 }
            if let old = old?.value { Self.releaseFile(old.file, &files) }
        }
        self.files = files
    }

    private static func releaseFile(_ file: FileID, _ files: inout TreeDictionary<FileID, Int>) {
        let count = (files[file] ?? 0) - 1
        files[file] = count > 0 ? count : nil
    }

    private mutating func removeCity(_ code: EntityID, _ lwwTimestamp: LWWTimestamp) {
        var city = cities[code] ?? City()
        guard city.removed.map({ $0 < lwwTimestamp }) ?? true else { return }
        city.removed = lwwTimestamp
        if let languages = city.languages, languages.lwwTimestamp < lwwTimestamp {
            city.languages = nil
        }
        if let usage = city.usage, usage.lwwTimestamp < lwwTimestamp { city.usage = nil }
        city.updates = city.updates.filter { $0.value.lwwTimestamp > lwwTimestamp }
        for (language, paths) in city.resources {
            var remaining: ByPath = [:]
            for (path, urls) in paths {
                for resource in urls.values where resource.lwwTimestamp < lwwTimestamp {
                    if let file = resource.value?.file { Self.releaseFile(file, &files) }
                }
                let urls = urls.filter { $0.value.lwwTimestamp > lwwTimestamp }
                if !urls.isEmpty { remaining[path] = urls }
            }
            city.resources[language] = remaining.isEmpty ? nil : remaining
        }
        cities[code] = city
    }

    // MARK: Winners

    /// The LWW timestamp that the next list of cities must exceed to win. O(1).
    var listTimestamp: LWWTimestamp? { list?.lwwTimestamp }

    /// The LWW timestamp that the next list of a city's languages must exceed to win. O(1).
    func languagesTimestamp(of city: String) -> LWWTimestamp? {
        let city = cities[EntityID(city)]
        return city?.languages?.lwwTimestamp ?? city?.removed
    }

    /// The LWW timestamp that the next use of a city must exceed to win. O(1).
    func usageTimestamp(of city: String) -> LWWTimestamp? {
        let city = cities[EntityID(city)]
        return city?.usage?.lwwTimestamp ?? city?.removed
    }

    /// The LWW timestamp that the next update of a language must exceed to win. O(1).
    func updateTimestamp(of city: String, language: String) -> LWWTimestamp? {
        let city = cities[EntityID(city)]
        return city?.updates[EntityID(language)]?.lwwTimestamp ?? city?.removed
    }

    /// The LWW timestamp that the next event of a resource must exceed to win. O(1).
    func lwwTimestamp(ofResource url: String, of path: String, city: String, language: String)
        -> LWWTimestamp?
    {
        let city = cities[EntityID(city)]
        return city?.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]?.lwwTimestamp
            ?? city?.removed
    }

    /// The greatest LWW timestamp of a city. O(registers of the city).
    func newest(of city: String) -> LWWTimestamp? { cities[EntityID(city)]?.lwwTimestamps.max() }

    // MARK: Queries

    /// The list of cities in its stored order; nil if it was never stored. O(1).
    public var cityList: [ListedCity]? { list?.value }

    /// The live cities of the list, which are shown to users, in its order. O(cities of the list).
    public var liveCities: [ListedCity] { (list?.value ?? []).filter(\.isLive) }

    /// The languages of a city in their stored order; nil if they were never stored. O(1).
    public func languages(of city: String) -> [ListedLanguage]? {
        cities[EntityID(city)]?.languages?.value
    }

    /// The time of the last update of a city's language; nil if there was none. O(1).
    public func lastUpdate(of city: String, language: String) -> ZonedTime? {
        cities[EntityID(city)]?.updates[EntityID(language)]?.value
    }

    /// The languages of a city with the times of their last updates, sorted. O(languages of the
    /// city).
    public func lastUpdates(of city: String) -> [(language: String, time: ZonedTime)] {
        (cities[EntityID(city)]?.updates ?? [:]).sorted { $0.key < $1.key }
            .map { ($0.key.string, $0.value.value) }
    }

    /// The time of the last use of a city; nil if there was none. O(1).
    public func lastUsage(of city: String) -> ZonedTime? {
        cities[EntityID(city)]?.usage?.value
    }

    /// The files of a page, by URL. O(n log n) for n files of the page.
    public func resources(of path: String, city: String, language: String) -> [CachedResource] {
        let urls = cities[EntityID(city)]?.resources[EntityID(language)]?[EntityID(path)] ?? [:]
        return Self.resources(path, urls)
    }

    /// A file of a page. O(1).
    public func resource(
        _ url: String, of path: String, city: String, language: String
    ) -> CachedResource? {
        cities[EntityID(city)]?.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]?
            .value.map { CachedResource(path, url, $0) }
    }

    private static func resources(_ path: String, _ urls: ByURL) -> [CachedResource] {
        urls.sorted { $0.key < $1.key }.compactMap { url, register in
            register.value.map { CachedResource(path, url.string, $0) }
        }
    }

    /// The files of all pages of a language, by path and URL. O(n log n) for n such files.
    public func resources(city: String, language: String) -> [CachedResource] {
        (cities[EntityID(city)]?.resources[EntityID(language)] ?? [:])
            .sorted { $0.key < $1.key }.flatMap { Self.resources($0.key.string, $0.value) }
    }

    /// The languages of a city with entries for files, stored or removed, sorted.
    func resourceLanguages(of city: String) -> [String] {
        (cities[EntityID(city)]?.resources ?? [:]).keys.sorted().map(\.string)
    }

    /// The cities with content other than pages on the device, sorted. O(cities and their files).
    public var cityCodes: [String] {
        cities.filter { $0.value.isCached }.map(\.key).sorted().map(\.string)
    }

    /// Whether pages of a city have files. O(files that were removed).
    func hasFiles(of city: String) -> Bool { cities[EntityID(city)]?.hasFiles ?? false }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    public static let columns = [
        "city", "name", "live", "lastUsage", "languages", "updates", "resources",
    ]

    public func rows() -> ViewRows {
        var listed: [EntityID: ListedCity] = [:]
        for city in cityList ?? [] { listed[EntityID(city.code)] = city }
        let codes = Set(cityCodes.map(EntityID.init)).union(listed.keys)
        let cities = listed
        return ViewRows(codes.sorted()) { row($0.string, cities[$0]) }
    }

    private func row(_ code: String, _ listed: ListedCity?) -> ViewRow {
        var row = ViewRow()
        row.appendField("city", code)
        row.appendField("name", listed?.name)
        row.appendField("live", raw: listed.map { Array("\($0.isLive)".utf8) })
        row.appendField("lastUsage", lastUsage(of: code)?.text)
        row.appendField(
            "languages",
            raw: JSONObjectWriter.array((languages(of: code) ?? []).map(\.row)))
        row.appendField(
            "updates",
            raw: JSONObjectWriter.array(
                lastUpdates(of: code).map { update in
                    var writer = JSONObjectWriter()
                    writer.appendMember("language", update.language)
                    writer.appendMember("lastUpdate", update.time.text)
                    return writer.finished()
                }))
        row.appendField(
            "resources",
            raw: JSONObjectWriter.array(
                resourceLanguages(of: code).flatMap { language in
                    resources(city: code, language: language).map { $0.row(language) }
                }))
        return row
    }
}

extension CachedResource {
    fileprivate init(_ path: String, _ url: String, _ resource: ContentView.Resource) {
        self.path = path
        self.url = url
        file = resource.file
        size = resource.size
        lastUpdate = resource.lastUpdate
        hash = resource.hash
        properties = resource.properties
    }

    fileprivate func row(_ language: String) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("language", language)
        writer.appendMember("path", path)
        writer.appendMember("url", url)
        writer.appendMember("file", file.description)
        writer.appendMember("size", size)
        writer.appendMember("lastUpdate", lastUpdate.text)
        return writer.finished()
    }
}
