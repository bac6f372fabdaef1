// The pages that are on the device: one register for each (city, language, path), without the HTML.
// The removal of a city is a stamp: what it has not passed is gone. Spec/model/content.md, CONT-4;
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

    /// The last word on a path: in a box of its own, so that the dictionary's nodes are small.
    private indirect enum Entry: Sendable {
        case stored(StoredPage, Stamp)
        case removed(Stamp)

        var stamp: Stamp {
            switch self {
            case .stored(_, let stamp), .removed(let stamp): stamp
            }
        }
        var page: StoredPage? {
            if case .stored(let page, _) = self { page } else { nil }
        }
    }

    /// The pages of one language, with what finds them by kind and by the page above.
    private struct Language: Sendable {
        var entries: TreeDictionary<EntityID, Entry> = [:]
        var kinds: TreeDictionary<PageKind, TreeSet<EntityID>> = [:]
        var children: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]

        mutating func set(_ path: EntityID, _ entry: Entry) {
            if let old = entries[path]?.page { unlist(path, old) }
            entries[path] = entry
            guard let page = entry.page else { return }
            kinds[page.kind, default: []].insert(path)
            if let parent = page.parentPath {
                children[EntityID(parent), default: []].insert(path)
            }
        }

        private mutating func unlist(_ path: EntityID, _ page: StoredPage) {
            kinds[page.kind]?.remove(path)
            if kinds[page.kind]?.isEmpty ?? false { kinds[page.kind] = nil }
            guard let parent = page.parentPath.map(EntityID.init) else { return }
            children[parent]?.remove(path)
            if children[parent]?.isEmpty ?? false { children[parent] = nil }
        }

        /// What came behind a stamp.
        func passed(_ stamp: Stamp) -> Language {
            var rest = Language()
            for (path, entry) in entries where entry.stamp > stamp { rest.set(path, entry) }
            return rest
        }

        func pages(_ paths: TreeSet<EntityID>?) -> [StoredPage] {
            (paths ?? []).compactMap { entries[$0]?.page }.sorted(by: StoredPage.comesBefore)
        }
    }

    private struct City: Sendable {
        /// Everything up to here is gone.
        var removed: Stamp?
        /// Each with at least one entry.
        var languages: TreeDictionary<EntityID, Language> = [:]
    }

    private var cities: TreeDictionary<EntityID, City> = [:]
    /// Events whose data no rule can make sense of.
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
            set(.stored(page, event.stamp), stored.city, stored.language, page.path)
        case PageRemoved.type:
            guard let removed = try? event.payload(as: PageRemoved.self) else {
                return ignored += 1
            }
            set(.removed(event.stamp), removed.city, removed.language, removed.path)
        case ContentRemoved.type:
            guard let removed = try? event.payload(as: ContentRemoved.self) else {
                return ignored += 1
            }
            remove(EntityID(removed.city), event.stamp)
        default: break
        }
    }

    private mutating func set(_ entry: Entry, _ city: String, _ language: String, _ path: String) {
        let (city, language, path) = (EntityID(city), EntityID(language), EntityID(path))
        let known = cities[city]
        guard
            [known?.removed, known?.languages[language]?.entries[path]?.stamp]
                .allSatisfy({ $0.map { $0 < entry.stamp } ?? true })
        else { return }
        cities[city, default: City()].languages[language, default: Language()].set(path, entry)
    }

    private mutating func remove(_ city: EntityID, _ stamp: Stamp) {
        var known = cities[city] ?? City()
        guard known.removed.map({ $0 < stamp }) ?? true else { return }
        known.removed = stamp
        for (code, language) in known.languages {
            let rest = language.passed(stamp)
            known.languages[code] = rest.entries.isEmpty ? nil : rest
        }
        cities[city] = known
    }

    private func language(_ city: String, _ language: String) -> Language? {
        cities[EntityID(city)]?.languages[EntityID(language)]
    }

    // MARK: What counts

    /// What the next event of a path must pass to count. O(1).
    func stamp(of path: String, city: String, language: String) -> Stamp? {
        self.language(city, language)?.entries[EntityID(path)]?.stamp
            ?? cities[EntityID(city)]?.removed
    }

    /// The newest event of a city. O(what is known of the city).
    func newest(of city: String) -> Stamp? {
        let city = cities[EntityID(city)]
        let stamps = (city?.languages ?? [:]).values.compactMap {
            $0.entries.values.map(\.stamp).max()
        }
        return (stamps + [city?.removed].compactMap(\.self)).max()
    }

    // MARK: Questions

    /// A page, if it is stored. O(1).
    public func page(_ path: String, city: String, language: String) -> StoredPage? {
        self.language(city, language)?.entries[EntityID(path)]?.page
    }

    /// The pages of a kind, in the order in which they are shown: by their `order`, then the
    /// beginning of an event, then the path. O(n log n) for n such pages.
    public func pages(_ kind: PageKind, city: String, language: String) -> [StoredPage] {
        let language = self.language(city, language)
        return language?.pages(language?.kinds[kind]) ?? []
    }

    /// The pages below a page of the tree, in order; those at the top are below the empty path.
    /// O(n log n) for n such pages.
    public func children(of path: String, city: String, language: String) -> [StoredPage] {
        let language = self.language(city, language)
        return language?.pages(language?.children[EntityID(path)]) ?? []
    }

    /// The languages of a city in which pages are stored, sorted. O(languages of the city).
    public func languages(of city: String) -> [String] {
        (cities[EntityID(city)]?.languages ?? [:]).filter { !$0.value.kinds.isEmpty }
            .map(\.key).sorted().map(\.string)
    }

    /// The cities of which pages are stored, sorted. O(cities and their languages).
    public var cityCodes: [String] {
        cities.filter { $0.value.languages.contains { !$0.value.kinds.isEmpty } }
            .map(\.key).sorted().map(\.string)
    }

    /// All pages of a language, by path. O(n log n) for n such pages.
    func all(city: String, language: String) -> [StoredPage] {
        (self.language(city, language)?.entries ?? [:]).values.compactMap(\.page)
            .sorted { EntityID($0.path) < EntityID($1.path) }
    }

    public func rows() -> [ViewRow] {
        cityCodes.flatMap { city in
            languages(of: city).flatMap { language in
                all(city: city, language: language).map { page in
                    var row = ViewRow()
                    row.add("city", city)
                    row.add("language", language)
                    row.add("path", page.path)
                    row.add("kind", page.kind.rawValue)
                    row.add("title", page.title)
                    row.add("lastUpdate", page.lastUpdate.text)
                    row.add("thumbnail", page.thumbnail)
                    row.add("parentPath", page.parentPath)
                    row.add("order", raw: page.order.map { Array("\($0)".utf8) })
                    row.add("contentBytes", page.contentBytes)
                    row.add("event", page.event.text)
                    return row
                }
            }
        }
    }
}

