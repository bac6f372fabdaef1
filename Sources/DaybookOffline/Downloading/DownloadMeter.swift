// The progress of a job: the sums over all its images, reported at a limited rate. The fetches write it,
// the manager and its subscribers read it. Spec/model/downloads.md, DL-20.

import Foundation
import Synchronization

/// The progress of one job.
final class DownloadMeter: Sendable {
    private struct State {
        var images: [URL: Image] = [:]
        /// The numbers of images in the manifest and of fetched images; one URL may count for several.
        var count = 0
        var done = 0
        var step: String
        var downloaded: Int
        var total: Int
        var lastReport: ContinuousClock.Instant?
    }

    private struct Image {
        var imageCount: Int
        var bytes: Int
        var total: Int
        var isDone = false
    }

    private let state: Mutex<State>
    private let interval: Duration
    private let bytesMax: Int
    private let onChange: @Sendable (DownloadMeter) -> Void

    /// - Parameters:
    ///   - numbers: the numbers until the images are known.
    ///   - bytesMax: the greatest sum of bytes of all images.
    ///   - interval: the shortest time between two reports of bytes.
    ///   - onChange: called when the numbers have changed.
    init(
        _ numbers: DownloadNumbers, bytesMax: Int, interval: Duration,
        onChange: @escaping @Sendable (DownloadMeter) -> Void
    ) {
        state = Mutex(
            State(
                step: numbers.currentStep, downloaded: numbers.downloadedBytes,
                total: numbers.totalBytes))
        self.bytesMax = bytesMax
        self.interval = interval
        self.onChange = onChange
    }

    /// The current numbers.
    var numbers: DownloadNumbers {
        state.withLock {
            DownloadNumbers(
                currentStep: $0.step, totalBytes: $0.total, downloadedBytes: $0.downloaded)
        }
    }

    /// Sets the images of the job and the bytes of each that are already on the device.
    func begin(
        _ images: [CityManifest.Image], stored: [URL: (bytes: Int, total: Int)]
    ) {
        state.withLock { state in
            state.images = [:]
            for image in images {
                let known = stored[image.url] ?? (0, image.size ?? 0)
                state.images[
                    image.url,
                    default: Image(
                        imageCount: 0, bytes: known.bytes, total: max(known.bytes, known.total))
                ].imageCount += 1
            }
            state.count = images.count
            state.done = 0
            state.total = state.images.values.reduce(0) { $0 + $1.total }
            state.downloaded = state.images.values.reduce(0) { $0 + $1.bytes }
            Self.describe(&state)
        }
        onChange(self)
    }

    /// Sets an image's bytes so far, and their total if it is known.
    ///
    /// - Returns: false if the city now exceeds `bytesMax`.
    func set(_ url: URL, bytes: Int, of total: Int?) -> Bool {
        let now = ContinuousClock.now
        let (fits, isDue) = state.withLock { state -> (Bool, Bool) in
            guard var image = state.images[url] else { return (true, false) }
            state.downloaded += bytes - image.bytes
            let expected = max(bytes, total ?? image.total)
            state.total += expected - image.total
            (image.bytes, image.total) = (bytes, expected)
            state.images[url] = image
            let isDue = state.lastReport.map { now - $0 >= interval } ?? true
            if isDue { state.lastReport = now }
            return (state.downloaded <= bytesMax, isDue)
        }
        if isDue { onChange(self) }
        return fits
    }

    /// Marks an image as fetched.
    func finish(_ url: URL, bytes: Int) {
        _ = set(url, bytes: bytes, of: bytes)
        state.withLock { state in
            guard let image = state.images[url], !image.isDone else { return }
            state.images[url]?.isDone = true
            state.done += image.imageCount
            Self.describe(&state)
        }
        onChange(self)
    }

    private static func describe(_ state: inout State) {
        state.step = "Downloading images (\(state.done)/\(state.count))"
    }
}
