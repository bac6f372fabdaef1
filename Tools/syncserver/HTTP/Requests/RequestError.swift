// The refusal of a whole request, which ErrorReplies turns into a reply.
// Spec/protocol/sync-protocol.md, SYNC-40.

import Hummingbird

/// The refusal of a whole request.
struct RequestError: Error {
    /// The status of the reply.
    let status: HTTPResponse.Status
    /// The reason for machines.
    let code: String
    /// The reason for people.
    let detail: String
    /// Further headers of the reply.
    let headers: HTTPFields

    init(
        _ status: HTTPResponse.Status, _ code: String, _ detail: String, headers: HTTPFields = [:]
    ) {
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
    }
}
