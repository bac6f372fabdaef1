// The options of downloads: limits and times. Spec/model/downloads.md.

import Daybook
import Foundation

extension DownloadManager {
    /// Limits and times.
    public struct Options: Sendable {
        /// The number of jobs that run at the same time.
        public var jobsAtOnce = 1
        /// The number of images of a job that are fetched at the same time.
        public var imagesAtOnce = 4
        /// The greatest size of one image, in bytes.
        public var imageBytesMax = 32 * 1_048_576
        /// The greatest size of all images of a city together, in bytes.
        public var cityBytesMax = 256 * 1_048_576
        /// Headers, certificate, proxy and timeout, and whether the token may be sent over plain `http`.
        public var http = HTTPOptions()
        /// The longest silence of a server, in seconds: that of `http`.
        public var timeoutSeconds: Double {
            get { http.timeoutSeconds }
            set { http.timeoutSeconds = newValue }
        }
        /// True if the token may be sent over `http` to another machine: that of `http`.
        public var allowsTokenInClear: Bool {
            get { http.allowsTokenInClear }
            set { http.allowsTokenInClear = newValue }
        }
        /// The number of consecutive failures after which a job is paused, or an image is left out because the
        /// server itself answers. Progress, which is 16 KiB or an image, resets the count.
        public var failuresMax = 5
        /// The delays between attempts.
        public var backoff = RetryBackoff()
        /// The time after which a job that was paused without a connection is retried automatically.
        public var pausedRetry = Duration.seconds(15 * 60)
        /// The shortest time between two updates of a job's bytes.
        public var progressInterval = Duration.milliseconds(100)
        /// The folder for partial files, which are stored in `daybook-downloads` and there in a folder
        /// per log. Nil: the cache folder of the store, or, if the store has none, the folder `incoming`
        /// among its files. A loss of the folder costs only that its content is fetched again.
        public var cacheFolder: String?
        /// Waits. Tests replace it.
        var sleep: @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }

        /// The defaults.
        public init() {}
    }
}
