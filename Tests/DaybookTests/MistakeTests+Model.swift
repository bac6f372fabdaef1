// Mistakes with the model: invalid commands, secrets, files, migrations, learning.

import DaybookOffline
import Foundation

extension Mistake {
    static let ofModel: [Mistake] = [
        Mistake("a cache in the log's folder", "EventError.refused", "choose one outside it") {
            let log = $0.appending(path: "log")
            _ = try await OfflineStore.open(at: log, cache: log.appending(path: "cache"))
        },
        Mistake("an empty city id", "EventError.refused", "the city id is empty") { _ in
            try await model().cities.save("", by: "ada")
        },
        Mistake(
            "a city that the app does not know", "EventError.unknownReference",
            "store the list that has it"
        ) { folder in
            let store = try await OfflineStore.open(
                at: folder.appending(path: "log"), references: ReferenceCheck { _, _ in false })
            try await store.cities.save("atlantis", by: "ada")
        },
        Mistake("a city that was not saved", "EventError.refused", "ada has not saved the city") {
            _ in
            try await model().cities.unsave("lisbon", by: "ada")
        },
        Mistake("a note that does not exist", "EventError.refused", "there is no note none") { _ in
            try await model().notes.update("none", "text", by: "ada")
        },
        Mistake("a note that was deleted", "EventError.refused", "was deleted") { _ in
            let store = try await model()
            let note = try await store.notes.add("text", city: "lisbon", by: "ada")
            try await store.notes.delete(note.id, by: "ada")
            try await store.notes.update(note.id, "text", by: "ada")
        },
        Mistake("a limit of 1 byte", "EventError.refused", "50 to 500 MB are possible") { _ in
            try await model().preferences.update(for: "ada") { $0.maxStorageLimit = 1 }
        },
        Mistake("a score in percent", "EventError.refused", "the score is not between 0 and 1") {
            _ in
            try await model().progress.completeLesson("1", course: "a1", by: "ada", score: 90)
        },
        Mistake("a negative count", "EventError.invalidData", "itemsSeen is not a whole number") {
            _ in
            try await model().progress.completeReview(
                "1", course: "a1", by: "ada", itemsSeen: -1, itemsCorrect: 0)
        },
        Mistake("a download that does not exist", "EventError.refused", "no download none") { _ in
            try await model().downloads.pause("none")
        },
        Mistake("a retry of a queued download", "EventError.refused", "is QUEUED and cannot become")
        {
            _ in
            let store = try await model()
            try await store.downloads.retry(store.downloads.queue("lisbon").id)
        },
        Mistake("a negative size", "EventError.invalidData", "totalBytes is not a whole") { _ in
            let store = try await model()
            let job = try await store.downloads.queue("lisbon")
            try await store.downloads.start(job.id)
            try await store.downloads.complete(job.id, totalBytes: -1)
        },
        Mistake("a lesson without a language", "LearningError.noCombination", "has not chosen") {
            _ in
            let downloads = LearningDownloads(
                try await model(), base: try url("http://127.0.0.1:1"), user: "ada", policy: .iOS)
            try await downloads.downloadLesson("1", course: "a1")
        },
        Mistake("an album that does not exist", "EventError.refused", "there is no album none") {
            _ in
            try await model().albums.link("none", users: ["ada"])
        },
        Mistake("a file that was never stored", "FileStoreError.missing", "/log/files/") { _ in
            _ = try await model().files.read(FileID(of: [1]))
        },
        Mistake("a secret among the settings", "EventError.refused", "in a SecretStore") { _ in
            try await model().settings.put(SettingKey<String>("accessToken"), "t")
        },
        Mistake("a secret without a secret store", "EventError.refused", "without a secret store") {
            _ in
            try await model().settings.put(.accessToken, AccessToken("t"))
        },
        Mistake("a plan whose versions fall", "MigrationError.invalidPlan", "[1, 3, 2]") { _ in
            try await OfflineStore.inMemory().migrate(
                MigrationPlan([.init(to: 3) { _ in .done }, .init(to: 2) { _ in .done }]))
        },
        Mistake("data of a newer app", "MigrationError.newerVersion", "have version 9") { _ in
            let store = try await model()
            try await store.settings.put(.version, 9)
            try await store.migrate(MigrationPlan([.init(to: 2) { _ in .done }]))
        },
    ]

    private static func model() async throws -> OfflineStore { try await OfflineStore.inMemory() }
}
