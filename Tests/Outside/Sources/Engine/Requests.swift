// The code of the article "Shipping to your API".

import Daybook
import Foundation

// Requests-1 begins
struct PlaceAdded: EventPayload, Codable {
    static let type = "com.example.place.added"
    var place: String
    var name: String
    var subject: String? { place }
}

struct PlaceRated: EventPayload, Codable {
    static let type = "com.example.place.rated"
    var place: String
    var stars: Int
    var subject: String? { place }
}

/// The number that the server has given a place. It stays on the device.
struct PlaceNumbered: EventPayload, Codable {
    static let type = "com.example.place.numbered"
    var place: String
    var number: Int
    var subject: String? { place }
}

struct PlaceNumbers: Projection, Codable {
    static let name = "numbers"
    static let version = 1
    private(set) var numbers: StateDictionary<String, Int> = [:]

    mutating func fold(_ event: Event) {
        guard event.type == PlaceNumbered.type,
            let place = try? event.payload(as: PlaceNumbered.self)
        else { return }
        numbers[place.place] = place.number
    }
}
// Requests-1 ends

// Requests-2 begins
/// The bodies of the API. `nonisolated`: also in an app whose types belong to the main actor.
nonisolated struct NewPlace: Encodable { var name: String }
nonisolated struct Rating: Encodable { var stars: Int }
nonisolated struct CreatedPlace: Decodable { var id: Int }

let placeRules: [EventRule] = [
    .of(PlaceAdded.self, action: "ADD_PLACE") { place, _ in
        try APIRequest(.post, "places", json: NewPlace(name: place.name))
    } learning: { answer, place in
        [PlaceNumbered(place: place.place, number: try answer.decode(CreatedPlace.self).id)]
    },
    .of(PlaceRated.self, action: "RATE_PLACE") { rating, context in
        guard let number = context.view(PlaceNumbers.self).numbers[rating.place] else {
            throw RequestNotReady("the place has no number yet")
        }
        return try APIRequest(
            .post, "places", "\(number)", "ratings", json: Rating(stars: rating.stars))
    },
    .of(PlaceNumbered.self),
]
// Requests-2 ends

// Requests-3 begins
/// Syncs with the app's API while the app runs.
func ship(
    _ store: EventStore, to api: URL, as user: any Credentials
) throws -> Task<Void, any Error> {
    let transport = try RequestTransport(
        store, api: "places", at: api, promise: .once(keysKeptFor: .seconds(24 * 3_600)))
    let service = SyncService(store, transport: transport, credentials: user)
    return Task { try await service.run() }
}
// Requests-3 ends

func promises() {
    // Requests-4 begins
    let isThere = Confirmation { context in
        APIRequest(.get, "changes", context.event.id.uuidString.lowercased())
    }
    let day = RequestPromise.once(keysKeptFor: .seconds(24 * 3_600), confirm: isThere)
    let forEver = RequestPromise.once(keysKeptFor: nil)
    let withoutKeys = RequestPromise.atLeastOnce(confirm: isThere)
    // Requests-4 ends
    _ = (day, forEver, withoutKeys)
}

func verdicts(_ store: EventStore, _ api: URL) throws -> RequestTransport {
    // Requests-5 begins
    let transport = try RequestTransport(
        store, api: "places", at: api, key: .member("request_id"),
        promise: .once(keysKeptFor: nil), evidence: .header("X-Places")
    ) { answer in
        switch answer.status {
        case 409 where answer.isJSON: .duplicate  // The API has a place of this name.
        case 403 where answer.isJSON: .rejected(code: "forbidden", detail: "not your place")
        default: nil
        }
    }
    // Requests-5 ends
    return transport
}

// Requests-6 begins
/// What a screen says of the changes that wait for the user.
func refusedChanges(in store: EventStore) -> [String] {
    store.outbox.entries.filter { $0.parking == .rejected }.map { entry in
        switch entry.code {
        case RequestTransport.Code.keyExpired:
            "\(entry.action) may have arrived: look, then retry or discard it"
        default: "\(entry.action) was refused: \(entry.errorMessage ?? "")"
        }
    }
}
// Requests-6 ends

// Requests-7 begins
nonisolated struct Bulk: Encodable {
    var requests: [Part]
    struct Part: Encodable { var method: String, path: String, key: String?, body: String }
}
nonisolated struct BulkAnswer: Decodable {
    var responses: [Part]
    struct Part: Decodable { var status: Int, body: String }
}

let placesInBulk = BulkEndpoint { requests in
    let parts = requests.map { request in
        Bulk.Part(
            method: request.method.rawValue, path: request.target,
            key: request.headers["Idempotency-Key"],
            body: String(decoding: request.body ?? [], as: UTF8.self))
    }
    return try APIRequest(.post, "batch", json: Bulk(requests: parts))
} answers: { answer, _ in
    try answer.decode(BulkAnswer.self).responses.map { part in
        APIAnswer(
            status: part.status, headers: ["Content-Type": "application/json"],
            body: Array(part.body.utf8))
    }
}
// Requests-7 ends
