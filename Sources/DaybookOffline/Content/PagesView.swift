// The pages on the device: one register for each (city, language, path), without the HTML. The removal of
// a city is an LWW timestamp: registers up to it are void. Spec/model/content.md, CONT-4;
// Spec/model/views.md.

import Daybook
import HashTreeCollections

/// The cached pages of all cities.
public struct PagesView: ListableView {
    public static let name = "pages"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        PageStored.type, PageRemoved.type, ContentRemoved.type,
    ]

    /// The register of a path. Indirect, so that the dictionary's nodes are small.
    private indirect enum Entry: Sendable {
        case stored(StoredPage, LWWTimestamp)
        case removed(LWWTimestamp)

        var lwwTimestamp: LWWTimestamp {
            switch self {
            case .stored(_, let lwwTimestamp), .removed(let lwwTimestamp): lwwTimestamp
            }
        }
        var page: StoredPage? {
            if case .stored(let page, _) = self { page } else { nil }
        }
    }

    /// The pages of one language, with indexes by kind and by parent.
    private struct Language: Sendable {
        var entries: TreeDictionary<EntityID, Entry> = [:]
        var kinds: TreeDictionary<PageKind, TreeSet<EntityID>> = [:]
        var children: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]

        mutating func set(_ path: EntityID, _ entry: Entry) {
            if let old = entries[path]?.page { removeFromIndexes(path, old) }
            entries[path] = entry
            guard let page = entry.page else { return }
            kinds[page.kind, default: []].insert(path)
            if let parent = page.parentPath {
                children[EntityID(parent), default: []].insert(path)
            }
        }

        private mutating func removeFromIndexes(_ path: EntityID, _ page: StoredPage) {
            kinds[page.kind]?.remove(path)
            if kinds[page.kind]?.isEmpty ?? false { kinds[page.kind] = nil }
            guard let parent = page.parentPath.map(EntityID.init) else { return }
            children[parent]?.remove(path)
            if children[parent]?.isEmpty ?? false { children[parent] = nil }
        }

        /// The language without the entries whose LWW timestamp is at most `lwwTimestamp`.
        func removingEntries(through lwwTimestamp: LWWTimestamp) -> Language {
            var remaining = Language()
            for (path, entry) in entries where entry.lwwTimestamp > lwwTimestamp {
                remaining.set(path, entry)
            }
            return remaining
        }

        func pages(_ paths: TreeSet<EntityID>?) -> [StoredPage] {
            (paths ?? []).compactMap { entries[$0]?.page }.sorted(by: StoredPage.precedes)
        }
    }

    private struct City: Sendable {
        /// The last removal: all events up to it are void.
        var removed: LWWTimestamp?
        /// The pages by language. Each language has at least one entry.
        var languages: TreeDictionary<EntityID, Language> = [:]
    }

    private var cities: TreeDictionary<EntityID, City> = [:]
    /// The number of events whose data is invalid.
    public private(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        switch event.type {
        case PageStored.type:
            guard let stored = try? event.payload(as: PageStored.self), let own = try? stored.json()
            else {
                return ignored += 1
            }
            let page = StoredPage(
                stored.page, event: event.id, digest: PageStored.digest(of: own))
            set(.stored(page, event.lwwTimestamp), stored.city, stored.language, page.path)
        case PageRemoved.type:
            guard let removed = try? event.payload(as: PageRemoved.self) else {
                return ignored += 1
            }
            set(.removed(event.lwwTimestamp), removed.city, removed.language, removed.path)
        case ContentRemoved.type:
            guard let removed = try? event.payload(as: ContentRemoved.self) else {
                return ignored += 1
            }
            removeCity(EntityID(removed.city), event.lwwTimestamp)
        default: break
        }
    }

    private mutating func set(_ entry: Entry, _ city: String, _ language: String, _ path: String) {
        let (city, language, path) = (EntityID(city), EntityID(language), EntityID(path))
        let known = cities[city]
        guard
            [known?.removed, known?.languages[language]?.entries[path]?.lwwTimestamp]
                .allSatisfy({ $0.map { $0 < entry.lwwTimestamp } ?? true })
        else { return }
        cities[city, default: City()].languages[language, default: Language()].set(path, entry)
    }

    private mutating func removeCity(_ city: EntityID, _ lwwTimestamp: LWWTimestamp) {
        var known = cities[city] ?? City()
        guard known.removed.map({ $0 < lwwTimestamp }) ?? true else { return }
        known.removed = lwwTimestamp
        for (code, language) in known.languages {
            let remaining = language.removingEntries(through: lwwTimestamp)
            known.languages[code] = remaining.entries.isEmpty ? nil : remaining
        }
        cities[city] = known
    }

    private func language(_ city: String, _ language: String) -> Language? {
        cities[EntityID(city)]?.languages[EntityID(language)]
    }

    // MARK: Winners

    /// The LWW timestamp that the next event of a path must exceed to win. O(1).
    func lwwTimestamp(of path: String, city: String, language: String) -> LWWTimestamp? {
        self.language(city, language)?.entries[EntityID(path)]?.lwwTimestamp
            ?? cities[EntityID(city)]?.removed
    }

    /// The greatest LWW timestamp of a city. O(pages of the city).
    func newest(of city: String) -> LWWTimestamp? {
        let city = cities[EntityID(city)]
        let lwwTimestamps = (city?.languages ?? [:]).values.compactMap {
            $0.entries.values.map(\.lwwTimestamp).max()
        }
        return (lwwTimestamps + [city?.removed].compactMap(\.self)).max()
    }

    // MARK: Queries

    /// The page with a path; nil if it is not stored. O(1).
    public func page(_ path: String, city: String, language: String) -> StoredPage? {
        self.language(city, language)?.entries[EntityID(path)]?.page
    }

    /// The pages of a kind, in the order in which they are shown: by `order`, then by the start of an
    /// event, then by path. O(n log n) for n such pages.
    public func pages(_ kind: PageKind, city: String, language: String) -> [StoredPage] {
        let language = self.language(city, language)
        return language?.pages(language?.kinds[kind]) ?? []
    }

    /// The children of a page of the tree, in order; the top pages are children of the empty path.
    /// O(n log n) for n such pages.
    public func children(of path: String, city: String, language: String) -> [StoredPage] {
        let language = self.language(city, language)
        return language?.pages(language?.children[EntityID(path)]) ?? []
    }

    /// The languages of a city with stored pages, sorted. O(languages of the city).
    public func languages(of city: String) -> [String] {
        (cities[EntityID(city)]?.languages ?? [:]).filter { !$0.value.kinds.isEmpty }
            .map(\.key).sorted().map(\.string)
    }

    /// The cities with stored pages, sorted. O(cities and their languages).
    public var cityCodes: [String] {
        cities.filter { $0.value.languages.contains { !$0.value.kinds.isEmpty } }
            .map(\.key).sorted().map(\.string)
    }

    /// All pages of a language, by path. O(n log n) for n such pages.
    func all(city: String, language: String) -> [StoredPage] {
        (self.language(city, language)?.entries ?? [:]).values.compactMap(\.page)
            .sorted { EntityID($0.path) < EntityID($1.path) }
    }

    public static let columns = [
        "city", "language", "path", "kind", "title", "lastUpdate", "thumbnail", "parentPath",
        "order", "contentBytes", "event",
    ]

    public func rows() -> ViewRows {
        let pages = cityCodes.flatMap { city in
            languages(of: city).flatMap { language in
                all(city: city, language: language).map { (city, language, $0) }
            }
        }
        return ViewRows(pages) { city, language, page in
            var row = ViewRow()
            row.appendField("city", city)
            row.appendField("language", language)
            row.appendField("path", page.path)
            row.appendField("kind", page.kind.rawValue)
            row.appendField("title", page.title)
            row.appendField("lastUpdate", page.lastUpdate.text)
            row.appendField("thumbnail", page.thumbnail)
            row.appendField("parentPath", page.parentPath)
            row.appendField("order", raw: page.order.map { Array("\($0)".utf8) })
            row.appendField("contentBytes", page.contentBytes)
            row.appendField("event", page.event.text)
            return row
        }
    }
}

