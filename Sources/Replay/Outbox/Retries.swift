// How often an event is sent again after a `retry`, and how long an exhausted event waits. Between the
// outbox, which shows both, and shipping, which goes by them. Spec/protocol/parking.md, PRK-4.

import Foundation
import LogFormat

/// The rule for events that the server asks to send again.
enum Retries {
    /// `retry` verdicts after which an event is exhausted: parked, and sent again every 30 to 60
    /// minutes.
    static let max = 5
    /// The range of the time between two attempts with an exhausted event, in milliseconds.
    private static let exhaustedRange: ClosedRange<Int64> = 1_800_000...3_600_000

    /// The time between two attempts with an exhausted event, in milliseconds. It follows from the
    /// event's id, so that it is the same after a restart and the events of many devices are spread.
    static func exhaustedDelay(of id: UUID) -> Int64 {
        let spread = exhaustedRange.upperBound - exhaustedRange.lowerBound
        let fraction = Int64(truncatingIfNeeded: id.integer & 0xFFFF)
        return exhaustedRange.lowerBound + spread * fraction / 0xFFFF
    }
}