extension PagesView {
    /// What stands first in an encoded entry.
    private enum Tag {
        static let removed: UInt8 = 0
        static let stored: UInt8 = 1
    }

    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        var entries = writer.entries(count: cities.count)
        for (code, city) in cities {
            writer.begin(code, of: &entries)
            writer.add(city.removed != nil)
            if let stamp = city.removed { writer.add(stamp) }
            var languages = writer.entries(count: city.languages.count)
            for (code, language) in city.languages {
                writer.begin(code, of: &languages)
                var pages = writer.entries(count: language.entries.count)
                for (path, entry) in language.entries {
                    writer.begin(path, of: &pages)
                    writer.add(byte: entry.page == nil ? Tag.removed : Tag.stored)
                    writer.add(entry.stamp)
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
            if try reader.bool() { city.removed = try reader.stamp() }
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
        _ reader: inout StateReader, _ path: EntityID, after removed: Stamp?
    ) throws(EventError) -> Entry {
        let tag = try reader.byte()
        let stamp = try reader.stamp()
        if let removed, stamp <= removed { throw reader.fault("a page has gone with its city") }
        switch tag {
        case Tag.removed: return .removed(stamp)
        case Tag.stored: return .stored(try StoredPage(path: path.string, &reader), stamp)
        default: throw reader.fault("a page is of no known kind")
        }
    }
}

extension PagesView: CompactableView {
    /// An event is needed while it holds the register of its path; the last removal of a city is
    /// needed for ever, and supersedes all that came before.
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
            let holder = cities[EntityID(removed.city)]?.removed
            return holder == event.stamp ? .needed(.deletion) : .of(event, heldBy: [holder])
        default: return .unconcerned
        }
    }

    private func retention(
        of event: Event, _ city: String, _ language: String, _ path: String
    ) -> Retention {
        let known = cities[EntityID(city)]
        let holder = known?.languages[EntityID(language)]?.entries[EntityID(path)]?.stamp
        return .of(event, heldBy: [holder ?? known?.removed])
    }
}
