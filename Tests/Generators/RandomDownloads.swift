// Events of few download jobs, so that they affect each other. Part of RandomEvents.

import DaybookOffline
import DaybookTestKit

extension Choices {
    /// Draws the data of any event about a download.
    package mutating func downloadPayload() throws -> any EventPayload {
        // Rare, because later events of the job have no effect.
        if bool(oneIn: 27) { return try payload(DownloadRemoved.self) }
        return try payload(ofAny: [
            DownloadQueued.self, DownloadQueued.self, DownloadStarted.self, DownloadStarted.self,
            DownloadPaused.self, DownloadFailed.self, DownloadCompleted.self,
            DownloadCancelled.self, DownloadCancelled.self,
        ])
    }
}
