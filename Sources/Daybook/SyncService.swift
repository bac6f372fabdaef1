// Keeps a store in step with its server while an app runs: one task that sleeps until something
// happens. Between the app's events (start, resume, network, settings) and the replayer.
// Spec/protocol/triggers.md.

import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization

/// Syncs by itself whenever there is something to do and it may be done.
///
/// ```swift
/// let service = SyncService(
///     store, transport: HTTPTransport(endpoint: url), credentials: credentials)
/// let syncing = Task { try await service.run() }   // at the app's start
/// service.syncNow()                                // at resume, or when the user asks for it
/// syncing.cancel()                                 // at logout
/// ```
///
/// It syncs when it begins, when something is recorded, when the network comes back, when its rules
/// allow it again, when `syncNow()` asks for it, and every `Replayer.Options.readInterval` if that is
/// set. Where there is nothing to do it waits without a timer. While the store is suspended it rests,
/// and goes on at `resume()`.
public final class SyncService: Sendable {
    private let store: EventStore
    private let replayer: Replayer
    private let rules: ViewQuery<SyncRules>?
    private let reachability: any Reachability
    private let state = Mutex(State())
    private let latest = Mutex(SyncReport())

    private struct State {
        /// Wakes the service while no run is under way.
        var wake: AsyncStream<Void>.Continuation?
        /// Where the run under way hears of what happens.
        var triggers: AsyncStream<Replayer.Trigger>.Continuation?
        var isAskedFor = false
    }

    /// Creates a service; `run()` does the work.
    ///
    /// - Parameters:
    ///   - store: what is kept in step.
    ///   - transport: how a request reaches the server.
    ///   - credentials: where tokens come from.
    ///   - options: how it is done.
    ///   - rules: a query whose value limits syncing, now and as it changes; nil for no limits.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, give `AlwaysReachable()`.
    public init(
        _ store: EventStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(),
        options: Replayer.Options = Replayer.Options(), rules: ViewQuery<SyncRules>? = nil,
        reachability: any Reachability = SystemReachability()
    ) {
        self.store = store
        self.rules = rules
        self.reachability = reachability
        replayer = Replayer(
            store, transport: transport, credentials: credentials, options: options)
    }

    /// What has been done so far, and what is under way now.
    public var report: SyncReport { latest.withLock { $0 } }

    /// Syncs now, whatever the rules say, without waiting for a backoff to end: when the app
    /// comes to the front, or the user asks for it. Returns at once. Without `run()` under way
    /// nothing happens.
    public func syncNow() {
        state.withLock { state in
            if let triggers = state.triggers {
                triggers.yield(.now)
            } else {
                state.isAskedFor = true
            }
            state.wake?.yield()
        }
    }

    /// Works until the calling task is cancelled or the store is closed. One call at a time: another
    /// one returns at once.
    ///
    /// - Throws: `LogError` where the log could not be read or written; `EventError` (`refused`) for
    ///   the store that all accounts share; `TransportError` (`badEndpoint`, `tokenInClear`) where the
    ///   transport cannot be used. Failures of the network are no errors, and with a full disk it goes
    ///   on when something has changed.
    public func run() async throws {
        let (wakes, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let isFirst = state.withLock { state in
            guard state.wake == nil else { return false }
            state.wake = wake
            return true
        }
        guard isFirst else { return }
        defer { state.withLock { $0 = State() } }
        // Heard from the beginning on, so that nothing that changes meanwhile is missed.
        let commits = await store.commits()
        let listener = Task {
            for await _ in commits { wake.yield() }
            wake.finish()
        }
        defer { listener.cancel() }
        var changes = wakes.makeAsyncIterator()
        while !Task.isCancelled {
            do {
                try await runOnce()
            } catch let error as LogError where [.suspended, .diskFull].contains(error.code) {
                // It goes on when the store is resumed, or something could be recorded again.
            } catch let error as LogError where error.code == .closed {
                return
            }
            // Another run may have had the store: it tells when it ends.
            guard await changes.next() != nil else { return }
        }
    }

    private func runOnce() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Replayer.Trigger.self)
        state.withLock { state in
            state.triggers = continuation
            if state.isAskedFor { continuation.yield(.now) }
            state.isAskedFor = false
        }
        defer { state.withLock { $0.triggers = nil } }
        let conditions = SyncConditions(hasRules: rules != nil) {
            continuation.yield(.conditions($0))
        }
        let watch = Task { [rules, reachability] in await conditions.watch(rules, reachability) }
        defer { watch.cancel() }
        // Nothing is sent before it is known what may be, whoever asks.
        let unknown = ReplayState.Conditions(isReachable: false, isAllowed: false)
        let report = try await replayer.run(
            until: .never, under: unknown, triggers: stream
        ) { report in
            self.latest.withLock { $0 = report }
        }
        if !report.isElsewhere { latest.withLock { $0 = report } }
    }
}

/// The limits of a sync service: what it does without being asked.
public struct SyncRules: Hashable, Sendable {
    /// Whether anything is done but what `SyncService.syncNow()` asks for.
    public var isAllowed: Bool
    /// Whether what other devices have recorded is read over a network that is paid by volume. The
    /// outbox is shipped over any.
    public var readsOverMetered: Bool

    /// Creates rules; without arguments everything is allowed.
    public init(isAllowed: Bool = true, readsOverMetered: Bool = true) {
        self.isAllowed = isAllowed
        self.readsOverMetered = readsOverMetered
    }
}

/// What the network and the rules allow together.
private final class SyncConditions: Sendable {
    private struct Known {
        var path: NetworkPath?
        var rules: SyncRules?
    }

    private let known = Mutex(Known())
    private let tell: @Sendable (ReplayState.Conditions) -> Void

    init(hasRules: Bool, tell: @escaping @Sendable (ReplayState.Conditions) -> Void) {
        if !hasRules { known.withLock { $0.rules = SyncRules() } }
        self.tell = tell
    }

    /// Tells whenever the network or the rules change, until the calling task is cancelled.
    func watch(_ rules: ViewQuery<SyncRules>?, _ reachability: any Reachability) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for await path in reachability.paths { self.update(path, nil) }
            }
            if let rules {
                group.addTask { for await rules in rules.changes { self.update(nil, rules) } }
            }
        }
    }

    private func update(_ path: NetworkPath?, _ rules: SyncRules?) {
        // Told inside, so that the newest is told last.
        known.withLock { known in
            known.path = path ?? known.path
            known.rules = rules ?? known.rules
            // Nothing is allowed before both are known.
            guard let path = known.path, let rules = known.rules else { return }
            tell(
                ReplayState.Conditions(
                    isReachable: path != .none, isAllowed: rules.isAllowed,
                    mayRead: path == .wifi || rules.readsOverMetered))
        }
    }
}
