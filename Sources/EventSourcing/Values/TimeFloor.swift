// The time of a new event: max(now, the newest time in the log that is at most 5 minutes after now). A time
// further ahead comes from a wrong clock. `now` is the device's clock, corrected by the recorded offset of the
// server's. Spec/format/line.md, LINE-5.

/// The newest times of a log.
struct TimeFloor: Codable, Sendable {
    /// The newest distinct times, ascending.
    private var newest: [Int64] = []
    /// The newest of the times that are not in `newest`.
    private var older = Int64.min

    /// How far ahead of the clock a time may be before it is ignored.
    static let trustedLeadMillisecondsMax: Int64 = 5 * 60 * 1_000
    /// The most times in `newest`, enough for a few wrong clocks. If all of them are too far ahead, `older`
    /// is used.
    private static let countMax = 64

    /// Includes the time of an event. O(1).
    mutating func include(_ time: Timestamp) {
        let time = time.milliseconds
        let index = newest.lastIndex { $0 <= time }
        guard index.map({ newest[$0] != time }) ?? true else { return }
        newest.insert(time, at: index.map { $0 + 1 } ?? 0)
        if newest.count > Self.countMax { older = max(older, newest.removeFirst()) }
    }

    /// The time for an event recorded now. O(1).
    func time(now: Int64) -> Timestamp {
        let bound = now + Self.trustedLeadMillisecondsMax
        let known = newest.last { $0 <= bound } ?? (older <= bound ? older : .min)
        return Timestamp(milliseconds: max(now, known))
    }
}
