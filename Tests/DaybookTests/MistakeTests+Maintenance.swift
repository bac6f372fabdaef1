// Mistakes with closing and suspending a store, with exports, and with maintaining and erasing a log.

import Daybook
import DaybookTestKit
import Foundation

extension Mistake {
    static let ofMaintenance: [Mistake] = [
        Mistake("an append after close()", "LogError.closed", "The store at /log is closed") { _ in
            let store = try await store()
            try await store.close()
            try await store.append(Trip(name: "a"))
        },
        Mistake("a read after close()", "LogError.closed", "The store at /log is closed") { _ in
            let store = try await store()
            try await store.close()
            _ = try await store.event(at: Position(1))
        },
        Mistake("an append while suspended", "LogError.suspended", "is suspended") { _ in
            let store = try await store()
            try await store.suspend()
            try await store.append(Trip(name: "a"))
        },
        Mistake("an export over another file", "LogError.io", "export with replacing: true") {
            let file = $0.appending(path: "events.ndjson")
            try Data("x".utf8).write(to: file)
            try await store().export(to: file)
        },
        Mistake("an export into the log's folder", "LogError.io", "Choose another path") { _ in
            try await store().export(to: URL(filePath: "/log/events.ndjson"))
        },
        Mistake("an export into a missing folder", "LogError.io", "the folder does not exist") {
            try await store().export(to: $0.appending(path: "missing/events.ndjson"))
        },
        Mistake("a salvage into a missing folder", "LogError.io", "the folder does not exist") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log).close()
            try await LogMaintenance(at: log, account: nil).salvage(
                to: $0.appending(path: "missing/copy"))
        },
        Mistake("a maintenance with two rules for a type", "EventError.refused", "com.example.trip")
        {
            _ = try LogMaintenance(
                at: $0, account: nil,
                rules: [.of(Trip.self, action: "TRAVEL"), .of(Trip.self, action: "MOVE")])
        },
        Mistake("a verification without a log", "LogError.noSuchLog", "there is no such folder") {
            _ = try await LogMaintenance(at: $0.appending(path: "log"), account: nil).verify()
        },
        Mistake("a repair of a folder with other files", "LogError.notALog", "letter.txt") {
            try Data("x".utf8).write(to: $0.appending(path: "letter.txt"))
            try await LogMaintenance(at: $0, account: nil).repair()
        },
        Mistake("a repair of an open log", "LogError.locked", "/log is in use") {
            let log = $0.appending(path: "log")
            let store = try await EventStore.open(at: log)
            try await LogMaintenance(at: log, account: nil).repair()
            try await store.close()
        },
        Mistake("a salvage into an existing folder", "LogError.io", "choose a path that does not") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log).close()
            try await LogMaintenance(at: log, account: nil).salvage(to: $0)
        },
        Mistake("a salvage into the log's folder", "LogError.io", "in the log's folder") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log).close()
            try await LogMaintenance(at: log, account: nil).salvage(to: log.appending(path: "copy"))
        },
        Mistake(
            "an erasure with unsynced events", "UnsyncedError",
            "1 change has not been saved online yet"
        ) { _ in
            try await storeWithTrip().erase()
        },
        Mistake(
            "an erasure of a cache in the log's folder", "EventError.refused",
            "overlaps with the log's"
        ) {
            _ in
            try await store().erase(removing: [URL(filePath: "/log/cache")])
        },
        Mistake(
            "an erasure while the keychain is locked", "SecretStoreError.locked",
            "keychain: the device is locked"
        ) { _ in
            let secrets = InMemorySecretStore()
            let store = try await EventStore.inMemory(secrets: secrets)
            secrets.fail(
                with: SecretStoreError(.locked, location: "keychain", "the device is locked"))
            try await store.erase()
        },
        Mistake("a cache in the folder of logs", "EventError.refused", "overlap; choose others") {
            let logs = $0.appending(path: "logs")
            try await DeviceStorage(
                .init(database: logs, cache: logs.appending(path: "cache"))
            ).prepare()
        },
    ]
}
