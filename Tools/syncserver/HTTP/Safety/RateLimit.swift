// How many requests a token may make: a bucket for each, from which a request takes one, and into
// which so many flow back every second. Asked by Authentication. Spec/operations/operating.md, OPS-4.

import Foundation
import Synchronization

/// The rate of requests of each token.
final class RateLimit: Sendable {
    private struct Bucket {
        var left: Double
        var filled: ContinuousClock.Instant
    }

    /// Requests a second, in the long run.
    private let rate: Double
    /// Requests at once, after a pause.
    private var burst: Double { rate * 2 }
    private let buckets = Mutex<[Data: Bucket]>([:])
    /// Full buckets say nothing, and are forgotten when there are so many.
    private static let bucketsMax = 10_000

    init(perSecond rate: Int) { self.rate = Double(rate) }

    /// Takes one request from the bucket of a token.
    ///
    /// - Returns: nil if it may be made, else the seconds to wait.
    func take(_ fingerprint: Data, now: ContinuousClock.Instant = .now) -> Int? {
        buckets.withLock { buckets in
            if buckets.count >= Self.bucketsMax, buckets[fingerprint] == nil {
                buckets = buckets.filter { level($0.value, now) < burst }
            }
            var bucket = buckets[fingerprint] ?? Bucket(left: burst, filled: now)
            bucket.left = level(bucket, now)
            bucket.filled = now
            let isAllowed = bucket.left >= 1
            if isAllowed { bucket.left -= 1 }
            buckets[fingerprint] = bucket
            return isAllowed ? nil : max(1, Int(((1 - bucket.left) / rate).rounded(.up)))
        }
    }

    private func level(_ bucket: Bucket, _ now: ContinuousClock.Instant) -> Double {
        min(burst, bucket.left + rate * ((now - bucket.filled) / .seconds(1)))
    }
}
