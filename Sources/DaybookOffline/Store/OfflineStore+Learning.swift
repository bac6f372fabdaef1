// The learning downloads of a store. Spec/model/learning.md.

import Daybook
import Foundation

extension LearningDownloads {
    /// Creates downloads from a server: the protocol of Spec/model/learning.md, LRN-40. `run()` does the
    /// work.
    ///
    /// - Parameters:
    ///   - store: where lessons and review sessions are kept.
    ///   - base: the server's address, http or https. The token goes to its origin only.
    ///   - credentials: where the token comes from.
    ///   - user: whose sessions, and whose settings count.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, give `AlwaysReachable()`.
    ///   - policy: what is fetched by itself, and when.
    ///   - options: limits and times. `imageBytesMax` and `imagesAtOnce` are those of files,
    ///     `cityBytesMax` that of all files of a lesson or a session; what was not to be had is
    ///     asked for again after `pausedRetry`.
    public init(
        _ store: OfflineStore, base: URL, credentials: any Credentials = NoCredentials(),
        user: String, reachability: any Reachability = SystemReachability(), policy: PrefetchPolicy,
        options: DownloadManager.Options = DownloadManager.Options()
    ) {
        self.init(
            store.events, store.files, base: base, credentials: credentials, user: user,
            reachability: reachability, policy: policy, options: options)
    }

    /// Creates downloads for an app that gets lessons and review sessions its own way.
    ///
    /// - Parameters:
    ///   - store: where lessons and review sessions are kept.
    ///   - source: where they come from.
    ///   - user: whose sessions, and whose settings count.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, give `AlwaysReachable()`.
    ///   - policy: what is fetched by itself, and when.
    ///   - options: limits and times, as above.
    public init(
        _ store: OfflineStore, source: any LearningSource, user: String,
        reachability: any Reachability = SystemReachability(), policy: PrefetchPolicy,
        options: DownloadManager.Options = DownloadManager.Options()
    ) {
        self.init(
            store.events, store.files, source: source, user: user, reachability: reachability,
            policy: policy, options: options)
    }
}
