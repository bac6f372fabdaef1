// Builds the addresses of requests: percent-encodes ids in a path or a query. For the sources of manifests
// and of learning material. Spec/model/downloads.md, DL-10.

import Foundation

/// Builds URLs.
enum ServerAddress {
    /// Returns an address below a base. Each part becomes one path segment and each value one query
    /// value, whatever characters it contains.
    ///
    /// - Parameter subject: the name of the parts in errors.
    static func url(
        _ path: [String], query: [(String, String)] = [], of base: URL, _ subject: String
    ) throws(DownloadError) -> URL {
        guard CityManifest.isFetchable(base), base.query == nil, base.fragment == nil else {
            throw DownloadError(
                .refused,
                "the server's address is not an http or https URL without user, query and fragment")
        }
        var text = base.absoluteString
        while text.hasSuffix("/") { text.removeLast() }
        let segments = path.map(escaped)
        text += segments.map { "/\($0)" }.joined()
        if !query.isEmpty {
            text += "?" + query.map { "\($0.0)=\(escaped($0.1))" }.joined(separator: "&")
        }
        guard !segments.contains("."), !segments.contains(".."), let url = URL(string: text) else {
            throw DownloadError(.refused, "\(subject) cannot be part of a URL")
        }
        return url
    }

    private static func escaped(_ text: String) -> String {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        var escaped = ""
        for byte in text.utf8 {
            escaped +=
                allowed.contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + String(format: "%02X", Int(byte))
        }
        return escaped
    }
}
