// The app of the article "Shipping to your API", at an API in memory.

import Daybook
import Foundation
import Synchronization
import Testing

@testable import Engine

/// Gives the first place the number 7, and loses its first answer.
private final class PlacesAPI: APIClient {
    private let requests = Mutex<[BoundedHTTPRequest]>([])
    var targets: [String] { requests.withLock { $0.map(\.url.path) } }
    var keys: Set<String> {
        requests.withLock { requests in
            Set(requests.flatMap { $0.fields.filter { $0.name == "Idempotency-Key" }.map(\.value) })
        }
    }
    struct Lost: Error {}

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let count = requests.withLock { requests in
            requests.append(request)
            return requests.count
        }
        guard count > 1 else { throw Lost() }
        return APIAnswer(
            status: 201, headers: ["Content-Type": "application/json"],
            body: Array(#"{"id":7}"#.utf8))
    }
}

@Suite struct RequestsTests {
    @Test func `a place that was added and rated offline is rated under the server's number`()
        async throws
    {
        let store = try await EventStore.inMemory(
            account: "ada", rules: placeRules, views: [PlaceNumbers.self])
        try await store.append(PlaceAdded(place: "pier", name: "North pier"))
        try await store.append(PlaceRated(place: "pier", stars: 5))
        let api = PlacesAPI()
        let transport = try RequestTransport(
            store, api: "places", at: try #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), client: api)
        let report = try await store.sync(over: transport)
        #expect(report.pending == 0)
        #expect(store.view(PlaceNumbers.self).numbers["pier"] == 7)
        #expect(api.targets == ["/v1/places", "/v1/places", "/v1/places/7/ratings"])
        #expect(api.keys.count == 2)
    }

    @Test func `two places go in one request, and what is refused is shown with its reason`()
        async throws
    {
        let store = try await EventStore.inMemory(
            account: "ada", rules: placeRules, views: [PlaceNumbers.self])
        try await store.append(PlaceAdded(place: "pier", name: "North pier"))
        try await store.append(PlaceAdded(place: "none", name: ""))
        let api = BulkAPI()
        let transport = try RequestTransport(
            store, api: "places", at: try #require(URL(string: "https://api.example.com/v1")),
            promise: .once(keysKeptFor: nil), bulk: placesInBulk, client: api)
        _ = try await store.sync(over: transport)
        #expect(store.view(PlaceNumbers.self).numbers["pier"] == 7)
        #expect(refusedChanges(in: store) == ["ADD_PLACE was refused: a place has a name"])
        #expect(store.outbox.entries.map(\.code) == ["http_422"])
    }

    @Test(arguments: [
        (#"{"data":{"addMemo":true}}"#, 1, 1),
        (#"{"data":null,"errors":[{"message":"too long"}]}"#, 1, 0),
        (#"{"data":{"addMemo":null},"errors":[{"message":"too long"}]}"#, 1, 0),
        (#"{"errors":[{"message":"-","extensions":{"code":"UNAUTHENTICATED"}}]}"#, 2, 1),
        (#"{}"#, 2, 1),
    ])
    func `a mutation that GraphQL refuses with 200 and errors is not applied`(
        first: String, requests: Int, applied: Int
    ) async throws {
        let store = try await EventStore.inMemory(account: "ada", rules: [mutationRule])
        try await store.append(MemoAdded(memo: UUID(), text: "tram"))
        let api = GraphQLAPI(first: first)
        let transport = try RequestTransport(
            store, api: "memos", at: try #require(URL(string: "https://api.example.com")),
            key: .inRequest, promise: .once(keysKeptFor: nil), client: api)
        let report = try await store.sync(over: transport)
        #expect(report.applied == applied)
        #expect(api.requests == requests)
        #expect(store.outbox.entries.map(\.status) == (applied == 1 ? [] : [.failed]))
    }
}

/// Refuses a place without a name, in bulk and alone.
private struct BulkAPI: APIClient {
    private struct Requests: Decodable {
        var requests: [Part]
        struct Part: Decodable { var body: String }
    }

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let body = Data(request.body ?? [])
        guard request.url.lastPathComponent == "batch" else {
            let (status, answer) = Self.answer(to: String(decoding: body, as: UTF8.self))
            return Self.json(status, answer)
        }
        let parts = try JSONDecoder().decode(Requests.self, from: body).requests.map { part in
            let (status, answer) = Self.answer(to: part.body)
            return ["status": "\(status)", "body": answer]
        }
        let responses = parts.map {
            #"{"status":\#($0["status"] ?? ""),"body":"\#(($0["body"] ?? "").replacing("\"", with: "\\\""))"}"#
        }
        return Self.json(200, #"{"responses":[\#(responses.joined(separator: ","))]}"#)
    }

    private static func answer(to body: String) -> (Int, String) {
        body.contains(#""name":"""#)
            ? (422, #"{"detail":"a place has a name"}"#) : (201, #"{"id":7}"#)
    }

    private static func json(_ status: Int, _ body: String) -> APIAnswer {
        APIAnswer(
            status: status, headers: ["Content-Type": "application/json"], body: Array(body.utf8))
    }
}

/// Answers the first request with a body, and the others with success; always with 200.
private final class GraphQLAPI: APIClient {
    private let first: String
    private let count = Mutex(0)
    var requests: Int { count.withLock { $0 } }

    init(first: String) { self.first = first }

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let number = count.withLock { count in
            count += 1
            return count
        }
        let body = number == 1 ? first : #"{"data":{"addMemo":true}}"#
        return APIAnswer(
            status: 200, headers: ["Content-Type": "application/json"], body: Array(body.utf8))
    }
}
