// The token for the server's own origin, and for nobody else. Between the credentials and every
// request of a download. Spec/downloads.md, DL-11.

import Foundation
import Replay

/// Sends requests with the token where it belongs, and has it renewed once where it is refused.
struct Authorizer: Sendable {
    let client: HTTPClient
    let credentials: any Credentials
    /// Where the token goes; nil: nowhere.
    let origin: HTTPOrigin?

    /// Carries one request.
    ///
    /// - Parameter isRedirected: whether a server named the address instead of the manifest or the
    ///   app: then no token goes along.
    /// - Throws: as `HTTPClient.send`; what the credentials throw; `DownloadError` with
    ///   `unauthorized`.
    func send(
        _ request: HTTPRequest, isRedirected: Bool = false, to handler: any ResponseBodyHandler
    ) async throws -> HTTPResponseHead {
        let isOurs =
            !isRedirected && origin != nil && HTTPOrigin(request.url) == origin
        guard isOurs, let token = try await credentials.token() else {
            return try await client.send(request, token: nil, to: handler)
        }
        let head = try await client.send(request, token: token.value, to: handler)
        guard head.status == 401 else { return head }
        guard let new = try await credentials.refresh(token), new != token else { return head }
        return try await client.send(request, token: new.value, to: handler)
    }

    /// The error of a status that no later request would change.
    static func refusal(_ head: HTTPResponseHead, _ what: String) -> DownloadError {
        switch head.status {
        case 401:
            DownloadError(
                .unauthorized, "\(what): the server does not take the token. Sign in again")
        case 300..<400:
            DownloadError(.refused, "\(what): the server leads elsewhere (\(head.status))")
        case 404, 410:
            DownloadError(.refused, "\(what): the server does not have it (\(head.status))")
        default: DownloadError(.refused, "\(what): the server answers \(head.status)")
        }
    }
}
