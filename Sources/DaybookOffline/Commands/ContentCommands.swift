// The commands of an app on cached content: store a server's content, use a city, read a page. See also
// ContentQueries, ContentUpdate. Spec/model/content.md.

import Daybook
import Foundation

/// Commands and queries on the content cache: pages, events, points of interest and their files.
///
/// No event of these commands is shipped. Content that is the same for all accounts belongs in a store
/// that they share (`OfflineStore.openShared`).
public struct ContentCommands: Sendable {
    let store: EventStore
    let files: FileStore

    /// The maximum number of cities whose content is kept.
    public static let keptCitiesMax = 3
    /// The time in milliseconds within which a further use of the same city is not recorded.
    static let useIntervalMilliseconds: Int64 = 5 * 60 * 1_000

    /// Creates the commands of a store.
    public init(_ store: EventStore, _ files: FileStore) {
        self.store = store
        self.files = files
    }

    // MARK: Lists

    /// Stores the list of cities; an unchanged one is not recorded again. Durable on return.
    ///
    /// - Returns: the cities that could not be stored, each with its location and the reason: an empty name,
    ///   code or sorting name, a code that occurs before, properties that are no object. All others are
    ///   stored. Of a city that could not be stored the stored version stays in the list; if its code is empty, all
    ///   stored cities stay.
    /// - Throws: `EventError` for a list of which no city can be stored, and (`tooLarge`) for one of more
    ///   than 1 MiB: the stored list stays; `LogError` as `EventStore.append`.
    /// - Complexity: O(bytes of the list).
    @discardableResult
    public func list(_ cities: [ListedCity]) async throws -> [ListFault] {
        try await list(cities, unread: [])
    }

    /// As `list(_:)`.
    ///
    /// - Parameter unread: the codes of further cities that could not be read, empty if unknown.
    func list(_ cities: [ListedCity], unread: [String]) async throws -> [ListFault] {
        let storable = try StorableElements(of: cities, "cities", id: \.code) {
            CitiesListed(cities: [$0])
        }
        try await store.write { transaction in
            let known = transaction.view(ContentView.self).cityList ?? []
            let listed = CitiesListed(
                cities: storable.keeping(known, unread: unread, id: \.code))
            guard try CitiesListed(cities: known).json() != listed.json() else { return }
            try transaction.append(
                listed, replacing: transaction.view(ContentView.self).listTimestamp)
        }
        return storable.leftOut
    }

    /// Stores the languages of a city; unchanged ones are not recorded again. Durable on return.
    ///
    /// - Returns: the languages that could not be stored, as `list(_:)`, of which the stored versions stay.
    /// - Throws: as `list(_:)`; `EventError` (`invalidData`) for an empty code of the city.
    /// - Complexity: O(bytes of the list).
    @discardableResult
    public func list(_ languages: [ListedLanguage], of city: String) async throws -> [ListFault] {
        try await list(languages, of: city, unread: [])
    }

    /// As `list(_:of:)`.
    ///
    /// - Parameter unread: the codes of further languages that could not be read, empty if unknown.
    func list(
        _ languages: [ListedLanguage], of city: String, unread: [String]
    ) async throws -> [ListFault] {
        let storable = try StorableElements(of: languages, "languages", id: \.code) {
            LanguagesListed(city: city, languages: [$0])
        }
        try await store.write { transaction in
            // A list that equals the languages of the pages is not recorded.
            let known =
                transaction.view(ContentView.self).languages(of: city)
                ?? transaction.view(PagesView.self).languages(of: city).map {
                    ListedLanguage(code: $0, name: nil)
                }
            let listed = LanguagesListed(
                city: city, languages: storable.keeping(known, unread: unread, id: \.code))
            guard try LanguagesListed(city: city, languages: known).json() != listed.json() else {
                return
            }
            try transaction.append(
                listed, replacing: transaction.view(ContentView.self).languagesTimestamp(of: city))
        }
        return storable.leftOut
    }

    // MARK: Content

