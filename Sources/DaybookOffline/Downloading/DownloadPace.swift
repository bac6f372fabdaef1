// When to try again, and when to give it a rest: failures in a row without progress, of all
// requests of a job together. Spec/model/downloads.md, DL-18.

import Foundation
import Synchronization

/// The server cannot be reached just now: the job is to be paused.
struct ConnectionLost: Error {}

/// Paces the requests of one job.
final class DownloadPace: Sendable {
    private let failures = Mutex(0)
    private let options: DownloadManager.Options
    private let random: @Sendable () -> Double

    init(_ options: DownloadManager.Options, random: @escaping @Sendable () -> Double) {
        self.options = options
        self.random = random
    }

    /// Bytes that must come before it counts as progress.
    static let progressBytes = 16_384

    /// Bytes have come that were never there before.
    func progressed() { failures.withLock { $0 = 0 } }

    /// Something failed that may go well later: waits.
    ///
    /// - Throws: `ConnectionLost` if it has failed too often; `CancellationError`.
    func failed(_ error: any Error) async throws {
        let count = failures.withLock { failures in
            failures += 1
            return failures
        }
        guard count < options.failuresMax else { throw ConnectionLost() }
        let backoff = options.backoff
        let asked = backoff.delay(asked: (error as? DownloadError)?.retryAfterSeconds)
        try await options.sleep(
            max(asked, backoff.delay(afterFailures: count, random: random())))
    }
}
