// How downloads are done: limits and times. Spec/model/downloads.md.

import Daybook
import Foundation

extension DownloadManager {
    /// Limits and times.
    public struct Options: Sendable {
        /// Jobs that are worked on at the same time.
        public var jobsAtOnce = 1
        /// Images of a job that are fetched at the same time.
        public var imagesAtOnce = 4
        /// Bytes of one image at most.
        public var imageBytesMax = 32 * 1_048_576
        /// Bytes of all images of a city at most.
        public var cityBytesMax = 256 * 1_048_576
        /// Headers, certificate and proxy, the time that a server may be silent, and whether the token
        /// may go over plain `http`.
        public var http = HTTPOptions()
        /// The time that a server may be silent, in seconds: that of `http`.
        public var timeoutSeconds: Double {
            get { http.timeoutSeconds }
            set { http.timeoutSeconds = newValue }
        }
        /// True if the token may go over `http` to another machine: that of `http`.
        public var allowsTokenInClear: Bool {
            get { http.allowsTokenInClear }
            set { http.allowsTokenInClear = newValue }
        }
        /// Failures in a row without progress, 16 KiB or an image, after which a job is paused.
        public var failuresMax = 5
        /// The times between attempts.
        public var backoff = RetryBackoff()
        /// When a job that was paused for want of a connection is tried again by itself.
        public var pausedRetry = Duration.seconds(15 * 60)
        /// Between two words about bytes at least.
        public var progressInterval = Duration.milliseconds(100)
        /// Where partial files lie, in `daybook-downloads` and there in a folder of the log's own;
        /// nil: the cache folder of the store, and where it has none, the folder `incoming` among
        /// its files. Losing it costs only what must be fetched again.
        public var cacheFolder: String?
        /// Waits. Tests bring their own.
        var sleep: @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }

        /// The defaults.
        public init() {}
    }
}
