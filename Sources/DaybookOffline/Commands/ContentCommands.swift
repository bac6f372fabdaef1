// What an app does with cached content: store what a server gave, use a city, read a page. Beside it:
// ContentQueries, ContentUpdate. Spec/model/content.md.

import Daybook
import Foundation

/// Commands and questions on the content cache: pages, events, points of interest and their files.
///
/// Nothing here is shipped. Content that is the same for all accounts belongs in a store that they
/// share (`OfflineStore.openShared`).
public struct ContentCommands: Sendable {
    let store: EventStore
    let files: FileStore

    /// Cities whose content is kept at most.
    public static let keptCitiesMax = 3
    /// A use that follows another of the same city within this time is not recorded, in
    /// milliseconds.
    static let useIntervalMilliseconds: Int64 = 5 * 60 * 1_000

    /// Creates the commands of a store.
    public init(_ store: EventStore, _ files: FileStore) {
        self.store = store
        self.files = files
    }

    // MARK: Lists

    /// Stores the list of cities; an unchanged one is not recorded again. Durable on return.
    ///
    /// - Throws: `EventError` (`invalidData`) for an empty name, code or sorting name, or a code
    ///   that occurs twice; `tooLarge` for a list of more than 1 MiB; `LogError` as
    ///   `EventStore.append`.
    /// - Complexity: O(cities).
    public func list(_ cities: [ListedCity]) async throws {
        let listed = CitiesListed(cities: cities)
        let json = try listed.json()
        try await store.write { transaction in
            let known = transaction.view(ContentView.self).cityList ?? []
            guard try CitiesListed(cities: known).json() != json else { return }
            try transaction.append(
                listed, replacing: transaction.view(ContentView.self).listStamp)
        }
    }

    /// Stores the languages of a city; unchanged ones are not recorded again. Durable on return.
    ///
    /// - Throws: as `list(_:)`.
    /// - Complexity: O(languages).
    public func list(_ languages: [ListedLanguage], of city: String) async throws {
        let listed = LanguagesListed(city: city, languages: languages)
        let json = try listed.json()
        try await store.write { transaction in
            // Nothing is learned from what the pages say already.
            let known =
                transaction.view(ContentView.self).languages(of: city)
                ?? transaction.view(PagesView.self).languages(of: city).map {
                    ListedLanguage(code: $0, name: nil)
                }
            guard try LanguagesListed(city: city, languages: known).json() != json else { return }
            try transaction.append(
                listed, replacing: transaction.view(ContentView.self).languagesStamp(of: city))
        }
    }

    // MARK: Content

    /// Stores the content of a language: what it has not is removed, what has not changed is not
    /// recorded again.
    ///
    /// Durable on return. A language of more than about 1 MiB is recorded in several commits, the
    /// time of the update last: a crash in between leaves some pages new and some old, and the time
    /// of the update before. Storing the same again records what is missing. What another command
    /// changes in between is seen: the time of the update is recorded in a commit at which all that
    /// was given is there. Files that nothing names any more are deleted then.
    ///
    /// Storing neither counts as a use nor makes room. So a city can be looked at in passing
    /// (peeking): store and read it, and do not call `use(_:)`. It is the first to go at the next
    /// use of another.
    ///
    /// - Parameters:
    ///   - city: the city's code.
    ///   - language: the language's code.
    ///   - pages: all pages of the language, each path once.
    ///   - resources: all files of these pages; nil leaves those that are there alone.
    ///   - lastUpdate: the time of the update, by which the app knows when the next is due.
    /// - Returns: what has changed.
    /// - Throws: `EventError` before anything is recorded: `invalidData` for data that break the
    ///   rules of their type (`Spec/model/events.md`, EVT-7), what is no URL included; `tooLarge` for a
    ///   page of more than 1 MiB; `refused` for a path that stands there twice, or a resource that
    ///   is said to be stored and is not, or is damaged. `FileStoreError` for a file. `LogError` as
    ///   `EventStore.append`. Later, without the time of the update on record: `refused` where
    ///   others keep changing this language meanwhile.
    /// - Complexity: O(bytes given + pages and files stored of the language).
    @discardableResult
    public func store(
        city: String, language: String, pages: [ContentPage], resources: [ContentResource]? = nil,
        lastUpdate: ZonedTime
    ) async throws -> ContentChanges {
        try await replace(
            city: city, language: language, pages: pages, resources: resources,
            lastUpdate: lastUpdate)
    }

