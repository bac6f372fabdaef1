// How far a job has come: the numbers of all its images together, told at most so often. Written to
// by those who fetch, read by the manager and by whoever looks on. Spec/downloads.md, DL-20.

import Foundation
import OfflineModel
import Synchronization

/// The numbers of one job.
final class DownloadMeter: Sendable {
    private struct State {
        var images: [URL: Image] = [:]
        /// How many images the manifest names, and how many of them are there; one address may
        /// stand for several.
        var count = 0
        var done = 0
        var step = DownloadNumbers.initial.currentStep
        var downloaded = 0
        var total = 0
        var told: ContinuousClock.Instant?
    }

    private struct Image {
        var names: Int
        var bytes = 0
        var total = 0
        var isDone = false
    }

    private let state = Mutex(State())
    private let interval: Duration
    private let bytesMax: Int
    private let tell: @Sendable () -> Void

    /// - Parameters:
    ///   - bytesMax: bytes that all images may have together.
    ///   - interval: between two words about bytes at least.
    ///   - tell: called when the numbers have changed.
    init(bytesMax: Int, interval: Duration, tell: @escaping @Sendable () -> Void) {
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

    /// The job has these images.
    func begin(_ images: [CityManifest.Image]) {
        state.withLock { state in
            state.images = [:]
            for image in images {
                state.images[image.url, default: Image(names: 0)].names += 1
                state.images[image.url]?.total = image.size ?? 0
            }
            state.count = images.count
            state.done = 0
            state.total = state.images.values.reduce(0) { $0 + $1.total }
            state.downloaded = 0
            Self.describe(&state)
        }
        tell()
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
        if isDue { tell() }
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
        tell()
    }

    private static func describe(_ state: inout State) {
        state.step = "Downloading images (\(state.done)/\(state.count))"
    }
}
