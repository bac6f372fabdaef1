// Events of few download jobs, so that they meet. Feeds EventHistory; part of RandomEvents.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    private static let jobs = [
        "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b",
        "00000000-0000-4000-8000-00000000000c",
    ]

    /// The data of any event about a download.
    package mutating func downloadPayload() -> any EventPayload {
        let job = element(of: Self.jobs)
        switch int(in: 0...8) {
        case 0, 1: return DownloadQueued(jobId: job, cityId: entityID(), isExplicit: bool())
        case 2, 3: return DownloadStarted(jobId: job, numbers: downloadNumbers())
        case 4:
            return DownloadPaused(
                jobId: job, numbers: downloadNumbers(), reason: element(of: PauseReason.allCases))
        case 5:
            return DownloadFailed(
                jobId: job, numbers: downloadNumbers(),
                errorMessage: element(of: ["no", "é\u{1}\""]))
        case 6: return DownloadCompleted(jobId: job, totalBytes: int(in: 0...99))
        case 7:
            // Seldom: it puts an end to what may happen to a job.
            return bool(oneIn: 3) ? DownloadRemoved(jobId: job) : DownloadCancelled(jobId: job)
        default: return DownloadCancelled(jobId: job)
        }
    }

    private mutating func downloadNumbers() -> DownloadNumbers {
        DownloadNumbers(
            currentStep: element(of: ["Initializing...", "Downloading images (5/10)", ""]),
            totalBytes: int(in: 0...99), downloadedBytes: int(in: 0...99))
    }
}
