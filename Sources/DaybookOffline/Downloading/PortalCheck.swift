// Detects the answers that are not what was asked for: the login page of a network (a captive portal), or an
// empty body. They are waited for and never stored. Spec/model/downloads.md, DL-25.

import Daybook
import Foundation
import Synchronization

/// Detects web pages that answer requests for other content. See also `WebPage`.
enum PortalCheck {
    /// Whether a head announces a web page, or the description of a portal (RFC 8908).
    static func isWebPage(_ head: BoundedHTTPResponseHead) -> Bool {
        ["text/html", "application/xhtml+xml", "application/captive+json"].contains(type(of: head))
    }

    /// Whether a head announces JSON: a body that is none is then the server's fault, not a portal's.
    static func isJSON(_ head: BoundedHTTPResponseHead) -> Bool {
        let type = type(of: head)
        return type == "application/json" || type.hasSuffix("+json")
    }

    private static func type(of head: BoundedHTTPResponseHead) -> String {
        (head["Content-Type"] ?? "").prefix { $0 != ";" && $0 != "," }
            .trimmingCharacters(in: .whitespaces).lowercased()
    }

    /// The error of an answer that is not the server's: the request is repeated later.
    static func error(_ subject: String, _ answer: String) -> DownloadError {
        var error = DownloadError(
            .unavailable, "\(subject): \(answer); the network may ask for a login")
        error.isPortal = true
        return error
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

/// The times of the first and the last answer of a portal to a job, in a file of the job's folder, so that they survive
/// the process: a server that sends something else than manifests for ever is reported in the end.
struct PortalRecord {
    private let path: String
    private let fileSystem: any FileSystem
    /// The milliseconds for which the end of a portal is waited for.
    private static let timeout: Int64 = 86_400_000
    /// The milliseconds after which an answer is of another portal: with a network a job asks every 15 minutes.
    private static let pauseMax: Int64 = 3_600_000

    init(_ folder: String, _ fileSystem: any FileSystem) {
        path = folder + "/portal"
        self.fileSystem = fileSystem
    }

    /// Records an answer, and returns whether the portal's first one is more than a day ago. False if the file cannot be
    /// read or written, such as on a full device: the job waits on.
    func hasLasted(at now: Timestamp) -> Bool {
        let now = now.milliseconds
        var first = now
        do throws(FileError) {
            let file = try fileSystem.open(path, .createIfMissing)
            let bytes = try file.read(at: 0, count: min(try file.size(), 64))
            let times = String(decoding: bytes, as: UTF8.self).split(separator: " ")
                .compactMap { Int64($0) }
            // After the last one, and not long after: else another portal, or a clock that was set.
            if times.count == 2, 0 <= times[0], times[0] <= times[1], times[1] <= now,
                now - times[1] <= Self.pauseMax
            {
                first = times[0]
            }
            try file.truncate(to: 0)
            try file.write(Array("\(first) \(now)".utf8), at: 0)
        } catch { return false }
        return now - first > Self.timeout
    }

    /// Forgets the answers: the server has answered.
    func clear() { try? PartialFile.remove(path, fileSystem) }
}
