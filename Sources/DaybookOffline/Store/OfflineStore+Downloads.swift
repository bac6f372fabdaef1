// The download manager of a store. Spec/model/downloads.md.

import Daybook
import Foundation

extension DownloadManager {
    /// Creates a manager for a server: `GET {base}/cities/{id}` returns the manifest of a city, with the
    /// addresses of its images. `run()` does the work.
    ///
    /// - Parameters:
    ///   - store: the store of jobs, cities and images.
    ///   - base: the server's address, http or https. The token is sent to its origin only.
    ///   - credentials: the source of the token.
    ///   - user: the user whose settings and storage limit apply.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, pass `AlwaysReachable()`.
    ///   - options: limits and times.
    public init(
        _ store: OfflineStore, base: URL, credentials: any Credentials = NoCredentials(),
        user: String, reachability: any Reachability = SystemReachability(),
        options: Options = Options()
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials, origin: HTTPOrigin(base), for: store.events)
        self.init(
            store.downloads, store.files, HTTPManifestSource(base: base, authorizer: authorizer),
            authorizer, user: user, reachability, options.caching(in: store.cacheFolder))
    }

    /// Creates a manager for an app with its own source of manifests; images are fetched over HTTP.
    ///
    /// - Parameters:
    ///   - store: the store of jobs, cities and images.
    ///   - source: the source of manifests.
    ///   - imageOrigin: the server whose images need the token; nil: none does.
    ///   - credentials: the source of that token.
    ///   - user: the user whose settings and storage limit apply.
    ///   - reachability: the source of the network's state. The system's reports none on a machine
    ///     without a default route: for a server on it, pass `AlwaysReachable()`.
    ///   - options: limits and times.
    public init(
        _ store: OfflineStore, source: any CityManifestSource, imageOrigin: URL? = nil,
        credentials: any Credentials = NoCredentials(), user: String,
        reachability: any Reachability = SystemReachability(), options: Options = Options()
    ) {
        let authorizer = Authorizer(
            options.http, credentials: credentials,
            origin: imageOrigin.flatMap(HTTPOrigin.init), for: store.events)
        self.init(
            store.downloads, store.files, source, authorizer, user: user, reachability,
            options.caching(in: store.cacheFolder))
    }
}

extension DownloadManager.Options {
    /// Returns these options, with the store's cache folder if they name none.
    fileprivate func caching(in folder: URL?) -> Self {
        var options = self
        options.cacheFolder = cacheFolder ?? folder?.path
        return options
    }
}
