// One request over URLSession, on Apple systems and on Linux: what HTTPTransport and
// SupabaseTransport have in common. Spec/sync-protocol.md; Spec/secrets.md, SEC-17 to SEC-20.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Carries requests. Keeps no cookies, no cache and no passwords, and follows no redirection.
final class HTTPClient: Sendable {
    private let session: URLSession
    private let exchanges: Exchanges
    private let headers: HTTPHeaders?

    /// Creates a client.
    ///
    /// - Throws: `TransportError` with `badCertificate` or `certificatesUnsupported`.
    convenience init(
        timeoutSeconds: Double, headers: HTTPHeaders, certificate: ClientCertificate?
    ) throws(TransportError) {
        guard let certificate else {
            self.init(Exchanges(), timeoutSeconds: timeoutSeconds, headers: headers)
            return
        }
        #if canImport(Security)
            let exchanges = Exchanges(credential: try certificate.credential())
            self.init(exchanges, timeoutSeconds: timeoutSeconds, headers: headers)
        #else
            _ = certificate
            throw TransportError(
                .certificatesUnsupported, place: "client certificate",
                "URLSession cannot present one on this system. Use a transport of your own")
        #endif
    }

    /// Creates a client without headers and certificate.
    convenience init(timeoutSeconds: Double) {
        self.init(Exchanges(), timeoutSeconds: timeoutSeconds, headers: nil)
    }

    private init(_ exchanges: Exchanges, timeoutSeconds: Double, headers: HTTPHeaders?) {
        self.exchanges = exchanges
        self.headers = headers
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = timeoutSeconds
        // Silence is one thing, an answer that comes byte by byte another.
        configuration.timeoutIntervalForResource = 4 * timeoutSeconds
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    deinit { session.invalidateAndCancel() }

    /// Carries one request.
    ///
    /// - Parameters:
    ///   - request: without the app's headers and the token.
    ///   - token: the bearer token, if there is one.
    /// - Throws: `TransportError`, `URLError`, `CancellationError`.
    func send(_ request: URLRequest, token: String?) async throws -> TransportReply {
        var request = request
        for (name, value) in headers?.fields ?? [] {
            request.setValue(value, forHTTPHeaderField: name)
        }
        if let token {
            try HTTPHeaders.checkToken(token, place: "token")
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }
        let task = session.dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                exchanges.begin(task.taskIdentifier, continuation)
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }
}

extension HTTPClient: CustomReflectable {
    /// Shows nothing: neither an app's headers nor the session, which cannot be looked into while
    /// it works.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
