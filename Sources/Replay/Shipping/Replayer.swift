// Ships the outbox: asks ReplayState what to do, does it, records what came of it. Everything that
// touches the world is here; every decision is there. Spec/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a run of the replayer came to.
public struct SyncReport: Hashable, Sendable {
    /// Events that the server has applied.
    public var applied = 0
    /// Events that the server already had.
    public var duplicate = 0
    /// Events that were parked.
    public var rejected = 0
    /// Events in conflict.
    public var conflict = 0
    /// Events that are still to be sent, held ones included.
    public var pending = 0
    /// Those of them that wait for somebody's decision.
    public var held = 0
    /// Why the run stopped with events left that nobody holds.
    public var message: String?

    /// An empty report.
    public init() {}
}

/// Ships a store's outbox to a server.
public struct Replayer: Sendable {
    private let store: EventStore
    private let transport: any Transport
    private let credentials: any Credentials
    private let logger: Logger
    private let sleep: @Sendable (Duration) async throws -> Void

    /// How long a run with an end waits for something that would let it go on.
    private static let patienceMilliseconds: Int64 = 5_000

    /// How often a run without end looks for new events while it waits.
    private static let lookMilliseconds: Int64 = 500

    /// Creates a replayer. The store must keep the view `Outbox`. Time and randomness are those of the
    /// store's environment.
    ///
    /// - Parameters:
    ///   - store: whose outbox is shipped.
    ///   - transport: how a batch reaches the server.
    ///   - credentials: where tokens come from.
    ///   - logger: what is told to whoever looks on.
    ///   - sleep: waits, and throws where the run is to end; a simulation lets its clock go on.
    public init(
        _ store: EventStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(),
        logger: Logger = Logger(label: "daybook.replay"),
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        self.store = store
        self.transport = transport
        self.credentials = credentials
        self.logger = logger
        self.sleep = sleep
    }

    /// When a run ends.
    public enum End: Sendable {
        /// When nothing more can be sent now: a wait of more than five seconds would be needed.
        case whenNothingMoves
        /// At a time at the latest.
        case at(Timestamp)
        /// When the task is cancelled.
        case never
    }

    /// Ships what the outbox holds.
    ///
    /// Every event that the server settles is recorded in the same log. A crash between the
    /// server's reply and that record costs one duplicate send, which the server recognises.
    ///
    /// One run at a time: where another one ships the same store, this one ends at once, with what
    /// is left and a message.
    ///
    /// - Parameters:
    ///   - end: when to stop.
    ///   - progress: called after every reply.
    /// - Returns: what was shipped and what is left. Its records are on the disk.
    /// - Throws: `LogError` where the log could not be read or written. Failures of the network are
    ///   no errors; they are in the report.
    public func run(
        until end: End = .whenNothingMoves, progress: (@Sendable (SyncReport) -> Void)? = nil
    ) async throws -> SyncReport {
        guard await store.beginShipping() else {
            var report = SyncReport()
            report.pending = store.view(Outbox.self).count
            report.message = "another run ships the outbox"
            return report
        }
        do {
            let report = try await ship(until: end, progress: progress)
            await store.endShipping()
            return report
        } catch {
            await store.endShipping()
            throw error
        }
    }

    private func ship(
        until end: End, progress: (@Sendable (SyncReport) -> Void)?
    ) async throws -> SyncReport {
        var state = ReplayState()
        var report = SyncReport()
        var seen = Position.zero
        let commits = await store.commits()
        var commitsIterator = commits.makeAsyncIterator()
        var token: AccessToken?
        var hasToken = false
        loop: while !Task.isCancelled {
            let outbox = store.view(Outbox.self)
            for entry in outbox.entries(from: seen.next) { state.add(entry) }
            seen = outbox.through
            let now = store.deviceNow
            if case .at(let time) = end, now >= time.milliseconds { break }
            switch state.next(now: now) {
            case .send(let items):
                if !hasToken {
                    do {
                        token = try await credentials.token()
                        hasToken = true
                    } catch {
                        let outcome = state.take(
                            .failure("no token: \(error)"), now: now, random: store.randomFraction()
                        )
                        report.message = outcome.message
                        continue
                    }
                }
                let outcome = try await exchange(items, token?.value, end, &state)
                try await record(outcome, &report)
                report.pending = state.count
                progress?(report)
            case .refreshToken:
                hasToken = false
                if let new = try? await credentials.refresh(token), new != token {
                    token = new
                    hasToken = true
                    state.tokenChanged()
                } else {
                    state.tokenRefused()
                    report.message = "the server refuses the token (401), and there is no other"
                }
            case .wait(let time):
                guard try await wait(max(1, time - now), end, beyond: seen) else { break loop }
            case .paused:
                // Somebody has to change something; looking again now and then costs little.
                guard try await wait(ReplayState.backoffMax, end, beyond: nil) else { break loop }
                state.resume()
            case .idle:
                let outcome = state.confirmSuspect()
                if !outcome.entries.isEmpty { try await record(outcome, &report) }
                guard case .never = end, await commitsIterator.next() != nil else { break loop }
            }
        }
        state.releaseSuspect()
        report.pending = state.count
        report.held = state.heldCount
        try await store.flush()
        return report
    }

