// How often an event is sent again after a `retry`, and how long an exhausted event waits. The outbox shows
// both; shipping applies them. Spec/protocol/parking.md, PRK-4 and PRK-5.

import Foundation
import LogFormat

/// The limits for events that the server asks to send again.
enum Retries {
    /// The number of `retry` verdicts after which an event is exhausted: parked, and sent again every 30 to
    /// 60 minutes.
    static let max = 5
    /// The shortest and the longest time between two attempts with an exhausted event, in milliseconds.
    private static let exhaustedRange: ClosedRange<Int64> = 1_800_000...3_600_000

    /// The time between two attempts with an exhausted event, in milliseconds. It is computed from the
    /// event's id: it is the same after a restart, and differs between the events of many devices.
    static func exhaustedDelay(of id: UUID) -> Int64 {
        let spread = exhaustedRange.upperBound - exhaustedRange.lowerBound
        let fraction = Int64(truncatingIfNeeded: id.integer & 0xFFFF)
        return exhaustedRange.lowerBound + spread * fraction / 0xFFFF
    }

    /// The largest recorded number of failures alone.
    static let failuresAloneMax = 16

    /// The time until an event that is set aside is sent again, in milliseconds: 1, 2, 4 … minutes, at most that of
    /// an exhausted event.
    static func setAsideDelay(of id: UUID, afterFailures failures: Int) -> Int64 {
        min(
            60_000 << Int64(Swift.min(Swift.max(1, failures), failuresAloneMax) - 1),
            exhaustedDelay(of: id))
    }
}
