// The stream of a run: opens it, collects its events, ends it. Between ReplayRun and the transport.
// Spec/protocol/push.md.

import Foundation
import Telemetry

/// The open stream of a run, if there is one, and the schedule of the next.
struct Follower {
    /// A signal for the run, with the number of the stream.
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

    private struct OpenStream {
        let task: Task<Void, Never>
        let events: PushedEvents
        let start: Int64
        var isOpen = false
        var hadEvents = false
    }

    private let transport: any FollowingTransport
    /// The account that owns the log.
    var account: String?
    private let instruments: Instruments
    private let pollMilliseconds: Int64
    private let signal: @Sendable (Signal) -> Void
    private var stream: OpenStream?
    private var number = 0
    private var schedule = StreamSchedule()

    /// - Parameters:
    ///   - pollMilliseconds: the time between two reads without a stream.
    ///   - signal: passes a signal to the run.
    init(
        _ transport: any FollowingTransport, _ instruments: Instruments,
        pollMilliseconds: Int64, signal: @escaping @Sendable (Signal) -> Void
    ) {
        self.transport = transport
        self.instruments = instruments
        self.pollMilliseconds = pollMilliseconds
        self.signal = signal
    }

    /// How the run learns of new events.
    var connection: SyncStatus.Connection {
        if stream?.isOpen == true { return .pushed }
        return schedule.isPolling ? .polled : .connecting
    }

    /// The time at which a stream without a byte counts as withheld; nil if none is being opened.
    var deadline: Int64? {
        stream.flatMap { $0.isOpen ? nil : $0.start + StreamSchedule.openingMilliseconds }
    }

    /// Whether a stream may be opened now.
    func mayOpen(now: Int64) -> Bool { stream == nil && schedule.mayOpen(now: now) }

    /// Opens a stream.
    ///
    /// - Parameter cursor: the log's cursor.
    mutating func open(after cursor: String?, token: String?, now: Int64) {
        number += 1
        let events = PushedEvents(after: cursor)
        let (transport, account, signal, number) = (transport, account, signal, number)
        let instruments = instruments
        let task = Task {
            let end: StreamSchedule.End
            do {
                let result = try await transport.follow(
                    after: cursor, token: token, account: account
                ) {
                    switch $0 {
                    case .opened:
                        signal(.opened(number))
                        return true
                    case .event(let line, let next):
                        instruments.count(.receivedBytes, line.count)
                        switch events.append(line, next: next) {
                        case .first: signal(.received(number))
                        case .later: break
                        case .full: return false
                        }
                        return true
                    }
                }
                switch result {
                case .ended: end = .wasOpen(hadEvents: false)
                case .refused(let status, let seconds):
                    end = .refused(status: status, retryAfterSeconds: seconds)
                }
            } catch let error as TransportError where error.code == .timedOut {
                end = .silent
            } catch { end = .failed }
            signal(.ended(number, end))
        }
        stream = OpenStream(task: task, events: events, start: now)
    }

    /// Handles a signal.
    ///
    /// - Returns: the time of the next read, if the stream has ended. Events of it that wait are dropped: the
    ///   read gets them.
    mutating func handle(_ signal: Signal, now: Int64, random: Double) -> Int64? {
        guard signal.number == number, let stream else { return nil }
        switch signal {
        case .opened:
            self.stream?.isOpen = true
            schedule.opened()
            return nil
        case .received:
            self.stream?.hadEvents = true
            return nil
        case .ended(_, let end):
            guard stream.isOpen else { return ended(end, now, random) }
            return ended(
                end == .silent && !stream.hadEvents
                    ? end : .wasOpen(hadEvents: stream.hadEvents), now, random)
        }
    }

    /// Ends a stream that has not sent a byte until its deadline.
    ///
    /// - Returns: the time of the next read; nil if there is no such stream.
    mutating func endIfWithheld(now: Int64, random: Double) -> Int64? {
        // A start after now was before the clock stepped back.
        guard let stream, let deadline, deadline <= now || stream.start > now else { return nil }
        return ended(.withheld, now, random)
    }

    /// Ends a stream whose events cannot be recorded. It counts as a failure, whatever it brought.
    ///
    /// - Returns: the time of the next read.
    mutating func endUnusable(now: Int64, random: Double) -> Int64 {
        ended(.wasOpen(hadEvents: false), now, random)
    }

    private mutating func ended(
        _ end: StreamSchedule.End, _ now: Int64, _ random: Double
    ) -> Int64 {
        let openMilliseconds = now - (stream?.start ?? now)
        close()
        return schedule.ended(
            end, openMilliseconds: openMilliseconds, now: now, random: random,
            pollMilliseconds: pollMilliseconds)
    }

    /// Removes the oldest events that wait, as a page.
    mutating func dequeuePage() -> ReplayState.Page? { stream?.events.dequeuePage() }

    /// Ends the stream, if there is one.
    mutating func close() {
        stream?.task.cancel()
        stream = nil
    }

    /// Ends the stream, and waits until its task has ended.
    mutating func finish() async {
        let task = stream?.task
        close()
        await task?.value
    }

    /// Ends the stream, because the network is another one, and tries again there.
    mutating func networkChanged() {
        close()
        schedule.networkChanged()
    }
}
