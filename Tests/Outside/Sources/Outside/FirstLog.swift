// The code of the article "Getting started with DaybookOffline".

import DaybookOffline
import Foundation

package enum FirstLog {
    package static func keep(at url: URL) async throws {
        // FirstLog-1 begins
        let store = try await OfflineStore.open(at: url, account: "user-456")

        try await store.cities.save("lisbon", by: "user-456")
        let note = try await store.notes.add("Great coffee", city: "lisbon", by: "user-456")
        try await store.notes.update(note.id, "Great coffee, closed on Mondays", by: "user-456")
        // FirstLog-1 ends

        // FirstLog-2 begins
        for note in store.notes(in: "lisbon").current {
            print(note.content, note.updatedAt)
        }
        let limit = store.preferences(for: "user-456").current.maxStorageLimit
        // FirstLog-2 ends
        guard limit > 0 else { return }
        try await store.close()
    }

    package static func watch(_ store: OfflineStore, _ show: (NoteList) -> Bool) async {
        // FirstLog-7 begins
        for await notes in store.notes(in: "lisbon").changes {
            guard show(notes) else { break }
        }
        // FirstLog-7 ends
    }

    package static func count(_ store: OfflineStore) async {
        // FirstLog-8 begins
        let savedCities = store.query(CitiesView.self) { $0.cityIDs.count }
        for await count in savedCities.changes {
            print("\(count) cities")
        }
        // FirstLog-8 ends
    }

    package static func ship(
        _ store: OfflineStore, to endpoint: URL, until deadline: Date
    ) async throws -> SyncReport {
        // FirstLog-3 begins
        let report = try await store.sync(
            to: endpoint, credentials: BearerToken("…"), until: deadline)
        print("\(report.applied) shipped, \(report.pending) still to go")
        // FirstLog-3 ends
        return report
    }

    package static func work(
        _ store: OfflineStore, _ endpoint: URL, _ server: URL, _ credentials: any Credentials
    ) async throws -> Task<Void, any Error> {
        // FirstLog-9 begins
        let workers = store.workers(credentials: credentials, http: try await store.httpOptions())
        try workers.sync(to: endpoint)
        try workers.downloads(from: server)
        try workers.learning(from: server, policy: .iOS)
        let running = Task { try await workers.run() }  // at logout: running.cancel()
        // FirstLog-9 ends
        return running
    }

    package static func parked(_ store: OfflineStore) {
        // FirstLog-4 begins
        for entry in store.view(Outbox.self).entries where entry.status != .pending {
            print(entry.action, entry.entityId, entry.errorMessage ?? "")
        }
        // FirstLog-4 ends
    }

    package static func leave(_ store: OfflineStore) async throws -> Int {
        // FirstLog-5 begins
        do {
            try await store.erase()
        } catch let unsynced as UnsyncedError {
            print("\(unsynced.count) changes have not been saved online yet.")
            try await store.erase(discardingUnsynced: true)
        }
        // FirstLog-5 ends
        return store.view(Outbox.self).count
    }

    package static func share(at url: URL) async throws -> String? {
        // FirstLog-6 begins
        let device = try await OfflineStore.openShared(at: url, views: [Theme.self])
        try await device.append(ThemeChosen(name: "dark"))
        // FirstLog-6 ends
        let theme = device.view(Theme.self).name
        try await device.close()
        return theme
    }
}

/// The theme of a device was chosen.
struct ThemeChosen: EventPayload, Codable {
    static let type = "com.example.theme.chosen"
    var name: String
}

/// The theme of a device.
struct Theme: Projection, Codable {
    static let name = "theme"
    static let version = 1
    private(set) var name: String?

    mutating func fold(_ event: Event) {
        guard event.type == ThemeChosen.type,
            let theme = try? event.payload(as: ThemeChosen.self)
        else { return }
        name = theme.name
    }
}
