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

    @Test func `secrets go with an erased log`() async throws {
        let files = InMemoryFileSystem()
        let secrets = InMemorySecretStore()
        try await secrets.write([1], for: "token")
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), secrets: secrets,
            environment: LogEnvironment(fileSystem: files))
        try await store.erase()
        #expect(secrets.values.isEmpty)
    }
}
