// Ships the outbox and reads the events of the account's other logs. ReplayState decides what to do;
// ReplaySession does it. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging
import Telemetry

/// Exchanges a store's events with a server: ships its outbox, and reads the events of the account's other
/// logs.
public struct Replayer: Sendable {
    let store: EventStore
    let transport: any Transport
    let credentials: any Credentials
    private(set) var options: Options
    let instruments: Instruments
    var logger: Logger { instruments.logger }
    /// What is read from an app's own API; empty with a sync server.
    var sources: [PullSource] {
        options.reads ? (transport as? RequestTransport)?.sources ?? [] : []
    }
    let sleep: @Sendable (Duration) async throws -> Void

    /// Settings of a replayer.
    public struct Options: Sendable {
        /// Whether the outbox is shipped.
        public var ships = true
        /// Whether the account's other events are read.
        public var reads = true
        /// The largest number of requests under way at the same time; less than 1 counts as 1. Two of them
        /// never have events of one lane.
        public var requestsMax = 2
        /// The resolver of conflicts. Nil: conflicts wait until the app decides them.
        public var resolver: (any ConflictResolver)?
        /// Whether a run without end follows the server's stream of new events, if the transport has one.
        public var follows = true
        /// The time between two reads of a run without end while no stream is open. Nil: a minute where a
        /// stream is wanted and cannot be had, otherwise only when the run begins, and on the trigger `now`.
        public var readInterval: Duration?

        /// `readInterval` in milliseconds.
        var readMilliseconds: Int64? { readInterval.map { Int64($0 / .milliseconds(1)) } }

        /// Creates the usual settings: shipping and reading, two requests at a time.
        public init() {}
    }

    /// Creates a replayer. The store must keep the view `Outbox`. Time and randomness come from the store's
    /// environment.
    ///
    /// - Parameters:
    ///   - store: the store whose events are exchanged.
    ///   - transport: carries requests to the server.
    ///   - credentials: the source of tokens.
    ///   - options: the settings.
    ///   - logger: receives the failures of requests, and their durations, at the level `debug`; nil for
    ///     the store's logger.
    ///   - sleep: waits, and throws if the run is to end; a simulation advances its clock.
    public init(
        _ store: EventStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(), options: Options = Options(),
        logger: Logger? = nil,
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        self.store = store
        self.transport = transport
        self.credentials = credentials
        self.options = options
        self.options.reads = options.reads && transport.hasPages
        var instruments = store.instruments
        if let logger { instruments.logger = logger }
        self.instruments = instruments
        self.sleep = sleep
    }

    /// The condition that ends a run.
    public enum End: Sendable {
        /// When nothing more can be done now: the next wait would be longer than five seconds, or a request
        /// has timed out.
        case whenNothingMoves
        /// At a time at the latest.
        case at(Timestamp)
        /// When the task is cancelled.
        case never
    }

    /// An input of a run without end, beside the store's commits.
    public enum Trigger: Sendable {
        /// The conditions have changed.
        case conditions(ReplayState.Conditions)
        /// Ends all waits, ships everything that can be shipped, and reads the events of the account's other
        /// logs.
        case now
    }

    /// Ships the outbox, then reads the events of the account's other logs.
    ///
    /// The verdicts of each reply are recorded in the same log. After a crash between the reply and its
    /// record, the batch is sent again, and the server answers `duplicate`. The events of a page are
    /// recorded in one commit with the cursor after them.
    ///
    /// One run at a time: while another run exchanges the store's events, this one ends at once, with the
    /// number of pending events and a message.
    ///
    /// - Parameters:
    ///   - end: when to stop.
    ///   - conditions: the conditions at the beginning.
    ///   - triggers: the triggers of a run without end.
    ///   - progress: called after a batch was sent, after every reply, when no token can be had, and when the
    ///     server or the transport makes the run pause.
    /// - Returns: the report. The run's records are durable, unless the disk is full: then the report's message
    ///   says so.
    /// - Throws: `LogError` if the log could not be read or written, or was closed or suspended; `EventError`
    ///   (`refused`) for the store that all accounts share; `TransportError` (`badEndpoint`,
    ///   `tokenInClear`) if the transport cannot be used with the app's settings. Failures of
    ///   the network are no errors; they are in the report.
    public func run(
        until end: End = .whenNothingMoves,
        under conditions: ReplayState.Conditions = ReplayState.Conditions(),
        triggers: AsyncStream<Trigger>? = nil,
        progress: (@Sendable (SyncReport) -> Void)? = nil
    ) async throws -> SyncReport {
        guard !store.catalogue.isShared else {
            throw EventError(
                .refused,
                "the log in \(store.directory) is shared by all accounts and belongs to none, so it "
                    + "cannot be synced; sync the account's own log")
        }
        let claim = ShippingClaim(store)
        guard claim.isOurs else {
            var report = SyncReport()
            report.pending = store.view(Outbox.self).count
            report.withoutRule = store.view(Outbox.self).withoutRule
            report.isElsewhere = true
            report.message = "another run exchanges this store's events"
            report.failure = .elsewhere
            return report
        }
        func exchange() async throws -> SyncReport {
            var run = ReplaySession(self, until: end, under: conditions, progress: progress)
            var report = try await run.run(triggers)
            report.withoutRule = store.view(Outbox.self).withoutRule
            return report
        }
        do {
            // A run without end is not measured: it lasts as long as the app.
            let report =
                if case .never = end {
                    try await exchange()
                } else {
                    try await instruments.measure(.sync) { try await exchange() }
                }
            await claim.release()
            return report
        } catch {
            await claim.release()
            throw error
        }
    }
}

/// The exclusive right to exchange a store's events.
private struct ShippingClaim {
    /// The run that has the right. Kept in memory.
    private enum Holder: TransientState {
        typealias Key = Bool
        typealias Value = UUID
    }

    private let store: EventStore
    private let id = UUID()
    /// True if no other run had the right.
    let isOurs: Bool

    /// Claims the right, if no other run has it.
    init(_ store: EventStore) {
        self.store = store
        let holder = store.transient(Holder.self)
        holder.update(true) { [id] in $0 ?? id }
        isOurs = holder[true] == id
    }

    /// Releases the right and signals a change of the store, since another run may wait for it.
    func release() async {
        store.transient(Holder.self).update(true) { _ in nil }
        await store.signalChange()
    }
}