    /// As `store(city:language:pages:resources:lastUpdate:)`.
    ///
    /// - Parameters:
    ///   - city: the city's code.
    ///   - language: the language's code.
    ///   - pages: nil leaves those that are there alone.
    ///   - resources: nil leaves those that are there alone.
    ///   - lastUpdate: nil leaves the one that is there.
    func replace(
        city: String, language: String, pages: [ContentPage]?, resources: [ContentResource]?,
        lastUpdate: ZonedTime?
    ) async throws -> ContentChanges {
        let content = store.view(ContentView.self)
        var update = try ContentUpdate(
            city: city, language: language, pages: pages, resources: resources,
            lastUpdate: lastUpdate, content)
        var held: [FileID] = []
        do {
            for resource in resources ?? [] {
                let file = try await update.add(
                    resource, files, content, store.environment.fileSystem)
                if let file { held.append(file) }
            }
            let changes = try await update.record(in: store)
            await files.release(held)
            if changes.resourcesStored + changes.resourcesRemoved > 0 {
                // All is on record: what cannot be deleted now goes with the next collection.
                _ = try? await files.collect()
            }
            return changes
        } catch {
            await files.release(held)
            // What was stored in vain goes with the next collection, if not with this one.
            _ = try? await files.collect()
            throw error
        }
    }

    /// Removes everything that is cached of a city: pages, files, languages and times. Durable on
    /// return; files that nothing else names are deleted then.
    ///
    /// - Throws: `EventError` (`refused`) for a city of which nothing is cached; `LogError` as
    ///   `EventStore.append`; `FileStoreError` for a file that could not be deleted, with the
    ///   removal on record: `FileStore.collect()` tries again.
    /// - Complexity: O(what is cached of the city + files).
    public func remove(_ city: String) async throws {
        try await store.write { transaction in
            guard
                Self.cached(transaction.view(PagesView.self), transaction.view(ContentView.self))
                    .contains(where: { EntityID($0) == EntityID(city) })
            else { throw EventError(.refused, "nothing is cached of the city \(city)") }
            try Self.remove(city, in: &transaction)
        }
        try await files.collect()
    }

    /// Removes what there is of a city, also what a clock that was ahead has recorded.
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

    /// Says that somebody looks at a city, and makes room: of the cities that are cached, at most
    /// three are kept. First go those that were only peeked at, then those that were used longest
    /// ago.
    ///
    /// Costs next to nothing where nothing goes: a use within 5 minutes of the last one of the same
    /// city is not recorded, and others are `.relaxed`, so a kill may lose them. What goes is
    /// durable on return, and its files are deleted.
    ///
    /// - Returns: the cities whose content went.
    /// - Throws: `EventError` (`refused`) for an empty code; `LogError` as `EventStore.append`;
    ///   `FileStoreError` as `remove(_:)`.
    /// - Complexity: O(cities that are cached); where one goes, as `remove(_:)`.
    @discardableResult
    public func use(_ city: String) async throws -> [String] {
        try ContentUsed.require(city, "city code")
        let now = await store.timestamp
        let (pages, content) = (store.view(PagesView.self), store.view(ContentView.self))
        let used = ContentUsed(city: city, lastUsage: ZonedTime(now))
        guard !Self.surplus(for: city, pages, content, at: now).isEmpty else {
            if Self.isDue(used, content) {
                try await store.append(
                    used, replacing: content.usageStamp(of: city), durability: .relaxed)
            }
            return []
        }
        let gone = try await store.write { transaction in
            let content = transaction.view(ContentView.self)
            let gone = Self.surplus(
                for: city, transaction.view(PagesView.self), content, at: transaction.now)
            if Self.isDue(used, content) {
                try transaction.append(used, replacing: content.usageStamp(of: city))
            }
            for city in gone { try Self.remove(city, in: &transaction) }
            return gone
        }
        try await files.collect()
        return gone
    }

    /// Whether a use is worth recording: it lies far enough from the last on record, behind it or,
    /// after a clock was put back, before it.
    private static func isDue(_ used: ContentUsed, _ content: ContentView) -> Bool {
        guard let last = content.lastUsage(of: used.city)?.moment else { return true }
        return abs(used.lastUsage.moment.milliseconds - last.milliseconds)
            >= useIntervalMilliseconds
    }

    /// The cities of which anything is cached.
    private static func cached(_ pages: PagesView, _ content: ContentView) -> [String] {
        Set((pages.cityCodes + content.cityCodes).map(EntityID.init)).sorted().map(\.string)
    }

    /// What must go so that a city can be used: first what was never used, then what a wrong clock
    /// says was used in times to come, then what was used longest ago.
    private static func surplus(
        for city: String, _ pages: PagesView, _ content: ContentView, at now: Timestamp
    ) -> [String] {
        let others = cached(pages, content).filter { EntityID($0) != EntityID(city) }
        let count = others.count + 1 - keptCitiesMax
        guard count > 0 else { return [] }
        let ahead = Timestamp(milliseconds: now.milliseconds + useIntervalMilliseconds)
        let order = others.map { city in
            let use = content.lastUsage(of: city)?.moment
            let rank = use.map { $0 > ahead ? 1 : 2 } ?? 0
            return (rank, use ?? Timestamp(milliseconds: .min), EntityID(city))
        }
        return order.sorted { $0 < $1 }.prefix(count).map(\.2.string)
    }

    // MARK: Reading

    /// A page with its content, from the log; nil if it is not stored.
    ///
    /// - Throws: `LogError`, `corrupt` where the log has lost the event that holds it.
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
