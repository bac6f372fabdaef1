// Runs all that works for a store while an app runs, as one task: syncing, downloads, the app's own work. Above
// the workers, each of which can be used alone. Spec/protocol/workers.md.

import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization

/// Something that works for a store while an app runs, such as a `SyncService`.
public protocol StoreWorker: Sendable {
    /// Works until the calling task is cancelled or the store is closed. A second call while one runs returns
    /// at once.
    func run() async throws

    /// Does what can be done now, and returns. It is cancelled at the deadline at the latest.
    ///
    /// - Parameter deadline: the latest time, for a worker that can end in order before it is cancelled.
    func work(until deadline: Date) async throws

    /// Works again now: the app has come to the front. Returns at once.
    func resume() async
}

extension StoreWorker {
    /// Does nothing.
    public func resume() async {}
}

/// The workers of a store, which share credentials, headers, user and network.
///
/// ```swift
/// let workers = store.workers(credentials: credentials, http: http)
/// let sync = try workers.sync(to: endpoint)
/// let running = Task { try await workers.run() }   // at the app's start
/// await workers.resume()                           // when it comes to the front
/// running.cancel()                                 // at logout
/// ```
///
/// Each method that creates a worker returns it: it can be asked for its state, or be used alone.
public final class StoreWorkers<Store: Sendable>: Sendable {
    /// The store.
    public let store: Store
    /// The source of tokens.
    public let credentials: any Credentials
    /// Headers, certificate, proxy and timeout of all requests.
    public let http: HTTPOptions
    /// The user whose settings apply; nil if the store has no account and the app names none.
    public let user: String?
    /// The source of the network's state.
    public let reachability: any Reachability

    private struct State {
        var workers: [any StoreWorker] = []
        /// The task of `run()`; nil while it does not run or waits.
        var round: Task<Void, any Error>?
        /// Ends the wait of `run()`. Non-nil while it runs.
        var signal: AsyncStream<Void>.Continuation?
        /// The number of calls of `run(until:)` under way.
        var interruptions = 0

        /// Begins `run()`.
        ///
        /// - Returns: false if it is under way.
        mutating func begin(_ signal: AsyncStream<Void>.Continuation) -> Bool {
            guard self.signal == nil else { return false }
            self.signal = signal
            return true
        }

