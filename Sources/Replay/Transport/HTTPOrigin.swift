// Which server a URL means, so that a token goes to no other. Used by HTTPTransport.
// Spec/secrets.md, SEC-19.

import Foundation

/// Scheme, host and port of a URL.
package struct HTTPOrigin: Hashable, Sendable {
    package let scheme: String
    package let host: String
    package let port: Int

    /// The origin of an absolute URL; nil if it has none.
    package init?(_ url: URL) {
        guard let scheme = url.scheme?.lowercased(), let host = url.host?.lowercased(),
            !host.isEmpty
        else { return nil }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Where a page is that a server's link names, as seen from one of its URLs.
    ///
    /// - Throws: `TransportError` with `foreignPage` for another server or a user name.
    static func page(_ link: String, from url: URL) throws(TransportError) -> URL {
        guard let page = URL(string: link, relativeTo: url)?.absoluteURL,
            let origin = HTTPOrigin(page), origin == HTTPOrigin(url),
            page.user == nil, page.password == nil
        else {
            throw TransportError(
                .foreignPage, place: url.host ?? "server",
                "the link to the next page leads to another server, to which no token goes")
        }
        return page
    }
}
