// One log for each account, the shared log, copied and moved folders, logout.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private struct Theme: Projection, Codable {
    static let name = "theme"
    static let version = 1
    private(set) var chosen: String?
    mutating func fold(_ event: Event) {
        guard event.type == ThemeChosen.type, let json = event.content.json,
            let theme = try? ThemeChosen(json: json)
        else { return }
        chosen = theme.name
    }
}

private func code(_ body: () async throws -> Void) async -> LogError.Code? {
    do {
        try await body()
        return nil
    } catch { return (error as? LogError)?.code }
}

@Suite struct AccountTests {
    @Test(.verifies("ACC-1"))
    func `a log belongs to the account for which it was created`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("ada")
        try await OfflineStore.open(at: log, account: "ada").close()
        #expect(
            await code { _ = try await OfflineStore.open(at: log, account: "grace") }
                == .wrongAccount)
        let unnamed = try await OfflineStore.open(at: log)
        #expect(unnamed.events.account == "ada")
        try await unnamed.close()
    }

    @Test(.verifies("ACC-9"))
    func `a URL that is not a folder on this device is refused`() async throws {
        let files = InMemoryFileSystem()
        let environment = LogEnvironment(fileSystem: files)
        for text in [
            "https://example.com/log", "ftp://example.com/log", "log", "/log",
            "file://server/log", "file:///log%00more",
        ] {
            let url = try #require(URL(string: text))
            func isRefusal(_ error: any Error) -> Bool { (error as? EventError)?.code == .refused }
            await #expect("\(text)") {
                _ = try await OfflineStore.open(at: url, environment: environment)
            } throws: { isRefusal($0) }
            await #expect {
                _ = try await OfflineStore.openShared(at: url, environment: environment)
            } throws: { isRefusal($0) }
            let folder = URL(filePath: "/cache")
            for paths in [
                DeviceStorage.Paths(database: url, cache: folder),
                DeviceStorage.Paths(database: folder, cache: url),
            ] {
                let storage = DeviceStorage(paths, environment: environment)
                await #expect { try await storage.prepare() } throws: { isRefusal($0) }
                await #expect { try await storage.reset([]) } throws: { isRefusal($0) }
            }
        }
        #expect(files.usedBytes == 0)
        try await OfflineStore.open(at: URL(filePath: "/log"), environment: environment).close()
    }

    // MARK: The shared log

    @Test(.verifies("ACC-2"))
    func `the shared log neither reads from a server nor sends to it`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.openShared(at: folder.appending("device"))
        let transport = InMemorySyncServer()
        func isRefusal(_ error: any Error) -> Bool {
            (error as? EventError)?.code == .refused && "\(error)".contains("the account's own log")
        }
        let endpoint = try #require(URL(string: "http://127.0.0.1:9/v1/events"))
        await #expect { try await store.sync(to: endpoint) } throws: { isRefusal($0) }
        await #expect {
            _ = try await Replayer(store.events, transport: transport).run()
        } throws: { isRefusal($0) }
        await #expect {
            try await SyncService(store, transport: transport, reachability: AlwaysReachable())
                .run()
        } throws: { isRefusal($0) }
        #expect(transport.batches.isEmpty)
        // Not even through another call.
        let line = """
            {"specversion":"1.0","id":"0a3e8ff8-bb52-454e-9574-3045281726ad",\
            "source":"urn:uuid:0f0e0d0c-0b0a-4908-8706-050403020100","sequence":"1",\
            "type":"daybook.city.saved","data":{"userId":"ada","cityId":"oslo"}}
            """
        let received = try await store.events.receive([ForeignEvent(Array(line.utf8).span.bytes)])
        #expect(received.refused.count == 1)
        #expect(received.new.isEmpty)
        #expect(await store.events.lastDurable == .zero)
        try await store.close()
    }

    @Test(.verifies("ACC-2"))
    func `the shared log stores events of the device, and refuses shipped types`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("device")
        var store = try await OfflineStore.openShared(at: log, views: [Theme.self])
        #expect(store.events.account == nil)
        try await store.append(ThemeChosen(name: "dark"))
        try await store.append(PageRemoved(city: "oslo", language: "en", path: "/"))
        let attempts: [@Sendable (OfflineStore) async throws -> Void] = [
            { try await $0.cities.save("lisbon", by: "ada") },
            { try await $0.notes.add("x", city: "lisbon", by: "ada") },
            { try await $0.preferences.update(for: "ada") { $0.autoSync = false } },
            { try await $0.progress.activateCourse("spanish", by: "ada") },
        ]
        for attempt in attempts {
            await #expect {
                try await attempt(store)
            } throws: {
                ($0 as? EventError)?.code == .refused && "\($0)".contains("the account's own log")
            }
        }
        #expect(await store.events.lastDurable == Position(2))
        #expect(store.view(Outbox.self).count == 0)
        try await store.close()
        store = try await OfflineStore.openShared(at: log, views: [Theme.self])
        #expect(store.view(Theme.self).chosen == "dark")
        try await store.close()
        #expect(
            await code { _ = try await OfflineStore.open(at: log, account: "ada") } == .wrongAccount
        )
    }

    @Test(.verifies("ACC-2")) func `an app's own shipped types are refused there as well`()
        async throws
    {
        let rule = EventRule(type: ThemeChosen.type, action: "CHOOSE_THEME") { _ in }
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.openShared(at: folder.appending("device"), rules: [rule])
        await #expect(throws: EventError.self) {
            try await store.append(ThemeChosen(name: "dark"))
        }
        try await store.close()
    }

    @Test(.verifies("ACC-2"))
    func `an account's log is not opened as the shared one, and nothing in it changes`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: folder.appending("ada"), account: "ada")
        try await store.cities.save("lisbon", by: "ada")
        try await store.close()
        func bytes() throws -> [Data] {
            try folder.names(in: "ada").map { try Data(contentsOf: folder.appending("ada/\($0)")) }
        }
        let before = try bytes()
        #expect(
            await code { _ = try await OfflineStore.openShared(at: folder.appending("ada")) }
                == .wrongAccount)
        #expect(try bytes() == before)
    }

    // MARK: Copies

    @Test(.verifies("LINE-8"))
    func `a copied folder gets a new incarnation, a moved one keeps its own`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let original = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        try await original.cities.save("lisbon", by: "ada")
        try await original.close()
        try folder.run("cp", "-r", "log", "copy")
        try folder.run("mv", "log", "moved")

        let copy = try await OfflineStore.open(at: folder.appending("copy"), account: "ada")
        let moved = try await OfflineStore.open(at: folder.appending("moved"), account: "ada")
        #expect(copy.events.incarnation != original.events.incarnation)
        #expect(moved.events.incarnation == original.events.incarnation)
        try await copy.cities.save("porto", by: "ada")
        try await moved.cities.save("porto", by: "ada")
        let one = try #require(try await copy.events.event(at: Position(2)))
        let other = try #require(try await moved.events.event(at: Position(2)))
        #expect(one.sequence == other.sequence)
        #expect(one.source != other.source)
        // The copied events keep their incarnation.
        let first = try #require(try await copy.events.event(at: Position(1)))
        #expect(first.source == original.events.incarnation)
        #expect(copy.view(CitiesView.self).cityIDs == ["lisbon", "porto"])
        try await copy.close()
        try await moved.close()
        let again = try await OfflineStore.open(at: folder.appending("copy"), account: "ada")
        #expect(again.events.incarnation == copy.events.incarnation)
        try await again.close()
    }

    // MARK: Logout

    @Test(.verifies("ACC-3"), arguments: [false, true])
    func `after logout every call throws that the store is closed`(isSuspended: Bool) async throws {
        let store = try await OfflineStore.inMemory()
        let note = try await store.notes.add("x", city: "lisbon", by: "ada")
        if isSuspended { try await store.suspend() }
        try await store.close()
        let endpoint = try #require(URL(string: "http://127.0.0.1:9/v1/events"))
        let calls: [@Sendable () async throws -> Void] = [
            { try await store.append(ThemeChosen(name: "dark")) },
            { try await store.write { _ in } },
            { try await store.cities.save("lisbon", by: "ada") },
            { try await store.notes.update(note.id, "y", by: "ada") },
            { try await store.sync(to: endpoint) },
            { _ = try await store.state(at: Position(1)) },
            { try await store.suspend() },
            { try await store.resume() },
            { try await store.erase() },
            { try await store.erase(discardingUnsynced: true) },
            { try await store.events.append(contentsOf: [EventDraft]()) },
            { _ = try await store.events.event(at: Position(1)) },
            { try await store.events.flush() },
            { try await store.events.checkpoint() },
        ]
        for (number, call) in calls.enumerated() {
            #expect(await code(call) == .closed, "call \(number)")
        }
        // Closing twice is harmless, and the last state can still be read.
        try await store.close()
        #expect(store.notes(in: "lisbon").current == [note])
    }

    @Test(.verifies("ACC-3")) func `a sync of a closed store throws, also with nothing to send`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        try await store.close()
        let endpoint = try #require(URL(string: "http://127.0.0.1:9/v1/events"))
        #expect(await code { try await store.sync(to: endpoint) } == .closed)
    }

    @Test(.verifies("ACC-3"))
    func `logout ends the sequences of changes, and the folder can be opened again`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        let changes = store.notes(in: "lisbon").changes
        let seen = Task {
            var counts: [Int] = []
            for await notes in changes { counts.append(notes.count) }
            return counts
        }
        try await store.notes.add("x", city: "lisbon", by: "ada")
        try await store.close()
        #expect(await seen.value.last == 1)
        let again = try await OfflineStore.open(at: folder.appending("log"), account: "ada")
        #expect(again.notes(in: "lisbon").current.count == 1)
        try await again.close()
    }
}
