// The offset between the device's clock and the server's. Spec/protocol/replay.md, CLOCK-1.

import EventSourcing

/// The measurement of the server's clock by one exchange.
enum ServerClock {
    /// The resolution of the measurement: a `Date` header has whole seconds, so a smaller offset counts as
    /// none.
    static let resolutionMilliseconds: Int64 = 1_000

    /// Server time − device time in milliseconds: the middle of the header's second minus the middle of the
    /// round trip.
    static func offset(serverDate: Int64, sent: Int64, received: Int64) -> Int64 {
        let offset = serverDate + 500 - (sent + (received - sent) / 2)
        return abs(offset) <= resolutionMilliseconds ? 0 : offset
    }

    /// The difference from the recorded offset above which an offset is recorded.
    private static let newsMilliseconds: Int64 = 5_000

    /// Whether an offset is to be recorded. An offset beyond `SyncSettled.clockOffsetMax` is not.
    static func isNews(_ offset: Int64, known: Int64) -> Bool {
        abs(offset) <= SyncSettled.clockOffsetMax && abs(offset - known) > newsMilliseconds
    }
}

extension EventStore {
    /// Restores the clock offset from the outbox after opening. The store must have the outbox among its
    /// views.
    package func restoreClock() {
        let outbox = view(Outbox.self)
        guard outbox.clockOffset != 0 else { return }
        restoreClock(offset: outbox.clockOffset, contact: outbox.lastContact)
    }
}
