// How far the device's clock is from the server's. Spec/protocol/replay.md, CLOCK-1.

import EventSourcing

/// The offset between two clocks, from one exchange.
enum ServerClock {
    /// A `Date` header has whole seconds, so an offset below this says nothing.
    static let resolutionMilliseconds: Int64 = 1_000

    /// Milliseconds to add to the device's clock to get the server's: the header, taken for the
    /// middle of its second, against the middle of the round trip.
    static func offset(serverDate: Int64, sent: Int64, received: Int64) -> Int64 {
        let offset = serverDate + 500 - (sent + (received - sent) / 2)
        return abs(offset) <= resolutionMilliseconds ? 0 : offset
    }

    /// An offset this far from the one on record is worth a record.
    private static let newsMilliseconds: Int64 = 5_000

    /// Whether an offset is to be recorded. It must be one that a record can hold.
    static func isNews(_ offset: Int64, known: Int64) -> Bool {
        abs(offset) <= SyncSettled.clockOffsetMax && abs(offset - known) > newsMilliseconds
    }
}

extension EventStore {
    /// Takes over from the outbox how far the device's clock is off. For a store with the outbox among
    /// its views, when it was opened.
    package func restoreClock() {
        let outbox = view(Outbox.self)
        guard outbox.clockOffset != 0 else { return }
        restoreClock(offset: outbox.clockOffset, contact: outbox.lastContact)
    }
}
