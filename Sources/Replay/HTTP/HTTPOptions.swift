// What goes with the requests to an app's own servers, and how they get there. Used by every
// transport. Spec/operations/secrets.md, SEC-17, SEC-27 and SEC-28.

import Foundation

/// Headers, certificate and proxy of an app's requests.
///
/// ```swift
/// var http = try await secrets.httpOptions()     // headers and certificate of the secret store
/// http.trustedOrigins = [URL(string: "https://images.example.com")!]
/// try await store.sync(to: endpoint, credentials: credentials, http: http)
/// ```
public struct HTTPOptions: Sendable {
    /// Headers of every request to the app's own servers, for a proxy in front of them. Visible ASCII;
    /// none that the library sets by itself, such as `Authorization`, `Content-Type` and `Host`.
    public var headers: [String: String]
    /// The client certificate for the app's own servers, if they ask for one.
    public var certificate: ClientCertificate?
    /// The proxy that carries `https`; nil: that of the system or the environment.
    public var proxy: HTTPProxy?
    /// Further servers of the app beside the endpoint: their scheme, host and
    /// port count. They get the headers and the certificate, and never the token.
    public var trustedOrigins: [URL] = []
    /// The time that a server may be silent, in seconds.
    public var timeoutSeconds: Double
    /// True if a token and `headers` may go over `http` to another machine, where anybody on the way can
    /// read them. This machine's own addresses are always allowed.
    public var allowsTokenInClear: Bool
    /// A file with the certificates of authorities in place of the system's. Tests bring their own.
    package var authoritiesFile: String?

    /// Describes requests; the defaults are no headers, no certificate and the system's proxy.
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

/// A proxy for `https` requests, which it carries through CONNECT: it sees the server's name, no token
/// and no header of the app.
public struct HTTPProxy: Hashable, Sendable {
    /// The proxy's address: `http://host:port`.
    public var url: URL
    /// The user name that the proxy asks for.
    public var user: String?
    /// The password of that user.
    public var password: String?

    /// Describes a proxy.
    public init(_ url: URL, user: String? = nil, password: String? = nil) {
        self.url = url
        self.user = user
        self.password = password
    }
}

extension HTTPOptions: CustomReflectable {
    /// Shows the names of the headers, and nothing that may be secret.
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
    /// Shows no user and no password.
    public var customMirror: Mirror { Mirror(self, children: ["host": url.host as Any]) }
}
