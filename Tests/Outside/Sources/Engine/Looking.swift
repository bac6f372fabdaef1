// The code of the article "Looking into a log".

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

    package static func mend(_ url: URL, to newURL: URL) async throws -> EventStore? {
        // Looking-5 begins
        do {
            return try await EventStore.open(at: url, views: [Habits.self])
        } catch let error as LogError where error.code == .corrupt {
            let maintenance = try LogMaintenance(at: url, views: [Habits.self])
            let report = try await maintenance.salvage(to: newURL)
            print("\(report.lostCount.map { "\($0)" } ?? "some") changes could not be read")
            return try await EventStore.open(at: newURL, views: [Habits.self])
        }
        // Looking-5 ends
    }

    package static func outbox(_ store: EventStore) -> Int {
        // Looking-2 begins
        let outbox = store.view(Outbox.self)
        for entry in outbox.entries() {
            print(entry.timestamp, entry.action, entry.entityId, entry.status.rawValue)
        }
        // Looking-2 ends
        return outbox.count
    }
}
