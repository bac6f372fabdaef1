// Reads the folder layout, one language at a time. The folder is untrusted: sizes are bounded, links are
// not followed, no name leads out of it, and an error names the file and the path in it.
// Spec/model/content.md, CONT-34.

import Daybook

/// A reader of a content folder. See `ContentCommands.importFolder(_:)`.
public struct ContentLayoutReader: Sendable {
    private let folder: String
    private let fileSystem: any FileSystem

    /// The list of cities; nil if there is none.
    let cityList: [ListedCity]?
    /// The cities that the folder mentions, sorted.
    private(set) var cities: [String] = []
    /// Descriptions of the skipped entries.
    private(set) var notes: [String] = []

    private var updates: [EntityID: [EntityID: ZonedTime]] = [:]
    private var usages: [EntityID: ZonedTime] = [:]
    /// The folders of cities and their languages.
    private var folders: [EntityID: CityFolder] = [:]

    private struct CityFolder {
        var content: String?
        var languages: [EntityID: String] = [:]
        var resources: String?
    }

    /// Opens a folder and reads the lists and times of all cities.
    ///
    /// - Throws: `FileError` (`notFound`) if there is no such folder; `EventError` (`invalidData`) with
    ///   file and path for malformed data; `tooLarge` for a file of more than 256 MiB.
    public init(_ folder: String, _ fileSystem: any FileSystem) throws {
        self.folder = folder
        self.fileSystem = fileSystem
        _ = try fileSystem.list(folder)
        let source = LayoutSource(folder, fileSystem)
        cityList = try source.array(ContentLayout.cities) { try ListedCity($0, .file) }
        try requireUnique((cityList ?? []).map(\.code), "\(ContentLayout.cities): the city")
        var codes: Set<EntityID> = []
        for (city, fields) in try source.objects(ContentLayout.meta) ?? [] {
            let code = EntityID(city)
            guard codes.insert(code).inserted else {
                throw EventError(
                    .invalidData, "\(ContentLayout.meta): the city \(city) occurs twice")
            }
            try readMeta(code, fields)
        }
        for name in try source.folders(ContentLayout.content) {
            let code = EntityID(try ContentLayout.code(of: name))
            let folder = "\(ContentLayout.content)/\(name)"
            var city = folders[code] ?? CityFolder()
            try Self.setFolder(&city.content, folder)
            for name in try source.folders(folder) {
                let code = EntityID(try ContentLayout.code(of: name))
                try Self.setFolder(&city.languages[code], "\(folder)/\(name)")
            }
            folders[code] = city
        }
        for name in try source.folders(ContentLayout.resources) {
            let code = EntityID(try ContentLayout.code(of: name))
            try Self.setFolder(
                &folders[code, default: CityFolder()].resources,
                "\(ContentLayout.resources)/\(name)")
        }
        cities = codes.union(folders.keys).sorted().map(\.string)
    }

    /// Sets the folder of a city or a language. A second one is refused: one of them would be lost.
    private static func setFolder(_ folder: inout String?, _ new: String) throws(EventError) {
        if let folder {
            throw EventError(
                .invalidData, "\(folder) and \(new) are folders of the same city or language")
        }
        folder = new
    }

    /// Reads the times of a city. An invalid time is skipped, because it is no reason to refuse the
    /// content.
    private mutating func readMeta(_ city: EntityID, _ fields: JSONFields) throws {
        func parseTime(_ text: String, _ path: String) -> ZonedTime? {
            if let time = ZonedTime(text) { return time }
            notes.append("\(path): \"\(text.prefix(100))\" is not a time as of RFC 3339")
            return nil
        }
        if let text = try fields.optionalString("last_usage") {
            usages[city] = parseTime(text, "\(fields.path).last_usage")
        }
        let languages = try fields.object("languages")?.allObjects() ?? []
        try requireUnique(languages.map(\.name), "\(fields.path).languages: the language")
        for (language, fields) in languages {
            guard let text = try fields.optionalString("last_update"),
                let time = parseTime(text, "\(fields.path).last_update")
            else { continue }
            updates[city, default: [:]][EntityID(language)] = time
        }
    }

    // MARK: A city

    /// The languages of a city; nil if there is no list of them.
    func languageList(of city: String) throws -> [ListedLanguage]? {
        guard let folder = folders[EntityID(city)]?.content else { return nil }
        let file = "\(folder)/\(ContentLayout.languages)"
        let languages = try source.array(file) { try ListedLanguage($0, .file) }
        try requireUnique((languages ?? []).map(\.code), "\(file): the language")
        return languages
    }

    /// The time of the last use of a city.
    func lastUsage(of city: String) -> ZonedTime? { usages[EntityID(city)] }

    /// The time of the last update of a language.
    func lastUpdate(of city: String, language: String) -> ZonedTime? {
        updates[EntityID(city)]?[EntityID(language)]
    }

    private var source: LayoutSource { LayoutSource(folder, fileSystem) }

    /// The pages of a language; nil if it has no folder.
    func pages(of city: String, language: String) throws -> [ContentPage]? {
        guard let folder = folders[EntityID(city)]?.languages[EntityID(language)] else {
            return nil
        }
        let pages = try PageKind.allCases.flatMap { kind in
            try source.array("\(folder)/\(ContentLayout.file(of: kind))") {
                try ContentPage($0, kind: kind, .file)
            } ?? []
        }
        try requireUnique(pages.map(\.path), "\(folder): the page")
        return pages
    }

    /// The files of a city, by language; nil if there is no list of them. A missing file is skipped with
    /// a note, and the stored resource is not changed.
    mutating func resources(of city: String) throws -> [EntityID: [ContentResource]]? {
        guard let folder = folders[EntityID(city)]?.resources,
            let list = try source.objects("\(folder)/\(ContentLayout.fileList)")
        else { return nil }
        try requireUnique(
            list.map(\.name), "\(folder)/\(ContentLayout.fileList): the language")
        var all: [EntityID: [ContentResource]] = [:]
        for (language, pages) in list {
            var resources: [ContentResource] = []
            for (path, urls) in try pages.allObjects() {
                for (url, fields) in try urls.allObjects() {
                    resources.append(try resource(path, url, fields, folder))
                }
            }
            all[EntityID(language)] = resources
        }
        return all
    }

    private mutating func resource(
        _ path: String, _ url: String, _ fields: JSONFields, _ folder: String
    ) throws -> ContentResource {
        let filePath = try fields.string("file_path")
        let lastUpdate = try fields.time("last_update")
        let hash = try fields.optionalString("hash")
        do { _ = try ResourceName(path: path, url: url) } catch {
            throw EventError(error.code, "\(fields.path): \(error.detail)")
        }
        var resource = ContentResource(
            path: path, url: url, lastUpdate: lastUpdate, hash: hash,
            properties: fields.properties(.file, beside: ContentResource.memberNames),
            content: .kept)
        guard let file = try source.file(tailOf: filePath, in: folder) else {
            notes.append("\(fields.path): there is no file \(filePath.prefix(200)) in \(folder)")
            return resource
        }
        try source.checkSize(file, FileStore.fileBytesMax)
        resource.content = .reading { [source] in
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
