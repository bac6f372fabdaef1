// Imports a content folder with the same commands that an app uses for content from a server.
// Spec/model/content.md, CONT-35.

import Daybook
import Foundation

/// The result of an import.
public struct ContentImport: Hashable, Sendable {
    /// The number of recorded events; 0 if the log had all of the folder.
    public var events = 0
    /// The number of cities in the folder.
    public var cities = 0
    /// The number of pages in all languages.
    public var pages = 0
    /// The number of resources that were read.
    public var resources = 0
    /// A description of each skipped entry.
    public var notes: [String] = []
}

extension ContentCommands {
    /// Imports a content folder, which another app may have written: `cities-meta.json`, `cities.json`,
    /// `content` and `resource-cache` (`Spec/model/content.md`, CONT-30 and CONT-35). Records what the log
    /// does not have yet, so a repeated import records nothing. The whole folder is read and checked
    /// first. Durable on return.
    ///
    /// - Throws: `EventError` with file and path for malformed data, before anything is recorded;
    ///   `FileStoreError` for a folder or a file that cannot be read; as
    ///   `store(city:language:pages:resources:lastUpdate:)`.
    /// - Complexity: O(bytes of the folder); memory for one language at a time.
    @discardableResult
    public func importFolder(_ folder: URL) async throws -> ContentImport {
        let path = try folder.localPath()
        do {
            return try await importFolder(
                ContentLayoutReader(path, store.environment.fileSystem))
        } catch let error as FileError { throw FileStoreError(error) }
    }

    /// Imports a content folder that is open. The whole folder is read and checked first. The check of a
    /// resource file is that it exists, can be opened and is not too large.
    ///
    /// - Throws: `EventError` with file and path, before anything is recorded; as
    ///   `store(city:language:pages:resources:lastUpdate:)`.
    @discardableResult
    public func importFolder(_ folder: ContentLayoutReader) async throws -> ContentImport {
        var result = ContentImport(notes: try check(folder))
        var folder = folder
        let before = await store.lastDurable
        if let cities = folder.cityList { try await list(cities) }
        for city in folder.cities {
            result.cities += 1
            try await importPages(of: city, &folder, &result)
            // After the pages: a list that equals the languages of the pages is not recorded.
            if let languages = try folder.languageList(of: city) {
                try await list(languages, of: city)
            }
            if let usage = folder.lastUsage(of: city) {
                try await store.write { transaction in
                    guard transaction.view(ContentView.self).lastUsage(of: city) != usage else {
                        return
                    }
                    try transaction.append(
                        ContentUsed(city: city, lastUsage: usage),
                        replacing: transaction.view(ContentView.self).usageTimestamp(of: city))
                }
            }
        }
        result.events = Int(clamping: await store.lastDurable.rawValue - before.rawValue)
        return result
    }

    private func importPages(
        of city: String, _ folder: inout ContentLayoutReader, _ result: inout ContentImport
    ) async throws {
        let files = try folder.resources(of: city)
        for language in languages(of: city, folder, files) {
            let pages = try folder.pages(of: city, language: language)
            let resources = files.map { $0[EntityID(language)] ?? [] }
            _ = try await replace(
                city: city, language: language, pages: pages, resources: resources,
                lastUpdate: folder.lastUpdate(of: city, language: language))
            result.pages += pages?.count ?? 0
            result.resources += (resources ?? []).count { !$0.content.isKept }
        }
    }

    /// Checks everything that recording would refuse.
    ///
    /// - Returns: descriptions of the skipped entries.
    private func check(_ folder: ContentLayoutReader) throws -> [String] {
        var folder = folder
        let content = store.view(ContentView.self)
        if let cities = folder.cityList {
            _ = try EventDraft.checked(CitiesListed(cities: cities))
        }
        for city in folder.cities {
            if let languages = try folder.languageList(of: city) {
                _ = try EventDraft.checked(LanguagesListed(city: city, languages: languages))
            }
            if let usage = folder.lastUsage(of: city) {
                _ = try EventDraft.checked(ContentUsed(city: city, lastUsage: usage))
            }
            let files = try folder.resources(of: city)
            for language in languages(of: city, folder, files) {
                _ = try ContentUpdate(
                    city: city, language: language,
                    pages: try folder.pages(of: city, language: language),
                    resources: files?[EntityID(language)],
                    lastUpdate: folder.lastUpdate(of: city, language: language), content)
            }
        }
        return folder.notes
    }

    /// The languages to import. A city's list of files covers all languages, also the stored ones: a
    /// language without an entry in it has no files.
    private func languages(
        of city: String, _ folder: ContentLayoutReader, _ files: [EntityID: [ContentResource]]?
    ) -> [String] {
        var languages = Set(folder.languages(of: city).map(EntityID.init))
        if let files {
            let known = store.view(ContentView.self).resourceLanguages(of: city)
            languages.formUnion(files.keys)
            languages.formUnion(known.map(EntityID.init))
        }
        return languages.sorted().map(\.string)
    }
}