extension PagesView {
    /// The first byte of an encoded entry.
    private enum Tag {
        static let removed: UInt8 = 0
        static let stored: UInt8 = 1
    }

    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var entries = writer.entries(count: cities.count)
        for (code, city) in cities {
            writer.begin(code, of: &entries)
            writer.write(city.removed != nil)
            if let lwwTimestamp = city.removed { writer.write(lwwTimestamp) }
            var languages = writer.entries(count: city.languages.count)
            for (code, language) in city.languages {
                writer.begin(code, of: &languages)
                var pages = writer.entries(count: language.entries.count)
                for (path, entry) in language.entries {
                    writer.begin(path, of: &pages)
                    writer.write(byte: entry.page == nil ? Tag.removed : Tag.stored)
                    writer.write(entry.lwwTimestamp)
                    entry.page?.write(to: &writer)
                }
                writer.end(pages)
            }
            writer.end(languages)
        }
        writer.end(entries)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        var cities = self.cities
        try reader.entries { (reader, code) throws(EventError) in
            var city = City()
            if try reader.bool() { city.removed = try reader.lwwTimestamp() }
            try reader.entries { (reader, code) throws(EventError) in
                var language = Language()
                try reader.entries { (reader, path) throws(EventError) in
                    language.set(path, try Self.entry(&reader, path, after: city.removed))
                }
                guard !language.entries.isEmpty else { throw reader.fault("a language is empty") }
                city.languages[code] = language
            }
            guard city.removed != nil || !city.languages.isEmpty else {
                throw reader.fault("a city is empty")
            }
            cities[code] = city
        }
        try reader.finish()
        self.cities = cities
    }

    private static func entry(
        _ reader: inout StateReader, _ path: EntityID, after removed: LWWTimestamp?
    ) throws(EventError) -> Entry {
        let tag = try reader.byte()
        let lwwTimestamp = try reader.lwwTimestamp()
        if let removed, lwwTimestamp <= removed {
            throw reader.fault("a page is older than the removal of its city")
        }
        switch tag {
        case Tag.removed: return .removed(lwwTimestamp)
        case Tag.stored: return .stored(try StoredPage(path: path.string, &reader), lwwTimestamp)
        default: throw reader.fault("the entry of a page has an unknown tag")
        }
    }
}

