// How downloads interpret a response's head. Between BoundedHTTPClient and the handlers of bodies.
// Spec/model/downloads.md, DL-11, DL-12.

import Daybook

extension BoundedHTTPResponseHead {
    /// The error for a status that asks for a later retry; nil for any other.
    var retryError: DownloadError? {
        guard status == 408 || status == 425 || status == 429 || status >= 500 else { return nil }
        return DownloadError(
            .unavailable, "the server answers \(status)",
            retryAfterSeconds: self["Retry-After"].flatMap {
                HTTPDate.retryAfterSeconds($0, now: self["Date"])
            })
    }

    /// The value of `Content-Length`; nil if it is missing or no valid length.
    var contentLength: Int? {
        self["Content-Length"].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// Whether the head, or the protocol, says how the end of the body is found. If not, the body ends with the
    /// connection, and a connection that breaks looks the same. Known once the response has ended.
    var hasEnd: Bool { isFramed || contentLength != nil || self["Transfer-Encoding"] != nil }
}
