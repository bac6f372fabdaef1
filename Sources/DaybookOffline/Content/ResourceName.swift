// What a cached file is called in the folder layout. Spec/model/content.md, CONT-20.

import Cryptography
import Daybook

/// The name of a resource: a folder for its page and a file for its URL.
public struct ResourceName: Hashable, Sendable, CustomStringConvertible {
    /// MD5 of the page's path, 32 hexadecimal digits.
    public let folder: String
    /// MD5 of the URL, 32 hexadecimal digits, and the URL's extension.
    public let file: String

    /// Letters and digits of an extension at most; what is longer is none.
    private static let extensionMax = 16

    /// The name of what a page refers to.
    ///
    /// - Parameters:
    ///   - path: the page's path.
    ///   - url: an absolute URL with a host.
    /// - Throws: `EventError` (`invalidData`) for what is no such URL.
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

    /// The extension of the last part of a URL's path with its dot, as it is written; empty if it
    /// has none of 1 to 16 letters and digits.
    static func fileExtension(of url: String) throws(EventError) -> String {
        let bytes = Array(url.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]),
            bytes.count > colon + 3, bytes[colon + 1] == UInt8(ascii: "/"),
            bytes[colon + 2] == UInt8(ascii: "/"),
            bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F && !#""<>\^`{|}"#.utf8.contains($0) })
        else { throw noURL(url) }
        let rest = bytes[(colon + 3)...]
        let address = rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let parts = address.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard let authority = parts.first, hasHost(authority) else { throw noURL(url) }
        guard parts.count > 1, let name = parts.last,
            let dot = name.lastIndex(of: UInt8(ascii: "."))
        else { return "" }
        let letters = name[(dot + 1)...]
        guard (1...extensionMax).contains(letters.count), letters.allSatisfy(isLetterOrDigit)
        else { return "" }
        return "." + String(decoding: letters, as: UTF8.self)
    }

    /// Whether there is a letter or a digit in what stands between a user, if any, and a port.
    private static func hasHost(_ authority: ArraySlice<UInt8>) -> Bool {
        var host = authority
        if let at = host.firstIndex(of: UInt8(ascii: "@")) { host = host[(at + 1)...] }
        if host.first != UInt8(ascii: "[") { host = host.prefix { $0 != UInt8(ascii: ":") } }
        return !host.contains(UInt8(ascii: "@"))
            && host.contains { isLetterOrDigit($0) || $0 >= 0x80 }
    }

    private static func noURL(_ url: String) -> EventError {
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
