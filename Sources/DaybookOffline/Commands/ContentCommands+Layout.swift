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
    /// The number of pages in all languages that are stored as the folder has them, or newer.
    public var pages = 0
    /// The number of resources that were read.
    public var resources = 0
    /// A description of each file, page and entry that was not imported, with its location in the folder.
    public var notes: [String] = []

    /// Runs `body`, which stores a list, and notes what it left out. A list of which no element could be read is not
    /// stored.
    fileprivate mutating func importList<Element>(
        _ list: [Element], _ unread: [String], _ location: String,
        _ body: () async throws -> [ListFault]
    ) async throws {
        guard !list.isEmpty || unread.isEmpty else {
            notes.append("\(location): no element can be read; the stored list stays")
            return
        }
        let leftOut = try await noting(location, body)
        notes += (leftOut ?? []).map { "\(location): \($0)" }
    }

    /// Runs `body`. If data cannot be recorded, adds a note.
    @discardableResult
    fileprivate mutating func noting<Result>(
        _ location: String, _ body: () async throws -> Result
    ) async throws -> Result? {
        do { return try await body() } catch let error as EventError where error.code != .refused {
            notes.append("\(location): \(error.detail)")
            return nil
        }
    }
}

extension ContentCommands {
    /// Imports a content folder, which another app may have written: `cities-meta.json`, `cities.json`,
    /// `content` and `resource-cache` (`Spec/model/content.md`, CONT-30 and CONT-35), also in the shapes of
    /// other years (CONT-38). Records what the log does not have yet, so a repeated import records nothing.
    /// Durable on return.
    ///
    /// What cannot be read or recorded is left out, with a note that names its location; everything else is
    /// imported. What is stored of an element, a page or a file that is missing or cannot be read stays, and the time of
    /// an update is recorded only with all of its pages. Content that the log has from a later update is not replaced; a time more than a day ahead of the
    /// clock does not count as later. Names that a file system has
    /// written in another case or Unicode form are those of the folder's lists (CONT-40).
    ///
    /// - Throws: `FileStoreError` for a folder that the system cannot list; as
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

    /// Imports a content folder that is open.
    ///
    /// - Throws: as `store(city:language:pages:resources:lastUpdate:)`.
    @discardableResult
    public func importFolder(_ folder: ContentLayoutReader) async throws -> ContentImport {
        var result = ContentImport()
        var folder = folder
        let before = await store.lastDurable
        let known = store.view(ContentView.self)
        let now = await store.timestamp
        let updates = (
            folder: folder.cities.flatMap { folder.lastUpdates(of: $0) },
            log: known.cityCodes.flatMap { known.lastUpdates(of: $0).map(\.time.moment) }
        )
        if let cities = folder.cityList,
            known.cityList == nil || Self.isCurrent(updates.folder, updates.log, at: now)
        {
            try await result.importList(cities, folder.unreadCities, ContentLayout.cities) {
                try await list(cities, unread: folder.unreadCities)
            }
        }
        for city in folder.cities {
            result.cities += 1
            try await importPages(of: city, &folder, known, now, &result)
            // After the pages: a list that equals the languages of the pages is not recorded.
            if let (languages, unread) = try folder.languageList(of: city),
                known.languages(of: city) == nil
                    || Self.isCurrent(
                        folder.lastUpdates(of: city),
                        known.lastUpdates(of: city).map(\.time.moment), at: now)
            {
                try await result.importList(languages, unread, "languages of \(city)") {
                    try await list(languages, of: city, unread: unread)
                }
            }
            if let usage = folder.lastUsage(of: city), !usage.moment.isAhead(of: now) {
                try await result.noting("last use of \(city)") {
                    try await recordUse(ContentUsed(city: city, lastUsage: usage))
                }
            }
        }
        result.events = Int(clamping: await store.lastDurable.rawValue - before.rawValue)
        result.notes = folder.notes + result.notes
        return result
    }

