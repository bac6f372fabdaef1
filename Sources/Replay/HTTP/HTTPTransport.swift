// The sync protocol: POST {endpoint} with a batch, GET {endpoint} for pages. BoundedHTTPClient carries the
// requests. Spec/protocol/sync-protocol.md.

import Foundation

/// The transport of the sync protocol.
public final class HTTPTransport: Transport {
    private let endpoint: URL
    private let client: BoundedHTTPClient
    private let account: AccountCheck

    /// Creates a transport. An endpoint that cannot be used is refused by `send`.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`.
    ///   - timeoutSeconds: how long the server may be silent; a request may take four times as long
    ///     altogether.
    ///   - allowsTokenInClear: whether a token may go over `http` to another machine, where anybody
    ///     on the way can read it. This machine's own addresses are always allowed.
    ///   - account: for which account of the server it ships and reads.
    public init(
        endpoint: URL, timeoutSeconds: Double = 30, allowsTokenInClear: Bool = false,
        account: AccountCheck = .ofLog
    ) {
        self.endpoint = Self.eventsURL(of: endpoint)
        self.account = account
        client = BoundedHTTPClient(
            forSyncing: HTTPOptions(
                timeoutSeconds: timeoutSeconds, allowsTokenInClear: allowsTokenInClear))
    }

    /// Creates a transport for a server behind a proxy that demands headers or a certificate.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`.
    ///   - http: headers, certificate, proxy and limits. A request may take four times as long
    ///     altogether as the server may be silent.
    ///   - account: for which account of the server it ships and reads.
    /// - Throws: `TransportError`: `badEndpoint`, `badHeader`, `reservedHeader`, `badProxy`,
    ///   `certificatesUnsupported` where the system's HTTP client presents none; on Apple systems
    ///   `badCertificate`, on Linux the first request throws it.
    public init(
        endpoint: URL, http: HTTPOptions, account: AccountCheck = .ofLog
    ) throws(TransportError) {
        _ = try HTTPOrigin(endpoint: endpoint)
        self.endpoint = Self.eventsURL(of: endpoint)
        self.account = account
        client = BoundedHTTPClient(forSyncing: http)
        try client.check()
    }

    /// Creates a transport with headers and a certificate. See `init(endpoint:http:account:)`.
    public convenience init(
        endpoint: URL, timeoutSeconds: Double = 30, headers: [String: String],
        certificate: ClientCertificate? = nil, allowsTokenInClear: Bool = false,
        account: AccountCheck = .ofLog
    ) throws(TransportError) {
        try self.init(
            endpoint: endpoint,
            http: HTTPOptions(
                headers: headers, certificate: certificate, timeoutSeconds: timeoutSeconds,
                allowsTokenInClear: allowsTokenInClear), account: account)
    }

    /// Where batches are posted: a server's bare address stands for its `/v1/events`, which may end in `/`.
    public static func eventsURL(of endpoint: URL) -> URL {
        if endpoint.path.hasSuffix("/v1/events"), endpoint.absoluteString.hasSuffix("/") {
            return URL(string: String(endpoint.absoluteString.dropLast())) ?? endpoint
        }
        guard endpoint.path.isEmpty || endpoint.path == "/", endpoint.query == nil else {
            return endpoint
        }
        return URL(string: "/v1/events", relativeTo: endpoint)?.absoluteURL ?? endpoint
    }

    /// Carries one request without saying whose log it is about.
    ///
    /// - Throws: as `send(_:token:account:)`.
    public func send(_ call: TransportRequest, token: String?) async throws -> TransportReply {
        try await send(call, token: token, account: nil)
    }

    /// Carries one request.
    ///
    /// - Throws: `TransportError`, also where no complete reply came; `CancellationError`.
    public func send(
        _ call: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply {
        var request = BoundedHTTPRequest(endpoint)
        switch call {
        case .append(let batch):
            request.set("Content-Type", "application/cloudevents-batch+json")
            request.set("Accept", "application/json")
            request.body = batch
        case .read(let cursor):
            // A link to another server is not followed: the token would go with it.
            if let cursor { request.url = try HTTPOrigin.page(cursor, from: endpoint) }
            request.set("Accept", "application/cloudevents-batch+json")
        }
        return try await client.send(
            request, token: token, account: self.account.name(for: account))
    }
}
