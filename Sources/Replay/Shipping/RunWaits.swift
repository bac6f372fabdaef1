// The machine that decides when a run waits and when it ends. RPL-6 and RPL-7 of Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat

/// The waits of a run.
///
/// | state | next | by |
/// |---|---|---|
/// | going on | pausing | a pause that ends with time |
/// | pausing | pausing | another pause, a clock that stepped back |
/// | pausing | going on | 60 s have passed |
struct RunWaits {
    /// The next step of a run that has nothing to send.
    enum Step: Hashable {
        /// Wait for a signal, or until a time.
        case wait(until: Int64?)
        /// Try again after a pause.
        case resume
        case end
    }

    /// What the run knows about its next read.
    struct Reads {
        /// The time of the next planned read.
        var planned: Int64?
        /// The time at which the opening of a stream is given up.
        var deadline: Int64?
        /// Whether pages may be read: without the permission a timer would wake the run for nothing.
        var mayRead: Bool

        var next: Int64? { [mayRead ? planned : nil, deadline].compactMap(\.self).min() }
        var attempt: Int64? { mayRead ? planned : nil }
    }

    let end: Replayer.End
    /// False until the network's state and the rules are known.
    var knowsConditions: Bool
    private var pause: (reason: ReplayState.Pause, until: Int64)?

    /// The longest wait in a run until nothing moves.
    private static let waitMaxMilliseconds: Int64 = 5_000
    /// The time after which a paused run tries again.
    private static let pauseMilliseconds: Int64 = 60_000

    init(until end: Replayer.End, knowsConditions: Bool) {
        self.end = end
        self.knowsConditions = knowsConditions
    }

    /// Whether the run has no end.
    var isLive: Bool { if case .never = end { true } else { false } }

    /// Whether the time of the run is up.
    func isOver(now: Int64) -> Bool {
        if case .at(let time) = end { now >= time.milliseconds } else { false }
    }

    /// Whether the run ends after a request that has timed out: the next one may time out, too.
    var endsAfterTimeout: Bool { if case .whenNothingMoves = end { true } else { false } }

    /// The step for an action that is no request, the obstacle to show, and the time of the next attempt.
    mutating func step(
        for action: ReplayState.Action, _ reads: Reads, failure: SyncStatus.Obstacle?, now: Int64
    ) -> (step: Step, obstacle: SyncStatus.Obstacle?, nextAttempt: Int64?) {
        switch action {
        case .busy(let time): return (.wait(until: isLive ? time : nil), failure, nil)
        case .wait(let time):
            // A lane may wait for an hour; a periodic read does not wait for it.
            let due = isLive ? min(time, reads.next ?? time) : time
            let attempt = min(time, (isLive ? reads.attempt : nil) ?? time)
            return (wait(until: max(due, now + 1), now), failure ?? .postponed, attempt)
        case .paused(let reason): return step(in: reason, now)
        case .idle:
            return (
                isLive ? .wait(until: reads.next) : .end, failure, isLive ? reads.attempt : nil
            )
        case .send, .getToken, .refreshToken:
            preconditionFailure("a request is no reason to wait")
        }
    }

    /// If the server or the transport is the reason of the pause, the run also tries again after a time. Without a
    /// network, or where syncing is not allowed, no timer runs.
    private mutating func step(
        in reason: ReplayState.Pause, _ now: Int64
    ) -> (step: Step, obstacle: SyncStatus.Obstacle?, nextAttempt: Int64?) {
        let obstacle = knowsConditions ? SyncStatus.Obstacle(reason) : nil
        switch reason {
        case .offline, .notAllowed: return (isLive ? .wait(until: nil) : .end, obstacle, nil)
        case .unauthorized, .endpoint, .refused:
            // A commit does not restart the wait.
            if pause?.reason != reason || (pause?.until ?? 0) > now + Self.pauseMilliseconds {
                pause = (reason, now + Self.pauseMilliseconds)
            }
            let time = pause?.until ?? now
            guard time > now else {
                pause = nil
                return (.resume, obstacle, time)
            }
            return (wait(until: time, now), obstacle, time)
        }
    }

    private func wait(until time: Int64, _ now: Int64) -> Step {
        let isAllowed =
            switch end {
            case .whenNothingMoves: time - now <= Self.waitMaxMilliseconds
            case .at(let end): time < end.milliseconds
            case .never: true
            }
        return isAllowed ? .wait(until: time) : .end
    }
}