        /// Starts all workers; nil while `run(until:)` works.
        mutating func beginRound() -> Task<Void, any Error>? {
            guard interruptions == 0 else { return nil }
            let round = Task { [workers] in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for worker in workers { group.addTask { try await worker.run() } }
                    // Not `waitForAll`: it waits for the others before it throws.
                    while try await group.next() != nil {}
                }
            }
            self.round = round
            return round
        }
    }

    private let state = Mutex(State())

    /// Creates a store's workers: none yet. An app calls `workers(credentials:)` of its store.
    ///
    /// - Parameters:
    ///   - store: the store.
    ///   - credentials: the source of tokens.
    ///   - http: headers, certificate, proxy and timeout of all requests.
    ///   - user: the user whose settings apply.
    ///   - reachability: the source of the network's state.
    public init(
        _ store: Store, _ credentials: any Credentials, _ http: HTTPOptions, _ user: String?,
        _ reachability: any Reachability
    ) {
        self.store = store
        self.credentials = credentials
        self.http = http
        self.user = user
        self.reachability = reachability
    }

    /// Adds a worker, which may be the app's own. If `run()` is under way, the worker begins at once.
    ///
    /// - Returns: the worker.
    @discardableResult
    public func add<Worker: StoreWorker>(_ worker: Worker) -> Worker {
        state.withLock { state in
            state.workers.append(worker)
            // `run()` begins another round, with this worker.
            state.round?.cancel()
        }
        return worker
    }

    /// Runs all workers until the calling task is cancelled or the store is closed. A second call while one runs
    /// returns at once. The workers pause while `run(until:)` works.
    ///
    /// - Throws: the first error of a worker, after all others have ended: `LogError` if the log cannot be read or
    ///   written, `TransportError` for a transport that cannot be used. Failures of the network are no errors.
    public func run() async throws {
        let (signals, signal) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        guard state.withLock({ $0.begin(signal) }) else { return }
        defer { state.withLock { $0.signal = nil } }
        var next = signals.makeAsyncIterator()
        while !Task.isCancelled {
            guard let round = state.withLock({ $0.beginRound() }) else {
                await next.next()
                continue
            }
            let result = await withTaskCancellationHandler {
                await round.result
            } onCancel: {
                round.cancel()
            }
            state.withLock { $0.round = nil }
            // A round that was interrupted, or lacks a worker, is followed by another.
            if !round.isCancelled { return try result.get() }
            if case .failure(let error) = result, !(error is CancellationError) { throw error }
        }
    }

    /// Does what all workers can do now, for a system that wakes the app for a moment. Returns when nothing
    /// remains to do, at the deadline at the latest. Pauses `run()` meanwhile, so that the work is done on return.
    ///
    /// - Parameter deadline: the latest time. Until then a request that fails is sent again.
    /// - Throws: the first error of a worker, as `run()`; the others have worked to their end. Failures of the
    ///   network, and the end at the deadline, are no errors.
    public func run(until deadline: Date) async throws {
        let (workers, round) = state.withLock { state in
            state.interruptions += 1
            state.round?.cancel()
            return (state.workers, state.round)
        }
        defer {
            state.withLock { state in
                state.interruptions -= 1
                state.signal?.yield()
            }
        }
        // The workers accept one call at a time.
        _ = await round?.result
        try await Self.work(workers, until: deadline)
    }

    /// Tells all workers that the app has come to the front: they sync and fetch now, whatever the limits of
    /// syncing say. Returns at once.
    public func resume() async {
        for worker in state.withLock({ $0.workers }) { await worker.resume() }
    }

    private static func work(_ workers: [any StoreWorker], until deadline: Date) async throws {
        /// The end of a worker, with its error; nil at the deadline.
        typealias End = Result<Void, any Error>?
        let failure = await withTaskGroup(of: End.self) { group in
            for worker in workers {
                group.addTask {
                    do { return .success(try await worker.work(until: deadline)) } catch {
                        return .failure(error)
                    }
                }
            }
            group.addTask {
                try? await Task.sleep(until: deadline)
                return nil
            }
            var failure: (any Error)?
            var remaining = workers.count
            while remaining > 0, let end = await group.next() {
                guard let end else {
                    group.cancelAll()
                    continue
                }
                remaining -= 1
                if case .failure(let error) = end, !(error is CancellationError) {
                    failure = failure ?? error
                }
            }
            group.cancelAll()
            return failure
        }
        if let failure { throw failure }
        try Task.checkCancellation()
    }
}

extension EventStore {
    /// The workers of the store: none yet. Sync is added by `StoreWorkers.sync(to:)`, the app's own work by
    /// `StoreWorkers.add(_:)`.
    ///
    /// - Parameters:
    ///   - credentials: the source of tokens.
    ///   - http: headers, certificate, proxy and timeout of all requests.
    ///   - reachability: the source of the network's state. The system's reports no network on a machine
    ///     without a default route: for a server on the same machine, pass `AlwaysReachable()`.
    public nonisolated func workers(
        credentials: any Credentials = NoCredentials(), http: HTTPOptions = HTTPOptions(),
        reachability: any Reachability = SystemReachability()
    ) -> StoreWorkers<EventStore> {
        StoreWorkers(self, credentials, http, account, reachability)
    }
}

extension StoreWorkers where Store == EventStore {
    /// Adds a service that syncs with a server of the sync protocol.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`.
    ///   - options: the settings of the replayer.
    ///   - resolver: decides conflicts; nil for the resolver of `options`.
    ///   - rules: a query whose value limits syncing; nil for no limits.
    /// - Throws: `TransportError`, as `HTTPTransport.init(endpoint:http:account:)`.
    @discardableResult
    public func sync(
        to endpoint: URL, options: Replayer.Options = Replayer.Options(),
        resolver: (any ConflictResolver)? = nil, rules: ViewQuery<SyncRules>? = nil
    ) throws(TransportError) -> SyncService {
        sync(
            over: try HTTPTransport(endpoint: endpoint, http: http), options: options,
            resolver: resolver, rules: rules)
    }

    /// Adds a service that syncs over the app's transport, such as a `RequestTransport` with `http`.
    @discardableResult
    public func sync(
        over transport: any Transport, options: Replayer.Options = Replayer.Options(),
        resolver: (any ConflictResolver)? = nil, rules: ViewQuery<SyncRules>? = nil
    ) -> SyncService {
        add(
            SyncService(
                store, transport: transport, credentials: credentials, options: options,
                resolver: resolver, rules: rules, reachability: reachability))
    }
}
