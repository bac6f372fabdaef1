// What is the same of all work that fetches while an app runs: the loop, the state of the network, whether
// it may be used, and the retries. DownloadManager and LearningDownloads have one each and decide what is
// fetched. Spec/model/downloads.md, DL-19; Spec/model/learning.md, LRN-33, LRN-37.

import Daybook
import Synchronization

/// The run loop of an actor that fetches after each signal, and sleeps without a timer if no fetch will
/// become due.
///
/// Signals are commits, network changes, the end of a wait and calls of `wake()`. Those that arrive during
/// the work are merged into one.
final class FetchQueue<Key: Hashable & Sendable>: Sendable {
    private struct State {
        /// Wakes the loop; nil while `run` does not run.
        var signal: AsyncStream<Void>.Continuation?
        /// The network path reported last; nil before the first report.
        var path: NetworkPath?
        /// The number of times that another network was reported.
        var networkChanges = 0
        /// Failed fetches: `networkChanges` at the failure, and the task that waits for the retry.
        var retries: [Key: (networkChanges: Int, wait: Task<Void, Never>)] = [:]
        var timer: Task<Void, Never>?

        mutating func forget(_ key: Key) { retries.removeValue(forKey: key)?.wait.cancel() }
    }

    let store: EventStore
    let user: String
    let reachability: any Reachability
    private let sleep: @Sendable (Duration) async throws -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - user: the user whose settings apply.
    ///   - sleep: waits; tests replace it.
    init(
        _ store: EventStore, user: String, _ reachability: any Reachability,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.store = store
        self.user = user
        self.reachability = reachability
        self.sleep = sleep
    }

    // MARK: The loop

    /// Works at each signal until the work returns false, the calling task is cancelled or the store is
    /// closed. A second call while one runs returns at once.
    ///
    /// - Parameters:
    ///   - begin: called first, after the subscription to the store's commits.
    ///   - work: returns false to end the loop. After it has thrown `suspended` or `diskFull`, the loop works
    ///     again at the next signal.
    ///   - suspend: called when the store is suspended: another process may open the log now.
    ///   - end: called before a next call can run.
    /// - Throws: what `work` throws, except that a closed store and a cancellation end the loop.
    func run(
        isolation: isolated (any Actor) = #isolation,
        begin: () async -> Void = {}, work: () async throws -> Bool,
        suspend: () async -> Void = {}, end: () async -> Void = {}
    ) async throws {
        let (signals, signal) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let isFirst = state.withLock { state in
            guard state.signal == nil else { return false }
            state.signal = signal
            return true
        }
        guard isFirst else { return }
        let listeners = listen(to: await store.commits(), signal)
        await begin()
        let result: Result<Void, any Error>
        do {
            for await _ in signals {
                guard !Task.isCancelled else { break }
                do { guard try await work() else { break } } catch let error as LogError {
                    switch error.code {
                    case .suspended:
                        setTimer(after: nil)
                        await suspend()
                    case .diskFull: break
                    default: throw error
                    }
                }
            }
            result = .success(())
        } catch is CancellationError {
            result = .success(())
        } catch {
            result = (error as? LogError)?.code == .closed ? .success(()) : .failure(error)
        }
        for listener in listeners { listener.cancel() }
        await end()
        state.withLock { state in
            state.timer?.cancel()
            for retry in state.retries.values { retry.wait.cancel() }
            (state.signal, state.path, state.timer, state.retries) = (nil, nil, nil, [:])
        }
        try result.get()
    }

    private func listen(
        to commits: AsyncStream<Void>, _ signal: AsyncStream<Void>.Continuation
    ) -> [Task<Void, Never>] {
        [
            Task {
                for await _ in commits { signal.yield() }
                signal.finish()
            },
            Task { for await path in reachability.paths { update(path) } },
        ]
    }

    /// Signals the loop to work once more.
    func wake() { state.withLock { _ = $0.signal?.yield() } }

    /// Replaces the timer: the loop works after `wait`. Nil removes the timer.
    func setTimer(after wait: Duration?) {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = wait.map { self.wait($0) { $0.timer = nil } }
        }
    }

    /// Waits, then applies the change and signals the loop, unless the task was cancelled meanwhile.
    private func wait(
        _ wait: Duration, then change: @escaping @Sendable (inout State) -> Void
    ) -> Task<Void, Never> {
        Task {
            do { try await sleep(wait) } catch { return }
            state.withLock { state in
                guard !Task.isCancelled else { return }
                change(&state)
                state.signal?.yield()
            }
        }
    }

    // MARK: Retries

    /// Whether a fetch may begin: it has not failed, another network was reported since its failure, or its
    /// wait has ended.
    func isDue(_ key: Key) -> Bool {
        state.withLock { state in
            state.retries[key].map { $0.networkChanges != state.networkChanges } ?? true
        }
    }

    /// Makes a failed fetch due with another network, or after `wait`. Without a network there is no timer.
    ///
    /// - Parameter networkChanges: the number at the begin of the fetch; nil for the present one.
    func retry(_ key: Key, after wait: Duration, since networkChanges: Int? = nil) {
        state.withLock { state in
            state.forget(key)
            guard state.path != NetworkPath.none else { return }
            state.retries[key] = (
                networkChanges ?? state.networkChanges, self.wait(wait) { $0.forget(key) }
            )
        }
    }

    /// Makes a failed fetch due.
    func forgetRetry(_ key: Key) { state.withLock { $0.forget(key) } }

    /// Removes the retries of fetches that are no longer wanted.
    func keepRetries(_ isWanted: (Key) -> Bool) {
        state.withLock { state in
            for key in state.retries.keys where !isWanted(key) { state.forget(key) }
        }
    }

    // MARK: The network

    /// The network path reported last; nil before the first report.
    var path: NetworkPath? { state.withLock { $0.path } }
    /// The number of times that another network was reported.
    var networkChanges: Int { state.withLock { $0.networkChanges } }

    private func update(_ path: NetworkPath) {
        state.withLock { state in
            // Cancelled: the loop has ended, and a next one gets its own reports.
            guard !Task.isCancelled else { return }
            if path == .none {
                // The next network makes all due.
                for key in state.retries.keys { state.forget(key) }
            } else if path != state.path {
                state.networkChanges += 1
            }
            state.path = path
            state.signal?.yield()
        }
    }

    /// Why nothing may be fetched over a network; nil if it may be used. An unknown network counts as none.
    func obstacle(on path: NetworkPath?) -> PauseReason? {
        switch path {
        case nil, .some(.none): .connection
        case .cellular where store.view(PreferencesView.self)[user].wifiOnlyDownload: .cellular
        default: nil
        }
    }
}
