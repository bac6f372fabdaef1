// A sync service that follows the user's settings. Spec/protocol/triggers.md.

import Daybook

extension SyncService {
    /// Creates a service that follows the user's settings. With `autoSync` off, only `syncNow()` syncs. With
    /// `wifiOnlyDownload` on, the outbox is shipped over a metered network, but the events of other devices
    /// are not read.
    ///
    /// - Parameters:
    ///   - store: the store to sync.
    ///   - transport: the transport of requests to the server.
    ///   - credentials: the source of tokens.
    ///   - options: the options of the replayer.
    ///   - resolver: decides conflicts; nil for the resolver of `options`.
    ///   - user: the user whose settings apply; nil for no limits.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, pass `AlwaysReachable()`.
    public convenience init(
        _ store: OfflineStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(),
        options: Replayer.Options = Replayer.Options(), resolver: (any ConflictResolver)? = nil,
        user: String? = nil,
        reachability: any Reachability = SystemReachability()
    ) {
        self.init(
            store.events, transport: transport, credentials: credentials, options: options,
            resolver: resolver,
            // The service retains the store, so that its housekeeper keeps running.
            rules: store.query(PreferencesView.self) { [store] view in
                withExtendedLifetime(store) {
                    guard let preferences = user.map({ view[$0] }) else { return SyncRules() }
                    return SyncRules(
                        isAllowed: preferences.autoSync,
                        readsOverMetered: !preferences.wifiOnlyDownload)
                }
            }, reachability: reachability)
    }
}
