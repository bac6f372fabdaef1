// The time a new event gets: the corrected clock, but never before what the log already tells,
// unless that is so far ahead that the clock that wrote it must have been wrong. Spec/format/line.md,
// LINE-5.

/// The newest times of a log.
struct TimeFloor: Codable, Sendable {
    /// The newest different times, ascending.
    private var newest: [Int64] = []
    /// The newest of all times that are not kept.
    private var older = Int64.min

    /// How far ahead of the clock a time may be and still count.
    static let leadMillisecondsMax: Int64 = 5 * 60 * 1_000
    /// Enough for a few wrong clocks; a log with more future times than this is judged by `older`.
    private static let countMax = 64

    /// Takes in the time of an event. O(1).
    mutating func add(_ time: Timestamp) {
        let time = time.milliseconds
        let index = newest.lastIndex { $0 <= time }
        guard index.map({ newest[$0] != time }) ?? true else { return }
        newest.insert(time, at: index.map { $0 + 1 } ?? 0)
        if newest.count > Self.countMax { older = max(older, newest.removeFirst()) }
    }

    /// The time for an event recorded now. O(1).
    func time(now: Int64) -> Timestamp {
        let bound = now + Self.leadMillisecondsMax
        let known = newest.last { $0 <= bound } ?? (older <= bound ? older : .min)
        return Timestamp(milliseconds: max(now, known))
    }
}
