// The code of the article "Caching pages for offline use".

import DaybookOffline
import Foundation

package enum Content {
    package static func open(_ url: URL) async throws -> OfflineStore {
        // Content-1 begins
        let store = try await OfflineStore.openShared(at: url)
        // Content-1 ends
        return store
    }

    package static func keep(
        _ store: OfflineStore, _ pages: [ContentPage], _ resources: [ContentResource]
    ) async throws -> ContentChanges {
        // Content-2 begins
        let changes = try await store.content.store(
            city: "augsburg", language: "en", pages: pages, resources: resources,
            lastUpdate: ZonedTime(Timestamp(Date())))
        print("\(changes.pagesStored) new or changed, \(changes.pagesRemoved) gone")
        // Content-2 ends
        return changes
    }

    package static func list(_ store: OfflineStore) async throws {
        // Content-3 begins
        try await store.content.list([
            ListedCity(name: "Stadt Augsburg", code: "augsburg", sortingName: "Augsburg")
        ])
        try await store.content.list(
            [ListedLanguage(code: "de", name: "Deutsch"), ListedLanguage(code: "en")],
            of: "augsburg")
        // Content-3 ends
    }

    package static func show(_ store: OfflineStore) async throws -> Int {
        // Content-4 begins
        let top = store.content.children(of: "", city: "augsburg", language: "en")
        for await pages in top.changes {
            print(pages.map(\.title))
            break
        }
        if let page = try await store.content.page(
            "/augsburg/en/welcome/", city: "augsburg", language: "en")
        {
            print(page.title, page.content)
        }
        let files = store.content.resources(
            of: "/augsburg/en/welcome/", city: "augsburg", language: "en")
        for resource in files.current {
            print(resource.url, store.files.path(of: resource.file))
        }
        // Content-4 ends
        return top.current.count + files.current.count
    }

    package static func use(_ store: OfflineStore) async throws -> [String] {
        // Content-5 begins
        let gone = try await store.content.use("augsburg")
        // Content-5 ends
        return gone
    }

    package static func takeOver(_ store: OfflineStore, _ old: URL) async throws {
        // Content-6 begins
        let taken = try await store.content.importFolder(old)
        print(taken.pages, taken.notes)
        // Content-6 ends
    }
}
