// The pages on the device: one register for each (city, language, path), without the HTML. The removal of
// a city removes its older registers. Spec/model/content.md, CONT-4;
// Spec/model/views.md.

import Daybook
import HashTreeCollections

/// The cached pages of all cities.
public struct PagesView: DeclaredView, ListableView {
    public static let name = "pages"
    public static let version = 2
    public static let events: ViewEvents<PagesView> = [
        .on(PageStored.self) { stored, view, change in
            // O(bytes of the page): only a fold needs the digest.
            let json = try change.isFolding ? stored.json() : []
            let page = StoredPage(
                stored.page, event: change.event, digest: PageStored.digest(of: json))
            view.set(page, stored.city, stored.language, page.path, &change)
        },
        .on(PageRemoved.self) { $1.set(nil, $0.city, $0.language, $0.path, &$2) },
        .on(ContentRemoved.self) { removed, view, change in
            view.cities.update(removed.city, &change) { $0.remove(&$1) }
        },
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
    private struct Language: StateValue {
        private(set) var entries: TreeDictionary<EntityID, Entry> = [:]
        private(set) var kinds: TreeDictionary<PageKind, TreeSet<EntityID>> = [:]
        private(set) var children: TreeDictionary<EntityID, TreeSet<EntityID>> = [:]

        init() {}

        mutating func set(_ path: EntityID, _ page: StoredPage?, _ change: inout ViewChange) {
            let (last, lwwTimestamp) = (entries[path]?.lwwTimestamp, change.lwwTimestamp)
            guard change.isFolding else { return change.list(last) }
            if let last, lwwTimestamp <= last { return }
            set(path, page.map { Entry.stored($0, lwwTimestamp) } ?? .removed(lwwTimestamp))
        }

        private mutating func set(_ path: EntityID, _ entry: Entry) {
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

        mutating func removeRegisters(through removal: LWWTimestamp) -> Bool {
            let remaining = entries.filter { $0.value.lwwTimestamp > removal }
            self = Language()
            for (path, entry) in remaining { set(path, entry) }
            return isVoid
        }

        var isVoid: Bool { entries.isEmpty }

        func forEachTimestamp(_ body: (LWWTimestamp) -> Void) {
            for entry in entries.values { body(entry.lwwTimestamp) }
        }

        func write(to state: inout StateWriter) {
            var pages = state.entries(count: entries.count)
            for (path, entry) in entries {
                state.begin(path, of: &pages)
                state.write(entry.page != nil)
                state.write(entry.lwwTimestamp)
                entry.page?.write(to: &state)
            }
            state.end(pages)
        }

        init(from state: inout StateReader) throws(EventError) {
            var language = Language()
            try state.entries { (state, path) throws(EventError) in
                let isStored = try state.bool()
                let lwwTimestamp = try state.lwwTimestamp()
                language.set(
                    path,
                    isStored
                        ? .stored(try StoredPage(path: path.string, &state), lwwTimestamp)
                        : .removed(lwwTimestamp))
            }
            self = language
        }

        func pages(_ paths: TreeSet<EntityID>?) -> [StoredPage] {
            (paths ?? []).compactMap { entries[$0]?.page }.sorted(by: StoredPage.precedes)
        }
    }

    /// The pages of a city by language.
    private struct City: StateObject {
        var languages: TreeDictionary<EntityID, Language> = [:]

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&languages)
        }
    }

    private var cities = EntityTable<Removable<City>>()
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&cities)
    }

    private mutating func set(
        _ page: StoredPage?, _ city: String, _ language: String, _ path: String,
        _ change: inout ViewChange
    ) {
        cities.update(city, &change) { city, change in
            city.update(&change) {
                $0.languages[EntityID(language), default: Language()].set(EntityID(path), page, &$1)
            }
        }
    }

    private func city(_ code: String) -> City? { cities[code]?.registers }

    private func language(_ city: String, _ language: String) -> Language? {
        self.city(city)?.languages[EntityID(language)]
    }

    // MARK: Winners

    /// The LWW timestamp that the next event of a path must exceed to win. O(1).
    func lwwTimestamp(of path: String, city: String, language: String) -> LWWTimestamp? {
        self.language(city, language)?.entries[EntityID(path)]?.lwwTimestamp
            ?? cities[city]?.removed
    }

    /// The greatest LWW timestamp of a city. O(pages of the city).
    func newest(of city: String) -> LWWTimestamp? { cities[city]?.newestTimestamp }

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
        (self.city(city)?.languages ?? [:]).filter { !$0.value.kinds.isEmpty }
            .map(\.key).sorted().map(\.string)
    }

    /// The cities with stored pages, sorted. O(cities and their languages).
    public var cityCodes: [String] {
        cities.ids { $0.registers.languages.contains { !$0.value.kinds.isEmpty } }
            .sorted().map(\.string)
    }

    /// All pages of a language, by path. O(n log n) for n such pages.
    func all(city: String, language: String) -> [StoredPage] {
        (self.language(city, language)?.entries ?? [:]).values.compactMap(\.page)
            .sorted { EntityID($0.path) < EntityID($1.path) }
    }

    private static let fields: [ViewField<(city: String, language: String, page: StoredPage)>] = [
        .init("city") { $0.city }, .init("language") { $0.language },
        .init("path") { $0.page.path }, .init("kind") { $0.page.kind },
        .init("title") { $0.page.title }, .init("lastUpdate") { $0.page.lastUpdate },
        .init("thumbnail") { $0.page.thumbnail }, .init("parentPath") { $0.page.parentPath },
        .init("order") { $0.page.order }, .init("contentBytes") { $0.page.contentBytes },
        .init("event") { $0.page.event },
    ]
    public static let columns = fields.map(\.name)

    public func rows() -> ViewRows {
        let pages = cityCodes.flatMap { city in
            languages(of: city).flatMap { language in
                all(city: city, language: language).map { (city, language, $0) }
            }
        }
        return ViewRows(pages) { ViewRow($0, Self.fields) }
    }
}

extension PageKind: RowValue {}
