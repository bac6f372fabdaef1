// Fetches small bodies, held in memory: a manifest, learning material and its files. Above Authorizer and
// GatheredBody. Spec/model/downloads.md, DL-10, DL-25; Spec/model/learning.md, LRN-40.

import Daybook
import Foundation

extension Authorizer {
    /// What a request asks for.
    enum Expected {
        /// A JSON object.
        case object
        /// Any content that is not a web page, unless the URL asks for one.
        case file
    }

    /// Fetches a complete body of status 200.
    ///
    /// - Parameters:
    ///   - subject: the name of what is requested, for messages.
    ///   - bytesMax: the greatest size.
    /// - Throws: `DownloadError`: `unavailable` also for the answer of a portal, for a body that is empty
    ///   or not complete, and for one that is no JSON object and is not announced as JSON; `tooLarge`; `wrongContent`; as `refusal(_:_:)`. What `send` throws.
    func body(
        of url: URL, _ expected: Expected, bytesMax: Int, _ subject: String
    ) async throws -> [UInt8] {
        let (head, bytes) = try await gather(url, expected, bytesMax, subject)
        if let digest = ContentDigest.sha256(head) {
            guard digest == FileID(of: bytes) else {
                throw DownloadError(.wrongContent, "\(subject): the checksum is wrong")
            }
            return bytes
        }
        if let fault = WebPage.fault(of: bytes, at: expected == .file ? url.absoluteString : nil) {
            throw PortalCheck.error(subject, "the response \(fault)")
        }
        guard
            !PortalCheck.isWebPage(head) || expected == .file && WebPage.isAskedFor(by: url)
        else { throw PortalCheck.error(subject, "the response is a web page") }
        guard !head.hasEnd else {
            guard expected == .file || PortalCheck.isJSON(head) || (try? JSONFields(bytes)) != nil
            else { throw PortalCheck.error(subject, "the response is no JSON object") }
            return bytes
        }
        // Only a second response, or the syntax, shows that a body without an announced end is complete.
        let isComplete: Bool
        switch expected {
        case .object: isComplete = (try? JSONFields(bytes)) != nil
        case .file:
            isComplete = try await gather(url, expected, bytesMax, subject).bytes == bytes
        }
        guard isComplete else {
            throw DownloadError(.unavailable, "\(subject): the response was incomplete")
        }
        return bytes
    }

    private func gather(
        _ url: URL, _ expected: Expected, _ bytesMax: Int, _ subject: String
    ) async throws -> (head: BoundedHTTPResponseHead, bytes: [UInt8]) {
        var request = BoundedHTTPRequest(url)
        request.set("Accept", expected == .object ? "application/json" : "*/*")
        let body = GatheredBody(bytesMax: bytesMax)
        let head = try await send(request, to: body)
        if let retryError = head.retryError { throw retryError }
        // Portals redirect temporarily; a server that has moved says so.
        if [302, 303, 307].contains(head.status) {
            throw PortalCheck.error(subject, "the response is a redirect (\(head.status))")
        }
        guard head.status == 200 else { throw Self.refusal(head, subject) }
        guard head.isPlain else {
            throw DownloadError(.wrongContent, "\(subject): the response has a content encoding")
        }
        guard let bytes = body.bytes else {
            throw DownloadError(
                .tooLarge, "\(subject): the response has more than \(bytesMax) bytes")
        }
        return (head, bytes)
    }
}