    /// Stores the complete content of a language. Pages and files that are not given are removed;
    /// unchanged ones are not recorded again.
    ///
    /// Durable on return. A language of more than about 1 MiB is recorded in several commits, the time of
    /// the update last: a crash in between leaves some pages new and some old, and the previous time of
    /// the update. The same call again records what is missing. A change by another command in between is
    /// detected: the time of the update is recorded only in a commit at which all given content is
    /// stored. Then files that no view names are deleted.
    ///
    /// Storing is no use. So an app can show a city without keeping it (peeking): it stores and reads the
    /// city and does not call `use(_:)`. That evicts nothing, and such a city is evicted first at the next
    /// use of another one. If a city gets its first content after its use was recorded, storing evicts the
    /// surplus, as `use(_:)` does for a city with content.
    ///
    /// - Parameters:
    ///   - city: the city's code.
    ///   - language: the language's code.
    ///   - pages: all pages of the language, each path once.
    ///   - resources: all files of these pages; nil keeps the stored ones.
    ///   - lastUpdate: the time of the update, from which the app computes when the next one is due.
    /// - Returns: the changes, and in `leftOut` the pages and files that could not be stored: data that
    ///   break the rules of their type (`Spec/model/events.md`, EVT-7), such as an invalid URL; a page of
    ///   more than 1 MiB; the second page of a path; a resource given as `.stored` that is not stored; a
    ///   file that is missing, damaged or too large. What is stored under their paths and URLs stays, and
    ///   all other content is stored, with the time of the update.
    /// - Throws: `EventError` (`refused`) for an empty code, before anything is recorded. `FileStoreError`
    ///   if a file cannot be read or written. `LogError` as `EventStore.append`. Later, and without the
    ///   time of the update recorded: `refused` if other commands keep changing this language meanwhile.
    /// - Complexity: O(bytes given + pages and files stored of the language).
    @discardableResult
    public func store(
        city: String, language: String, pages: [ContentPage], resources: [ContentResource]? = nil,
        lastUpdate: ZonedTime
    ) async throws -> ContentChanges {
        try await replace(
            city: city, language: language, pages: pages, resources: resources,
            lastUpdate: lastUpdate, from: .server)
    }

    /// As `store(city:language:pages:resources:lastUpdate:)`.
    ///
    /// - Parameters:
    ///   - city: the city's code.
    ///   - language: the language's code.
    ///   - pages: nil keeps the stored ones.
    ///   - resources: nil keeps the stored ones.
    ///   - lastUpdate: nil keeps the stored one.
    ///   - origin: the origin of the content.
    func replace(
        city: String, language: String, pages: [ContentPage]?, resources: [ContentResource]?,
        lastUpdate: ZonedTime?, from origin: ContentUpdate.Origin
    ) async throws -> ContentChanges {
        let content = store.view(ContentView.self)
        let hadContent = Self.hasContent(city, store.view(PagesView.self), content)
        var update = try ContentUpdate(
            city: city, language: language, pages: pages, resources: resources,
            lastUpdate: lastUpdate, origin, content)
        var held: [FileID] = []
        do {
            for resource in update.resources {
                let file = try await update.storeFileIfPossible(
                    of: resource, files, content, store.environment.fileSystem)
                if let file { held.append(file) }
            }
            var changes = try await update.record(in: store)
            await files.release(held)
            held = []
            if case .server = origin, !hadContent, content.lastUsage(of: city) != nil {
                changes.evicted = try await evictSurplus(for: city)
            }
            if changes.resourcesStored + changes.resourcesRemoved > 0 || !changes.evicted.isEmpty {
                // The update is recorded: the next collection deletes what this one cannot.
                _ = try? await files.collect()
            }
            return changes
        } catch {
            await files.release(held)
            // Deletes the files that were stored in vain; if it fails, the next collection does.
            _ = try? await files.collect()
            throw error
        }
    }

