// Runs what an app with events of its own does, with the engine and the test kit alone.

import Daybook
import DaybookTestKit
import Engine
import Foundation
import Testing

@Suite struct OwnEventsTests {
    @Test func `an app with its own events needs the engine alone`() async throws {
        let folder = try Folder()
        let store = try await OwnEvents.open(at: folder.log)
        #expect(try await OwnEvents.record(in: store) == 20)
        #expect(try await OwnEvents.decide(in: store) == 40)
        #expect(try await OwnEvents.decide(in: store) == 0)
        await OwnEvents.follow(store) { minutes in
            #expect(minutes == 60)
            return false
        }
        let endpoint = try #require(URL(string: nobody))
        let report = try await OwnEvents.ship(
            store, to: endpoint, until: Date(timeIntervalSinceNow: 1))
        #expect(report.applied == 0 && report.pending == 2)
        let syncing = OwnEvents.keepInStep(store, endpoint)
        syncing.cancel()
        try await syncing.value
        #expect(store.outboxCount.current == 2)
        let copy = folder.url.appending(path: "copy.ndjson")
        let (events, removed) = try await OwnEvents.leave(store, copy: copy)
        #expect(events >= 2 && removed == 0)
        let lines = try String(contentsOf: copy, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == events)
        // What was erased is gone.
        let again = try await OwnEvents.open(at: folder.log)
        #expect(try await OwnEvents.record(in: again) == 20)
        try await again.close()
    }

    @Test func `a type of the store's own cannot be given a rule`() async throws {
        let rule = EventRule(type: "daybook.sync.settled", action: nil) { _ in }
        let error = await #expect(throws: EventError.self) {
            _ = try await EventStore.inMemory(rules: [rule])
        }
        #expect(error?.code == .refused)
    }

    @Test func `a type that begins with daybook is the library's`() async throws {
        let rule = EventRule(type: "daybook.note.added", action: nil) { _ in }
        var error = await #expect(throws: EventError.self) {
            _ = try await EventStore.inMemory(rules: [rule])
        }
        #expect(error?.code == .refused)
        let store = try await EventStore.inMemory()
        error = await #expect(throws: EventError.self) {
            try await store.append([EventDraft(type: "daybook.note.added")])
        }
        #expect(error?.code == .refused)
        try await store.close()
    }

    @Test func `folders that overlap with the log's are not erased with it`() async throws {
        let folder = try Folder()
        let store = try await OwnEvents.open(at: folder.log)
        for other in [folder.url, folder.log, folder.log.appending(path: "files")] {
            let error = await #expect(throws: EventError.self) {
                try await store.erase(removing: [other])
            }
            #expect(error?.code == .refused)
        }
        #expect(try await OwnEvents.record(in: store) == 20)
        let caches = folder.url.appending(path: "caches")
        try FileManager.default.createDirectory(at: caches, withIntermediateDirectories: false)
        try await store.erase(discardingUnsynced: true, removing: [caches])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["log"])
    }

    @Test func `a closed log with an unsynced event of the app's own type is not reset`()
        async throws
    {
        let folder = try Folder()
        let storage = DeviceStorage(
            DeviceStorage.Paths(
                database: folder.url.appending(path: "logs"),
                cache: folder.url.appending(path: "caches")))
        try await storage.prepare()
        let store = try await OwnEvents.open(at: storage.database.appending(path: "user-456"))
        _ = try await OwnEvents.record(in: store)
        try await store.close()
        await #expect(throws: UnsyncedError(count: 1)) {
            try await storage.reset([EventStore](), rules: OwnEvents.rules)
        }
        try await storage.reset(
            [EventStore](), rules: OwnEvents.rules, discardingUnsynced: true)
        let left = try FileManager.default.contentsOfDirectory(atPath: storage.database.path)
        #expect(left == [".lock"])
    }

    @Test func `only a log that is there is opened where none is to be created`() async throws {
        let folder = try Folder()
        let error = await #expect(throws: LogError.self) {
            _ = try await EventStore.open(at: folder.log, create: false)
        }
        #expect(error?.code == .noSuchLog)
    }

    @Test func `secrets go with an erased log`() async throws {
        let files = InMemoryFileSystem()
        let secrets = InMemorySecretStore()
        try secrets.write([1], for: "token")
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), secrets: secrets,
            environment: LogEnvironment(fileSystem: files))
        try await store.erase()
        #expect(secrets.values.isEmpty)
    }
}
