// Detects the answers that are not what was asked for: the login page of a network (a captive portal), or an
// empty body. They are waited for and never stored. Spec/model/downloads.md, DL-25.

import Daybook
import Foundation
import Synchronization

/// Detects web pages that answer requests for other content. See also `WebPage`.
enum PortalCheck {
    /// Whether a head announces a web page.
    static func isWebPage(_ head: BoundedHTTPResponseHead) -> Bool {
        let type = (head["Content-Type"] ?? "").prefix { $0 != ";" && $0 != "," }
        return ["text/html", "application/xhtml+xml"]
            .contains(type.trimmingCharacters(in: .whitespaces).lowercased())
    }

    /// The error of an answer that is not the server's: the request is repeated later.
    static func error(_ subject: String, _ answer: String) -> DownloadError {
        DownloadError(
            .unavailable, "\(subject): \(answer); the network may ask for a login")
    }
}

/// Distinguishes a server that lacks an image from a portal or a dead connection: if the city's manifest arrives, the
/// server itself answers. Also knows the servers of images that were given up.
final class OnlineCheck: Sendable {
    private let fetchManifest: @Sendable () async throws -> Void
    private let confirmedAt = Mutex<ContinuousClock.Instant?>(nil)
    /// The number of images of an origin that were given up since one has arrived.
    private let silent = Mutex<[HTTPOrigin: Int]>([:])
    /// The number of images after which no other one of the origin is asked for.
    private static let silentMax = 4

    /// The time for which a confirmation holds, so that many missing images cost one manifest.
    private static let validity = Duration.seconds(30)

    init(_ fetchManifest: @escaping @Sendable () async throws -> Void) {
        self.fetchManifest = fetchManifest
    }

    /// Requests the manifest, unless it has arrived since a time. Simultaneous calls request it each.
    ///
    /// - Parameter start: the time; nil for that of `validity` ago.
    /// - Returns: true if the server itself answers.
    /// - Throws: `CancellationError`; `DownloadError` (`unauthorized`) if the server rejects the token for the
    ///   manifest as well.
    func isOnline(since start: ContinuousClock.Instant? = nil) async throws -> Bool {
        let start = start ?? ContinuousClock.now - Self.validity
        if let last = confirmedAt.withLock({ $0 }), last > start { return true }
        do { try await fetchManifest() } catch {
            try Task.checkCancellation()
            if let error = error as? DownloadError, error.code == .unauthorized { throw error }
            return false
        }
        confirmedAt.withLock { $0 = .now }
        return true
    }

    /// Records that an image of a server was given up.
    func giveUp(_ url: URL) {
        guard let origin = HTTPOrigin(url) else { return }
        silent.withLock { $0[origin, default: 0] += 1 }
    }

    /// Records that an image of a server has arrived.
    func recordAnswer(of url: URL) {
        guard let origin = HTTPOrigin(url) else { return }
        silent.withLock { $0[origin] = nil }
    }

    /// Whether an image of the same server was given up, and none has arrived since.
    func hasGivenUp(_ url: URL) -> Bool {
        givenUp(url) > 0
    }

    /// Whether several images of the same server were given up in a row: another one is not asked for.
    func isSilent(_ url: URL) -> Bool { givenUp(url) >= Self.silentMax }

    private func givenUp(_ url: URL) -> Int {
        HTTPOrigin(url).flatMap { origin in silent.withLock { $0[origin] } } ?? 0
    }
}
