// Recognizes web pages that stand in the place of other content: the login page of a network, or a server's
// page for what it does not have. Spec/model/downloads.md, DL-25; Spec/model/content.md, CONT-11.

import Foundation

/// Recognizes web pages by their bytes and URLs.
enum WebPage {
    /// The number of bytes at the start of a body that show whether it is a web page.
    static let prefixBytes = 512

    /// Whether a body begins as a web page does, whatever type its head has.
    static func begins(_ start: some Sequence<UInt8>) -> Bool {
        let text = String(decoding: Array(start.prefix(prefixBytes)), as: UTF8.self)
            .trimmingPrefix(while: { $0.isWhitespace || $0 == "\u{FEFF}" }).lowercased()
        return text.hasPrefix("<!doctype html") || text.hasPrefix("<html")
    }

    /// Whether a URL asks for a web page, by its extension.
    static func isAskedFor(by url: URL?) -> Bool {
        ["html", "htm", "xhtml", "xht"].contains(url?.pathExtension.lowercased())
    }
}
