// The live queries of an app on cached content. They read from memory; only `ContentCommands.page` reads
// the log.

import Daybook

extension ContentCommands {
    /// The list of cities in its stored order; nil if it was never stored. O(1).
    public var cities: ViewQuery<[ListedCity]?> { store.query(ContentView.self) { $0.cityList } }

    /// The live cities of the list, which are shown to users, in its order. O(cities of the list).
    public var liveCities: ViewQuery<[ListedCity]> {
        store.query(ContentView.self) { $0.liveCities }
    }

    /// The languages of a city in their stored order; nil if they were never stored. O(1).
    public func languages(of city: String) -> ViewQuery<[ListedLanguage]?> {
        store.query(ContentView.self) { $0.languages(of: city) }
    }

    /// The time of the last update of a city's language; nil if there was none. O(1).
    public func lastUpdate(of city: String, language: String) -> ViewQuery<ZonedTime?> {
        store.query(ContentView.self) { $0.lastUpdate(of: city, language: language) }
    }

    /// The time of the last use of a city; nil if there was none. O(1).
    public func lastUsage(of city: String) -> ViewQuery<ZonedTime?> {
        store.query(ContentView.self) { $0.lastUsage(of: city) }
    }

    /// The pages of a kind in the order in which they are shown: by `order`, then by the start of an
    /// event, then by path. O(n log n) for n such pages.
    public func pages(
        _ kind: PageKind, city: String, language: String
    ) -> ViewQuery<[StoredPage]> {
        store.query(PagesView.self) { $0.pages(kind, city: city, language: language) }
    }

    /// The children of a page of the tree, in order; the top pages are children of the empty path.
    /// O(n log n) for n such pages.
    public func children(
        of path: String, city: String, language: String
    ) -> ViewQuery<[StoredPage]> {
        store.query(PagesView.self) { $0.children(of: path, city: city, language: language) }
    }

    /// A page without its content; nil while it is not stored. O(1).
    public func storedPage(
        _ path: String, city: String, language: String
    ) -> ViewQuery<StoredPage?> {
        store.query(PagesView.self) { $0.page(path, city: city, language: language) }
    }

    /// The files of a page, by URL. `FileStore.path(of:)` gives a file's path. O(n log n) for n files of
    /// the page.
    public func resources(
        of path: String, city: String, language: String
    ) -> ViewQuery<[CachedResource]> {
        store.query(ContentView.self) { $0.resources(of: path, city: city, language: language) }
    }
}