extension PagesView: CompactableView {
    /// An event is needed while it is the winner of its path. The last removal of a city is needed
    /// forever and supersedes all events before it.
    public func retention(of event: Event) -> Retention {
        switch event.type {
        case PageStored.type:
            guard let stored = try? event.payload(as: PageStored.self) else {
                return .needed(.notUnderstood)
            }
            return retention(of: event, stored.city, stored.language, stored.page.path)
        case PageRemoved.type:
            guard let removed = try? event.payload(as: PageRemoved.self) else {
                return .needed(.notUnderstood)
            }
            return retention(of: event, removed.city, removed.language, removed.path)
        case ContentRemoved.type:
            guard let removed = try? event.payload(as: ContentRemoved.self) else {
                return .needed(.notUnderstood)
            }
            let winner = cities[EntityID(removed.city)]?.removed
            return winner == event.lwwTimestamp ? .needed(.deletion) : .of(event, heldBy: [winner])
        default: return .unconcerned
        }
    }

    private func retention(
        of event: Event, _ city: String, _ language: String, _ path: String
    ) -> Retention {
        let known = cities[EntityID(city)]
        let winner = known?.languages[EntityID(language)]?.entries[EntityID(path)]?.lwwTimestamp
        return .of(event, heldBy: [winner ?? known?.removed])
    }
}
