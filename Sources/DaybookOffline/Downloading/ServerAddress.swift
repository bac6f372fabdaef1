// Addresses below a server's: where ids of any kind stand in a path or a query. Used by the sources of
// manifests and of learning material. Spec/model/downloads.md, DL-10.

import Foundation

/// Puts addresses together.
enum ServerAddress {
    /// An address below a base. Each part is one segment of the path, whatever is in it, and each
    /// value one of the query.
    ///
    /// - Parameter what: what errors call the parts.
    static func url(
        _ path: [String], query: [(String, String)] = [], of base: URL, _ what: String
    ) throws(DownloadError) -> URL {
        guard CityManifest.isFetchable(base), base.query == nil, base.fragment == nil else {
            throw DownloadError(
                .refused, "the address of the server is not one of http or https alone")
        }
        var text = base.absoluteString
        while text.hasSuffix("/") { text.removeLast() }
        let segments = path.map(escaped)
        text += segments.map { "/\($0)" }.joined()
        if !query.isEmpty {
            text += "?" + query.map { "\($0.0)=\(escaped($0.1))" }.joined(separator: "&")
        }
        guard !segments.contains("."), !segments.contains(".."), let url = URL(string: text) else {
            throw DownloadError(.refused, "\(what) cannot stand in an address")
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
