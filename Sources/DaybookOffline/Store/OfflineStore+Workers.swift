// The workers of an offline store: syncing, downloads of cities, learning material. Cleaning up is the store's own
// (Housekeeper). Spec/protocol/workers.md.

import Daybook
import Foundation

extension OfflineStore {
    /// The workers of the store: none yet. Sync, downloads and learning are added by the methods of the result,
    /// the app's own work by `StoreWorkers.add(_:)`.
    ///
    /// - Parameters:
    ///   - credentials: the source of tokens.
    ///   - http: headers, certificate, proxy and timeout of all requests; `httpOptions()` returns those of the
    ///     secret store.
    ///   - user: the user whose settings apply; nil for the one whose settings apply to cleaning up, or the
    ///     account of the store.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, pass `AlwaysReachable()`.
    public func workers(
        credentials: any Credentials = NoCredentials(), http: HTTPOptions = HTTPOptions(),
        user: String? = nil, reachability: any Reachability = SystemReachability()
    ) -> StoreWorkers<OfflineStore> {
        StoreWorkers(self, credentials, http, user ?? cleanUpUser ?? events.account, reachability)
    }
}

extension StoreWorkers where Store == OfflineStore {
    /// Adds a service that syncs with a server of the sync protocol, within the limits of the user's settings.
    ///
    /// - Parameters:
    ///   - endpoint: the server's address, an http or https URL, or its `…/v1/events`.
    ///   - options: the settings of the replayer.
    ///   - resolver: decides conflicts; nil for the resolver of `options`.
    /// - Throws: `TransportError`, as `HTTPTransport.init(endpoint:http:account:)`.
    @discardableResult
    public func sync(
        to endpoint: URL, options: Replayer.Options = Replayer.Options(),
        resolver: (any ConflictResolver)? = nil
    ) throws(TransportError) -> SyncService {
        sync(
            over: try HTTPTransport(endpoint: endpoint, http: http), options: options,
            resolver: resolver)
    }

    /// Adds a service that syncs over the app's transport, such as a `RequestTransport` with `http`.
    @discardableResult
    public func sync(
        over transport: any Transport, options: Replayer.Options = Replayer.Options(),
        resolver: (any ConflictResolver)? = nil
    ) -> SyncService {
        add(
            SyncService(
                store, transport: transport, credentials: credentials, options: options,
                resolver: resolver, user: user, reachability: reachability))
    }

    /// Adds downloads of cities from a server: `GET {base}/cities/{id}`.
    ///
    /// - Parameters:
    ///   - base: the server's address. The token is sent to its origin only.
    ///   - options: limits and times; `http` is that of the workers.
    /// - Throws: `EventError` (`refused`) if neither the app nor the store names a user.
    @discardableResult
    public func downloads(
        from base: URL, options: DownloadManager.Options = DownloadManager.Options()
    ) throws(EventError) -> DownloadManager {
        add(
            DownloadManager(
                store, base: base, credentials: credentials, user: try requiredUser(),
                reachability: reachability, options: sharing(options)))
    }

    /// Adds downloads of cities from the app's own source of manifests.
    ///
    /// - Parameters:
    ///   - source: the source of manifests.
    ///   - imageOrigin: the server whose images need the token; nil: none does.
    ///   - options: limits and times; `http` is that of the workers.
    /// - Throws: as `downloads(from:options:)`.
    @discardableResult
    public func downloads(
        from source: any CityManifestSource, imageOrigin: URL? = nil,
        options: DownloadManager.Options = DownloadManager.Options()
    ) throws(EventError) -> DownloadManager {
        add(
            DownloadManager(
                store, source: source, imageOrigin: imageOrigin, credentials: credentials,
                user: try requiredUser(), reachability: reachability, options: sharing(options)))
    }

    /// Adds downloads of lessons and review sessions from a server (LRN-40).
    ///
    /// - Parameters:
    ///   - base: the server's address. The token is sent to its origin only.
    ///   - policy: the rules for automatic fetches.
    ///   - options: limits and times; `http` is that of the workers.
    /// - Throws: as `downloads(from:options:)`.
    @discardableResult
    public func learning(
        from base: URL, policy: PrefetchPolicy,
        options: DownloadManager.Options = DownloadManager.Options()
    ) throws(EventError) -> LearningDownloads {
        add(
            LearningDownloads(
                store, base: base, credentials: credentials, user: try requiredUser(),
                reachability: reachability, policy: policy, options: sharing(options)))
    }

    /// Adds downloads of lessons and review sessions from the app's own source.
    ///
    /// - Throws: as `downloads(from:options:)`.
    @discardableResult
    public func learning(
        from source: any LearningSource, policy: PrefetchPolicy,
        options: DownloadManager.Options = DownloadManager.Options()
    ) throws(EventError) -> LearningDownloads {
        add(
            LearningDownloads(
                store, source: source, user: try requiredUser(), reachability: reachability,
                policy: policy, options: sharing(options)))
    }

    private func requiredUser() throws(EventError) -> String {
        if let user { return user }
        throw EventError(
            .refused,
            "the store has no account, so the user whose settings apply is unknown; pass user: to "
                + "workers, or account: to open")
    }

    private func sharing(_ options: DownloadManager.Options) -> DownloadManager.Options {
        var options = options
        options.http = http
        return options
    }
}

extension DownloadManager: StoreWorker {
    /// Downloads what can be downloaded now, then returns.
    public func work(until deadline: Date) async throws { try await run(untilIdle: true) }
}

extension LearningDownloads: StoreWorker {
    /// Fetches what is due now, then returns.
    public func work(until deadline: Date) async throws { try await run(untilIdle: true) }

    /// Reports the trigger `appResume`.
    public func resume() async { await notice(.appResume) }
}