    /// Whether content of a folder may replace content of the log, by the times of their updates that are believed.
    /// Content without a time may be older than any.
    private static func isCurrent(
        _ folder: [Timestamp], _ log: [Timestamp], at now: Timestamp
    ) -> Bool {
        guard let folder = latest(folder, at: now), let log = latest(log, at: now) else {
            return false
        }
        guard let folder = folder.believed(at: now, beside: log) else { return false }
        return log.believed(at: now, beside: folder).map { folder >= $0 } ?? true
    }

    /// The latest time that is not ahead of the clock; if all are, the latest of them.
    private static func latest(_ times: [Timestamp], at now: Timestamp) -> Timestamp? {
        times.filter { !$0.isAhead(of: now) }.max() ?? times.max()
    }

    /// Records a use that is later than the recorded one, or replaces one that is ahead of the clock.
    private func recordUse(_ used: ContentUsed) async throws {
        _ = try EventDraft.checked(used)
        try await store.write { transaction in
            let content = transaction.view(ContentView.self)
            let last = content.lastUsage(of: used.city)?.moment
                .believed(at: transaction.now, beside: used.lastUsage.moment)
            guard last.map({ $0 < used.lastUsage.moment }) ?? true else { return }
            try transaction.append(used, replacing: content.usageTimestamp(of: used.city))
        }
    }

    private func importPages(
        of city: String, _ folder: inout ContentLayoutReader, _ known: ContentView,
        _ now: Timestamp, _ result: inout ContentImport
    ) async throws {
        let files = try folder.resources(of: city)
        for language in languages(of: city, folder, files) {
            let given = folder.lastUpdate(of: city, language: language)
            let last = known.lastUpdate(of: city, language: language)
            // A time that is not believed counts as none.
            let update = given?.believed(at: now, beside: last)
            let stored = last?.believed(at: now, beside: given)
            let isCurrent = update.flatMap { u in stored.map { u.moment >= $0.moment } } ?? false
            if let stored, !isCurrent {
                guard folder.languages(of: city).contains(language) else { continue }
                result.notes.append(
                    "\(city), \(language): the log has the update of \(stored), which is later than "
                        + "the folder's (\(update?.text ?? "no time"))")
                continue
            }
            var missing: [PageKind] = []
            let pages = try folder.pages(of: city, language: language, missing: &missing)
            let storedPages = store.view(PagesView.self)
            missing.removeAll { storedPages.pages($0, city: city, language: language).isEmpty }
            result.notes += missing.map {
                "\(city), \(language): there is no \(ContentLayout.file(of: $0)); its stored pages stay"
            }
            let resources = files.map { $0[EntityID(language)] ?? [] }
            let isComplete = folder.isComplete(city, language: language) && missing.isEmpty
            let isNewer =
                update.map { update in stored.map { $0.moment < update.moment } ?? true } ?? false
            if pages == nil, isNewer {
                result.notes.append(
                    "\(city), \(language): there are no pages, so the time of their update is not "
                        + "recorded, and stored ones stay")
            }
            let changes = try await result.noting("\(city), \(language)") {
                try await replace(
                    city: city, language: language, pages: pages, resources: resources,
                    lastUpdate: isComplete && pages != nil ? update : nil,
                    from: .folder(removesOthers: isComplete && isCurrent, now: now))
            }
            guard let changes else { continue }
            result.notes += changes.leftOut.map { "\(city), \(language): \($0)" }
            result.pages += (pages?.count ?? 0) - changes.leftOut.count { $0.url == nil }
            let files = changes.leftOut.count { $0.url != nil }
            result.resources += max(0, (resources ?? []).count { !$0.content.isKept } - files)
        }
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

extension ZonedTime {
    /// As `Timestamp.believed(at:beside:)`.
    fileprivate func believed(at now: Timestamp, beside other: ZonedTime?) -> ZonedTime? {
        moment.believed(at: now, beside: other?.moment).map { _ in self }
    }
}
