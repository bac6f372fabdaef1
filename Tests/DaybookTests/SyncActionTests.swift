// Every state that an action can be in, as an app sees it.

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DaybookOffline

/// Answers each event by the text of its note.
private struct AnsweringTransport: Transport {
    var onTheWay: @Sendable () async -> Void = {}

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        guard case .append(let batch) = request else {
            return TransportReply(status: 200, body: Array("[]".utf8))
        }
        await onTheWay()
        let events = try JSONSerialization.jsonObject(with: Data(batch)) as? [[String: Any]] ?? []
        let verdicts = events.map { event -> [String: Any?] in
            let data = event["data"] as? [String: Any]
            let words = (data?["content"] as? String ?? "applied").split(separator: " ")
            return [
                "id": event["id"], "status": String(words[0]),
                "detail": words.count > 1 ? String(words[1]) : nil,
            ]
        }
        let body = try JSONSerialization.data(
            withJSONObject: ["verdicts": verdicts.map { $0.compactMapValues(\.self) }])
        return TransportReply(status: 200, body: Array(body))
    }
}

@Suite struct SyncActionTests {
    @Test(.verifies("OUT-5"))
    func `an action is pending, then syncing, then has the server's verdict`() async throws {
        let store = try await OfflineStore.inMemory(account: "u")
        let saved = try await store.cities.save("lisbon", by: "u").id
        let refused = try await store.notes.add("rejected because", city: "lisbon", by: "u")
        func action(_ id: UUID, _ report: SyncReport = SyncReport()) async throws -> SyncAction {
            try #require(try await store.outbox.action(id, during: report))
        }
        let waiting = try await action(saved)
        #expect(waiting.syncStatus == .pending)
        #expect(waiting.actionType == "SAVE_CITY")
        #expect(waiting.entityId == "lisbon")
        #expect(waiting.retryCount == 0)
        #expect(
            String(decoding: waiting.actionData, as: UTF8.self)
                == #"{"userId":"u","cityId":"lisbon"}"#)
        var report = SyncReport()
        report.underWay = [saved]
        #expect(try await action(saved, report).syncStatus == .syncing)
        #expect(store.outbox.pending.map(\.id).first == saved)
        #expect(store.outbox.entries(about: refused.id).map(\.action) == ["ADD_NOTE"])

        _ = try await Replayer(
            store.events, transport: AnsweringTransport(), credentials: NoCredentials()
        ).run(until: .whenNothingMoves)
        #expect(try await action(saved).syncStatus == .success)
        let event = try #require(try await store.events.event(at: Position(2)))
        let failed = try await action(event.id)
        #expect(failed.syncStatus == .failed)
        #expect(failed.errorMessage == "because")
        #expect(failed.lastAttemptAt != nil)
        #expect(Array(store.outbox.pending).isEmpty)
        #expect(SyncAction.Status.allCases.count == 5)

        try await store.outbox.discard(event.id)
        #expect(try await store.outbox.action(event.id) == nil)
        #expect(try await store.outbox.action(UUID()) == nil)
        // An event that stays on the device is not an action.
        let kept = try await store.append(CityAccessed(cityId: "lisbon"))
        #expect(try await store.outbox.action(kept.id) == nil)
        try await store.close()
    }

    @Test(.verifies("OUT-4"))
    func `actions wait in the order of the calls, also if the clock steps back`() async throws {
        let seconds = Mutex<TimeInterval>(1_771_756_200)
        let store = try await OfflineStore.inMemory(
            account: "u", clock: { Date(timeIntervalSince1970: seconds.withLock { $0 }) })
        let cities = ["oslo", "porto", "lisbon"]
        for city in cities {
            try await store.cities.save(city, by: "u")
            seconds.withLock { $0 -= 3_600 }
        }
        #expect(store.outbox.pending.map(\.entityId) == cities)
        // The times run backwards: actions are not ordered by time.
        #expect(
            store.outbox.pending.map(\.timestamp.milliseconds)
                == [1_771_756_200_000, 1_771_752_600_000, 1_771_749_000_000])
        try await store.close()
    }
}
