// The name of a cached file in the folder layout. Spec/model/content.md, CONT-20.

import Cryptography
import Daybook

/// The name of a resource: a folder for its page and a file for its URL.
public struct ResourceName: Hashable, Sendable, CustomStringConvertible {
    /// MD5 of the page's path, 32 hexadecimal digits.
    public let folder: String
    /// MD5 of the URL, 32 hexadecimal digits, and the URL's extension.
    public let file: String

    /// The maximum number of letters and digits of an extension; a longer one is ignored.
    private static let maxExtensionLength = 16

    /// Computes the name of a file of a page.
    ///
    /// - Parameters:
    ///   - path: the page's path.
    ///   - url: an absolute URL with a host.
    /// - Throws: `EventError` (`invalidData`) for any other URL.
    /// - Complexity: O(bytes).
    public init(path: String, url: String) throws(EventError) {
        folder = Self.digest(of: path)
        file = Self.digest(of: url) + (try Self.fileExtension(of: url))
    }

    private static func digest(of text: String) -> String {
        Hexadecimal.text(of: MD5.hash(Array(text.utf8)))
    }

    /// Folder and file: `5d41…/7d79….png`.
    public var description: String { "\(folder)/\(file)" }

    /// The extension of the last component of a URL's path with its dot, in its original case; empty if
    /// there is none of 1 to 16 letters and digits.
    static func fileExtension(of url: String) throws(EventError) -> String {
        let bytes = Array(url.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]),
            bytes.count > colon + 3, bytes[colon + 1] == UInt8(ascii: "/"),
            bytes[colon + 2] == UInt8(ascii: "/"),
            bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F && !#""<>\^`{|}"#.utf8.contains($0) })
        else { throw invalidURL(url) }
        let address = bytes[(colon + 3)...]
            .prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let parts = address.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard let authority = parts.first, hasHost(authority) else { throw invalidURL(url) }
        guard parts.count > 1, let name = parts.last,
            let dot = name.lastIndex(of: UInt8(ascii: "."))
        else { return "" }
        let letters = name[(dot + 1)...]
        guard (1...maxExtensionLength).contains(letters.count), letters.allSatisfy(isLetterOrDigit)
        else { return "" }
        return "." + String(decoding: letters, as: UTF8.self)
    }

    /// Whether the host, which is between an optional user and an optional port, has a letter or a digit.
    private static func hasHost(_ authority: ArraySlice<UInt8>) -> Bool {
        var host = authority
        if let at = host.firstIndex(of: UInt8(ascii: "@")) { host = host[(at + 1)...] }
        if host.first != UInt8(ascii: "[") { host = host.prefix { $0 != UInt8(ascii: ":") } }
        return !host.contains(UInt8(ascii: "@"))
            && host.contains { isLetterOrDigit($0) || $0 >= 0x80 }
    }

    private static func invalidURL(_ url: String) -> EventError {
        EventError(.invalidData, "\"\(url.prefix(200))\" is not an absolute URL")
    }

    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, isLetterOrDigit(first), first > UInt8(ascii: "9") else {
            return false
        }
        return bytes.allSatisfy { isLetterOrDigit($0) || "+-.".utf8.contains($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
