// The download manager of a store. Spec/model/downloads.md.

import Daybook
import Foundation

extension DownloadManager {
    /// Creates a manager that asks a server: `GET {base}/cities/{id}` for what belongs to a city, and
    /// for its images. `run()` does the work.
    ///
    /// - Parameters:
    ///   - store: where jobs, cities and images are kept.
    ///   - base: the server's address, http or https. The token goes to its origin only.
    ///   - credentials: where the token comes from.
    ///   - user: whose settings and storage limit count.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, give `AlwaysReachable()`.
    ///   - options: limits and times.
    public init(
        _ store: OfflineStore, base: URL, credentials: any Credentials = NoCredentials(),
        user: String, reachability: any Reachability = SystemReachability(),
        options: Options = Options()
    ) {
        self.init(
            store.events, store.files, base: base, credentials: credentials, user: user,
            reachability: reachability, options: options.caching(in: store.cacheFolder))
    }

    /// Creates a manager for an app that gets manifests its own way; images are fetched over HTTP.
    ///
    /// - Parameters:
    ///   - store: where jobs, cities and images are kept.
    ///   - source: where manifests come from.
    ///   - imageOrigin: the server whose images need the token; nil: none does.
    ///   - credentials: where that token comes from.
    ///   - user: whose settings and storage limit count.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, give `AlwaysReachable()`.
    ///   - options: limits and times.
    public init(
        _ store: OfflineStore, source: any CityManifestSource, imageOrigin: URL? = nil,
        credentials: any Credentials = NoCredentials(), user: String,
        reachability: any Reachability = SystemReachability(), options: Options = Options()
    ) {
        self.init(
            store.events, store.files, source: source, imageOrigin: imageOrigin,
            credentials: credentials, user: user, reachability: reachability,
            options: options.caching(in: store.cacheFolder))
    }
}

extension DownloadManager.Options {
    /// These options, with the store's cache folder where they name none.
    fileprivate func caching(in folder: URL?) -> Self {
        var options = self
        options.cacheFolder = cacheFolder ?? folder?.path
        return options
    }
}
