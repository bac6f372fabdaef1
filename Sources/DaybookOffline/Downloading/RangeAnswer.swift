// Classifies the response to a request for an image by its status and headers alone. One pure function,
// with every row of the table in Spec/model/downloads.md, DL-16.

import Daybook
import Foundation

/// The handling of a response.
enum RangeAnswer: Hashable {
    /// The body is appended to the bytes so far.
    case append
    /// The body is the complete image and replaces the bytes so far.
    case restart
    /// No byte is missing.
    case complete
    /// The request is retried later.
    case later(DownloadError)
    /// The response does not fit the bytes so far or the manifest: the image is fetched from the start.
    case wrong(String)
    /// The request is sent to another address.
    case redirected(URL)
    /// The response is not the server's, or not an image: the answer of a portal.
    case portal(String)
    /// The image is not available.
    case refused(DownloadError)

    /// The request.
    struct Question {
        /// The name of the image, for messages.
        var name: String
        var url: URL
        /// The first byte of the requested range; nil without range.
        var offset: Int?
        /// The known properties of the complete content.
        var sidecar: PartialFile.Sidecar
        /// The size according to the manifest, in bytes.
        var size: Int?
        /// The greatest size allowed, in bytes.
        var bytesMax: Int
        /// Whether a redirect may lead to this machine or its network.
        var allowsLocal = false
    }

    init(_ head: BoundedHTTPResponseHead, to question: Question) {
        if let retryError = head.retryError {
            self = .later(retryError)
            return
        }
        switch head.status {
        case 200 where PortalCheck.isWebPage(head), 206 where PortalCheck.isWebPage(head):
            self = .portal("\(question.name): the response is a web page")
        case 200: self = Self.classifyComplete(head, question)
        case 206: self = Self.classifyPartial(head, question)
        case 416: self = Self.classifyUnsatisfiable(head, question)
        case 301, 302, 303, 307, 308:
            guard let location = head["Location"],
                let url = URL(string: location, relativeTo: question.url)?.absoluteURL,
                CityManifest.isFetchable(url),
                // A redirect must not downgrade https to http.
                url.scheme?.lowercased() == "https" || question.url.scheme?.lowercased() == "http"
            else {
                self = .refused(Authorizer.refusal(head, question.name))
                return
            }
            guard question.allowsLocal || HTTPOrigin(url)?.isLocal == false else {
                self = .portal(
                    "\(question.name): a redirect to an address of this machine or its network")
                return
            }
            self = .redirected(url)
        default: self = .refused(Authorizer.refusal(head, question.name))
        }
    }

    private static func classifyComplete(
        _ head: BoundedHTTPResponseHead, _ question: Question
    ) -> RangeAnswer {
        guard head.isPlain else {
            return .wrong("the response with \(question.name) has a content encoding")
        }
        guard (head.contentLength ?? 0) <= question.bytesMax else {
            return .wrong("\(question.name) has more bytes than announced or allowed")
        }
        return .restart
    }

    private static func classifyPartial(
        _ head: BoundedHTTPResponseHead, _ question: Question
    ) -> RangeAnswer {
        guard let offset = question.offset else {
            return .wrong("\(question.name): the server sends a range that was not requested")
        }
        guard head.isPlain, let range = ContentRange(head["Content-Range"]), range.first == offset,
            let last = range.last
        else {
            return .wrong("\(question.name): the server sends another range than was requested")
        }
        if let length = head.contentLength, length != last - offset + 1 {
            return .wrong(
                "\(question.name): the response's Content-Length contradicts its Content-Range")
        }
        guard isSame(head, question.sidecar) else {
            return .wrong("\(question.name) changed while it was fetched")
        }
        guard last < question.bytesMax, range.total ?? 0 <= question.bytesMax,
            question.sidecar.total == nil || range.total == nil
                || question.sidecar.total == range.total
        else { return .wrong("\(question.name) has another length than before") }
        return .append
    }

    /// True if a response is about the known content. The entity tag decides before the date. A weak tag
    /// does not equal the known strong one, and does not identify every byte.
    private static func isSame(_ head: BoundedHTTPResponseHead, _ sidecar: PartialFile.Sidecar)
        -> Bool
    {
        if let known = sidecar.etag, let tag = head["ETag"] { return tag == known }
        if let known = sidecar.lastModified, let date = head["Last-Modified"] {
            return date == known
        }
        return true
    }

    private static func classifyUnsatisfiable(
        _ head: BoundedHTTPResponseHead, _ question: Question
    ) -> RangeAnswer {
        guard let offset = question.offset, let range = ContentRange(head["Content-Range"]),
            range.last == nil, range.total == offset, question.size ?? offset == offset,
            question.sidecar.total ?? offset == offset
        else { return .wrong("\(question.name) is shorter than before") }
        return .complete
    }
}

/// The value of `Content-Range` (RFC 9110, 14.4): `bytes 0-99/1234`, `bytes 0-99/*`, `bytes */1234`.
struct ContentRange: Hashable {
    var first: Int?
    var last: Int?
    var total: Int?

    init?(_ text: String?) {
        guard let text, text.utf8.count <= 100 else { return nil }
        let fields = text.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count == 2, fields[0].lowercased() == "bytes" else { return nil }
        let parts = fields[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[1] != "*" {
            guard let total = Self.number(parts[1]) else { return nil }
            self.total = total
        }
        guard parts[0] != "*" else {
            if total == nil { return nil }
            return
        }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
            first <= last, total.map({ last < $0 }) ?? true
        else { return nil }
        (self.first, self.last) = (first, last)
    }

    private static func number(_ text: Substring) -> Int? {
        guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            return nil
        }
        return Int(text)
    }
}
