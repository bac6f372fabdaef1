// Decides when a job retries and when it is paused, by the consecutive failures without progress of all
// its requests together. Spec/model/downloads.md, DL-18.

import Foundation
import Synchronization

/// Thrown when the server cannot be reached: the job is paused.
struct ConnectionLost: Error {}

/// The retry backoff of one job.
final class DownloadBackoff: Sendable {
    private let failures = Mutex(0)
    private let options: DownloadManager.Options
    private let random: @Sendable () -> Double

    init(_ options: DownloadManager.Options, random: @escaping @Sendable () -> Double) {
        self.options = options
        self.random = random
    }

    /// The new bytes that count as progress. Fewer do not reset the count of failures.
    static let progressBytes = 16_384

    /// Resets the count of failures, after bytes arrived that were never fetched before.
    func recordProgress() { failures.withLock { $0 = 0 } }

    /// Counts a transient failure and waits before the next attempt.
    ///
    /// - Throws: `ConnectionLost` after `failuresMax` failures in a row; `CancellationError`.
    func waitAfterFailure(_ error: any Error) async throws {
        let count = failures.withLock { failures in
            failures += 1
            return failures
        }
        guard count < options.failuresMax else { throw ConnectionLost() }
        let backoff = options.backoff
        let requested = backoff.delay(asked: (error as? DownloadError)?.retryAfterSeconds)
        try await options.sleep(
            max(requested, backoff.delay(afterFailures: count, random: random())))
    }
}
