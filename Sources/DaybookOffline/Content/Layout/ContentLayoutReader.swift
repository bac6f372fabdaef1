// Reads the folder layout, one language at a time. The folder is untrusted: sizes are bounded, links are
// not followed, no name leads out of it. What cannot be read is noted with its file and the path in it; the
// rest is read. Spec/model/content.md, CONT-34.

import Daybook

/// A reader of a content folder. See `ContentCommands.importFolder(_:)`.
public struct ContentLayoutReader: Sendable {
    private let source: LayoutSource

    /// The list of cities; nil if there is none.
    private(set) var cityList: [ListedCity]?
    /// The codes of the cities of the list that could not be read, empty for those whose codes could not be read.
    private(set) var unreadCities: [String] = []
    /// The cities that the folder mentions, sorted.
    private(set) var cities: [String] = []
    /// Descriptions of what could not be read.
    private(set) var notes: [String] = []

    /// The cities with an entry in the file of times.
    private var metaCities: Set<EntityID> = []
    private var updates: [EntityID: [EntityID: ZonedTime]] = [:]
    private var usages: [EntityID: ZonedTime] = [:]
    /// The folders of cities and their languages.
    private var folders: [EntityID: CityFolder] = [:]
    /// The cities of which something could not be read, each with the language if it is of one.
    private var incomplete: Set<[EntityID]> = []

    /// Whether a folder of pages could not be read: it may be that of any language without one.
    private var hasUnreadFolders = false

    private struct CityFolder {
        var content: String?
        var languages: [EntityID: String] = [:]
        var resources: String?
    }

    /// Opens a folder and reads the lists and times of all cities.
    ///
    /// - Throws: `FileError`: `notFound` if there is no such folder.
    public init(_ folder: String, _ fileSystem: any FileSystem) throws {
        source = LayoutSource(folder, fileSystem)
        _ = try fileSystem.list(folder)
        let list = try source.array(ContentLayout.cities, &notes, unread: &unreadCities) {
            try ListedCity($0, .file)
        }
        if let list { cityList = unique(list, "\(ContentLayout.cities): the city", \.code) }
        let meta = try source.members(ContentLayout.meta, &notes) ?? []
        for city in meta { try readMeta(city) }
        metaCities = Set(meta.map { EntityID($0.name) })
        let count = notes.count
        try readContentFolders()
        hasUnreadFolders = notes.count > count
        try readResourceFolders()
        let codes = metaCities.union(folders.keys)
        cities = codes.sorted().map(\.string)
    }

    private mutating func readContentFolders() throws {
        let root = try source.cityRoot(ContentLayout.content) { folder, notes in
            try !source.folders(folder, &notes).isEmpty
        }
        for (name, code) in try codes(in: root, listed: listedCities) {
            let folder = "\(root)/\(name)"
            var city = folders[code] ?? CityFolder()
            guard setFolder(&city.content, folder) else { continue }
            folders[code] = city
            // The list is read again with its notes when the city is imported.
            var list = self
            let listed = (try list.languageList(of: code.string)?.languages ?? []).map(\.code)
            let updated = (updates[code] ?? [:]).keys.map(\.string)
            for (name, language) in try codes(
                in: folder, listed: listed + updated, updated: updated)
            {
                _ = setFolder(&city.languages[language], "\(folder)/\(name)")
            }
            folders[code] = city
        }
    }

    /// The codes of the cities in the lists.
    private var listedCities: [String] {
        (cityList ?? []).map(\.code) + metaCities.map(\.string)
    }

    private mutating func readResourceFolders() throws {
        let root = try source.cityRoot(ContentLayout.resources) { folder, _ in
            (try? source.kind("\(folder)/\(ContentLayout.fileList)")) == .file
        }
        let listed = listedCities + folders.keys.map(\.string)
        for (name, code) in try codes(in: root, listed: listed) {
            var city = folders[code] ?? CityFolder()
            _ = setFolder(&city.resources, "\(root)/\(name)")
            folders[code] = city
        }
    }

    /// The folders of cities or languages in a folder, with their codes.
    private mutating func codes(
        in folder: String, listed: [String], updated: [String] = []
    ) throws -> [(name: String, code: EntityID)] {
        var codes: [(name: String, code: EntityID)] = []
        for name in try source.folders(folder, &notes) {
            if let code = try code(of: name, in: folder) { codes.append((name, code)) }
        }
        let unique = Set(listed.map(EntityID.init)).map(\.string)
        let byFolded = Dictionary(grouping: unique, by: FolderNames.folded)
        let all = Set(codes.map(\.code))
        let inUse = Dictionary(grouping: updated, by: FolderNames.folded)
        return codes.map { name, code in
            // The writer's own names, which are ASCII, are exact, but for a time without a folder of its own.
            let isExact = (try? ContentLayout.name(of: code.string)) == name
            let isListed = unique.contains { EntityID($0) == code }
            let listed = isExact ? (isListed ? [:] : inUse) : byFolded
            return (name, FolderNames.code(code, listed: listed, folders: all))
        }
    }

