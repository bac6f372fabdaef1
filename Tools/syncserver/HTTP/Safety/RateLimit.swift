// The rate limit of each token, as a token bucket. Spec/operations/operating.md, OPS-4.

import Foundation
import Synchronization

/// A rate limit for each bearer token.
final class RateLimit: Sendable {
    private struct Bucket {
        var left: Double
        var filled: ContinuousClock.Instant
    }

    /// The average requests a second.
    private let rate: Double
    /// The most requests at once, after a pause.
    private var burst: Double { rate * 2 }
    private let buckets = Mutex<[Data: Bucket]>([:])
    /// The count above which full buckets, which are equal to missing ones, are removed.
    private static let bucketsMax = 10_000

    init(perSecond rate: Int) { self.rate = Double(rate) }

    /// Spends one request of a token's bucket.
    ///
    /// - Returns: nil if the request is allowed, else the seconds to wait.
    func spendRequest(of fingerprint: Data, now: ContinuousClock.Instant = .now) -> Int? {
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
