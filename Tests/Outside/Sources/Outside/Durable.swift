// The code of the article "Durability".

import DaybookOffline
import Foundation

/// The learner looked at a page.
struct PageSeen: EventPayload, Codable {
    static let type = "com.example.page.seen"
    var page: String
}

package enum Durable {
    package static func append(_ store: OfflineStore) async throws {
        // Durability-1 begins
        try await store.cities.save("lisbon", by: "user-456")
        try await store.append(PageSeen(page: "lisbon/trams"), durability: .relaxed)
        try await store.events.flush()
        // Durability-1 ends
    }

    package static func appendMany(_ store: OfflineStore, _ cities: [String]) async throws {
        // Durability-2 begins
        let drafts = try cities.map { city in
            try EventDraft(CitySaved(userId: "user-456", cityId: city))
        }
        let places = try await store.events.append(drafts)
        // Durability-2 ends
        guard places.count == cities.count else { return }
    }

    package static func write(_ store: OfflineStore) async throws {
        // Durability-3 begins
        try await store.write { transaction in
            let cities = transaction.view(CitiesView.self)
            guard cities.isSaved("lisbon", by: "user-456") else { return }
            try transaction.append(CityUnsaved(userId: "user-456", cityId: "lisbon"))
            try transaction.append(CitySaved(userId: "user-456", cityId: "porto"))
        }
        // Durability-3 ends
    }

    package static func handle(_ store: OfflineStore) async throws -> String {
        // Durability-4 begins
        do {
            try await store.cities.save("lisbon", by: "user-456")
            return "saved"
        } catch let error as EventError {
            return "This makes no sense: \(error.detail)"
        } catch let error as LogError where error.code == .diskFull {
            return "The device is full. Nothing was changed."
        } catch let error as LogError where error.code == .indeterminate {
            // Open the log again to find out whether it was recorded.
            try? await store.close()
            return "Something is wrong with the device."
        }
        // Durability-4 ends
    }

    package static func look(_ store: OfflineStore) -> Bool {
        // Durability-5 begins
        if let tail = store.events.recovery.tornTail {
            print("\(tail.byteCount) unconfirmed bytes are in \(tail.quarantinedAs ?? "-")")
        }
        // Durability-5 ends
        return store.events.recovery.wasUnclean
    }

    package static func tidy(_ store: OfflineStore) async throws -> CompactionReport {
        // Durability-7 begins
        let report = try await store.compact()
        print("\(report.removed) events went, \(report.bytesAfter) bytes are left")
        for (reason, count) in report.kept {
            print("\(count) were kept: \(reason.rawValue)")
        }
        // Durability-7 ends
        return report
    }

    package static func pause(_ store: OfflineStore) async throws {
        // Durability-6 begins
        try await store.suspend()
        // … the system may stop the process here …
        try await store.resume()
        // Durability-6 ends
    }
}
