// Recognizes what stands in the place of other content: the login page of a network, a server's page for what it does
// not have, or nothing at all. Spec/model/downloads.md, DL-25; Spec/model/content.md, CONT-11.

import Foundation

/// Recognizes web pages by their bytes and URLs.
enum WebPage {
    /// The number of bytes at the start of a body that show whether it is a web page.
    static let prefixBytes = 1_024

    /// The reason why a body is not stored as the content of a URL; nil if it may be that content.
    ///
    /// - Parameters:
    ///   - start: the first bytes, at least `prefixBytes` or all.
    ///   - url: the URL; nil if none is known.
    static func fault(of start: some Collection<UInt8>, at url: String? = nil) -> String? {
        if start.isEmpty { return "is empty" }
        let isAskedFor = isAskedFor(by: url.flatMap { URL(string: $0) })
        return begins(start) && !isAskedFor ? "is a web page" : nil
    }

    /// Whether a body begins as a web page does, whatever type its head has: with the document type or one of the
    /// first tags of a page, after an XML declaration and comments.
    static func begins(_ start: some Sequence<UInt8>) -> Bool {
        var text = String(decoding: Array(start.prefix(prefixBytes)), as: UTF8.self).lowercased()[
            ...]
        while true {
            text = text.trimmingPrefix { $0.isWhitespace || $0 == "\u{FEFF}" }
            let skipped = [("<?", "?>"), ("<!--", "-->")].first { text.hasPrefix($0.0) }
            guard let (opening, closing) = skipped else { break }
            // A declaration that does not end here says nothing: many formats begin with one.
            guard let end = text.dropFirst(opening.count).firstRange(of: closing)?.upperBound else {
                return false
            }
            text = text[end...]
        }
        return ["<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<script"].contains
        {
            guard text.hasPrefix($0) else { return false }
            let next = text.dropFirst($0.count).first
            return next.map { $0.isWhitespace || $0 == ">" || $0 == "/" } ?? true
        }
    }

    /// Whether a URL asks for a web page, by its extension.
    static func isAskedFor(by url: URL?) -> Bool {
        ["html", "htm", "xhtml", "xht"].contains(url?.pathExtension.lowercased())
    }
}