    /// Removes all cached content of a city: pages, files, languages and times. Durable on return; files
    /// that nothing else names are deleted then.
    ///
    /// - Throws: `EventError` (`refused`) for a city without cached content; `LogError` as
    ///   `EventStore.append`; `FileStoreError` for a file that could not be deleted, with the removal
    ///   recorded: `FileStore.collect()` tries again.
    /// - Complexity: O(cached content of the city + files).
    public func remove(_ city: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            guard
                Self.cachedCities(
                    transaction.view(PagesView.self), transaction.view(ContentView.self)
                ).contains(where: { EntityID($0) == EntityID(city) })
            else { throw EventError(.refused, "nothing is cached of the city \(city)") }
            try Self.remove(city, in: &transaction)
        }
        try await files.collect()
    }

    /// Removes the content of a city, also events that were recorded while the clock was ahead.
    private static func remove(
        _ city: String, in transaction: inout EventStore.Transaction
    ) throws {
        let newest = [
            transaction.view(PagesView.self).newest(of: city),
            transaction.view(ContentView.self).newest(of: city),
        ]
        try transaction.append(
            ContentRemoved(city: city), replacing: newest.compactMap(\.self).max())
    }

    // MARK: Use

    /// Records the use of a city. If it has content, evicts other cities, so that the content of at most
    /// three is kept: first cities that were never used, then the least recently used ones. The use of a
    /// city without content evicts nothing, and neither does a use without a network: what is evicted then
    /// cannot be fetched again. The next use with a network evicts the surplus.
    ///
    /// Cheap if no city is evicted: a use within 5 minutes of the last one of the same city is not
    /// recorded, and others are `.relaxed`, so a kill may lose them. An eviction is durable on return,
    /// and its files are deleted.
    ///
    /// - Parameters:
    ///   - city: the city's code.
    ///   - network: the device's network.
    /// - Returns: the evicted cities.
    /// - Throws: `EventError` (`refused`) for an empty code; `LogError` as `EventStore.append`;
    ///   `FileStoreError` as `remove(_:)`.
    /// - Complexity: O(cached cities); if a city is evicted, as `remove(_:)`.
    @discardableResult
    public func use(_ city: String, on network: NetworkPath = .wifi) async throws -> [String] {
        try ContentUsed.require(city, "city code")
        let used = ContentUsed(city: city, lastUsage: ZonedTime(await store.timestamp))
        let content = store.view(ContentView.self)
        if Self.isWorthRecording(used, content) {
            try await store.append(
                used, replacing: content.usageTimestamp(of: city), durability: .relaxed)
        }
        guard network != .none else { return [] }
        let evicted = try await evictSurplus(for: city)
        if !evicted.isEmpty { try await files.collect() }
        return evicted
    }

    /// Evicts the surplus for a city that is used. Durable on return.
    private func evictSurplus(for city: String) async throws -> [String] {
        let (pages, content) = (store.view(PagesView.self), store.view(ContentView.self))
        let now = await store.timestamp
        guard !Self.citiesToEvict(for: city, pages, content, at: now).isEmpty else { return [] }
        return try await store.write(drawingOnReserve: true) { transaction in
            let evicted = Self.citiesToEvict(
                for: city, transaction.view(PagesView.self), transaction.view(ContentView.self),
                at: transaction.now)
            for city in evicted { try Self.remove(city, in: &transaction) }
            return evicted
        }
    }

    /// Whether a use is at least 5 minutes from the last recorded one: after it or, if the clock was set
    /// back, before it.
    private static func isWorthRecording(_ used: ContentUsed, _ content: ContentView) -> Bool {
        guard let last = content.lastUsage(of: used.city)?.moment else { return true }
        return abs(used.lastUsage.moment.milliseconds - last.milliseconds)
            >= useIntervalMilliseconds
    }

    /// The cities with anything to remove: content, lists or times.
    private static func cachedCities(_ pages: PagesView, _ content: ContentView) -> [String] {
        Set((pages.cityCodes + content.cityCodes).map(EntityID.init)).sorted().map(\.string)
    }

    /// Whether a city has pages or files.
    private static func hasContent(
        _ city: String, _ pages: PagesView, _ content: ContentView
    ) -> Bool {
        content.hasFiles(of: city) || !pages.languages(of: city).isEmpty
    }

    /// The cities to evict so that a city can be used: first cities that were never used, then those whose last
    /// use is in the future because of a wrong clock, then the least recently used. None if the city has no
    /// content.
    private static func citiesToEvict(
        for city: String, _ pages: PagesView, _ content: ContentView, at now: Timestamp
    ) -> [String] {
        guard hasContent(city, pages, content) else { return [] }
        let candidates = cachedCities(pages, content)
            .filter { EntityID($0) != EntityID(city) && hasContent($0, pages, content) }
        let count = candidates.count + 1 - keptCitiesMax
        guard count > 0 else { return [] }
        let future = Timestamp(milliseconds: now.milliseconds + useIntervalMilliseconds)
        let order = candidates.map { city in
            let use = content.lastUsage(of: city)?.moment
            let rank = use.map { $0 > future ? 1 : 2 } ?? 0
            return (rank, use ?? Timestamp(milliseconds: .min), EntityID(city))
        }
        return order.sorted { $0 < $1 }.prefix(count).map(\.2.string)
    }

    // MARK: Reading

    /// A page with its content, from the log; nil if it is not stored.
    ///
    /// - Throws: `LogError`, `corrupt` if the log has lost the event that contains it.
    /// - Complexity: one frame to read.
    public func page(
        _ path: String, city: String, language: String
    ) async throws -> ContentPage? {
        try await store.named(
            PageStored.self,
            by: { store.view(PagesView.self).page(path, city: city, language: language) },
            event: \.event)?.payload.page
    }
}
