// What every request of the library obeys, whichever HTTP client the system has: to whom a token
// goes, what is asked for, what is refused. Below HTTPTransport, SupabaseTransport and the
// downloads; above CurlClient (Linux) or URLSessionClient (Apple systems).
// Spec/sync-protocol.md; Spec/secrets.md, SEC-17 to SEC-25.

import Foundation

/// Carries requests. Keeps no cookies, no cache and no passwords, answers no demand for a password,
/// decodes nothing, and follows no redirection.
package final class HTTPClient: Sendable {
    #if canImport(Darwin)
        private typealias SystemClient = URLSessionClient
    #elseif os(Linux)
        private typealias SystemClient = CurlClient
    #else
        #error("Daybook has HTTP clients for Apple systems and for Linux only")
    #endif

    /// How long requests may take.
    struct Timeouts: Sendable {
        /// How long the server may be silent, connecting included.
        var silenceSeconds: Double
        /// How long a request may take altogether; nil: as long as it is never silent.
        var requestSeconds: Double?
    }

    private let system: SystemClient
    private let headers: HTTPHeaders?
    private let allowsTokenInClear: Bool

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - timeoutSeconds: how long the server may be silent.
    ///   - requestSeconds: how long a request may take altogether; nil: as long as it likes.
    ///   - allowsTokenInClear: whether a token and an app's headers may go over `http` to another
    ///     machine.
    package convenience init(
        timeoutSeconds: Double, requestSeconds: Double?, allowsTokenInClear: Bool
    ) {
        self.init(
            SystemClient(
                Timeouts(silenceSeconds: timeoutSeconds, requestSeconds: requestSeconds)),
            headers: nil, allowsTokenInClear: allowsTokenInClear)
    }

    /// Creates a client for syncing.
    ///
    /// - Throws: `TransportError` with `badCertificate` or `certificatesUnsupported`.
    convenience init(
        timeoutSeconds: Double, allowsTokenInClear: Bool, headers: HTTPHeaders,
        certificate: ClientCertificate?
    ) throws(TransportError) {
        let timeouts = Timeouts(forSyncing: timeoutSeconds)
        #if canImport(Darwin)
            let system = SystemClient(timeouts, credential: try certificate?.credential())
        #else
            guard certificate == nil else {
                throw TransportError(
                    .certificatesUnsupported, place: "client certificate",
                    "it cannot be presented on this system. Use a transport of your own")
            }
            let system = SystemClient(timeouts)
        #endif
        self.init(system, headers: headers, allowsTokenInClear: allowsTokenInClear)
    }

    /// Creates a client for syncing without headers and certificate.
    convenience init(timeoutSeconds: Double, allowsTokenInClear: Bool) {
        self.init(
            SystemClient(Timeouts(forSyncing: timeoutSeconds)), headers: nil,
            allowsTokenInClear: allowsTokenInClear)
    }

    private init(_ system: SystemClient, headers: HTTPHeaders?, allowsTokenInClear: Bool) {
        self.system = system
        self.headers = headers
        self.allowsTokenInClear = allowsTokenInClear
    }

    /// Carries one request. Cancelling the calling task ends it at once.
    ///
    /// - Parameters:
    ///   - request: without the app's headers and the token.
    ///   - token: the bearer token, if there is one.
    ///   - handler: receives the reply.
    /// - Returns: status and header fields; also where the handler has ended the request.
    /// - Throws: `TransportError`: `badEndpoint`, `tokenInClear`, `badToken` or `badHeader` before
    ///   anything is sent; `connectionFailed`, `timedOut` or `malformedReply` where no complete
    ///   reply came. `CancellationError`.
    package func send(
        _ request: HTTPRequest, token: String?, to handler: any ResponseBodyHandler
    ) async throws -> HTTPResponseHead {
        let origin = try HTTPOrigin(endpoint: request.url)
        var request = request
        request.set("Accept-Encoding", "identity")
        for (name, value) in headers?.fields ?? [] { request.set(name, value) }
        if let token {
            try HTTPHeaders.checkToken(token, place: "token")
            request.set("Authorization", "Bearer \(token)")
        }
        // An app's header may hold a password for a proxy.
        let hasSecret = token != nil || headers?.fields.isEmpty == false
        guard !hasSecret || !origin.isInClear || allowsTokenInClear else {
            throw TransportError(
                .tokenInClear, place: origin.host,
                "the \(token == nil ? "app's headers" : "token") would go there in the clear; "
                    + "use https, or allow plain http")
        }
        for (name, value) in request.fields where !HTTPHeaders.isSafe(value) {
            throw TransportError(.badHeader, place: name, "its value has control characters")
        }
        try Task.checkCancellation()
        return try await system.send(request, to: origin, handler)
    }
}

extension HTTPClient.Timeouts {
    /// A reply that comes byte by byte is one thing, silence another: the whole may take four times
    /// as long.
    init(forSyncing timeoutSeconds: Double) {
        self.init(silenceSeconds: timeoutSeconds, requestSeconds: 4 * timeoutSeconds)
    }
}

extension HTTPClient: CustomReflectable {
    /// Shows nothing: an app's headers may hold a password.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
