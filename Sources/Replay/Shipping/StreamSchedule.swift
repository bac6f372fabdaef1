// Decides when a run opens a stream and when it reads pages instead: a value without clock, network or
// randomness of its own. Spec/protocol/push.md, PUSH-10 to PUSH-16.

import Foundation

/// The schedule of the streams of a run.
struct StreamSchedule {
    /// How a stream has ended.
    enum End: Hashable {
        /// It was open, and has ended or was broken.
        case wasOpen(hadEvents: Bool)
        /// There was no connection.
        case failed
        /// The stream was silent for 100 s, and has brought no event.
        case silent
        /// Nothing arrived for 10 s: a proxy may withhold the stream.
        case withheld
        /// The server's answer was no stream.
        case refused(status: Int, retryAfterSeconds: Double?)
    }

    /// The longest wait for a stream's first byte, in milliseconds.
    static let openingMilliseconds: Int64 = 10_000
    /// The time between two reads where no stream can be had, in milliseconds.
    static let pollMilliseconds: Int64 = 60_000
    /// The time after which a stream is tried again where none could be had, in milliseconds.
    static let retryMilliseconds: Int64 = 900_000
    /// The time that a stream without events is open, in milliseconds, after which its end counts as the first failure.
    private static let steadyMilliseconds: Int64 = 30_000
    /// The time that a stream is open, in milliseconds, until it has been silent for 100 s before its first heartbeat:
    /// after 50 s (PUSH-6).
    private static let silentMilliseconds: Int64 = 150_000
    /// The number of streams withheld in a row after which no more are tried for a while.
    private static let withheldMax = 2
    private static let backoff = RetryBackoff()
    /// The longest wait until a stream may be opened, in milliseconds.
    private static let waitMax = max(
        retryMilliseconds, Int64(backoff.longestAsked / .milliseconds(1)))

    private var failures = 0
    private var withheldCount = 0
    private var notBefore = Int64.min
    /// True while pages are read at intervals, because no stream can be had.
    private(set) var isPolling = false

    /// Whether a stream may be opened now.
    func mayOpen(now: Int64) -> Bool {
        // A time that is farther away was set before the clock stepped back.
        notBefore <= now || notBefore > now + Self.waitMax
    }

    /// Handles the opening of a stream: its first bytes have arrived.
    mutating func opened() { isPolling = false }

    /// Handles the end of a stream.
    ///
    /// - Parameters:
    ///   - openMilliseconds: the time since it was opened, in milliseconds.
    ///   - now: the device's time in milliseconds since 1970.
    ///   - random: a random number between 0 and 1.
    ///   - pollMilliseconds: the time between two reads without a stream.
    /// - Returns: the time of the next read, after which the next stream may be opened.
    mutating func ended(
        _ end: End, openMilliseconds: Int64, now: Int64, random: Double, pollMilliseconds: Int64
    ) -> Int64 {
        failures += 1
        var requestedWait = Duration.zero
        let isWithheld =
            end == .withheld || (end == .silent && openMilliseconds < Self.silentMilliseconds)
        withheldCount = isWithheld ? withheldCount + 1 : 0
        if withheldCount >= Self.withheldMax { return poll(now, pollMilliseconds) }
        switch end {
        case .wasOpen(let hadEvents):
            if hadEvents || openMilliseconds >= Self.steadyMilliseconds { failures = 1 }
        case .silent: if !isWithheld { failures = 1 }
        case .failed, .withheld: break
        case .refused(let status, let seconds):
            // 401: the next read renews the token. 408, 429 and 5xx pass.
            guard [401, 408, 429].contains(status) || status >= 500 else {
                return poll(now, pollMilliseconds)
            }
            requestedWait = Self.backoff.delay(asked: seconds)
            // A sync that the app asks for reads at once, but opens no stream before.
            notBefore = now + Int64(requestedWait / .milliseconds(1))
        }
        let wait = max(requestedWait, Self.backoff.delay(afterFailures: failures, random: random))
        return now + Int64(wait / .milliseconds(1))
    }

    private mutating func poll(_ now: Int64, _ pollMilliseconds: Int64) -> Int64 {
        isPolling = true
        notBefore = now + Self.retryMilliseconds
        return now + pollMilliseconds
    }

    /// Forgets what was learned on another network.
    mutating func networkChanged() { self = StreamSchedule() }
}