    /// The code of the name of a folder; nil if it is the name of none, which is noted.
    private mutating func code(of name: String, in folder: String) throws -> EntityID? {
        try LayoutSource.noting(&notes) {
            do throws(EventError) { return EntityID(try ContentLayout.code(of: name)) } catch {
                throw EventError(error.code, "\(folder): \(error.detail)")
            }
        }
    }

    /// Sets the folder of a city or a language. A second one is left out and noted.
    private mutating func setFolder(_ folder: inout String?, _ new: String) -> Bool {
        if let folder {
            notes.append("\(folder) and \(new) are folders of the same city or language")
            return false
        }
        folder = new
        return true
    }

    /// The first element with each key. The others are noted.
    private mutating func unique<Element>(
        _ elements: [Element], _ what: String, _ key: (Element) -> String
    ) -> [Element] {
        var keys: Set<EntityID> = []
        return elements.filter { element in
            let isFirst = keys.insert(EntityID(key(element))).inserted
            if !isFirst { notes.append("\(what) \(key(element)) occurs twice") }
            return isFirst
        }
    }

    /// Reads the times of a city. An invalid time is left out and noted.
    private mutating func readMeta(_ city: LayoutSource.Member) throws {
        let usage = try time("last_usage", ["lastUsage": "last_usage"], of: city)
        usages[EntityID(city.name)] = usage
        guard let languages = (try? city.fields())?.raw("languages") else { return }
        for language in LayoutSource.members(of: languages, "\(city.path).languages", &notes) ?? []
        {
            let update = try time("last_update", ["lastUpdate": "last_update"], of: language)
            updates[EntityID(city.name), default: [:]][EntityID(language.name)] = update
        }
    }

    private mutating func time(
        _ name: StaticString, _ otherNames: KeyValuePairs<StaticString, StaticString>,
        of member: LayoutSource.Member
    ) throws -> ZonedTime? {
        try LayoutSource.noting(&notes) {
            let fields = try member.fields().renamed(otherNames, .file)
            guard let text = try fields.optionalString(name) else { return nil }
            if let time = ZonedTime(text) { return time }
            throw EventError(
                .invalidData,
                "\(fields.path).\(name): \"\(text.prefix(100))\" is not a time as of RFC 3339")
        }
    }

    // MARK: A city

    /// The languages of a city, and the codes of those that could not be read, as `unreadCities`; nil if there is no
    /// list of them. Folders since 2023 have it in the list of cities.
    mutating func languageList(
        of city: String
    ) throws -> (languages: [ListedLanguage], unread: [String])? {
        var unread: [String] = []
        if let folder = folders[EntityID(city)]?.content {
            let file = "\(folder)/\(ContentLayout.languages)"
            let languages = try source.array(file, &notes, unread: &unread) {
                try ListedLanguage($0, .file)
            }
            if let languages { return (unique(languages, "\(file): the language", \.code), unread) }
        }
        guard folders[EntityID(city)] != nil,
            let listed = cityList?.first(where: { EntityID($0.code) == EntityID(city) }),
            let properties = listed.properties
        else { return nil }
        let path = "\(ContentLayout.cities): \(city)"
        let elements = try LayoutSource.noting(&notes) {
            let city = try JSONFields(properties, path: path, nullIsMissing: true)
            return city.has("languages")
                ? try city.objectsAlone("languages", nullIsMissing: true) : nil
        }
        let languages = try elements?.compactMap { element in
            let language = try LayoutSource.noting(&notes) {
                try ListedLanguage(element.get(), .file)
            }
            if language == nil { unread.append((try? element.get().identifier("code")) ?? "") }
            return language
        }
        return languages.map { (unique($0, "\(path): the language", \.code), unread) }
    }

    /// The time of the last use of a city.
    func lastUsage(of city: String) -> ZonedTime? { usages[EntityID(city)] }

    /// The time of the last update of a language.
    func lastUpdate(of city: String, language: String) -> ZonedTime? {
        updates[EntityID(city)]?[EntityID(language)]
    }

    /// The times of the last updates of a city's languages.
    func lastUpdates(of city: String) -> [Timestamp] {
        (updates[EntityID(city)] ?? [:]).values.map(\.moment)
    }

    /// True if everything of a language was read.
    func isComplete(_ city: String, language: String) -> Bool {
        let city = EntityID(city)
        guard !hasUnreadFolders || folders[city]?.languages[EntityID(language)] != nil else {
            return false
        }
        return incomplete.isDisjoint(with: [[city], [city, EntityID(language)]])
    }

