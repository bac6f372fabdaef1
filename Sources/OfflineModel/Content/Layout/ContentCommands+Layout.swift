// Takes over what a folder says: the commands that an app would use, with what it would have fetched.
// Spec/content.md, CONT-35.

import EventSourcing

extension ContentCommands {
    /// What an import has recorded.
    package struct Import: Hashable, Sendable {
        package var events = 0
        package var cities = 0
        package var pages = 0
        package var resources = 0
        /// What was passed over, in words.
        package var notes: [String] = []
    }

    /// Records what a folder says and the log does not. All of the folder is read and checked first.
    ///
    /// - Throws: `EventError` with file and place, before anything is recorded; as
    ///   `store(city:language:pages:resources:lastUpdate:)`.
    package func takeOver(_ folder: ContentLayoutReader) async throws -> Import {
        var checked = folder
        for city in checked.cities {
            _ = try checked.languageList(of: city)
            _ = try checked.resources(of: city)
            for language in checked.languages(of: city) {
                _ = try checked.pages(of: city, language: language)
            }
        }
        var result = Import(notes: checked.notes)
        var folder = folder
        let before = await store.lastDurable
        if let cities = folder.cityList { try await list(cities) }
        for city in folder.cities {
            result.cities += 1
            try await takeOver(city, &folder, &result)
            // Behind the pages: a list that follows from them says nothing new.
            if let languages = try folder.languageList(of: city) {
                try await list(languages, of: city)
            }
            if let usage = folder.lastUsage(of: city) {
                try await store.write { transaction in
                    guard transaction.view(ContentView.self).lastUsage(of: city) != usage else {
                        return
                    }
                    try transaction.append(ContentUsed(city: city, lastUsage: usage))
                }
            }
        }
        result.events = Int(clamping: await store.lastDurable.rawValue - before.rawValue)
        return result
    }

    private func takeOver(
        _ city: String, _ folder: inout ContentLayoutReader, _ result: inout Import
    ) async throws {
        let files = try folder.resources(of: city)
        var languages = folder.languages(of: city)
        languages += (files ?? []).map(\.language).filter { language in
            !languages.contains { EntityID($0) == EntityID(language) }
        }
        for language in languages {
            let pages = try folder.pages(of: city, language: language)
            let resources = files?.first { EntityID($0.language) == EntityID(language) }?.resources
            _ = try await replace(
                city: city, language: language, pages: pages,
                resources: files == nil ? nil : resources ?? [],
                lastUpdate: folder.lastUpdate(of: city, language: language))
            result.pages += pages?.count ?? 0
            result.resources += resources?.count ?? 0
        }
    }
}
