// The code of the article "Inspecting a log".

import Daybook
import Foundation

package enum Looking {
    package static func back(_ store: EventStore, to position: Position) async throws -> Int {
        // Looking-1 begins
        if let event = try await store.event(at: position) {
            print(event.time, event.type, event.subject ?? "-")
        }
        let past = try await store.state(at: position)
        let minutesThen = past.view(Habits.self).minutes["reading"] ?? 0
        // Looking-1 ends
        return minutesThen
    }

    package static func follow(
        _ store: EventStore, from start: Position, _ index: (Event) -> Void
    ) async throws -> Position {
        var lastIndexed = start
        // Looking-3 begins
        for try await event in store.events(after: lastIndexed) {
            index(event)
            lastIndexed = event.position
        }
        // Looking-3 ends
        return lastIndexed
    }

    package static func indexAll(_ store: EventStore, _ index: (Event) -> Void) async throws {
        // Looking-4 begins
        for try await event in store.recordedEvents(after: .zero) {
            index(event)
        }
        // Looking-4 ends
    }

    package static func openRepaired(_ url: URL) async throws -> EventStore {
        // Looking-5 begins
        do {
            return try await EventStore.open(at: url, account: "user-456", views: [Habits.self])
        } catch let error as LogError where error.isDamage {
            let maintenance = try LogMaintenance(
                at: url, account: "user-456", views: [Habits.self])
            let report = try await maintenance.repair()
            print("\(report.lostCount.map { "\($0)" } ?? "some") events could not be read")
            return try await EventStore.open(at: url, account: "user-456", views: [Habits.self])
        }
        // Looking-5 ends
    }

    package static func outbox(_ store: EventStore) -> Int {
        // Looking-2 begins
        let outbox = store.view(Outbox.self)
        for entry in outbox.entries {
            print(entry.timestamp, entry.action, entry.entityId, entry.status.rawValue)
        }
        // Looking-2 ends
        return outbox.count
    }

    package static func support(_ store: EventStore, _ id: UUID) async throws -> Int {
        // Looking-6 begins
        let statistics = try await store.statistics()
        print("\(statistics.events) events in \(statistics.diskBytes) bytes")
        print("\(statistics.unsynced) not synced, \(statistics.parked) of them parked")
        if let story = try await store.story(of: id) {
            for step in story.steps { print(step) }
            print(story.status)
        }
        // Looking-6 ends
        return statistics.events
    }

    package static func widget(
        at url: URL, _ rules: [EventRule], _ show: @Sendable (Int) -> Bool
    ) async throws {
        // Looking-7 begins
        let log = try await ReadOnlyStore.open(at: url, rules: rules, views: [Habits.self])
        for try await _ in log.changes(every: .seconds(1)) {
            let minutes = await log.view(Habits.self).minutes["reading"] ?? 0
            guard show(minutes) else { break }
        }
        // Looking-7 ends
    }

    package static func copy(_ storage: DeviceStorage, to file: URL) async throws -> Int {
        // Looking-8 begins
        let copied = try await storage.export(account: "user-456", to: file)
        print("\(copied.events) events, \(copied.bytes) bytes")
        // Looking-8 ends
        return copied.events
    }

    package static func bring(_ file: URL, into store: EventStore) async throws -> Int {
        // Looking-9 begins
        let imported = try await store.importEvents(from: file) { print($0.lines, "lines") }
        print("\(imported.appended) events are new, \(imported.known) were known")
        // Looking-9 ends
        return imported.appended
    }
}
