// Ships the outbox and reads what other logs of the account have recorded. What it is told to do is
// ReplayState's business, how it is done ReplayRun's. Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Logging
import Telemetry

/// Exchanges a store's events with a server: ships its outbox, and reads what other logs of the
/// account have recorded.
public struct Replayer: Sendable {
    let store: EventStore
    let transport: any Transport
    let credentials: any Credentials
    let options: Options
    let instruments: Instruments
    var logger: Logger { instruments.logger }
    let sleep: @Sendable (Duration) async throws -> Void

    /// Settings of a replayer.
    public struct Options: Sendable {
        /// Whether the outbox is shipped.
        public var ships = true
        /// Whether the account's other events are read.
        public var reads = true
        /// Requests that may be under way at the same time; less than 1 counts as 1. They never hold
        /// events of one entity.
        public var requestsMax = 2
        /// The resolver of conflicts. Nil: they wait until the app decides them.
        public var resolver: (any ConflictResolver)?
        /// The time between two reads of a run without end. Nil: it reads when it begins, and on
        /// the trigger `now`.
        public var readInterval: Duration?

        /// Creates the usual settings: shipping and reading, two requests at a time.
        public init() {}
    }

    /// Creates a replayer. The store must keep the view `Outbox`. Time and randomness are those of the
    /// store's environment.
    ///
    /// - Parameters:
    ///   - store: the store of the events that are exchanged.
    ///   - transport: carries requests to the server.
    ///   - credentials: the source of tokens.
    ///   - options: the settings.
    ///   - logger: receives why requests fail, and how long they take, at the level `debug`; nil for
    ///     the store's logger.
    ///   - sleep: waits, and throws where the run is to end; a simulation lets its clock go on.
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
        var instruments = store.instruments
        if let logger { instruments.logger = logger }
        self.instruments = instruments
        self.sleep = sleep
    }

    /// When a run ends.
    public enum End: Sendable {
        /// When nothing more can be done now: a wait of more than five seconds would be needed, or
        /// the server has been silent for as long as the transport waits.
        case whenNothingMoves
        /// At a time at the latest.
        case at(Timestamp)
        /// When the task is cancelled.
        case never
    }

    /// What can happen to a run without end, beside what is recorded in the store.
    public enum Trigger: Sendable {
        /// What the world allows has changed.
        case conditions(ReplayState.Conditions)
        /// Everything that can be done is to be done now, without waiting any longer, and what
        /// other logs have recorded is to be read.
        case now
    }

    /// Ships what the outbox holds, then reads what other logs of the account have recorded.
    ///
    /// Every event that the server settles is recorded in the same log. A crash between the
    /// server's reply and that record costs one duplicate send, which the server recognises. What is
    /// read is recorded together with the place where it ended.
    ///
    /// One run at a time: where another one works on the same store, this one ends at once, with what
    /// is left and a message.
    ///
    /// - Parameters:
    ///   - end: when to stop.
    ///   - conditions: what the world allows when it begins.
    ///   - triggers: what happens meanwhile, for a run without end.
    ///   - progress: called when something was sent, and after every reply.
    /// - Returns: what was done and what is left. Its records are on the disk.
    /// - Throws: `LogError` where the log could not be read or written, or was closed; `EventError`
    ///   (`refused`) for the store that all accounts share; `TransportError` (`badEndpoint`,
    ///   `tokenInClear`) where the transport cannot be used as the app has set it up. Failures of
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
                    + "cannot be synced. Sync the account's own log")
        }
        let claim = ShippingClaim(store)
        guard claim.isOurs else {
            var report = SyncReport()
            report.pending = store.view(Outbox.self).count
            report.isElsewhere = true
            report.message = "another run exchanges this store's events"
            return report
        }
        func exchange() async throws -> SyncReport {
            var run = ReplayRun(self, until: end, under: conditions, progress: progress)
            return try await run.run(triggers)
        }
        do {
            // A run without an end takes as long as the app runs.
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

/// The right to exchange a store's events: at most one run has it.
private struct ShippingClaim {
    /// The run that has the right, in memory.
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

    /// Gives the right up and wakes those that follow the store: one may be waiting for it.
    func release() async {
        store.transient(Holder.self).update(true) { _ in nil }
        await store.signalChange()
    }
}
