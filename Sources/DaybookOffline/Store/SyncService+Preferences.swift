// A sync service that does what the user's settings allow. Spec/protocol/triggers.md.

import Daybook

extension SyncService {
    /// Creates a service that the user's settings limit: with `autoSync` off nothing is done but what
    /// `syncNow()` asks for; with `wifiOnlyDownload` on, what other devices have recorded is not read
    /// over a network that is paid by volume, while the outbox is shipped.
    ///
    /// - Parameters:
    ///   - store: the store that is kept in step.
    ///   - transport: how a request reaches the server.
    ///   - credentials: where tokens come from.
    ///   - options: how it is done.
    ///   - user: the user whose settings count; nil for no limits.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, give `AlwaysReachable()`.
    public convenience init(
        _ store: OfflineStore, transport: any Transport,
        credentials: any Credentials = NoCredentials(),
        options: Replayer.Options = Replayer.Options(), user: String? = nil,
        reachability: any Reachability = SystemReachability()
    ) {
        self.init(
            store.events, transport: transport, credentials: credentials, options: options,
            // The service keeps the store, which cleans up by itself.
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
