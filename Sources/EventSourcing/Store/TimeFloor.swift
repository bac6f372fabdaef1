// The time a new event gets: the corrected clock, but never before what the log already tells,
// unless that is so far ahead that the clock that wrote it must have been wrong. Spec/line.md,
// LINE-5.

import HeapModule

/// The newest time of a log that can be believed.
struct TimeFloor {
    private var newest = Int64.min
    private var ahead = Heap<Int64>()

    /// How far ahead of the clock a time may be and still count.
    static let leadMillisecondsMax: Int64 = 5 * 60 * 1_000

    /// Takes in the time of an event.
    mutating func add(_ time: Timestamp) {
        if time.milliseconds > newest { ahead.insert(time.milliseconds) }
    }

    /// The time for an event recorded now.
    mutating func time(now: Int64) -> Timestamp {
        while let next = ahead.min, next <= now + Self.leadMillisecondsMax {
            newest = max(newest, ahead.removeMin())
        }
        return Timestamp(milliseconds: max(now, newest))
    }
}