    /// The pages of a language; nil if it has no folder, or no file of pages in it. A page or file that cannot be read
    /// is left out and noted.
    ///
    /// - Parameter missing: receives the kinds of which there is no file: of categories or events, which every folder
    ///   has. Without a file of points of interest there are none.
    mutating func pages(
        of city: String, language: String, missing: inout [PageKind]
    ) throws -> [ContentPage]? {
        let key = [EntityID(city), EntityID(language)]
        guard let folder = folders[key[0]]?.languages[key[1]] else { return nil }
        let count = notes.count
        var pages: [ContentPage]?
        var unread: [String] = []
        for kind in PageKind.allCases {
            let (file, count) = ("\(folder)/\(ContentLayout.file(of: kind))", notes.count)
            let found = try source.array(file, &notes, unread: &unread) {
                try ContentPage($0, kind: kind, .file)
            }
            if let found {
                pages = (pages ?? []) + found
            } else if kind != .poi, notes.count == count {
                missing.append(kind)
            }
        }
        if notes.count > count { incomplete.insert(key) }
        return pages
    }

    /// The files of a city, by language; nil if there is no list of them. A missing file is noted, and the
    /// stored resource is not changed. An entry that cannot be read is left out and noted.
    mutating func resources(of city: String) throws -> [EntityID: [ContentResource]]? {
        guard let folder = folders[EntityID(city)]?.resources else { return nil }
        let count = notes.count
        let list = try source.members("\(folder)/\(ContentLayout.fileList)", &notes)
        if notes.count > count { incomplete.insert([EntityID(city)]) }
        return try list.map {
            var all: [EntityID: [ContentResource]] = [:]
            for language in $0 {
                all[EntityID(language.name)] = try resources(of: city, language, folder)
            }
            return all
        }
    }

    private mutating func resources(
        of city: String, _ language: LayoutSource.Member, _ folder: String
    ) throws -> [ContentResource] {
        let key = [EntityID(city), EntityID(language.name)]
        let lastUpdate = updates[key[0]]?[key[1]] ?? .epoch
        let (source, count) = (source, notes.count)
        var names = FolderNames()
        var resources: [ContentResource] = []
        var missing: [String] = []
        let pages = LayoutSource.members(of: language.text, language.path, &notes) ?? []
        guard pages.isEmpty || pages.contains(where: { $0.text.first == UInt8(ascii: "{") }) else {
            // Folders since the end of 2025: the URLs of a language without their pages.
            notes.append("\(language.path) does not name the pages of its files")
            incomplete.insert(key)
            return []
        }
        for page in pages {
            for url in LayoutSource.members(of: page.text, page.path, &notes) ?? [] {
                let resource = try LayoutSource.noting(&notes) {
                    try Self.resource(page.name, url, lastUpdate, source, folder, &names, &missing)
                }
                if let resource { resources.append(resource) }
            }
        }
        if notes.count > count { incomplete.insert(key) }
        notes += missing
        return resources
    }

    /// - Parameters:
    ///   - lastUpdate: the time for a list without times, as in folders since 2024.
    ///   - missing: receives the note of a missing file.
    private static func resource(
        _ path: String, _ member: LayoutSource.Member, _ lastUpdate: ZonedTime,
        _ source: LayoutSource, _ folder: String, _ names: inout FolderNames,
        _ missing: inout [String]
    ) throws -> ContentResource {
        let fields = try member.fields()
            .renamed(["filePath": "file_path", "lastUpdate": "last_update"], .file)
        let filePath = try fields.string("file_path")
        do { _ = try ResourceName(path: path, url: member.name) } catch {
            throw EventError(error.code, "\(fields.path): \(error.detail)")
        }
        var resource = ContentResource(
            path: path, url: member.name,
            lastUpdate: fields.has("last_update") ? try fields.time("last_update") : lastUpdate,
            hash: try fields.optionalString("hash"),
            properties: fields.properties(.file, beside: ContentResource.memberNames),
            content: .kept)
        guard let file = try source.file(tailOf: filePath, in: folder, &names) else {
            missing.append("\(fields.path): there is no file \(filePath.prefix(200)) in \(folder)")
            return resource
        }
        try source.checkSize(file, FileStore.fileBytesMax)
        resource.content = .reading {
            guard let bytes = try source.read(file, FileStore.fileBytesMax) else {
                throw FileError(
                    .notFound, operation: "read", path: file,
                    reason: "the file was deleted since the folder was checked")
            }
            return bytes
        }
        return resource
    }

    /// The languages of a city with pages or the time of an update in the folder, sorted.
    func languages(of city: String) -> [String] {
        let city = EntityID(city)
        let languages = (folders[city]?.languages ?? [:]).keys
        return Set((updates[city] ?? [:]).keys).union(languages).sorted().map(\.string)
    }
}
