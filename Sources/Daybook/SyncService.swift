// Keeps a store synced while an app runs: one task that sleeps until a trigger. Between the app's signals
// (start, resume, network, settings) and the replayer. Spec/protocol/triggers.md.

import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization

/// Syncs whenever there is something to do and the rules allow it.
///
/// ```swift
/// let service = SyncService(
///     store, transport: HTTPTransport(endpoint: url), credentials: credentials)
/// let syncing = Task { try await service.run() }   // at the app's start
/// service.syncNow()                                // at resume, or when the user asks for it
/// syncing.cancel()                                 // at logout
/// ```
///
/// It syncs at its start, after each commit, when the network comes back, when its rules allow it again, when
/// `syncNow()` is called, and every `Replayer.Options.readInterval` if that is set. If the transport is a
/// `FollowingTransport`, it follows the server's stream of new events; without a stream it then reads every
/// minute. Otherwise, with nothing to do, it waits without a timer. While the store is suspended it waits, and continues at `resume()`.
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
        /// Passes triggers to the run under way.
        var triggers: AsyncStream<Replayer.Trigger>.Continuation?
        var isAskedFor = false
    }

    /// Creates a service; `run()` does the work.
    ///
    /// - Parameters:
    ///   - store: the store to sync.
    ///   - transport: carries requests to the server.
    ///   - credentials: the source of tokens.
    ///   - options: the settings of the replayer.
    ///   - resolver: decides conflicts; nil for the resolver of `options`.
    ///   - rules: a query whose value limits syncing, now and after each change; nil for no limits.
    ///   - reachability: the source of the network's state. The system's reports no network on a machine
    ///     without a default route: for a server on the same machine, pass `AlwaysReachable()`.
    public init(
        _ store: EventStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(),
        options: Replayer.Options = Replayer.Options(), resolver: (any ConflictResolver)? = nil,
        rules: ViewQuery<SyncRules>? = nil,
        reachability: any Reachability = SystemReachability()
    ) {
        var options = options
        options.resolver = resolver ?? options.resolver
        self.store = store
        self.rules = rules
        self.reachability = reachability
        replayer = Replayer(
            store, transport: transport, credentials: credentials, options: options)
    }

    /// The report so far, with the events in unanswered requests.
    public var report: SyncReport { latest.withLock { $0 } }

    /// Syncs now, whatever the rules say, and ends a backoff. An app calls it when it comes to the front, or
    /// when the user requests it. Returns at once. Without `run()` under way, the next one syncs at once.
    public func syncNow() {
        state.withLock { state in
            let result = state.triggers?.yield(.now)
            // A run that ends does not listen any more.
            switch result {
            case nil, .terminated: state.isAskedFor = true
            default: break
            }
            state.wake?.yield()
        }
    }

    /// The wait after a run that a full disk has ended.
    private static let fullDiskWait = Duration.seconds(10)

    /// Syncs until the calling task is cancelled or the store is closed. One call at a time: another
    /// one returns at once.
    ///
    /// - Throws: `LogError` if the log could not be read or written; `EventError` (`refused`) for
    ///   the store that all accounts share; `TransportError` (`badEndpoint`, `tokenInClear`) if the
    ///   transport cannot be used. Failures of the network are no errors, and after a full disk it
    ///   tries again every 10 s.
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
        // Subscribed before the first run, so that no commit is missed.
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
            } catch let error as LogError where error.code == .suspended {
                // The end of a run signals a change, too.
                repeat {
                    guard await changes.next() != nil else { return }
                } while (try? await store.checkOpen()) == nil
                continue
            } catch let error as LogError where error.code == .diskFull {
                // The end of the run signals a change: the next one would send the same events again at once.
                let end = ContinuousClock.now + Self.fullDiskWait
                let timer = Task {
                    try await Task.sleep(until: end)
                    wake.yield()
                }
                defer { timer.cancel() }
                repeat {
                    guard await changes.next() != nil else { return }
                } while ContinuousClock.now < end && !state.withLock { $0.isAskedFor }
                continue
            } catch let error as LogError where error.code == .closed {
                return
            }
            // If another run exchanged the store's events, it signals a change at its end.
            guard await changes.next() != nil else { return }
        }
    }

    /// Ships and reads what can be shipped and read now, within the rules, and returns: for a system that wakes the
    /// app for a moment. While `run()` or another run is under way, it returns at once, and its report says so.
    ///
    /// - Parameter deadline: the latest time to stop. Until then a request that fails is sent again.
    /// - Returns: the report.
    /// - Throws: as `run()`; `LogError` (`closed`, `suspended`), too.
    @discardableResult
    public func sync(until deadline: Date) async throws -> SyncReport {
        let conditions = ReplayState.Conditions(
            await firstPath(by: deadline), rules?.current ?? SyncRules())
        let report = try await replayer.run(until: .at(Timestamp(deadline)), under: conditions)
        if !report.isElsewhere { latest.withLock { $0 = report } }
        return report
    }

    /// The present path; no network if none is reported by the deadline.
    private func firstPath(by deadline: Date) async -> NetworkPath {
        await withTaskGroup(of: NetworkPath.self) { [reachability] group in
            group.addTask {
                for await path in reachability.paths { return path }
                return .none
            }
            group.addTask {
                try? await Task.sleep(until: deadline)
                return .none
            }
            defer { group.cancelAll() }
            return await group.next() ?? .none
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
        // Nothing is sent before the network and the rules are known, not even after `syncNow()`.
        let unknown = ReplayState.Conditions(isReachable: false, isAllowed: false)
        let report = try await replayer.run(
            until: .never, under: unknown, triggers: stream
        ) { report in
            self.latest.withLock { $0 = report }
        }
        if !report.isElsewhere { latest.withLock { $0 = report } }
    }
}