    /// Waits; false if the run's end does not allow for it. A run without end stops waiting when the
    /// outbox has moved beyond a position: other lanes may have something to send.
    private func wait(
        _ milliseconds: Int64, _ end: End, beyond seen: Position?
    ) async throws -> Bool {
        var rest = milliseconds
        var slice = milliseconds
        switch end {
        case .whenNothingMoves:
            guard milliseconds <= Self.patienceMilliseconds else { return false }
        case .at(let time):
            let now = store.deviceNow
            guard now + milliseconds < time.milliseconds else { return false }
        case .never: slice = Self.lookMilliseconds
        }
        while rest > 0 {
            do {
                try await sleep(.milliseconds(min(slice, rest)))
            } catch { return false }
            rest -= slice
            if let seen, store.view(Outbox.self).through > seen { return true }
        }
        return true
    }

    private func exchange(
        _ items: [ReplayState.Item], _ token: String?, _ end: End, _ state: inout ReplayState
    ) async throws -> ReplayState.Outcome {
        let batch = try await store.jsonArray(of: items.map(\.position))
        let answer: ReplayState.Answer
        var date: Int64?
        let sent = store.deviceNow
        do {
            let reply = try await send(batch, token, end)
            if reply.status == 200 { date = reply.date }
            answer = .reply(reply)
        } catch {
            answer = .failure(Self.words(error))
        }
        let received = store.deviceNow
        let outcome = state.take(answer, now: received, random: store.randomFraction())
        // Only a reply with verdicts is certainly the server's: a captive portal has a clock, too.
        if let date, !outcome.settled.isEmpty || !outcome.entries.isEmpty {
            await store.setClockOffset(
                ServerClock.offset(serverDate: date, sent: sent, received: received))
        }
        if let message = outcome.message {
            logger.debug("\(message)", metadata: ["events": "\(items.count)"])
        }
        return outcome
    }

    /// Sends a batch; where the run ends at a time, no longer than until then.
    private func send(
        _ batch: [UInt8], _ token: String?, _ end: End
    ) async throws -> TransportReply {
        guard case .at(let time) = end else {
            return try await transport.send(.append(batch: batch), token: token)
        }
        let rest = max(0, time.milliseconds - store.deviceNow)
        return try await withThrowingTaskGroup(of: TransportReply.self) { group in
            group.addTask { try await transport.send(.append(batch: batch), token: token) }
            group.addTask {
                try await sleep(.milliseconds(rest))
                throw URLError(.timedOut)
            }
            defer { group.cancelAll() }
            guard let reply = try await group.next() else { throw URLError(.unknown) }
            return reply
        }
    }

    private func record(
        _ outcome: ReplayState.Outcome, _ report: inout SyncReport
    ) async throws {
        report.message = outcome.message
        var settled = SyncSettled(by: store.incarnation)
        let outbox = store.view(Outbox.self)
        let applied = outcome.settled.filter { $0.value == .applied }.map(\.key)
        let duplicate = outcome.settled.filter { $0.value == .duplicate }.map(\.key)
        settled.applied = outbox.ranges(of: Set(applied))
        settled.duplicate = outbox.ranges(of: Set(duplicate))
        settled.entries = outcome.entries
        report.applied += applied.count
        report.duplicate += duplicate.count
        report.rejected += outcome.entries.count { $0.outcome == .parked }
        report.conflict += outcome.entries.count { $0.outcome == .conflict }
        guard !settled.isEmpty else { return }
        try await store.record(settled)
        if outcome.isForked { try await store.mintIncarnation() }
    }

    private static func words(_ error: any Error) -> String {
        let error = error as NSError
        return "no answer: \(error.localizedDescription)"
    }
}
