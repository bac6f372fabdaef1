// The interface that apps rely on, with no import but DaybookOffline. This file must continue to compile.

import DaybookOffline

/// An event of the app's own type.
struct MyEvent: EventPayload, Codable {
    static let type = "com.example.my.event"
    var name: String
}

extension Setting {
    /// Uses the whole interface, from opening to closing.
    ///
    /// - Returns: the report of the sync, and the number of notes in the first change.
    package func useTheInterface() async throws -> (report: SyncReport, notes: Int) {
        var count = 0

        let store = try await OfflineStore.open(at: url, account: "user-456")
        try await store.cities.save("city-1", by: "user-456")
        let note = try await store.notes.add("Great coffee", city: "city-1", by: "user-456")
        try await store.notes.update(note.id, "Great coffee, closed on Mondays", by: "user-456")
        try await store.preferences.update(for: "user-456") { $0.maxStorageLimit = 200 * 1_048_576 }
        try await store.progress.completeLesson(
            "lesson-7", course: "spanish", by: "user-456", score: 0.9)
        try await store.append(MyEvent(name: "opened"), durability: .relaxed)
        try await store.write { transaction in
            guard transaction.view(CitiesView.self).isSaved("city-1", by: "user-456") else {
                return
            }
            try transaction.append(CityUnsaved(userId: "user-456", cityId: "city-1"))
        }
        for await notes in store.notes(in: "city-1").changes {
            count = notes.count
            break
        }
        let report = try await store.sync(to: endpoint, credentials: credentials, until: deadline)
        try await store.close()

        return (report, count)
    }
}
