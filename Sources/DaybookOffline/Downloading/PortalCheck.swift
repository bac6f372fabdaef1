// Detects the answers that are not what was asked for: the login page of a network (a captive portal), or an
// empty body. They are waited for and never stored. Spec/model/downloads.md, DL-25.

import Daybook
import Foundation
import Synchronization

/// Detects web pages that answer requests for other content.
enum PortalCheck {
    /// The number of bytes at the start of a body that show whether it is a web page.
    static let prefixBytes = 512

    /// Whether a head announces a web page.
    static func isWebPage(_ head: BoundedHTTPResponseHead) -> Bool {
        let type = (head["Content-Type"] ?? "").prefix { $0 != ";" && $0 != "," }
        return ["text/html", "application/xhtml+xml"]
            .contains(type.trimmingCharacters(in: .whitespaces).lowercased())
    }

    /// Whether a body begins as a web page does, whatever type its head has.
    static func isWebPage(_ start: some Sequence<UInt8>) -> Bool {
        let text = String(decoding: Array(start.prefix(prefixBytes)), as: UTF8.self)
            .trimmingPrefix(while: { $0.isWhitespace || $0 == "\u{FEFF}" }).lowercased()
        return text.hasPrefix("<!doctype html") || text.hasPrefix("<html")
    }

    /// Whether a URL asks for a web page, by its extension.
    static func asksForWebPage(_ url: URL) -> Bool {
        ["html", "htm", "xhtml", "xht"].contains(url.pathExtension.lowercased())
    }

    /// The error of an answer that is not the server's: the request is repeated later.
    static func error(_ subject: String, _ answer: String) -> DownloadError {
        DownloadError(
            .unavailable, "\(subject): \(answer); the network may ask for a login")
    }
}

/// Distinguishes the server from a portal: if the city's manifest arrives, the server itself answers.
final class OnlineCheck: Sendable {
    private let fetchManifest: @Sendable () async throws -> Void
    private let confirmedAt = Mutex<ContinuousClock.Instant?>(nil)

    /// The time for which a confirmation holds, so that many missing images cost one manifest.
    private static let validity = Duration.seconds(30)

    init(_ fetchManifest: @escaping @Sendable () async throws -> Void) {
        self.fetchManifest = fetchManifest
    }

    /// Requests the manifest, unless it has arrived within `validity`. Simultaneous calls request it each.
    ///
    /// - Returns: true if the server itself answers.
    /// - Throws: `CancellationError`.
    func isOnline() async throws -> Bool {
        if let last = confirmedAt.withLock({ $0 }), ContinuousClock.now - last < Self.validity {
            return true
        }
        do { try await fetchManifest() } catch {
            try Task.checkCancellation()
            return false
        }
        confirmedAt.withLock { $0 = .now }
        return true
    }
}
