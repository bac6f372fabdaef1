// The code of the sections on PostgREST and GraphQL of the article "Shipping to your API".

import Daybook
import Foundation

// Tables-1 begins
struct MemoAdded: EventPayload, Codable {
    static let type = "com.example.memo.added"
    var memo: UUID
    var text: String
    var subject: String? { memo.uuidString }
}

struct MemoEdited: EventPayload, Codable {
    static let type = "com.example.memo.edited"
    var memo: UUID
    var text: String
    /// The version that the memo gets: one more than the version that the user has seen.
    var version: Int
    var subject: String? { memo.uuidString }
}

struct MemoStarred: EventPayload, Codable {
    static let type = "com.example.memo.starred"
    var memo: UUID
    var stars: Int
    var subject: String? { memo.uuidString }
}
// Tables-1 ends

// Tables-2 begins
nonisolated struct NewMemo: Encodable { var id: UUID, text: String }
nonisolated struct EditedMemo: Encodable { var text: String, version: Int }
nonisolated struct MemoStars: Encodable { var memo: UUID, stars: Int }
nonisolated struct ChangedRow: Decodable {}

let memoRules: [EventRule] = [
    .of(MemoAdded.self, action: "ADD_MEMO") { memo, _ in
        try APIRequest(
            .post, "memos",
            headers: ["Prefer": "resolution=ignore-duplicates,return=representation"],
            json: NewMemo(id: memo.memo, text: memo.text))
    },
    .of(MemoEdited.self, action: "EDIT_MEMO") { memo, context in
        // The second alternative is for a retry: the first attempt may have changed the row.
        let seen = "(version.eq.\(memo.version - 1),change.eq.\(context.event.id.uuidString))"
        return try APIRequest(
            .patch, "memos",
            query: [
                URLQueryItem(name: "id", value: "eq.\(memo.memo)"),
                URLQueryItem(name: "or", value: seen),
            ],
            headers: ["Prefer": "return=representation"],
            json: EditedMemo(text: memo.text, version: memo.version))
    } verdict: { answer, _ in
        guard answer.status == 200, try answer.decode([ChangedRow].self).isEmpty else { return nil }
        return .conflict(detail: "the memo was changed on another device")
    },
    .of(MemoStarred.self, action: "STAR_MEMO") { memo, _ in
        try APIRequest(
            .post, "rpc", "star_memo", json: MemoStars(memo: memo.memo, stars: memo.stars))
    },
]
// Tables-2 ends

// Tables-3 begins
nonisolated struct DatabaseError: Decodable { var code: String, message: String }

/// The transport to a project's tables, at `https://PROJECT/rest/v1`.
func tables(
    _ store: EventStore, at rest: URL, http: HTTPOptions
) throws -> RequestTransport {
    try RequestTransport(
        store, api: "memos", at: rest, key: .member("change"), promise: .once(keysKeptFor: nil),
        http: http
    ) { answer in
        switch answer.status {
        case _ where !answer.isJSON: return .nothing
        case 403, 409:  // A policy or a constraint refuses the row, and will again.
            let error = try answer.decode(DatabaseError.self)
            return .rejected(code: error.code, detail: error.message)
        case 404: return .nothing  // The table or the function is not there yet.
        default: return nil
        }
    }
}
// Tables-3 ends

// Tables-4 begins
nonisolated struct Mutation: Encodable { var query: String, variables: [String: String] }
nonisolated struct MutationAnswer: Decodable {
    var data: ChangedRow?
    var errors: [Fault]?
    struct Fault: Decodable { var message: String, extensions: Code? }
    struct Code: Decodable { var code: String? }
}

let mutationRule = EventRule.of(MemoAdded.self, action: "ADD_MEMO") { memo, context in
    let query = "mutation($change: ID!, $text: String!) { addMemo(change: $change, text: $text) }"
    let variables = ["change": context.event.id.uuidString, "text": memo.text]
    return try APIRequest(.post, "graphql", json: Mutation(query: query, variables: variables))
} verdict: { answer, _ in
    guard answer.status == 200 else { return nil }
    guard answer.isJSON else { return .nothing }
    let reply = try answer.decode(MutationAnswer.self)
    guard let fault = reply.errors?.first else { return reply.data == nil ? .nothing : .applied }
    let isLater = ["INTERNAL_SERVER_ERROR", "UNAUTHENTICATED"].contains(fault.extensions?.code)
    return isLater ? .nothing : .rejected(code: fault.extensions?.code, detail: fault.message)
}
// Tables-4 ends