/// The limits of a sync service. `SyncService.syncNow()` overrides them.
public struct SyncRules: Hashable, Sendable {
    /// Whether the service syncs without `syncNow()`.
    public var isAllowed: Bool
    /// Whether the events of other devices are read over a metered network. The outbox is shipped over any
    /// network.
    public var readsOverMetered: Bool

    /// Creates rules; the defaults allow everything.
    public init(isAllowed: Bool = true, readsOverMetered: Bool = true) {
        self.isAllowed = isAllowed
        self.readsOverMetered = readsOverMetered
    }
}

/// The conditions of a run, from the network's state and the rules.
private final class SyncConditions: Sendable {
    private struct Known {
        var path: NetworkPath?
        var rules: SyncRules?
    }

    private let known = Mutex(Known())
    private let report: @Sendable (ReplayState.Conditions) -> Void

    init(hasRules: Bool, report: @escaping @Sendable (ReplayState.Conditions) -> Void) {
        if !hasRules { known.withLock { $0.rules = SyncRules() } }
        self.report = report
    }

    /// Reports the conditions after each change of the network or the rules, until the calling task is
    /// cancelled.
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
        // Reports inside the lock, so that the newest conditions are reported last.
        known.withLock { known in
            known.path = path ?? known.path
            known.rules = rules ?? known.rules
            // Reports nothing before both are known.
            guard let path = known.path, let rules = known.rules else { return }
            report(ReplayState.Conditions(path, rules))
        }
    }
}

extension ReplayState.Conditions {
    /// The conditions of a network and its limits.
    fileprivate init(_ path: NetworkPath, _ rules: SyncRules) {
        self.init(
            isReachable: path != .none, isAllowed: rules.isAllowed,
            mayRead: path == .wifi || rules.readsOverMetered)
    }
}

extension SyncService: StoreWorker {
    /// Syncs what can be synced now, as `sync(until:)`.
    public func work(until deadline: Date) async throws { try await sync(until: deadline) }

    /// Syncs now, as `syncNow()`.
    public func resume() async { syncNow() }
}

extension Task where Success == Never, Failure == Never {
    /// Waits until a time, or until the calling task is cancelled.
    static func sleep(until deadline: Date) async throws {
        // The bound keeps the duration within what a clock can add.
        let seconds = min(max(0, deadline.timeIntervalSinceNow), 1_000_000_000)
        try await sleep(for: .seconds(seconds))
    }
}
