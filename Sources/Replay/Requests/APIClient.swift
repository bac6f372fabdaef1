// The seam between RequestTransport and the network. An app with a client of its own, and tests, implement it.

import Foundation

/// Sends one request to an app's own API.
public protocol APIClient: Sendable {
    /// Sends a request and returns the complete answer, whatever its status. It follows no redirect, and does not
    /// repeat a request with `isSentOnce`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - token: the bearer token, if there is one.
    /// - Throws: any error if no complete answer was received.
    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer
}

extension BoundedHTTPClient: APIClient {
    /// Sends a request and collects the answer, up to 4 MiB.
    ///
    /// - Throws: as `send(_:token:isOwn:to:)`; `replyTooLong`; `malformedReply` for a content encoding.
    public func answer(
        to request: BoundedHTTPRequest, token: String?
    ) async throws -> APIAnswer {
        let body = ReplyBody()
        let head = try await send(request, token: token, to: body)
        return APIAnswer(head, try body.checked(head, from: request.url))
    }
}
