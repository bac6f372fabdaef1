// The cached content except the pages: the list of cities, and for each city its languages, the times of
// updates and uses, and its files. All values are registers; the removal of a city removes its
// older registers. Spec/model/content.md, CONT-4; Spec/model/views.md.

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
public struct ContentView: DeclaredView, ListableView, FileReferring {
    public static let name = "content"
    public static let version = 3
    public static let events: ViewEvents<ContentView> = [
        .on(CitiesListed.self) { $2.set(&$1.list, to: $0.cities) },
        .on(LanguagesListed.self) { listed, view, change in
            view.update(listed.city, &change) { $1.set(&$0.languages, to: listed.languages) }
        },
        .on(ContentUpdated.self) { updated, view, change in
            view.update(updated.city, &change) {
                $1.set(&$0.updates[EntityID(updated.language)], to: updated.lastUpdate)
            }
        },
        .on(ContentUsed.self) { used, view, change in
            view.update(used.city, &change) { $1.set(&$0.usage, to: used.lastUsage) }
        },
        .on(ResourceStored.self) { stored, view, change in
            let resource = Resource(
                file: stored.file, size: stored.size, lastUpdate: stored.lastUpdate,
                hash: stored.hash, properties: stored.properties)
            view.setResource(
                resource, stored.city, stored.language, stored.path, stored.url, &change)
        },
        .on(ResourceRemoved.self) { removed, view, change in
            view.setResource(
                nil, removed.city, removed.language, removed.path, removed.url, &change)
        },
        .on(ContentRemoved.self) { removed, view, change in
            // O(files of the city): only a fold needs the counts.
            if change.isFolding { view.countFiles(of: removed.city, by: -1) }
            view.cities.update(removed.city, &change) { $0.remove(&$1) }
            if change.isFolding { view.countFiles(of: removed.city, by: 1) }
        },
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

    struct City: StateObject {
        var languages: Register<[ListedLanguage]>?
        var usage: Register<ZonedTime>?
        var updates: TreeDictionary<EntityID, Register<ZonedTime>> = [:]
        /// The files by language. No inner dictionary is empty.
        var resources: TreeDictionary<EntityID, ByPath> = [:]

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&languages, &usage, &updates, &resources)
        }

