// The machine that follows the server's stream of new events, and reads pages where none can be had.
// Spec/protocol/push.md, PUSH-10 to PUSH-16.

import Foundation

/// The stream of a run and the schedule of the next one.
///
/// | state | next | by |
/// |---|---|---|
/// | closed | opening | all events are read, and the schedule allows it |
/// | opening | open | the first bytes |
/// | opening, open | closed | the end of the stream, another network, a demand, a pause, an unusable event |
/// | opening | closed | no byte until the deadline |
struct Following: Sendable {
    /// A signal of the stream with this number.
    enum Signal: Sendable {
        case opened(Int)
        /// Events wait.
        case received(Int)
        case ended(Int, StreamSchedule.End)

        fileprivate var number: Int {
            switch self {
            case .opened(let number), .received(let number), .ended(let number, _): number
            }
        }
    }

    enum Input {
        case signal(Signal)
        /// A stream without a byte counts as withheld at its deadline.
        case time
        /// Events of the stream cannot be recorded. It counts as a failure, whatever the stream brought.
        case unusable
        /// No stream may be open.
        case closed
        /// A connection of the network before would be silent.
        case networkChanged
        /// A stream is to be opened if the schedule allows it.
        case wanted
    }

    enum Effect: Hashable {
        /// Open the stream with this number.
        case open(Int)
        /// End the stream; its events that wait are dropped.
        case close
        /// Read pages at this time: they have what the stream has not brought.
        case read(at: Int64)
        /// The stream brings every event: plan no read.
        case cancelReads
    }

    private enum State {
        case closed
        case opening(since: Int64)
        case open(since: Int64, hadEvents: Bool)
    }

    private var state = State.closed
    private var number = 0
    private var schedule = StreamSchedule()
    /// The time between two reads without a stream.
    private let pollMilliseconds: Int64

    init(pollMilliseconds: Int64) { self.pollMilliseconds = pollMilliseconds }

    /// How the run learns of new events.
    var connection: SyncStatus.Connection {
        if case .open = state { return .pushed }
        return schedule.isPolling ? .polled : .connecting
    }

    /// The time at which a stream without a byte counts as withheld; nil if none is being opened.
    var deadline: Int64? {
        guard case .opening(let start) = state else { return nil }
        return start + StreamSchedule.openingMilliseconds
    }

    mutating func handle(_ input: Input, _ moment: ReplayState.Moment) -> [Effect] {
        switch input {
        case .signal(let signal): return signal.number == number ? handle(signal, moment) : []
        case .time:
            // A start after now was before the clock stepped back.
            guard case .opening(let start) = state, let deadline,
                deadline <= moment.now || start > moment.now
            else { return [] }
            return end(.withheld, since: start, moment)
        case .unusable:
            return end(.wasOpen(hadEvents: false), since: start ?? moment.now, moment)
        case .closed: return close()
        case .networkChanged:
            schedule.networkChanged()
            return close()
        case .wanted:
            guard case .closed = state, schedule.mayOpen(now: moment.now) else { return [] }
            number += 1
            state = .opening(since: moment.now)
            return [.open(number)]
        }
    }

    private var start: Int64? {
        switch state {
        case .closed: nil
        case .opening(let start), .open(let start, _): start
        }
    }

    private mutating func close() -> [Effect] {
        if case .closed = state { return [] }
        state = .closed
        return [.close]
    }

    private mutating func handle(
        _ signal: Signal, _ moment: ReplayState.Moment
    ) -> [Effect] {
        switch (signal, state) {
        case (_, .closed): return []
        case (.opened, .opening(let start)):
            state = .open(since: start, hadEvents: false)
            schedule.opened()
            return [.cancelReads]
        case (.received, .open(let start, _)):
            state = .open(since: start, hadEvents: true)
            return []
        case (.opened, .open), (.received, .opening): return []
        case (.ended(_, let end), .opening(let start)): return self.end(end, since: start, moment)
        case (.ended(_, let end), .open(let start, let hadEvents)):
            let isSilent = end == .silent && !hadEvents
            return self.end(
                isSilent ? end : .wasOpen(hadEvents: hadEvents), since: start, moment)
        }
    }

    private mutating func end(
        _ end: StreamSchedule.End, since start: Int64, _ moment: ReplayState.Moment
    ) -> [Effect] {
        let time = schedule.ended(
            end, openMilliseconds: moment.now - start, now: moment.now, random: moment.random,
            pollMilliseconds: pollMilliseconds)
        return close() + [.read(at: time)]
    }
}
