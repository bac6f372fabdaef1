// The server of a URL, to check that a token is sent to no other server, and not unencrypted.
// Spec/operations/secrets.md, SEC-19, SEC-22, SEC-23.

import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Scheme, host and port of a URL.
public struct HTTPOrigin: Hashable, Sendable {
    /// The scheme, in lower case.
    public let scheme: String
    /// The name or address, in lower case, without the brackets of IPv6.
    public let host: String
    /// The port; the scheme's default if the URL has none.
    public let port: Int

    /// The origin of an absolute URL; nil if it has none.
    public init?(_ url: URL) {
        guard let scheme = url.scheme?.lowercased(), var host = url.host?.lowercased(),
            !host.isEmpty
        else { return nil }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// The origin of a URL that can be an endpoint.
    ///
    /// - Throws: `TransportError` with `badEndpoint`: the URL is relative, has a scheme other than http and
    ///   https, no host, an invalid port, a user name, or a path that cannot be parsed.
    public init(endpoint url: URL) throws(TransportError) {
        guard let origin = HTTPOrigin(url), ["http", "https"].contains(origin.scheme),
            1...65_535 ~= origin.port, Self.isName(origin.host) || Self.isIPv6(origin.host),
            Self.target(of: url) != nil
        else {
            throw TransportError(
                .badEndpoint, location: "endpoint", "it is not an http or https URL with a host")
        }
        guard url.user == nil, url.password == nil else {
            throw TransportError(
                .badEndpoint, location: origin.host,
                "the endpoint has a user name or a password; use a token")
        }
        self = origin
    }

    /// The host, with the port unless that is the scheme's default: of http and https the same.
    var address: String {
        port == (scheme == "https" ? 443 : 80) ? hostInURL : "\(hostInURL):\(port)"
    }

    /// The host as a URL writes it.
    var hostInURL: String { host.contains(":") ? "[\(host)]" : host }

    /// The path and the query of a URL, as in a request line. Nil if Foundation cannot parse the URL:
    /// `URL(dataRepresentation:relativeTo:)` accepts invalid ones.
    static func target(of url: URL) -> String? {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        let path = parts.percentEncodedPath
        return (path.hasPrefix("/") ? path : "/\(path)")
            + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    /// Whether requests stay on this machine: `localhost`, 127.0.0.0/8, ::1.
    public var isLoopback: Bool {
        if host == "localhost" { return true }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            return UInt32(bigEndian: four.s_addr) >> 24 == 127
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, host, &six) == 1 else { return false }
        return withUnsafeBytes(of: six) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    /// Whether requests are sent unencrypted to another machine.
    public var isInClear: Bool { scheme != "https" && !isLoopback }

    /// Whether every URL parser reads the same name from the host. If two parsers disagreed, the token would
    /// be sent to a server other than the checked one.
    private static func isName(_ host: String) -> Bool {
        host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }

    private static func isIPv6(_ host: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET6, host, &address) == 1
    }

    /// The URL of the page that a server's link refers to, relative to `url`.
    ///
    /// - Throws: `TransportError` with `foreignPage` for another server or a user name.
    static func page(_ link: String, from url: URL) throws(TransportError) -> URL {
        guard let page = URL(string: link, relativeTo: url)?.absoluteURL,
            let origin = HTTPOrigin(page), origin == HTTPOrigin(url),
            page.user == nil, page.password == nil
        else {
            throw TransportError(
                .foreignPage, location: url.host ?? "server",
                "the link to the next page leads to another server, which must not get the token")
        }
        return page
    }
}
