// The offset between the device's clock and the server's. Spec/protocol/replay.md, CLOCK-1 to CLOCK-3.

import EventSourcing

/// The server's clock, as the answers show it. One answer may have a wrong `Date`, so a step of more than a
/// day needs two answers in a row that agree.
struct ServerClock: Hashable, Sendable {
    /// The offset in use: server time − device time, in milliseconds.
    private(set) var offset: Int64
    /// An offset more than a day from `offset` that the last answer has shown.
    private(set) var candidate: Int64?

    /// The resolution of the measurement: a `Date` header has whole seconds, so a smaller offset counts as
    /// none.
    static let resolutionMilliseconds: Int64 = 1_000
    /// The largest step that one answer makes, in milliseconds.
    static let stepMax: Int64 = 86_400_000
    /// The largest difference of two offsets that agree, in milliseconds.
    static let agreementMax: Int64 = 300_000
    /// The longest round trip of a measurement, in milliseconds. Of a longer one, half is too large an error:
    /// the device was asleep, or its clock was set meanwhile.
    static let roundTripMax: Int64 = 120_000
    /// The difference from the recorded offset above which an offset is recorded, in milliseconds.
    private static let newsMin: Int64 = 5_000

    /// Creates the clock of a store whose offset is in use, with the candidate on record.
    init(offset: Int64, candidate: Int64? = nil) {
        self.offset = offset
        self.candidate = candidate
    }

    /// The offset that one exchange shows: the middle of the header's second minus the middle of the round
    /// trip, in milliseconds.
    ///
    /// - Returns: nil if the exchange measures nothing: its round trip was too long, or the offset is larger
    ///   than a record can hold.
    static func offset(serverDate: Int64, sent: Int64, received: Int64) -> Int64? {
        let (trip, tripOverflow) = received.subtractingReportingOverflow(sent)
        guard !tripOverflow, 0...roundTripMax ~= trip else { return nil }
        let (offset, overflow) = serverDate.subtractingReportingOverflow(sent + trip / 2 - 500)
        guard !overflow, offset.magnitude <= SyncSettled.clockOffsetMax.magnitude else {
            return nil
        }
        return abs(offset) <= resolutionMilliseconds ? 0 : offset
    }

    /// CLOCK-3: takes the offset of an answer over, or remembers it as the candidate.
    mutating func handleOffset(_ new: Int64) {
        let isStep = abs(new - offset) > Self.stepMax
        if isStep, candidate.map({ abs(new - $0) > Self.agreementMax }) ?? true {
            candidate = new
        } else {
            offset = new
            candidate = nil
        }
    }

    /// CLOCK-2: writes into a record what the outbox does not know of the clock.
    func write(to record: inout SyncSettled, known outbox: Outbox) {
        let isRefuted = candidate == nil && outbox.clockCandidate != nil
        if isRefuted || abs(offset - outbox.clockOffset) > Self.newsMin {
            record.clockOffset = offset
        }
        if candidate != outbox.clockCandidate { record.clockCandidate = candidate }
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

extension CompanionStore {
    /// Corrects the clock as the owner's outbox has it. The companion must have the outbox among its views.
    package func restoreClock() {
        let outbox = view(Outbox.self)
        guard
            EventStore.isValid(
                offset: outbox.clockOffset, contact: outbox.lastContact,
                deviceNow: environment.now())
        else { return }
        setClockOffset(outbox.clockOffset)
    }
}
