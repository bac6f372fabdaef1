// A fetch on the user's request, which needs no running loop: it begins when a network is reported that may
// be used, and ends when that changes. Spec/model/learning.md, LRN-37.

import Daybook
import Synchronization

extension FetchQueue {
    /// Runs `body` while the network and the user's settings permit it.
    ///
    /// - Throws: `LearningError` if they do not, or cease to; `LogError` (`suspended`) when the store is
    ///   suspended; what `body` throws.
    func whilePermitted<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let (allowed, allow) = AsyncStream.makeStream(of: Void.self)
        // The path as reported to this fetch, which may differ from the loop's for a moment.
        let latest = LatestPath()
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            defer { group.cancelAll() }
            group.addTask { [self] in
                defer { allow.finish() }
                for await path in reachability.paths {
                    latest.path.withLock { $0 = path }
                    try requirePermitted(path)
                    allow.yield()
                }
                try Task.checkCancellation()
                guard latest.path.withLock({ $0 }) != nil else {
                    throw LearningError(.offline, "no network connection is reported")
                }
                return nil
            }
            group.addTask { [store] in
                for await _ in await store.commits() { try await store.checkOpen() }
                return nil
            }
            group.addTask { [self] in
                let settings = store.query(PreferencesView.self) { [user] in
                    $0[user].wifiOnlyDownload
                }
                for await _ in settings.changes {
                    if let path = latest.path.withLock({ $0 }) { try requirePermitted(path) }
                }
                return nil
            }
            group.addTask {
                // Not before the first path is reported.
                for await _ in allowed { return try await body() }
                return nil
            }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    private func requirePermitted(_ path: NetworkPath) throws(LearningError) {
        switch obstacle(on: path) {
        case nil: return
        case .cellular:
            throw LearningError(
                .cellular, "the network is cellular, and downloads wait for Wi-Fi")
        default: throw LearningError(.offline, "there is no network connection")
        }
    }
}

/// The network path reported last.
private final class LatestPath: Sendable {
    let path = Mutex<NetworkPath?>(nil)
}
