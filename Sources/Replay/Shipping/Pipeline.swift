// The machine that decides whether requests may go at all: pauses, waits and conditions. C1 to C4 of
// Spec/protocol/triggers.md; RPL-4 and RPL-6 of replay.md.

import Foundation

/// All requests of the replayer together.
///
/// | state | next | by |
/// |---|---|---|
/// | open | paused | W4, W8, T3, a suspect that shows a wrong endpoint |
/// | paused | open | `resume`, a new token after T3 |
/// | paused | paused | another reason |
///
/// A wait (RPL-4, W5) and the conditions are independent of the state.
struct Pipeline: Sendable {
    enum Input {
        /// C1, C2: the conditions have changed. If the network comes back, the backoff ends.
        case conditions(ReplayState.Conditions)
        /// C4: the app asks for an exchange, whatever the conditions allow, until nothing is left to do.
        case demand
        /// The reason of the pause may be gone.
        case resume
        /// N1: another event is sent before the run ends, whatever the server asks after the last one.
        case othersTried
        /// Nothing is left to do.
        case done
        /// An answer counts, or a page was read.
        case succeeded
        /// W6, W7, T4.
        case failed(ReplayState.Moment)
        /// W5: the server asks to wait, in the answer to a read or to a batch.
        case asked(seconds: Double, ReplayState.Moment, isRead: Bool)
        /// N2: the server asks to wait; that is no failure of the endpoint.
        case delayed(seconds: Double, ReplayState.Moment)
        /// N1: a read is sent at the end of a run.
        case probe
        /// N2: a failed batch is searched.
        case search
        /// W4, W8, T3.
        case pause(ReplayState.Pause)
        /// T1: a pause for a missing token ends.
        case tokenChanged
    }

    private var state = State.open
    private var conditions = ReplayState.Conditions()
    private var isDemanded = false
    private var failures = 0
    /// The end of the pipeline's own backoff.
    private var backoffEnd = Int64.min
    /// The end of the wait that the server has asked for.
    private var askedToWaitUntil = Int64.min
    /// The same, as far as an answer to a read has asked for it.
    private var readsWaitUntil = Int64.min
    /// Whether the next read is one at the end of a run, which waits for no batch.
    private var isProbing = false

    private enum State: Hashable {
        case open
        case paused(ReplayState.Pause)
    }

    /// The waits between attempts.
    private static let backoff = RetryBackoff()
    /// The longest time between two attempts, in milliseconds.
    static let backoffMax = milliseconds(backoff.longest)
    /// The longest wait that a server may ask for, in milliseconds.
    static let retryAfterMax = milliseconds(backoff.longestAsked)

    mutating func handle(_ input: Input) {
        switch input {
        case .conditions(let new):
            if new.isReachable, !conditions.isReachable { (backoffEnd, failures) = (.min, 0) }
            conditions = new
        case .demand: isDemanded = true
        case .resume: (state, backoffEnd) = (.open, .min)
        case .othersTried: askedToWaitUntil = .min
        case .done: isDemanded = false
        case .succeeded: failures = 0
        case .failed(let moment):
            let wait = Self.wait(afterFailures: failures, moment.random)
            backoffEnd = max(backoffEnd, moment.now + wait)
            failures += 1
        case .delayed(let seconds, let moment):
            askedToWaitUntil = max(askedToWaitUntil, moment.now + Self.wait(asked: seconds))
        case .asked(let seconds, let moment, let isRead):
            handle(.delayed(seconds: seconds, moment))
            if isRead {
                readsWaitUntil = max(readsWaitUntil, moment.now + Self.wait(asked: seconds))
                isProbing = false
            }
            // Backs off as well: `Retry-After: 0` would cause a busy loop.
            handle(.failed(moment))
        case .probe: isProbing = true
        case .search:
            // The page has shown that the wait was for the events. A run that waits for it would never send the others.
            if isProbing { askedToWaitUntil = .min }
            isProbing = false
            handle(.resume)
        case .pause(let pause): state = .paused(pause)
        case .tokenChanged: if state == .paused(.unauthorized) { state = .open }
        }
    }

    /// Shortens waits that were set before the clock stepped back.
    mutating func limitWaits(now: Int64) {
        backoffEnd = min(backoffEnd, now + Self.backoffMax)
        askedToWaitUntil = min(askedToWaitUntil, now + Self.retryAfterMax)
        readsWaitUntil = min(readsWaitUntil, now + Self.retryAfterMax)
    }

    /// The reason why no request may go, whatever the time.
    var obstacle: ReplayState.Pause? {
        if case .paused(let pause) = state { return pause }
        guard conditions.isReachable else { return .offline }  // C1
        return conditions.isAllowed || isDemanded ? nil : .notAllowed  // C2
    }

    /// Whether a read may go before the next batch: also in a pause after an answer to a batch, which may say nothing
    /// of reads.
    func mayReadFirst(now: Int64) -> Bool {
        guard conditions.isReachable, conditions.isAllowed || isDemanded, mayRead else {
            return false
        }
        switch state {
        case .open, .paused(.endpoint):
            return (isProbing ? max(backoffEnd, readsWaitUntil) : notBefore) <= now
        case .paused: return false
        }
    }

    /// Whether a read may go although the pipeline waits or pauses, unless the answer to a read has asked to
    /// wait.
    func mayProbe(now: Int64) -> Bool {
        conditions.isReachable && (conditions.isAllowed || isDemanded) && mayRead
            && readsWaitUntil <= now
    }

    /// The earliest time of the next request.
    var notBefore: Int64 { max(backoffEnd, askedToWaitUntil) }

    /// Whether a demand of the app is still to be fulfilled.
    var isFulfillingDemand: Bool { isDemanded }

    /// Whether pages may be read (C3, C4).
    var mayRead: Bool { conditions.mayRead || isDemanded }

    /// Whether a stream of the account's events may be open.
    var mayFollow: Bool {
        state == .open && conditions.isReachable && conditions.isAllowed && conditions.mayRead
    }

    /// The wait that a server has asked for, within its limit, in milliseconds.
    static func wait(asked seconds: Double) -> Int64 {
        milliseconds(backoff.delay(asked: seconds))
    }

    /// The wait after `failures` earlier failures in a row and one more, in milliseconds.
    static func wait(afterFailures failures: Int, _ random: Double) -> Int64 {
        milliseconds(backoff.delay(afterFailures: failures + 1, random: random))
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(duration / .milliseconds(1))
    }
}
