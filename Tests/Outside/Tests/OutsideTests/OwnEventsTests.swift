// Runs the code of an app with its own event types, with the engine and the test kit alone.

import Daybook
import DaybookTestKit
import Foundation
import Testing

@testable import Engine

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
        let endpoint = try #require(URL(string: unreachableAddress))
        let report = try await OwnEvents.ship(
            store, to: endpoint, until: Date(timeIntervalSinceNow: 1))
        #expect(report.applied == 0)
        #expect(report.pending == 2)
        let syncing = OwnEvents.keepInStep(store, endpoint)
        syncing.cancel()
        try await syncing.value
        #expect(store.outboxCount.current == 2)
        let copy = folder.url.appending(path: "copy.ndjson")
        let (events, removed) = try await OwnEvents.leave(store, copy: copy)
        #expect(events >= 2)
        #expect(removed == 0)
        let lines = try String(contentsOf: copy, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == events)
        // The erased events are gone.
        let again = try await OwnEvents.open(at: folder.log)
        #expect(try await OwnEvents.record(in: again) == 20)
        try await again.close()
    }

    @Test func `a ranking is followed page by page`() async throws {
        let store = try await EventStore.inMemory(
            rules: OwnEvents.rules, views: [HabitRanking.self])
        for (habit, minutes) in [("reading", 20), ("chess", 30), ("reading", 20)] {
            try await store.append(HabitDone(habit: habit, minutes: minutes))
        }
        await followRanking(in: store) { page, _ in
            #expect(page.map(\.habit) == ["reading", "chess"])
            #expect(page.map(\.minutes) == [40, 30])
            return false
        }
        try await store.close()
    }

    @Test func `durability is as the article says`() async throws {
        let folder = try Folder()
        let store = try await OwnEvents.open(at: folder.log)
        try await Durable.append(store)
        #expect(await store.lastDurable == Position(2))
        try await Durable.write(store)
        #expect(await store.lastDurable == Position(4))
        // The condition of `write` no longer holds, so it records nothing.
        try await Durable.write(store)
        #expect(await store.lastDurable == Position(4))
        let (first, second) = try await Durable.appendTwice(store, ["writing", "chess"])
        #expect(first.map(\.isNew) == [true, true])
        #expect(second.map(\.isNew) == [false, false])
        #expect(first.map(\.position) == [Position(5), Position(6)])
        #expect(second.map(\.position) == first.map(\.position))
        try await Durable.appendTogether(store)
        #expect(await store.lastDurable == Position(8))
        #expect(try await Durable.handle(store, habit: "reading") == "Recorded.")
        #expect(try await Durable.handle(store, habit: "").hasPrefix("Not recorded: "))
        let backup = folder.log.deletingLastPathComponent().appending(path: "backup")
        #expect(try await Durable.backUp(store, to: backup).events == 9)
        let copy = try await OwnEvents.open(at: backup)
        #expect(copy.view(Habits.self).minutes == store.view(Habits.self).minutes)
        #expect(copy.incarnation != store.incarnation)
        try await copy.close()
        try await Durable.pause(store)
        #expect(try await Durable.tidy(store).removed == 0)
        #expect(!Durable.printTornTail(store))
        #expect(
            store.view(Habits.self).minutes == [
                "reading": 40, "stretching": 5, "running": 50, "writing": 20, "chess": 20,
            ])
        try await store.close()
    }

    @Test func `past states and the outbox can be read`() async throws {
        let store = try await EventStore.inMemory(rules: OwnEvents.rules, views: [Habits.self])
        #expect(try await OwnEvents.record(in: store) == 20)
        #expect(try await OwnEvents.decide(in: store) == 40)
        #expect(try await Looking.back(store, to: Position(1)) == 20)
        #expect(try await Looking.back(store, to: Position(2)) == 60)
        #expect(Looking.outbox(store) == 2)
        var indexed: [Position] = []
        try await Looking.indexAll(store) { indexed.append($0.position) }
        #expect(indexed == [Position(1), Position(2)])
        async let last = Looking.follow(store, from: Position(1)) { _ in }
        try await store.close()
        #expect(try await last == Position(2))
    }

    @Test func `a support screen, a widget and a copy need no second writer`() async throws {
        let folder = try Folder()
        let storage = DeviceStorage(
            DeviceStorage.Paths(
                database: folder.url.appending(path: "logs"),
                cache: folder.url.appending(path: "caches")))
        try await storage.prepare()
        let log = storage.database.appending(path: "log")
        let store = try await OwnEvents.open(at: log)
        #expect(try await OwnEvents.record(in: store) == 20)
        let event = try #require(try await store.event(at: Position(1)))
        #expect(try await Looking.support(store, event.id) == 1)
        try await Looking.widget(at: log, OwnEvents.rules) { minutes in
            #expect(minutes == 20)
            return false
        }
        #expect(
            try await Looking.copy(storage, to: folder.url.appending(path: "copy.ndjson")) == 1)
        let other = try await EventStore.inMemory(rules: OwnEvents.rules, views: [Habits.self])
        for new in [1, 0] {
            let imported = try await Looking.bring(
                folder.url.appending(path: "copy.ndjson"), into: other)
            #expect(imported == new)
        }
        #expect(other.view(Habits.self).minutes["reading"] == 20)
        try await other.close()
        try await store.close()
    }

    @Test func `a damaged log is repaired, once for all launches`() async throws {
        let folder = try Folder()
        let store = try await OwnEvents.open(at: folder.log)
        #expect(try await OwnEvents.record(in: store) == 20)
        #expect(try await OwnEvents.decide(in: store) == 40)
        try await store.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.log.path)
        let segment = folder.log.appending(path: try #require(names.first { $0.hasSuffix(".lz4") }))
        var bytes = try Data(contentsOf: segment)
        // Damages the only frame, in its last commit.
        let place = try #require(
            bytes.range(of: Data("reading".utf8), options: .backwards)?.lowerBound)
        bytes[place] ^= 0xFF
        try bytes.write(to: segment)
        try FileManager.default.removeItem(at: folder.log.appending(path: "checkpoints"))
        for _ in 0..<2 {
            let mended = try await Looking.openRepaired(folder.log)
            #expect((mended.view(Habits.self).minutes["reading"] ?? 0) < 60)
            try await mended.close()
        }
        let quarantine = folder.log.appending(path: "quarantine").path
        #expect(try !FileManager.default.contentsOfDirectory(atPath: quarantine).isEmpty)
    }

    @Test func `an app's own event type changes from one release to the next`() async throws {
        let folder = try Folder()
        #expect(try await FirstRelease.run(at: folder.log) == ["spring": "lake"])
        #expect(
            try await SecondRelease.run(at: folder.log) == [
                "spring": ["lake"], "summer": ["forest", "lake"],
            ])
        // A roll-back: the older release uses the events whose types it knows.
        #expect(try await FirstRelease.run(at: folder.log) == ["spring": "lake"])
    }

    @Test func `events that an app's own view supersedes are compacted away`() async throws {
        let folder = try Folder()
        let (name, removed) = try await SecondRelease.name(at: folder.log)
        #expect(name?.hasSuffix(" 2000") == true)
        #expect(removed == 1_999)
    }

    @Test func `a rule for a type of the store is refused`() async throws {
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
            try await store.append(contentsOf: [EventDraft(type: "daybook.note.added")])
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

    @Test func `opening without creating needs an existing log`() async throws {
        let folder = try Folder()
        let error = await #expect(throws: LogError.self) {
            _ = try await EventStore.open(at: folder.log, create: false)
        }
        #expect(error?.code == .noSuchLog)
    }

    @Test func `secrets are erased with the log`() async throws {
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

@MainActor @Suite struct InAnAppTests {
    @Test func `a store is used from types of the main actor`() async throws {
        let folder = try Folder()
        let store = try await OwnEvents.open(at: folder.log)
        let app = HabitApp(store)
        #expect(try await app.importRuns([(1, 30), (2, 45)]) == 2)
        #expect(try await app.importRuns([(2, 45), (3, 10)]) == 1)
        let screen = HabitScreen(store, habit: "reading")
        #expect(screen.minutes == 0)
        screen.habit = "running"
        #expect(screen.minutes == 85)
        let endpoint = try #require(URL(string: unreachableAddress))
        let running = try app.start(endpoint, HTTPOptions())
        await app.didBecomeActive()
        try await app.refreshInBackground(seconds: 0)
        #expect(await store.isSuspended)
        running.cancel()
        try await running.value
        #expect(try await HabitApp.minutes(of: "running", in: folder.log) == 85)
        try await store.close()
    }

    @Test func `credentials renew their token, and say when the user must sign in`() async throws {
        struct Once: Issuer {
            func renew(_ token: String) -> (token: String, seconds: TimeInterval)? {
                token == "first" ? ("second", 3600) : nil
            }
        }
        let account = Account(Once(), secrets: InMemorySecretStore())
        try await account.didSignIn("first")
        let first = try await account.credentials.token()
        let second = try await account.credentials.refresh(first)
        #expect(second?.value == "second")
        #expect(try await account.credentials.refresh(second) == nil)
        try await account.signOut()
    }

    @Test func `a person's events are gone after an erasure, or the reason is known`() async throws
    {
        let folder = try Folder()
        let views: [any Projection.Type] = [Customers.self]
        let store = try await EventStore.open(
            at: folder.log, rules: [.of(Bought.self), .of(CustomerErased.self)], views: views)
        for customer in ["c1", "c2", "c1"] {
            try await store.append(Bought(customer: customer, article: "tea"))
        }
        #expect(try await Erasing.erase("c1", from: store).isEmpty)
        #expect(try await store.customersOfPurchases() == ["c2"])
        #expect(store.view(Customers.self).articles["c2"] == ["tea"])
        try await store.close()
    }
}

extension EventStore {
    /// The customers of the purchases in the log.
    fileprivate func customersOfPurchases() throws -> [String] {
        var customers: [String] = []
        for position in 1...lastDurable.rawValue {
            guard let event = try event(at: Position(position)), event.type == Bought.type else {
                continue
            }
            customers.append(event.subject ?? "")
        }
        return customers
    }
}
