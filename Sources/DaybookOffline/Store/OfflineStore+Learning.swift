// The learning downloads of a store. Spec/model/learning.md.

import Daybook
import Foundation

extension LearningDownloads {
    /// Creates downloads from a server with the protocol of Spec/model/learning.md, LRN-40. `run()` does the
    /// work.
    ///
    /// - Parameters:
    ///   - store: the store of lessons and review sessions.
    ///   - base: the server's address, http or https. The token is sent to its origin only.
    ///   - credentials: the source of the token.
    ///   - user: the user whose sessions are fetched and whose settings apply.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, pass `AlwaysReachable()`.
    ///   - policy: the rules for automatic fetches.
    ///   - options: limits and times. `imageBytesMax` and `imagesAtOnce` apply to files, `cityBytesMax` to
    ///     all files of a lesson or a session; a failed fetch is retried after `pausedRetry`.
    public init(
        _ store: OfflineStore, base: URL, credentials: any Credentials = NoCredentials(),
        user: String, reachability: any Reachability = SystemReachability(), policy: PrefetchPolicy,
        options: DownloadManager.Options = DownloadManager.Options()
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials, origin: HTTPOrigin(base), for: store.events)
        self.init(
            store, source: HTTPLearningSource(base: base, authorizer: authorizer), user: user,
            reachability: reachability, policy: policy, options: options)
    }

    /// Creates downloads for an app with its own source of lessons and review sessions.
    ///
    /// - Parameters:
    ///   - store: the store of lessons and review sessions.
    ///   - source: the source of lessons and review sessions.
    ///   - user: the user whose sessions are fetched and whose settings apply.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, pass `AlwaysReachable()`.
    ///   - policy: the rules for automatic fetches.
    ///   - options: limits and times, as above.
    public init(
        _ store: OfflineStore, source: any LearningSource, user: String,
        reachability: any Reachability = SystemReachability(), policy: PrefetchPolicy,
        options: DownloadManager.Options = DownloadManager.Options()
    ) {
        self.init(
            store.learning, source, user: user, reachability, policy, options)
    }
}
