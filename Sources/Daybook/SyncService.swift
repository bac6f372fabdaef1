// Keeps a store in step with its server while an app runs: one task that sleeps until something
// happens. Between the app's events (start, resume, network, settings) and the replayer.
// Spec/triggers.md.

import EventSourcing
import Foundation
import LogStorage
import OfflineModel
import Replay
import Synchronization

/// Syncs by itself whenever there is something to do and it may be done.
///
/// ```swift
/// let service = SyncService(
///     store, transport: HTTPTransport(endpoint: url), credentials: credentials, user: "user-456",
///     reachability: SystemReachability())
/// let syncing = Task { try await service.run() }   // at the app's start
/// service.syncNow()                                // at resume, or when the user asks for it
/// syncing.cancel()                                 // at logout
/// ```
///
/// It syncs when it begins, when something is recorded, when the network comes back, when the
/// settings allow it again, when `syncNow()` asks for it, and every `Replayer.Options.readInterval`
/// if that is set. Where there is nothing to do it waits without a timer. While the store is
/// suspended it rests, and goes on at `resume()`.
///
/// The user's settings count: with `autoSync` off nothing is done but what `syncNow()` asks for; with
/// `wifiOnlyDownload` on, what other devices have recorded is not read over a network that is paid
/// by volume, while the outbox is shipped.
public final class SyncService: Sendable {
    private let store: OfflineStore
    private let replayer: Replayer
    private let user: String?
    private let reachability: any Reachability
    private let triggers = Mutex<AsyncStream<Replayer.Trigger>.Continuation?>(nil)
    private let latest = Mutex(SyncReport())

    /// Creates a service; `run()` does the work.
    ///
    /// - Parameters:
    ///   - store: what is kept in step.
    ///   - transport: how a request reaches the server.
    ///   - credentials: where tokens come from.
    ///   - options: how it is done.
    ///   - user: whose settings count; nil: nobody's, everything is allowed.
    ///   - reachability: who knows whether there is a network.
    public init(
        _ store: OfflineStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(),
        options: Replayer.Options = Replayer.Options(), user: String? = nil,
        reachability: any Reachability = AlwaysReachable()
    ) {
        self.store = store
        self.user = user
        self.reachability = reachability
        replayer = Replayer(
            store.events, transport: transport, credentials: credentials, options: options)
    }

    /// What has been done so far, and what is under way now.
    public var report: SyncReport { latest.withLock { $0 } }

    /// Syncs now, whatever the settings say, without waiting for a backoff to end: when the app
    /// comes to the front, or the user asks for it. Returns at once. Without `run()` under way
    /// nothing happens.
    public func syncNow() { triggers.withLock { _ = $0?.yield(.now) } }

    /// Works until the calling task is cancelled or the store is closed.
    ///
    /// - Throws: `LogError` where the log could not be read or written. Failures of the network are
    ///   no errors.
    public func run() async throws {
        while !Task.isCancelled {
            do {
                try await runOnce()
                guard !Task.isCancelled else { return }
                // Another run has the store; it is asked again when something has changed.
                guard await store.events.changed() else { return }
            } catch let error as LogError where error.code == .suspended {
                guard await store.events.changed() else { return }
            } catch let error as LogError where error.code == .closed {
                return
            }
        }
    }

    private func runOnce() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Replayer.Trigger.self)
        triggers.withLock { $0 = continuation }
        defer { triggers.withLock { $0 = nil } }
        let conditions = SyncConditions(user: user) { continuation.yield(.conditions($0)) }
        let watch = Task { [store, reachability] in await conditions.watch(store, reachability) }
        defer { watch.cancel() }
        let report = try await replayer.run(
            until: .never, under: ReplayState.Conditions(isAllowed: false), triggers: stream
        ) { report in
            self.latest.withLock { $0 = report }
        }
        latest.withLock { $0 = report }
    }

}

/// What the network and the settings allow together.
private final class SyncConditions: Sendable {
    private struct Known {
        var path: NetworkPath?
        var preferences: OfflinePreferences?
    }

    private let known = Mutex(Known())
    private let user: String?
    private let tell: @Sendable (ReplayState.Conditions) -> Void

    init(user: String?, tell: @escaping @Sendable (ReplayState.Conditions) -> Void) {
        self.user = user
        self.tell = tell
    }

    /// Tells whenever the network or the settings change, until the calling task is cancelled.
    func watch(_ store: OfflineStore, _ reachability: any Reachability) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for await path in reachability.paths { self.update(path, nil) }
            }
            if let user {
                group.addTask {
                    for await preferences in store.preferences(for: user).changes {
                        self.update(nil, preferences)
                    }
                }
            }
        }
    }

    private func update(_ path: NetworkPath?, _ preferences: OfflinePreferences?) {
        let now = known.withLock { known in
            known.path = path ?? known.path
            known.preferences = preferences ?? known.preferences
            return known
        }
        // Nothing is allowed before both are known.
        guard let path = now.path, user == nil || now.preferences != nil else { return }
        tell(
            ReplayState.Conditions(
                isReachable: path != .none, isAllowed: now.preferences?.autoSync ?? true,
                mayRead: path == .wifi || !(now.preferences?.wifiOnlyDownload ?? false)))
    }
}

extension EventStore {
    /// Waits until something has been recorded, or the store was resumed; false if it was closed, or
    /// the calling task cancelled.
    fileprivate func changed() async -> Bool {
        var signals = commits().makeAsyncIterator()
        // The first comes at once.
        guard await signals.next() != nil else { return false }
        return await signals.next() != nil
    }
}
