// The headers, certificate, proxy and limits of requests to an app's own servers. Spec/operations/secrets.md,
// SEC-17, SEC-27 and SEC-28.

import Foundation

/// Headers, certificate and proxy of an app's requests.
///
/// ```swift
/// var http = try await secrets.httpOptions()     // headers and certificate of the secret store
/// http.trustedOrigins = [URL(string: "https://images.example.com")!]
/// try await store.sync(to: endpoint, credentials: credentials, http: http)
/// ```
public struct HTTPOptions: Sendable {
    /// The headers of every request to the app's own servers, for a proxy in front of them. Visible ASCII;
    /// none that the library sets, such as `Authorization`, `Content-Type` and `Host`.
    public var headers: [String: String]
    /// The client certificate for the app's own servers, if they require one.
    public var certificate: ClientCertificate?
    /// The proxy for `https` requests; nil for that of the system or the environment.
    public var proxy: HTTPProxy?
    /// The app's servers other than the endpoint, by scheme, host and port. They get the headers and the
    /// certificate, and never the token.
    public var trustedOrigins: [URL] = []
    /// The longest time without a byte from the server, in seconds.
    public var timeoutSeconds: Double
    /// True if a token and `headers` may be sent over `http` to another machine, readable for everyone on
    /// the way. The addresses of this machine are always allowed.
    public var allowsTokenInClear: Bool
    /// A file with the certificates of authorities, in place of the system's. For tests.
    package var authoritiesFile: String?

    /// Creates options; the defaults are no headers, no certificate and the system's proxy.
    public init(
        headers: [String: String] = [:], certificate: ClientCertificate? = nil,
        timeoutSeconds: Double = 30, allowsTokenInClear: Bool = false
    ) {
        self.headers = headers
        self.certificate = certificate
        self.timeoutSeconds = timeoutSeconds
        self.allowsTokenInClear = allowsTokenInClear
    }
}

/// A proxy for `https` requests. It tunnels them by CONNECT, so it sees the server's name, but no token and
/// no header of the app.
public struct HTTPProxy: Hashable, Sendable {
    /// The proxy's address: `http://host:port`.
    public var url: URL
    /// The user name, if the proxy requires one.
    public var user: String?
    /// The password of that user.
    public var password: String?

    /// Creates a proxy.
    public init(_ url: URL, user: String? = nil, password: String? = nil) {
        self.url = url
        self.user = user
        self.password = password
    }
}

extension HTTPOptions: CustomReflectable {
    /// A mirror with the names of the headers and without any secret.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "headers": headers.keys.sorted() as Any, "proxy": proxy as Any,
                "trustedOrigins": trustedOrigins, "timeoutSeconds": timeoutSeconds,
                "allowsTokenInClear": allowsTokenInClear,
            ])
    }
}

extension HTTPProxy: CustomStringConvertible, CustomReflectable {
    /// The host and the port.
    public var description: String {
        "HTTPProxy(\(url.host ?? ""):\(url.port.map { "\($0)" } ?? ""))"
    }
    /// A mirror without user and password.
    public var customMirror: Mirror { Mirror(self, children: ["host": url.host as Any]) }
}