        /// The registers of all files.
        var files: [Register<Resource?>] {
            resources.values.flatMap { $0.values.flatMap { Array($0.values) } }
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
    var cities = EntityTable<Removable<City>>()
    /// The number of resources that name each file.
    var files: TreeDictionary<FileID, Int> = [:]
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&list, &cities)
    }

    public mutating func computeIndexes() {
        for id in cities.ids() { countFiles(of: id.string, by: 1) }
    }

    private mutating func update(
        _ city: String, _ change: inout ViewChange,
        _ body: (inout City, inout ViewChange) -> Void
    ) {
        cities.update(city, &change) { $0.update(&$1, body) }
    }

    private mutating func setResource(
        _ resource: Resource?, _ city: String, _ language: String, _ path: String, _ url: String,
        _ change: inout ViewChange
    ) {
        let (language, path, url) = (EntityID(language), EntityID(path), EntityID(url))
        countFile(self.city(city)?.resources[language]?[path]?[url]?.value, by: -1)
        update(city, &change) {
            $1.set(
                &$0.resources[language, default: [:]][path, default: [:]][url], to: resource)
        }
        countFile(self.city(city)?.resources[language]?[path]?[url]?.value, by: 1)
    }

    private mutating func countFiles(of city: String, by sign: Int) {
        for register in self.city(city)?.files ?? [] { countFile(register.value, by: sign) }
    }

    private mutating func countFile(_ resource: Resource?, by sign: Int) {
        guard let file = resource?.file else { return }
        let count = (files[file] ?? 0) + sign
        files[file] = count > 0 ? count : nil
    }

    private func city(_ code: String) -> City? { cities[code]?.registers }

    // MARK: Winners

    /// The LWW timestamp that the next list of cities must exceed to win. O(1).
    var listTimestamp: LWWTimestamp? { list?.lwwTimestamp }

    /// The LWW timestamp that the next list of a city's languages must exceed to win. O(1).
    func languagesTimestamp(of city: String) -> LWWTimestamp? {
        cities[city].flatMap { $0.bound(of: $0.registers.languages) }
    }

    /// The LWW timestamp that the next use of a city must exceed to win. O(1).
    func usageTimestamp(of city: String) -> LWWTimestamp? {
        cities[city].flatMap { $0.bound(of: $0.registers.usage) }
    }

    /// The LWW timestamp that the next update of a language must exceed to win. O(1).
    func updateTimestamp(of city: String, language: String) -> LWWTimestamp? {
        cities[city].flatMap { $0.bound(of: $0.registers.updates[EntityID(language)]) }
    }

    /// The LWW timestamp that the next event of a resource must exceed to win. O(1).
    func lwwTimestamp(ofResource url: String, of path: String, city: String, language: String)
        -> LWWTimestamp?
    {
        cities[city].flatMap {
            $0.bound(
                of: $0.registers.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)])
        }
    }

    /// The greatest LWW timestamp of a city. O(registers of the city).
    func newest(of city: String) -> LWWTimestamp? { cities[city]?.newestTimestamp }

    // MARK: Queries

    /// The list of cities in its stored order; nil if it was never stored. O(1).
    public var cityList: [ListedCity]? { list?.value }

    /// The live cities of the list, which are shown to users, in its order. O(cities of the list).
    public var liveCities: [ListedCity] { (list?.value ?? []).filter(\.isLive) }

    /// The languages of a city in their stored order; nil if they were never stored. O(1).
    public func languages(of city: String) -> [ListedLanguage]? {
        self.city(city)?.languages?.value
    }

    /// The time of the last update of a city's language; nil if there was none. O(1).
    public func lastUpdate(of city: String, language: String) -> ZonedTime? {
        self.city(city)?.updates[EntityID(language)]?.value
    }

    /// The languages of a city with the times of their last updates, sorted. O(languages of the
    /// city).
    public func lastUpdates(of city: String) -> [(language: String, time: ZonedTime)] {
        (self.city(city)?.updates ?? [:]).sorted { $0.key < $1.key }
            .map { ($0.key.string, $0.value.value) }
    }

    /// The time of the last use of a city; nil if there was none. O(1).
    public func lastUsage(of city: String) -> ZonedTime? {
        self.city(city)?.usage?.value
    }

    /// The files of a page, by URL. O(n log n) for n files of the page.
    public func resources(of path: String, city: String, language: String) -> [CachedResource] {
        let urls = self.city(city)?.resources[EntityID(language)]?[EntityID(path)] ?? [:]
        return Self.resources(path, urls)
    }

    /// A file of a page. O(1).
    public func resource(
        _ url: String, of path: String, city: String, language: String
    ) -> CachedResource? {
        self.city(city)?.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]?
            .value.map { CachedResource(path, url, $0) }
    }

    private static func resources(_ path: String, _ urls: ByURL) -> [CachedResource] {
        urls.sorted { $0.key < $1.key }.compactMap { url, register in
            register.value.map { CachedResource(path, url.string, $0) }
        }
    }

    /// The files of all pages of a language, by path and URL. O(n log n) for n such files.
    public func resources(city: String, language: String) -> [CachedResource] {
        (self.city(city)?.resources[EntityID(language)] ?? [:])
            .sorted { $0.key < $1.key }.flatMap { Self.resources($0.key.string, $0.value) }
    }

    /// The languages of a city with entries for files, stored or removed, sorted.
    func resourceLanguages(of city: String) -> [String] {
        (self.city(city)?.resources ?? [:]).keys.sorted().map(\.string)
    }

    /// The cities with content other than pages on the device, sorted. O(cities and their files).
    public var cityCodes: [String] {
        cities.ids { $0.registers.isCached }.sorted().map(\.string)
    }

    /// Whether pages of a city have files. O(files that were removed).
    func hasFiles(of city: String) -> Bool { self.city(city)?.hasFiles ?? false }

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
