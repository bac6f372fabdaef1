// Requests to an app's own API, each recorded before it is sent and settled after it is answered, against clients that
// send the same requests from memory, to a server that accepts everything.

import Daybook
import DaybookTestKit
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The race of requests.
struct Requests {
    let folder: URL
    /// The events of the log, a request each.
    let events: Int

    static let plain = "plain client"
    static let bounded = "Daybook's client, from memory"
    private static let requestsMax = 2

    private struct PlaceRated: EventPayload, Codable {
        static let type = "com.example.place.rated"
        var place: String
        var stars: Int
        var text: String
        var subject: String? { place }
    }

    private static let rules: [EventRule] = [
        .of(PlaceRated.self, action: "RATE_PLACE") { rating, _ in
            try APIRequest(.post, "places", rating.place, "ratings", json: rating)
        }
    ]

    /// Keeps the requests that it sends.
    private final class RecordingClient: APIClient {
        private let requests = Mutex<[BoundedHTTPRequest]>([])
        var sent: [BoundedHTTPRequest] { requests.withLock { $0 } }

        func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
            requests.withLock { $0.append(request) }
            return APIAnswer(status: 201, headers: ["Content-Type": "application/json"])
        }
    }

    func race() async throws -> Race {
        let log = folder.appending(path: "requests")
        try await makeLog(at: log)
        let server = try LoopbackServer { _ in
            ([("Content-Type", "application/json")], Array(#"{"id":1}"#.utf8))
        }
        guard let api = URL(string: server.base + "/v1") else {
            throw CocoaError(.coderInvalidValue)
        }
        let recorder = RecordingClient()
        _ = try await ship(copyOf: log, to: api, over: recorder)
        let requests = recorder.sent
        let count = Double(events)
        return Race(
            name: "requests to an API", unit: "µs a request", scale: 1e6,
            budgets: [.processorAtMost(1.3, of: Self.plain)],
            contenders: [
                Contender(name: RaceResult.ours) {
                    // The server lives as long as the race.
                    withExtendedLifetime(server) {}
                    return try await ship(copyOf: log, to: api, over: nil) / count
                },
                Contender(name: Self.plain) { try await sendPlainly(requests) / count },
                Contender(name: Self.bounded) { try await send(requests) / count },
            ])
    }

    private func makeLog(at log: URL) async throws {
        let store = try await EventStore.open(
            at: log, account: "ana", rules: Self.rules, views: [Outbox.self])
        for start in stride(from: 0, to: events, by: 1_000) {
            try await store.append(
                contentsOf: (start..<min(start + 1_000, events)).map { number in
                    PlaceRated(
                        place: "place-\(number % 100)", stars: number % 6,
                        text: "Great coffee at number \(number), closed on Mondays")
                })
        }
        try await store.close()
    }

    private func ship(
        copyOf log: URL, to api: URL, over client: (any APIClient)?
    ) async throws -> Cost {
        let copy = folder.appending(path: UUID().uuidString)
        try FileManager.default.copyItem(at: log, to: copy)
        defer { try? FileManager.default.removeItem(at: copy) }
        let store = try await EventStore.open(
            at: copy, account: "ana", rules: Self.rules, views: [Outbox.self])
        let transport = try RequestTransport(
            store, api: "places", at: api, promise: .once(keysKeptFor: nil), client: client)
        var options = Replayer.Options()
        options.requestsMax = Self.requestsMax
        let replayer = Replayer(store, transport: transport, options: options)
        var applied = 0
        let cost = try await measured { applied = try await replayer.run().applied }
        try await store.close()
        guard applied == events else { throw CocoaError(.coderInvalidValue) }
        return cost
    }

    // MARK: From memory

    /// Sends requests in as many tasks as the replayer has requests at once.
    private func inTasks(
        _ requests: [BoundedHTTPRequest],
        _ send: @escaping @Sendable (BoundedHTTPRequest) async throws -> Int
    ) async throws -> Cost {
        try await measured {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for first in 0..<Self.requestsMax {
                    group.addTask {
                        for index in stride(
                            from: first, to: requests.count, by: Self.requestsMax)
                        {
                            guard try await send(requests[index]) == 200 else {
                                throw CocoaError(.coderInvalidValue)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    private func sendPlainly(_ requests: [BoundedHTTPRequest]) async throws -> Cost {
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        return try await inTasks(requests) { request in
            var plain = URLRequest(url: request.url)
            plain.httpMethod = request.method?.rawValue
            for (name, value) in request.fields {
                plain.setValue(value, forHTTPHeaderField: name)
            }
            plain.httpBody = request.body.map { Data($0) }
            let (_, response) = try await session.data(for: plain)
            return (response as? HTTPURLResponse)?.statusCode ?? 0
        }
    }

    private func send(_ requests: [BoundedHTTPRequest]) async throws -> Cost {
        let client = BoundedHTTPClient(HTTPOptions(), requestSeconds: nil)
        return try await inTasks(requests) { request in
            try await client.answer(to: request, token: nil).status
        }
    }
}
