// The process that DownloadHistory kills: it opens a store, downloads a city, and exits when the city is
// complete.

import DaybookOffline
import Foundation

/// The work of one process.
package struct DownloadChild: Sendable {
    /// The store's folder.
    package var folder: String
    /// The server's address.
    package var base: URL
    /// The city.
    package var city: String

    package init(folder: String, base: URL, city: String) {
        self.folder = folder
        self.base = base
        self.city = city
    }

    /// The user whose settings apply.
    package static let user = "user"

    /// Downloads the city, and continues the work of earlier processes.
    ///
    /// - Throws: `DownloadHistoryFailure` if the job fails.
    package func run() async throws {
        let store = try await OfflineStore.open(at: URL(filePath: folder))
        let manager = DownloadManager(
            store, base: base, user: Self.user, reachability: AlwaysReachable())
        guard store.view(CitiesView.self).offline(city) == nil else {
            // An earlier process was killed after it completed the download.
            try await manager.tidy()
            return try await store.close()
        }
        let job = try await store.downloads.queue(city)
        let work = Task { try await manager.run() }
        for await job in manager.progress(of: job.id) {
            switch job.status {
            case .queued, .downloading: continue
            case .completed: break
            default:
                throw DownloadHistoryFailure(
                    "the job is \(job.status.rawValue): \(job.errorMessage ?? "")")
            }
            break
        }
        work.cancel()
        try await work.value
        try await store.close()
    }
}

/// The error of a history with a wrong result.
package struct DownloadHistoryFailure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
