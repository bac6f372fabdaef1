// What is on the device beside the pages: the list of cities, the languages of each, when it was
// updated and used, and its files. Registers by stamp; the removal of a city is a stamp, too.
// Spec/model/content.md, CONT-4; Spec/model/views.md.

import Daybook
import HashTreeCollections

/// A file that a page shows.
public struct CachedResource: Hashable, Sendable {
    /// The page's path.
    public let path: String
    /// Where the file came from.
    public let url: String
    /// The file, in `OfflineStore.files`.
    public let file: FileID
    /// Its size in bytes.
    public let size: Int
    /// When the server changed it last.
    public let lastUpdate: ZonedTime
    /// The server's hash of the file.
    public let hash: String?
    /// Its other members in the server's JSON: one object, as it was written.
    public let properties: [UInt8]?
}

/// The list of cities, and what is known of each city's cache.
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
        /// Everything up to here is gone.
        var removed: Stamp?
        var languages: Register<[ListedLanguage]>?
        var usage: Register<ZonedTime>?
        var updates: TreeDictionary<EntityID, Register<ZonedTime>> = [:]
        /// By language; no dictionary within is empty.
        var resources: TreeDictionary<EntityID, ByPath> = [:]

        var isEmpty: Bool {
            removed == nil && languages == nil && usage == nil && updates.isEmpty
                && resources.isEmpty
        }

        /// Whether anything of it is on the device.
        var isCached: Bool {
            languages != nil || usage != nil || !updates.isEmpty
                || resources.values.contains { paths in
                    paths.values.contains { $0.values.contains { $0.value != nil } }
                }
        }
    }

    var list: Register<[ListedCity]>?
    var cities: TreeDictionary<EntityID, City> = [:]
    /// How many resources are each file.
    var files: TreeDictionary<FileID, Int> = [:]
    /// Events whose data no rule can make sense of.
    public internal(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        let stamp = event.stamp
        do {
            switch event.type {
            case CitiesListed.type: list.set(try event.payload(as: CitiesListed.self).cities, stamp)
            case LanguagesListed.type:
                let listed = try event.payload(as: LanguagesListed.self)
                change(listed.city, stamp) { $0.languages.set(listed.languages, stamp) }
            case ContentUpdated.type:
                let updated = try event.payload(as: ContentUpdated.self)
                change(updated.city, stamp) {
                    $0.updates[EntityID(updated.language)].set(updated.lastUpdate, stamp)
                }
            case ContentUsed.type:
                let used = try event.payload(as: ContentUsed.self)
                change(used.city, stamp) { $0.usage.set(used.lastUsage, stamp) }
            case ResourceStored.type:
                let stored = try event.payload(as: ResourceStored.self)
                let resource = Resource(
                    file: stored.file, size: stored.size, lastUpdate: stored.lastUpdate,
                    hash: stored.hash, properties: stored.properties)
                set(resource, stamp, stored.city, stored.language, stored.path, stored.url)
            case ResourceRemoved.type:
                let removed = try event.payload(as: ResourceRemoved.self)
                set(nil, stamp, removed.city, removed.language, removed.path, removed.url)
            case ContentRemoved.type:
                remove(EntityID(try event.payload(as: ContentRemoved.self).city), stamp)
            default: break
            }
        } catch { ignored += 1 }
    }

    /// Changes a city unless it was removed later.
    private mutating func change(
        _ city: String, _ stamp: Stamp, _ body: (inout City) -> Void
    ) {
        let city = EntityID(city)
        guard cities[city]?.removed.map({ $0 < stamp }) ?? true else { return }
        body(&cities[city, default: City()])
    }

    private mutating func set(
        _ resource: Resource?, _ stamp: Stamp, _ city: String, _ language: String, _ path: String,
        _ url: String
    ) {
        var files = self.files
        change(city, stamp) { city in
            let old = city.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]
            guard old.map({ $0.stamp < stamp }) ?? true else { return }
            city.resources[EntityID(language), default: [:]][EntityID(path), default: [:]][
                EntityID(url)] = Register(resource, stamp)
            if let resource { files[resource.file, default: 0] += 1 }
            if let old = old?.value { Self.forget(old.file, &files) }
        }
        self.files = files
    }

    private static func forget(_ file: FileID, _ files: inout TreeDictionary<FileID, Int>) {
        let others = (files[file] ?? 0) - 1
        files[file] = others > 0 ? others : nil
    }

    private mutating func remove(_ code: EntityID, _ stamp: Stamp) {
        var city = cities[code] ?? City()
        guard city.removed.map({ $0 < stamp }) ?? true else { return }
        city.removed = stamp
        if let languages = city.languages, languages.stamp < stamp { city.languages = nil }
        if let usage = city.usage, usage.stamp < stamp { city.usage = nil }
        city.updates = city.updates.filter { $0.value.stamp > stamp }
        for (language, paths) in city.resources {
            var rest: ByPath = [:]
            for (path, urls) in paths {
                for resource in urls.values where resource.stamp < stamp {
                    if let file = resource.value?.file { Self.forget(file, &files) }
                }
                let urls = urls.filter { $0.value.stamp > stamp }
                if !urls.isEmpty { rest[path] = urls }
            }
            city.resources[language] = rest.isEmpty ? nil : rest
        }
        cities[code] = city
    }

    // MARK: What counts

    /// What the next list of cities must pass to count. O(1).
    var listStamp: Stamp? { list?.stamp }

    /// What the next list of a city's languages must pass to count. O(1).
    func languagesStamp(of city: String) -> Stamp? {
        let city = cities[EntityID(city)]
        return city?.languages?.stamp ?? city?.removed
    }

    /// What the next use of a city must pass to count. O(1).
    func usageStamp(of city: String) -> Stamp? {
        let city = cities[EntityID(city)]
        return city?.usage?.stamp ?? city?.removed
    }

    /// What the next update of a language must pass to count. O(1).
    func updateStamp(of city: String, language: String) -> Stamp? {
        let city = cities[EntityID(city)]
        return city?.updates[EntityID(language)]?.stamp ?? city?.removed
    }

    /// What the next event of a resource must pass to count. O(1).
    func stamp(ofResource url: String, of path: String, city: String, language: String) -> Stamp? {
        let city = cities[EntityID(city)]
        return city?.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]?.stamp
            ?? city?.removed
    }

    /// The newest event of a city. O(what is known of the city).
    func newest(of city: String) -> Stamp? { cities[EntityID(city)]?.stamps.max() }

    // MARK: Questions

    /// The list of cities in the order in which it was given; nil if it was never stored. O(1).
    public var cityList: [ListedCity]? { list?.value }

    /// The cities of the list that are shown to users, in its order. O(cities of the list).
    public var liveCities: [ListedCity] { (list?.value ?? []).filter(\.isLive) }

    /// The languages of a city in the order in which they were given; nil if they were never
    /// stored. O(1).
    public func languages(of city: String) -> [ListedLanguage]? {
        cities[EntityID(city)]?.languages?.value
    }

    /// When a language of a city was updated last; nil if it never was. O(1).
    public func lastUpdate(of city: String, language: String) -> ZonedTime? {
        cities[EntityID(city)]?.updates[EntityID(language)]?.value
    }

    /// The languages of a city with the times of their last updates, sorted. O(languages of the
    /// city).
    public func lastUpdates(of city: String) -> [(language: String, time: ZonedTime)] {
        (cities[EntityID(city)]?.updates ?? [:]).sorted { $0.key < $1.key }
            .map { ($0.key.string, $0.value.value) }
    }

    /// When somebody used a city last; nil if nobody has. O(1).
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

    /// The languages of a city in which there are files, sorted.
    func resourceLanguages(of city: String) -> [String] {
        (cities[EntityID(city)]?.resources ?? [:]).keys.sorted().map(\.string)
    }

    /// The cities of which something is on the device beside pages, sorted. O(cities and what
    /// there is of them).
    public var cityCodes: [String] {
        cities.filter { $0.value.isCached }.map(\.key).sorted().map(\.string)
    }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    public func rows() -> [ViewRow] {
        var listed: [EntityID: ListedCity] = [:]
        for city in cityList ?? [] { listed[EntityID(city.code)] = city }
        let codes = Set(cityCodes.map(EntityID.init)).union(listed.keys)
        return codes.sorted().map { row($0.string, listed[$0]) }
    }

    private func row(_ code: String, _ listed: ListedCity?) -> ViewRow {
        var row = ViewRow()
        row.add("city", code)
        row.add("name", listed?.name)
        row.add("live", raw: listed.map { Array("\($0.isLive)".utf8) })
        row.add("lastUsage", lastUsage(of: code)?.text)
        row.add(
            "languages",
            raw: JSONObjectWriter.array((languages(of: code) ?? []).map(\.row)))
        row.add(
            "updates",
            raw: JSONObjectWriter.array(
                lastUpdates(of: code).map { update in
                    var writer = JSONObjectWriter()
                    writer.add("language", update.language)
                    writer.add("lastUpdate", update.time.text)
                    return writer.finished()
                }))
        row.add(
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
        writer.add("language", language)
        writer.add("path", path)
        writer.add("url", url)
        writer.add("file", file.description)
        writer.add("size", size)
        writer.add("lastUpdate", lastUpdate.text)
        return writer.finished()
    }
}
