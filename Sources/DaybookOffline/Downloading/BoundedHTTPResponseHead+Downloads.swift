// How downloads read a reply's head. Between BoundedHTTPClient and what becomes of the body.
// Spec/model/downloads.md, DL-11, DL-12.

import Daybook

extension BoundedHTTPResponseHead {
    /// The error of a status that says to come back later; nil for any other.
    var retryError: DownloadError? {
        guard status == 408 || status == 425 || status == 429 || status >= 500 else { return nil }
        return DownloadError(
            .unavailable, "the server answers \(status)",
            retryAfterSeconds: self["Retry-After"].flatMap {
                HTTPDate.retryAfterSeconds($0, now: self["Date"])
            })
    }

    /// The length of the body, if the answer says so and it is a number.
    var contentLength: Int? {
        self["Content-Length"].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}
