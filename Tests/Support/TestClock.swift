// Time that passes when a test says so.

import Synchronization

/// A clock that a test moves.
package final class TestClock: Sendable {
    private let time: Mutex<Int64>

    package init(_ now: Int64 = 1_800_000_000_000) { time = Mutex(now) }

    /// Milliseconds since 1970.
    package var now: Int64 {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }

    /// Moves the clock forward, or back by a negative duration, in whole milliseconds.
    package func advance(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        time.withLock { $0 += milliseconds }
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
