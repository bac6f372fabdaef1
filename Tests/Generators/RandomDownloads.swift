// Events of few download jobs, so that they meet. Feeds EventHistory; part of RandomEvents.

import DaybookOffline
import DaybookTestKit

extension Choices {
    /// The data of any event about a download.
    package mutating func downloadPayload() throws -> any EventPayload {
        // Seldom: it puts an end to what may happen to a job.
        if bool(oneIn: 27) { return try payload(DownloadRemoved.self) }
        return try payload(ofAny: [
            DownloadQueued.self, DownloadQueued.self, DownloadStarted.self, DownloadStarted.self,
            DownloadPaused.self, DownloadFailed.self, DownloadCompleted.self,
            DownloadCancelled.self, DownloadCancelled.self,
        ])
    }
}
