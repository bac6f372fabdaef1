// The sync protocol: POST {endpoint} with a batch, GET {endpoint} for pages. Sends its requests with
// BoundedHTTPClient. Spec/protocol/sync-protocol.md.

import Foundation
import SyncWire

/// The transport of the sync protocol.
public final class HTTPTransport: Transport {
    let endpoint: URL
    private let client: BoundedHTTPClient
    /// The client of streams, which have no longest time.
    let streams: BoundedHTTPClient
    let account: AccountCheck

    /// Creates a transport. An invalid endpoint is reported by `send`.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`.
    ///   - timeoutSeconds: the longest time without a byte from the server; a whole request may take four
    ///     times as long.
    ///   - allowsTokenInClear: whether a token may be sent over `http` to another machine, readable for
    ///     everyone on the way. The addresses of this machine are always allowed.
    ///   - account: the account of the server for which it ships and reads.
    public init(
        endpoint: URL, timeoutSeconds: Double = 30, allowsTokenInClear: Bool = false,
        account: AccountCheck = .ofLog
    ) {
        self.endpoint = Self.eventsURL(of: endpoint)
        self.account = account
        let http = HTTPOptions(
            timeoutSeconds: timeoutSeconds, allowsTokenInClear: allowsTokenInClear)
        client = BoundedHTTPClient(forSyncing: http)
        streams = Self.streamClient(http)
    }

    private static func streamClient(_ http: HTTPOptions) -> BoundedHTTPClient {
        var http = http
        http.timeoutSeconds = silenceSeconds
        return BoundedHTTPClient(http, requestSeconds: nil)
    }

    /// Creates a transport for a server behind a proxy that requires headers or a certificate.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`.
    ///   - http: headers, certificate, proxy and limits. A whole request may take four times its
    ///     `timeoutSeconds`.
    ///   - account: the account of the server for which it ships and reads.
    /// - Throws: `TransportError`: `badEndpoint`, `badHeader`, `reservedHeader`, `badProxy`,
    ///   `certificatesUnsupported` if the system's HTTP client presents none; on Apple systems
    ///   `badCertificate`, which the first request throws on Linux.
    public init(
        endpoint: URL, http: HTTPOptions, account: AccountCheck = .ofLog
    ) throws(TransportError) {
        _ = try HTTPOrigin(endpoint: endpoint)
        self.endpoint = Self.eventsURL(of: endpoint)
        self.account = account
        client = BoundedHTTPClient(forSyncing: http)
        streams = Self.streamClient(http)
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

    /// The URL for batches and pages: `/v1/events` of the server if `endpoint` has no path, otherwise
    /// `endpoint` itself; without the `/` after `/v1/events`.
    public static func eventsURL(of endpoint: URL) -> URL {
        if endpoint.path.hasSuffix(eventsPath), endpoint.absoluteString.hasSuffix("/") {
            return URL(string: String(endpoint.absoluteString.dropLast())) ?? endpoint
        }
        guard endpoint.path.isEmpty || endpoint.path == "/", endpoint.query == nil else {
            return endpoint
        }
        return URL(string: eventsPath, relativeTo: endpoint)?.absoluteURL ?? endpoint
    }

    /// Sends one request without the log's account.
    ///
    /// - Throws: as `send(_:token:account:)`.
    public func send(_ call: TransportRequest, token: String?) async throws -> TransportReply {
        try await send(call, token: token, account: nil)
    }

    /// Sends one request.
    ///
    /// - Throws: `TransportError`, also if no complete reply was received; `CancellationError`.
    public func send(
        _ call: TransportRequest, token: String?, account: String?
    ) async throws -> TransportReply {
        try await send(call, token: token, account: account, isOffer: false)
    }

    /// Sends events that another server, or this one before a restore, has accepted.
    ///
    /// - Throws: as `send(_:token:account:)`.
    public func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        try await send(.append(batch: batch), token: token, account: account, isOffer: true)
    }

    private func send(
        _ call: TransportRequest, token: String?, account: String?, isOffer: Bool
    ) async throws -> TransportReply {
        var request = BoundedHTTPRequest(endpoint)
        if isOffer { request.set(WireHeader.offered, "1") }
        switch call {
        case .append(let batch):
            request.set("Content-Type", WireType.batch)
            request.set("Accept", WireType.json)
            request.body = batch
        case .read(let cursor):
            // Not followed to another server, which would get the token.
            if let cursor { request.url = try HTTPOrigin.page(cursor, from: endpoint) }
            request.set("Accept", WireType.batch)
        }
        var reply = try await client.send(
            request, token: token, account: self.account.name(for: account))
        if self.account == .off { reply.account = nil }
        return reply
    }

    /// The host of the endpoint, with its port unless that is the scheme's default.
    public var serverAddress: String? { HTTPOrigin(endpoint)?.address }

    /// The name that the app has given the account.
    public func knownAccount(ofLog account: String?, token: String?) -> String? {
        self.account.name(for: account)
    }
}
