// What an answer to a request for an image means, by its status and headers alone. One pure function:
// every row of the table in Spec/model/downloads.md, DL-16.

import Daybook
import Foundation

/// What is to be done with an answer.
enum RangeAnswer: Hashable {
    /// The body goes behind what is there.
    case append
    /// The body is the whole: what is there goes.
    case restart
    /// Nothing is missing.
    case complete
    /// Come back later.
    case later(DownloadError)
    /// Not what the bytes so far are the beginning of, or not what was promised: fetch it anew.
    case wrong(String)
    /// It is somewhere else.
    case elsewhere(URL)
    /// It is not to be had.
    case refused(DownloadError)

    /// What was asked.
    struct Question {
        var url: URL
        /// The first byte that was asked for; nil for all.
        var offset: Int?
        /// What is known of the content.
        var sidecar: PartialFile.Sidecar
        /// Bytes that the manifest says it has.
        var size: Int?
        /// Bytes that it may have at most.
        var bytesMax: Int
    }

    init(_ head: BoundedHTTPResponseHead, to question: Question) {
        if let retryError = head.retryError {
            self = .later(retryError)
            return
        }
        switch head.status {
        case 200: self = Self.whole(head, question)
        case 206: self = Self.part(head, question)
        case 416: self = Self.unsatisfied(head, question)
        case 301, 302, 303, 307, 308:
            guard let place = head["Location"],
                let url = URL(string: place, relativeTo: question.url)?.absoluteURL,
                CityManifest.isFetchable(url),
                // What was asked for in private is not asked for in public.
                url.scheme?.lowercased() == "https" || question.url.scheme?.lowercased() == "http"
            else {
                self = .refused(Authorizer.refusal(head, "an image"))
                return
            }
            self = .elsewhere(url)
        default: self = .refused(Authorizer.refusal(head, "an image"))
        }
    }

    private static func whole(_ head: BoundedHTTPResponseHead, _ question: Question) -> RangeAnswer
    {
        guard head.isPlain else { return .wrong("the server packs an image") }
        guard (head.contentLength ?? 0) <= question.bytesMax else {
            return .wrong("an image has more bytes than announced or allowed")
        }
        return .restart
    }

    private static func part(_ head: BoundedHTTPResponseHead, _ question: Question) -> RangeAnswer {
        guard let offset = question.offset else {
            return .wrong("the server sends a part that nobody asked for")
        }
        guard head.isPlain, let range = ContentRange(head["Content-Range"]), range.first == offset,
            let last = range.last
        else { return .wrong("the server sends another part than was asked for") }
        if let length = head.contentLength, length != last - offset + 1 {
            return .wrong("the server sends another part than it says")
        }
        guard isSame(head, question.sidecar) else {
            return .wrong("an image has changed while it was fetched")
        }
        guard last < question.bytesMax, range.total ?? 0 <= question.bytesMax,
            question.sidecar.total == nil || range.total == nil
                || question.sidecar.total == range.total
        else { return .wrong("an image has another length than before") }
        return .append
    }

    /// Whether an answer is about the content that is known. A tag tells best; a weak one is not
    /// the strong one that is known, and does not vouch for every byte.
    private static func isSame(_ head: BoundedHTTPResponseHead, _ sidecar: PartialFile.Sidecar)
        -> Bool
    {
        if let known = sidecar.etag, let tag = head["ETag"] { return tag == known }
        if let known = sidecar.lastModified, let date = head["Last-Modified"] {
            return date == known
        }
        return true
    }

    private static func unsatisfied(_ head: BoundedHTTPResponseHead, _ question: Question)
        -> RangeAnswer
    {
        guard let offset = question.offset, let range = ContentRange(head["Content-Range"]),
            range.last == nil, range.total == offset, question.size ?? offset == offset,
            question.sidecar.total ?? offset == offset
        else { return .wrong("an image is shorter than it was") }
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
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
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
