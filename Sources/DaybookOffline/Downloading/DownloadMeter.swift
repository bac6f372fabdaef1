// How far a job has come: the numbers of all its images together, told at most so often. Written to
// by the fetches, read by the manager and by its subscribers. Spec/model/downloads.md, DL-20.

import Foundation
import Synchronization

/// The numbers of one job.
final class DownloadMeter: Sendable {
    private struct State {
        var images: [URL: Image] = [:]
        /// How many images the manifest names, and how many of them are there; one address may
        /// stand for several.
        var count = 0
        var done = 0
        var step: String
        var downloaded: Int
        var total: Int
        var told: ContinuousClock.Instant?
    }

    private struct Image {
        var names: Int
        var bytes: Int
        var total: Int
        var isDone = false
    }

    private let state: Mutex<State>
    private let interval: Duration
    private let bytesMax: Int
    private let tell: @Sendable (DownloadMeter) -> Void

    /// - Parameters:
    ///   - numbers: what holds until the images are known.
    ///   - bytesMax: bytes that all images may have together.
    ///   - interval: between two words about bytes at least.
    ///   - tell: called when the numbers have changed.
    init(
        _ numbers: DownloadNumbers, bytesMax: Int, interval: Duration,
        tell: @escaping @Sendable (DownloadMeter) -> Void
    ) {
        state = Mutex(
            State(
                step: numbers.currentStep, downloaded: numbers.downloadedBytes,
                total: numbers.totalBytes))
        self.bytesMax = bytesMax
        self.interval = interval
        self.tell = tell
    }

    /// The numbers now.
    var numbers: DownloadNumbers {
        state.withLock {
            DownloadNumbers(
                currentStep: $0.step, totalBytes: $0.total, downloadedBytes: $0.downloaded)
        }
    }

    /// The job has these images, of which so many bytes, of so many, are there already.
    func begin(
        _ images: [CityManifest.Image], there: [URL: (bytes: Int, total: Int)]
    ) {
        state.withLock { state in
            state.images = [:]
            for image in images {
                let known = there[image.url] ?? (0, image.size ?? 0)
                state.images[
                    image.url,
                    default: Image(
                        names: 0, bytes: known.bytes, total: max(known.bytes, known.total))
                ].names += 1
            }
            state.count = images.count
            state.done = 0
            state.total = state.images.values.reduce(0) { $0 + $1.total }
            state.downloaded = state.images.values.reduce(0) { $0 + $1.bytes }
            Self.describe(&state)
        }
        tell(self)
    }

    /// An image has so many bytes by now, of so many if that is known.
    ///
    /// - Returns: false if that is more than a city may have.
    func set(_ url: URL, bytes: Int, of total: Int?) -> Bool {
        let now = ContinuousClock.now
        let (fits, isDue) = state.withLock { state -> (Bool, Bool) in
            guard var image = state.images[url] else { return (true, false) }
            state.downloaded += bytes - image.bytes
            let expected = max(bytes, total ?? image.total)
            state.total += expected - image.total
            (image.bytes, image.total) = (bytes, expected)
            state.images[url] = image
            let isDue = state.told.map { now - $0 >= interval } ?? true
            if isDue { state.told = now }
            return (state.downloaded <= bytesMax, isDue)
        }
        if isDue { tell(self) }
        return fits
    }

    /// An image is there.
    func finish(_ url: URL, bytes: Int) {
        _ = set(url, bytes: bytes, of: bytes)
        state.withLock { state in
            guard let image = state.images[url], !image.isDone else { return }
            state.images[url]?.isDone = true
            state.done += image.names
            Self.describe(&state)
        }
        tell(self)
    }

    private static func describe(_ state: inout State) {
        state.step = "Downloading images (\(state.done)/\(state.count))"
    }
}
