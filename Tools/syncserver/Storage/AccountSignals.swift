// Wakes the streams of an account when it has new events: between the storage, which learns of them, and the
// streams, which read them as pages. A signal carries no event, so a lost one delays events and loses none.
// Spec/protocol/push.md.

import Cryptography
import DequeModule
import EventSourcing
import Synchronization

/// The open streams of a server, by account.
package final class AccountSignals: Sendable {
    /// The digest by which servers name an account to each other: every role that may connect to a database may
    /// listen there, so an account's name must not be sent.
    package struct Digest: Hashable, Sendable, CustomStringConvertible {
        /// 32 hexadecimal digits: the first half of the SHA-256 of the account's name in UTF-8.
        package let description: String

        package init(account: String) {
            description = SHA256.hash(Array(account.utf8)).prefix(16).hexadecimalDigits
        }

        package init(received text: String) { description = text }
    }

    private struct Streams {
        let account: String
        var open: [ObjectIdentifier: StreamWakeups] = [:]
    }

    private struct State {
        var streams: [Digest: Streams] = [:]
        /// All streams in the order of their last heartbeats.
        var heartbeats: Deque<(last: ContinuousClock.Instant, stream: StreamWakeups)> = []
        var count = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of open streams.
    package var count: Int { state.withLock { $0.count } }

    /// Registers a stream. The caller calls `removeStream` at its end.
    ///
    /// - Parameter serial: the serial after which the stream begins.
    /// - Returns: the stream's wake-ups, ended already if the server is shutting down.
    package func addStream(
        of account: String, after serial: Int64, now: ContinuousClock.Instant = .now
    ) -> StreamWakeups {
        let wakeups = StreamWakeups(Digest(account: account), after: serial)
        let isClosed = state.withLock { state in
            state.streams[wakeups.account, default: Streams(account: account)]
                .open[ObjectIdentifier(wakeups)] = wakeups
            state.heartbeats.append((now, wakeups))
            state.count += 1
            return state.isClosed
        }
        if isClosed { wakeups.end() }
        return wakeups
    }

    /// Removes a stream that has ended.
    package func removeStream(_ wakeups: StreamWakeups) {
        wakeups.end()
        state.withLock { state in
            guard
                state.streams[wakeups.account]?.open
                    .removeValue(forKey: ObjectIdentifier(wakeups)) != nil
            else { return }
            state.count -= 1
            if state.streams[wakeups.account]?.open.isEmpty == true {
                state.streams[wakeups.account] = nil
            }
        }
    }

    /// Wakes the streams of an account that has new events.
    package func signal(_ account: Digest) {
        let open = state.withLock { $0.streams[account]?.open.values.map { $0 } }
        for wakeups in open ?? [] { wakeups.wake(.events) }
    }

    /// Wakes each stream whose account has a later serial than the stream has sent.
    ///
    /// - Parameter lastSerials: reads the last serials of accounts; those without events may be missing.
    package func signalMissed(
        _ lastSerials: ([String]) async throws -> [EntityID: Int64]
    ) async rethrows {
        let streams = state.withLock { Array($0.streams.values) }
        for start in stride(from: 0, to: streams.count, by: Self.accountsPerQuery) {
            let part = streams[start..<min(start + Self.accountsPerQuery, streams.count)]
            let serials = try await lastSerials(part.map(\.account))
            for streams in part {
                guard let last = serials[EntityID(streams.account)] else { continue }
                for wakeups in streams.open.values where wakeups.sentSerial < last {
                    wakeups.wake(.events)
                }
            }
        }
    }

    /// The most accounts whose serials are read with one statement.
    private static let accountsPerQuery = 500

    /// Wakes the streams whose last heartbeat was `interval` ago. O(the streams that are due).
    package func beat(every interval: Duration, now: ContinuousClock.Instant = .now) {
        let due = state.withLock { state in
            var due: [StreamWakeups] = []
            for _ in 0..<state.heartbeats.count {
                guard let first = state.heartbeats.first, first.last + interval <= now else {
                    break
                }
                state.heartbeats.removeFirst()
                guard !first.stream.hasEnded else { continue }
                state.heartbeats.append((now, first.stream))
                due.append(first.stream)
            }
            return due
        }
        for wakeups in due { wakeups.wake(.heartbeat) }
    }

    /// Ends all streams, and later ones at once.
    package func close() {
        let streams = state.withLock { state in
            state.isClosed = true
            return state.streams.values.flatMap { $0.open.values }
        }
        for wakeups in streams { wakeups.end() }
    }
}

/// The wake-ups of one stream.
package final class StreamWakeups: Sendable {
    /// The reasons of a wake-up.
    package struct Reasons: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The account may have new events.
        package static let events = Reasons(rawValue: 1)
        /// The client must get a byte.
        package static let heartbeat = Reasons(rawValue: 2)
    }

    private struct State {
        /// New events before the first wait: the stream reads once before it waits.
        var reasons = Reasons.events
        var hasEnded = false
        var waiter: CheckedContinuation<Reasons?, Never>?
    }

    /// The account of the stream.
    package let account: AccountSignals.Digest
    private let state = Mutex(State())
    private let sent: Atomic<Int64>

    fileprivate init(_ account: AccountSignals.Digest, after serial: Int64) {
        self.account = account
        sent = Atomic(serial)
    }

    /// The serial of the last event that was sent.
    package var sentSerial: Int64 {
        get { sent.load(ordering: .relaxed) }
        set { sent.store(newValue, ordering: .relaxed) }
    }

    fileprivate var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Waits for the next wake-up. One call at a time.
    ///
    /// - Returns: its reasons; nil if the stream is to end, also because the calling task is cancelled.
    package func next() async -> Reasons? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Reasons?? = state.withLock { state in
                    if state.hasEnded { return .some(nil) }
                    guard state.reasons.isEmpty else {
                        defer { state.reasons = [] }
                        return .some(state.reasons)
                    }
                    state.waiter = continuation
                    return .none
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            end()
        }
    }

    fileprivate func wake(_ reasons: Reasons) {
        let waiter = state.withLock { state in
            state.reasons.formUnion(reasons)
            guard let waiter = state.waiter else {
                return nil as (CheckedContinuation<Reasons?, Never>, Reasons)?
            }
            defer { (state.waiter, state.reasons) = (nil, []) }
            return (waiter, state.reasons)
        }
        if let (waiter, reasons) = waiter { waiter.resume(returning: reasons) }
    }

    /// Ends the stream.
    package func end() {
        let waiter = state.withLock { state in
            state.hasEnded = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }
}
