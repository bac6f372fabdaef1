// The rules of every request of the library, for both HTTP clients: which servers get the token, which
// headers are sent, which replies are refused. Below HTTPTransport and SupabaseTransport; above CurlClient
// (Linux) and URLSessionClient (Apple systems).
// Spec/protocol/sync-protocol.md; Spec/operations/secrets.md, SEC-17 to SEC-25.

import Foundation

/// An HTTP client that stores no cookies, cache or passwords, answers no authentication challenge with a
/// password, decodes no content encoding, and follows no redirect.
public final class BoundedHTTPClient: Sendable {
    #if canImport(Darwin)
        private typealias SystemClient = URLSessionClient
    #elseif os(Linux)
        private typealias SystemClient = CurlClient
    #else
        #error("Daybook has HTTP clients for Apple systems and for Linux only")
    #endif

    /// The timeouts of requests.
    struct Timeouts: Sendable {
        /// The longest time without a byte, connecting included.
        var silenceSeconds: Double
        /// The longest time for a whole request; nil for no limit.
        var requestSeconds: Double?
    }

    /// The certificate and the proxy of connections.
    struct Route: Sendable {
        var certificate: ClientCertificate?
        var proxy: HTTPProxy?
        var authoritiesFile: String?
    }

    private struct Setup: Sendable {
        var headers: HTTPHeaders
        /// The client for the app's own servers.
        var own: SystemClient
        /// The client for all other servers: presents no certificate.
        var other: SystemClient
    }

    private let setup: Result<Setup, TransportError>
    private let allowsTokenInClear: Bool

    /// Creates a client. Invalid options are reported by `check()`, and by every request.
    ///
    /// - Parameters:
    ///   - options: headers, certificate, proxy, limits.
    ///   - requestSeconds: the longest time for a whole request; nil for no limit.
    ///   - names: the names, in lower case, of the headers that the caller sets.
    public init(
        _ options: HTTPOptions, requestSeconds: Double?, reserving names: Set<String> = []
    ) {
        allowsTokenInClear = options.allowsTokenInClear
        let timeouts = Timeouts(
            silenceSeconds: options.timeoutSeconds, requestSeconds: requestSeconds)
        setup = Result { () throws(TransportError) in
            try options.proxy?.check()
            var route = Route(proxy: options.proxy, authoritiesFile: options.authoritiesFile)
            let other = try SystemClient(timeouts, route)
            route.certificate = options.certificate
            return Setup(
                headers: try HTTPHeaders(options.headers, reserving: names),
                own: route.certificate == nil ? other : try SystemClient(timeouts, route),
                other: other)
        }
    }

    /// Creates a client for syncing. A slow but steady reply is allowed, so a whole request may take four
    /// times `timeoutSeconds`.
    convenience init(forSyncing options: HTTPOptions, reserving names: Set<String> = []) {
        self.init(options, requestSeconds: 4 * options.timeoutSeconds, reserving: names)
    }

    /// Checks the options.
    ///
    /// - Throws: `TransportError` with `badHeader`, `reservedHeader`, `badProxy`, `badCertificate` or
    ///   `certificatesUnsupported`.
    public func check() throws(TransportError) { _ = try setup.get() }

    /// Sends one request. Cancelling the calling task ends it at once.
    ///
    /// - Parameters:
    ///   - request: the request without the app's headers and the token.
    ///   - token: the bearer token, if there is one.
    ///   - isOwn: whether the server is the app's own: it gets the app's headers and certificate.
    ///   - handler: receives the reply.
    /// - Returns: status and header fields, also if the handler has ended the request.
    /// - Throws: `TransportError`: as `check()`, `badEndpoint`, `tokenInClear` or `badToken` before
    ///   anything is sent; `connectionFailed`, `timedOut` or `malformedReply` if no complete reply was
    ///   received. `CancellationError`.
    public func send(
        _ request: BoundedHTTPRequest, token: String?, isOwn: Bool = true,
        to handler: any ResponseBodyHandler
    ) async throws -> BoundedHTTPResponseHead {
        let (request, origin) = try prepare(request, token: token, isOwn: isOwn)
        let setup = try setup.get()
        try Task.checkCancellation()
        return try await (isOwn ? setup.own : setup.other).send(request, to: origin, handler)
    }

    /// The request with the app's headers and the token, and its checked origin.
    ///
    /// - Throws: as `send(_:token:isOwn:to:)` before anything is sent.
    func prepare(
        _ request: BoundedHTTPRequest, token: String?, isOwn: Bool
    ) throws -> (request: BoundedHTTPRequest, origin: HTTPOrigin) {
        let setup = try setup.get()
        let origin = try HTTPOrigin(endpoint: request.url)
        var request = request
        request.set("Accept-Encoding", "identity")
        let headers = isOwn ? setup.headers.fields : []
        // The request's own headers take precedence: an app's header must not change the request's meaning.
        for (name, value) in headers { request.setDefault(name, value) }
        if let token {
            try HTTPHeaders.checkToken(token, location: "token")
            request.set("Authorization", "Bearer \(token)")
        }
        // An app's header may hold a password for a proxy.
        let hasSecret = token != nil || !headers.isEmpty
        guard !hasSecret || !origin.isInClear || allowsTokenInClear else {
            throw TransportError(
                .tokenInClear, location: origin.host,
                "the \(token == nil ? "app's headers" : "token") would be sent there unencrypted; "
                    + "use https, or allow plain http")
        }
        for (name, value) in request.fields where !HTTPHeaders.isSafe(value) {
            throw TransportError(.badHeader, location: name, "its value has control characters")
        }
        return (request, origin)
    }
}

extension HTTPProxy {
    /// Checks the proxy's address, user name and password.
    ///
    /// - Throws: `TransportError` with `badProxy`.
    fileprivate func check() throws(TransportError) {
        guard url.scheme?.lowercased() == "http", let host = url.host, !host.isEmpty,
            url.user == nil, url.password == nil, (try? HTTPOrigin(endpoint: url)) != nil
        else {
            throw TransportError(
                .badProxy, location: "proxy",
                "its address is not http://host:port; a user name goes into `user`")
        }
        for text in [user, password].compactMap(\.self) where !HTTPHeaders.isSafe(text) {
            throw TransportError(
                .badProxy, location: "proxy", "its user name or password has control characters")
        }
    }
}

extension BoundedHTTPClient: CustomReflectable {
    /// A mirror without children: an app's headers may contain a password.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
