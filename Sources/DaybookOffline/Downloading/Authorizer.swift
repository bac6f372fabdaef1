// Sends the token, the app's headers and its certificate to the servers that may receive them, and to no
// other. Between the credentials and every request of a download. Spec/model/downloads.md, DL-11.

import Daybook
import Foundation
import Synchronization

/// Sends requests, with the token to its origin only. Renews the token before it expires, and once after
/// a 401.
final class Authorizer: Sendable {
    private let client: BoundedHTTPClient
    /// The longest silence of a server.
    private let timeoutSeconds: Double
    private let credentials: any Credentials
    /// The origin that receives the token; nil: none does.
    let origin: HTTPOrigin?
    /// Further origins that receive headers and certificate, but not the token.
    private let trusted: Set<HTTPOrigin>
    /// The store, whose time is the server's.
    private let store: EventStore
    /// The tokens that were renewed, also by shipping.
    private let renewed: RenewedTokens
    /// The token that was sent last and the time of its renewal.
    private let current = Mutex<(token: AccessToken, renewal: Int64?)?>(nil)

    init(
        _ options: HTTPOptions, credentials: any Credentials, origin: HTTPOrigin?,
        for store: EventStore
    ) {
        // No limit for a whole request: a large file on a slow connection may take long.
        client = BoundedHTTPClient(options, requestSeconds: nil)
        timeoutSeconds = options.timeoutSeconds
        trusted = Set(options.trustedOrigins.compactMap(HTTPOrigin.init))
        self.credentials = credentials
        self.origin = origin
        self.store = store
        renewed = RenewedTokens(store)
    }

    /// Sends one request.
    ///
    /// - Parameter isRedirected: true if the URL comes from a redirect, not from the manifest or the
    ///   app: then neither token nor headers nor certificate are sent.
    /// - Throws: as `BoundedHTTPClient.send`, `timedOut` also for a body that trickles; what the credentials
    ///   throw; `DownloadError` with `unauthorized`.
    func send(
        _ request: BoundedHTTPRequest, isRedirected: Bool = false,
        to handler: any ResponseBodyHandler
    ) async throws -> BoundedHTTPResponseHead {
        let body = MinimumRateHandler(handler, timeoutSeconds: timeoutSeconds)
        let head = try await sendAuthorized(request, isRedirected: isRedirected, to: body)
        try body.check(request.url)
        return head
    }

    private func sendAuthorized(
        _ request: BoundedHTTPRequest, isRedirected: Bool, to handler: MinimumRateHandler
    ) async throws -> BoundedHTTPResponseHead {
        let target = isRedirected ? nil : HTTPOrigin(request.url)
        let receivesToken = target != nil && target == origin
        guard receivesToken, let stored = try await credentials.token() else {
            let isOwn = receivesToken || target.map(trusted.contains) ?? false
            return try await client.send(request, token: nil, isOwn: isOwn, to: handler)
        }
        let token = try await renewIfDue(stored)
        let head = try await client.send(request, token: token.value, to: handler)
        guard head.status == 401 else { return head }
        guard let new = try await credentials.refresh(token), new != token else { return head }
        renewed.insert(token, new)
        return try await client.send(request, token: new.value, to: handler)
    }

    /// Renews the token if it is about to expire or has expired. If the issuer refuses, the old token is sent
    /// and the server decides. If the issuer cannot be reached, the old token is sent until it expires.
    ///
    /// - Throws: what `refresh` throws, for a token that has expired.
    private func renewIfDue(_ token: AccessToken) async throws -> AccessToken {
        guard let expiry = token.expiresAt?.milliseconds else { return token }
        let now = await store.now
        let renewal = current.withLock { current in
            if current?.token != token {
                let renewal = TokenRenewal.time(
                    ofTokenUntil: expiry, received: now, isRenewed: renewed.contains(token))
                current = (token, renewal)
            }
            return current?.renewal
        }
        guard let renewal, renewal <= now else { return token }
        do {
            let new = try await credentials.refresh(token) ?? token
            renewed.insert(token, new)
            // The issuer has refused, or has no other token yet.
            if new == token {
                let retry = now < expiry ? now + TokenRenewal.retryMilliseconds : nil
                current.withLock { $0 = (token, retry) }
            }
            return new
        } catch {
            guard now < expiry else { throw error }
            current.withLock { $0 = (token, now + TokenRenewal.retryMilliseconds) }
            return token
        }
    }

    /// The error for a status that a retry would not change.
    ///
    /// - Parameter resource: the name of what was requested, for the message.
    static func refusal(_ head: BoundedHTTPResponseHead, _ resource: String) -> DownloadError {
        switch head.status {
        case 401:
            DownloadError(
                .unauthorized, "\(resource): the server rejects the token; sign in again")
        case 300..<400:
            DownloadError(.refused, "\(resource): a redirect that is not followed (\(head.status))")
        case 404, 410:
            DownloadError(missing: "\(resource): the server does not have it (\(head.status))")
        default: DownloadError(.refused, "\(resource): the server answers \(head.status)")
        }
    }
}
