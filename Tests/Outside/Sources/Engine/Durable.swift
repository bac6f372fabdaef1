// The code of the article "Durability and errors".

import Daybook
import Foundation

/// The user looked at a page of the app.
struct PageSeen: EventPayload, Codable {
    static let type = "com.example.page.seen"
    var page: String
}

package enum Durable {
    package static func append(_ store: EventStore) async throws {
        // Durability-1 begins
        try await store.append(HabitDone(habit: "reading", minutes: 20))
        try await store.append(PageSeen(page: "statistics"), durability: .relaxed)
        try await store.flush()
        // Durability-1 ends
    }

    package static func appendTogether(_ store: EventStore) async throws {
        // Durability-8 begins
        try await store.append(contentsOf: [
            HabitDone(habit: "running", minutes: 25), PageSeen(page: "statistics"),
        ])
        // Durability-8 ends
    }

    /// Appends drafts, then the same drafts again.
    ///
    /// - Returns: the results of the first and of the second append.
    package static func appendTwice(
        _ store: EventStore, _ habits: [String]
    ) async throws -> (first: [Appended], second: [Appended]) {
        // Durability-2 begins
        let drafts = try habits.map { habit in
            try EventDraft(HabitDone(habit: habit, minutes: 20))
        }
        let appended = try await store.append(contentsOf: drafts)
        // Durability-2 ends
        return (appended, try await store.append(contentsOf: drafts))
    }

    package static func write(_ store: EventStore) async throws {
        // Durability-3 begins
        try await store.write { transaction in
            let minutes = transaction.view(Habits.self).minutes
            guard minutes["stretching"] == nil else { return }
            try transaction.append(HabitDone(habit: "stretching", minutes: 5))
            try transaction.append(HabitDone(habit: "running", minutes: 25))
        }
        // Durability-3 ends
    }

    package static func handle(_ store: EventStore, habit: String) async throws -> String {
        // Durability-4 begins
        do {
            try await store.append(HabitDone(habit: habit, minutes: 20))
            return "Recorded."
        } catch let error as EventError {
            return "Not recorded: \(error.detail)."
        } catch let error as LogError where error.code == .diskFull {
            return "Not recorded: the disk is full."
        } catch let error as LogError where error.code == .indeterminate {
            // Open the log again to find out whether it was recorded.
            try? await store.close()
            return "The disk has failed."
        }
        // Durability-4 ends
    }

    package static func printTornTail(_ store: EventStore) -> Bool {
        // Durability-5 begins
        if let tail = store.recovery.tornTail {
            print("\(tail.byteCount) unconfirmed bytes are in \(tail.quarantinedAs ?? "-")")
        }
        // Durability-5 ends
        return store.recovery.wasUnclean
    }

    package static func tidy(_ store: EventStore) async throws -> CompactionReport {
        // Durability-7 begins
        let report = try await store.compact()
        print("\(report.removed) events went, \(report.bytesAfter) bytes are left")
        for (reason, count) in report.kept {
            print("\(count) were kept: \(reason.rawValue)")
        }
        // Durability-7 ends
        return report
    }

    package static func backUp(_ store: EventStore, to url: URL) async throws -> BackupSummary {
        // Durability-9 begins
        let summary = try await store.backup(to: url)
        print("\(summary.events) events, \(summary.bytesCopied) of \(summary.bytes) bytes copied")
        // Durability-9 ends
        return summary
    }

    package static func pause(_ store: EventStore) async throws {
        // Durability-6 begins
        try await store.suspend()
        // … the system may stop the process here …
        try await store.resume()
        // Durability-6 ends
    }
}
