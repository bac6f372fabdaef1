// The token, the app's headers and its certificate for the servers that may have them, and for no
// other. Between the credentials and every request of a download. Spec/model/downloads.md, DL-11.

import Daybook
import Foundation
import Synchronization

/// Sends requests with the token where it belongs, and has it renewed before it ends, and once where
/// it is refused.
final class Authorizer: Sendable {
    private let client: BoundedHTTPClient
    private let credentials: any Credentials
    /// Where the token goes; nil: nowhere.
    private let origin: HTTPOrigin?
    /// Where headers and certificate go as well, without the token.
    private let trusted: Set<HTTPOrigin>
    /// The time by the server's clock, in milliseconds since 1970.
    private let now: @Sendable () async -> Int64
    /// The token that was sent last and when it is to be renewed.
    private let current = Mutex<(token: AccessToken, renewal: Int64?)?>(nil)

    init(
        _ options: HTTPOptions, credentials: any Credentials, origin: HTTPOrigin?,
        now: @escaping @Sendable () async -> Int64
    ) {
        // A large file on a slow line takes as long as it takes.
        client = BoundedHTTPClient(options, requestSeconds: nil)
        trusted = Set(options.trustedOrigins.compactMap(HTTPOrigin.init))
        self.credentials = credentials
        self.origin = origin
        self.now = now
    }

    /// Carries one request.
    ///
    /// - Parameter isRedirected: whether a server named the address instead of the manifest or the
    ///   app: then neither token nor headers nor certificate go along.
    /// - Throws: as `BoundedHTTPClient.send`; what the credentials throw; `DownloadError` with
    ///   `unauthorized`.
    func send(
        _ request: BoundedHTTPRequest, isRedirected: Bool = false,
        to handler: any ResponseBodyHandler
    ) async throws -> BoundedHTTPResponseHead {
        let target = isRedirected ? nil : HTTPOrigin(request.url)
        let getsToken = target != nil && target == origin
        guard getsToken, let stored = try await credentials.token() else {
            let isOwn = getsToken || target.map(trusted.contains) ?? false
            return try await client.send(request, token: nil, isOwn: isOwn, to: handler)
        }
        let token = try await renewed(stored)
        let head = try await client.send(request, token: token.value, to: handler)
        guard head.status == 401 else { return head }
        guard let new = try await credentials.refresh(token), new != token else { return head }
        return try await client.send(request, token: new.value, to: handler)
    }

    /// The token, or a new one if it is about to end. If the issuer refuses, the server decides on the
    /// old one. If the issuer cannot be reached, the old one is sent until it ends.
    ///
    /// - Throws: what `refresh` throws, for a token that has ended.
    private func renewed(_ token: AccessToken) async throws -> AccessToken {
        guard let end = token.expiresAt?.milliseconds else { return token }
        let now = await now()
        let renewal = current.withLock { current in
            if current?.token != token {
                current = (token, TokenRenewal.time(ofTokenUntil: end, received: now))
            }
            return current?.renewal
        }
        guard let renewal, renewal <= now else { return token }
        do {
            return try await credentials.refresh(token) ?? token
        } catch {
            guard now < end else { throw error }
            current.withLock { $0 = (token, now + TokenRenewal.retryMilliseconds) }
            return token
        }
    }

    /// The error of a status that no later request would change.
    static func refusal(_ head: BoundedHTTPResponseHead, _ what: String) -> DownloadError {
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
