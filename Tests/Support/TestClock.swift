// Time that passes when a test says so.

import Synchronization

/// A clock that a test moves.
package final class TestClock: Sendable {
    private struct State {
        var now: Int64
        /// Readings that still get the old time, and the milliseconds that pass then.
        var leap: (readings: Int, milliseconds: Int64)?
    }

    private let state: Mutex<State>

    package init(_ now: Int64 = 1_800_000_000_000) { state = Mutex(State(now: now)) }

    /// Milliseconds since 1970.
    package var now: Int64 {
        get {
            state.withLock { state in
                guard let leap = state.leap else { return state.now }
                if leap.readings == 0 {
                    state.now += leap.milliseconds
                    state.leap = nil
                } else {
                    state.leap?.readings -= 1
                }
                return state.now
            }
        }
        set { state.withLock { $0.now = newValue } }
    }

    /// Moves the clock forward, or back by a negative duration, in whole milliseconds.
    package func advance(_ duration: Duration) {
        state.withLock { $0.now += Self.milliseconds(duration) }
    }

    /// Moves the clock once between two readings: the next `readings` still return the present time.
    package func advance(_ duration: Duration, afterReadings readings: Int) {
        state.withLock { $0.leap = (readings, Self.milliseconds(duration)) }
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}

extension Duration {
    package static func minutes(_ minutes: Int) -> Duration { .seconds(minutes * 60) }
    package static func hours(_ hours: Int) -> Duration { .seconds(hours * 3_600) }
    /// Whole milliseconds.
    package static func days(_ days: Double) -> Duration {
        .milliseconds(Int64(days * 86_400_000))
    }
}
