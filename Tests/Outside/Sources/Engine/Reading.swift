// The code of the article "Reading from your API".

import Daybook
import Foundation

// Reading-1 begins
struct HikeRenamed: EventPayload, Codable {
    static let type = "com.example.hike.renamed"
    var hike: String
    var name: String
    var subject: String? { hike }
}

struct HikeState: APIState, Codable {
    static let type = "com.example.hike.state"
    var hike: String
    var name: String
    var updatedAt: String
    var isDeleted = false
    var subject: String? { hike }
    var apiVersion: APIVersion { (try? .timestamp(updatedAt)) ?? .tag(updatedAt) }
}

struct HikeNames: Projection, Codable {
    static let name = "hikes"
    static let version = 1
    private(set) var names: [String: String] = [:]

    mutating func fold(_ event: Event) {
        if let renamed = try? event.payload(as: HikeRenamed.self) {
            names[renamed.hike] = renamed.name
        } else if let state = try? event.payload(as: HikeState.self) {
            names[state.hike] = state.isDeleted ? nil : state.name
        }
    }
}
// Reading-1 ends

// Reading-2 begins
nonisolated struct HikeRow: Codable {
    var id: String
    var name: String
    var updatedAt: String
    var deleted: Bool?

    func state() -> HikeState {
        HikeState(hike: id, name: name, updatedAt: updatedAt, isDeleted: deleted ?? false)
    }
}

let hikeList = PullSource(of: HikeState.self, .updatedSince(overlap: .seconds(5))) { position in
    APIRequest(.get, "hikes", query: position.query("updated_since"))
} state: { (row: HikeRow, _) in
    row.state()
}
// Reading-2 ends

// Reading-3 begins
let hikeRules: [EventRule] = [
    .of(HikeRenamed.self, action: "RENAME_HIKE") { renamed, context in
        let version = context.version(of: HikeState.self)?.text
        return try APIRequest(
            .put, "hikes", renamed.hike, headers: version.map { ["If-Match": $0] } ?? [:],
            json: ["name": renamed.name])
    } learning: { answer, _ in
        [try answer.decode(HikeRow.self).state()]
    },
    .of(HikeState.self),
]

func hikes(_ store: EventStore, at api: URL) throws -> RequestTransport {
    try RequestTransport(
        store, api: "hikes", at: api, promise: .once(keysKeptFor: .seconds(24 * 3_600)),
        reading: [hikeList])
}
// Reading-3 ends
